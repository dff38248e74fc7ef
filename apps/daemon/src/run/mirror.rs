//! Carries out the requests of LCP sync, like those of any other client.

use super::backend::Daemon;
use std::any::Any;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use volley_fib::ShowTables;
use volley_fib::path::RouteSource;
use volley_fib::{RouteBatch, RouteSet};
use volley_graph::{Activation, ProcessInfo};
use volley_iface::{InterfaceRow, ShowInterfaces};
use volley_lcp::LcpRow;
use volley_model::{Applied, Client, Family, IfAddress, Mac, ModelError, Request, Via};
use volley_netlink::{Backend, InterfaceState, Neighbor, Pending};

const INFO: ProcessInfo = ProcessInfo {
    name: "linux-cp",
    text: "Keeps interfaces and their LCP taps in the kernel the same, and installs the kernel's routes.",
};

/// Starts the process node that follows the kernel.
pub fn start(daemon: &Rc<Daemon>) {
    let volley: Rc<dyn Backend> = daemon.clone();
    let volley: Weak<dyn Backend> = Rc::downgrade(&volley);
    let run = daemon.mirror.clone().run(volley);
    daemon.stack.processes.spawn(INFO, run);
}

impl Backend for Daemon {
    fn change(&self, requests: Vec<Request>) -> Pending<'_, Applied> {
        Box::pin(async move {
            let client = Client::internal(Via::LinuxCp);
            let done = Daemon::change(self, requests, &client).await;
            done.map(|(applied, _)| applied)
                .map_err(|error| error.into_model())
        })
    }

    fn tables(&self) -> Vec<(Family, u32)> {
        let asked = ShowTables { family: None };
        let tables = self.stack.fib.borrow().tables(&asked).tables;
        tables.iter().map(|it| (it.family, it.table)).collect()
    }

    fn interfaces(&self) -> Vec<InterfaceState> {
        let all = self.stack.ask(&ShowInterfaces { name: None });
        let all = all.map_or(Vec::new(), |reply| reply.interfaces);
        let state = |row: InterfaceRow| InterfaceState {
            name: row.name,
            state: row.state,
            mac: row.mac,
            mtu: row.mtu,
            addresses: row.addresses,
            automatic: row.automatic,
            tables: row.tables,
            sub_interface: row.sub_interface,
        };
        all.into_iter().map(state).collect()
    }

    fn neighbors(&self) -> Vec<Neighbor> {
        let all = self.stack.fib.borrow().neighbors_of(None, None);
        let fixed = all.into_iter().flatten().filter(|(.., it)| !it.learned);
        let neighbor = |(interface, address, it): (_, _, volley_fib::Neighbor)| Neighbor {
            interface,
            address,
            mac: Mac(it.mac),
        };
        fixed.map(neighbor).collect()
    }

    fn pairs(&self) -> Vec<LcpRow> {
        self.stack.lcp.rows(&self.stack.interfaces.borrow())
    }

    fn routes(&self, batch: &RouteBatch) -> Result<(), ModelError> {
        let done = self.stack.fib.borrow_mut().route_batch(batch);
        // Frees early what the batch has replaced: a full table comes in hundreds of batches.
        self.stack.settled();
        done.map(drop)
    }

    fn route_set(&self, family: Family, table: u32) -> Result<RouteSet, ModelError> {
        let fib = self.stack.fib.borrow();
        fib.route_set(family, table, RouteSource::LcpRt)
    }

    fn own_version(&self) -> u64 {
        self.stack.fib.borrow().own_version()
    }

    fn own_routes(&self, family: Family, table: u32) -> Result<RouteSet, ModelError> {
        self.stack.fib.borrow().own_routes(family, table)
    }

    fn automatic(
        &self,
        interface: &str,
        address: IfAddress,
        there: bool,
    ) -> Result<(), ModelError> {
        let done = {
            let mut fib = self.stack.fib.borrow_mut();
            fib.automatic_address(interface, address, there)
        };
        self.stack.neighbors.refresh();
        self.stack.engine.borrow().wake();
        done
    }

    fn follow(&self) {
        self.stack.lcp_follow();
    }

    fn watch(&self, fd: OwnedFd) -> Option<Box<dyn Any>> {
        let mirror = self.mirror.clone();
        let body = move || {
            mirror.stir();
            Activation::Idle
        };
        let watch = self.stack.processes.watch(INFO, fd, body).ok()?;
        Some(Box::new(watch))
    }

    fn version(&self) -> u64 {
        self.stack.fib.borrow().attachments()
    }
}
