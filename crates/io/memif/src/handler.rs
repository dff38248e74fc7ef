//! Requests about memif interfaces, and what `show` commands report about them.

use crate::control::{Control, Port};
use crate::model::MemifSocket;
use crate::show::{MemifReply, MemifRow, MemifSocketRow, ShowMemif};
use crate::socket::Address;
use std::cell::RefCell;
use std::rc::Rc;
use volley_iface::{Registry, WorkerAdd};
use volley_model::{Applied, Handler, ModelError, Request, key_value};

/// Handler of requests about memif.
pub struct MemifHandler(Rc<RefCell<Control>>);

impl MemifHandler {
    /// A handler over the daemon's interfaces.
    pub fn new(control: Rc<RefCell<Control>>) -> Self {
        MemifHandler(control)
    }

    /// Register the control as the owner of sockets.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let control = self.0.clone();
        registry.own(move |key, now: Option<MemifSocket>| {
            let (mut control, id) = (control.borrow_mut(), key_value(key, 0));
            match now {
                Some(socket) => control.set_socket(id, Address(socket.filename)),
                None => control.delete_socket(id).map(|()| Applied::one()),
            }
        });
        let control = self.0.clone();
        registry.perform(move |_: WorkerAdd| {
            control.borrow_mut().publish_queues();
            Ok(Applied::nothing())
        });
        let control = self.0.clone();
        registry.answer(move |_: ShowMemif| {
            let mut control = control.borrow_mut();
            control.turn();
            Ok(report(&control))
        });
    }
}

fn row(control: &Control, port: &Port) -> MemifRow {
    let mut row = MemifRow {
        name: control.name(port.index),
        id: port.spec.id,
        socket_id: port.spec.socket,
        role: port.spec.role,
        peer: port.peer.clone(),
        reason: port.reason.clone(),
        has_secret: port.spec.secret.is_some(),
        connections: port.connections,
        ..MemifRow::default()
    };
    if let Some(link) = &port.link {
        row.connected = true;
        let (regions, bytes) = link.memory().size();
        (row.regions, row.region_bytes) = (regions as u32, bytes as u64);
        row.rx_rings = link.rx().iter().map(|q| u32::from(q.rx.slots())).collect();
        row.tx_rings = link.tx().iter().map(|q| u32::from(q.slots())).collect();
        row.interrupts = link.wakeups_sent();
    }
    row
}

fn report(control: &Control) -> MemifReply {
    let sockets = control.sockets.iter().map(|(id, socket)| MemifSocketRow {
        id: *id,
        filename: socket.address.0.display().to_string(),
        listening: socket.listener.is_some(),
        interfaces: control
            .ports
            .values()
            .filter(|p| p.spec.socket == *id)
            .count() as u32,
    });
    MemifReply {
        sockets: sockets.collect(),
        interfaces: control.ports.values().map(|p| row(control, p)).collect(),
    }
}

impl Handler for MemifHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let mut control = self.0.borrow_mut();
        Some(match request {
            Request::InterfaceCreate(spec) => control
                .create(spec, &spec.kind_as()?)
                .map(|()| Applied::one().named(&spec.name)),
            Request::InterfaceDelete { name } => {
                let index = control.find(name)?;
                control.delete(index).map(|()| Applied::one())
            }
            _ => return None,
        })
    }
}
