//! Opens packet sockets on interfaces of the kernel, and closes them.

use crate::queue::{PacketRx, PacketTx};
use crate::ring::RxRing;
use crate::sys::{self, Geometry};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use volley_graph::GraphError;
use volley_iface::driver::{Caps, Port, Refusal};
use volley_iface::{NewInterface, Registry};
use volley_linux::{Driver, Link, Links, LinuxError, Namespace, Standing};
use volley_model::{
    AdminState, Applied, Handler, InterfaceKind, InterfaceSpec, ModelError, PacketSpec, Query,
    Reply, Request, Switch,
};

/// Name of the kind.
pub const KIND: &str = "host-interface";
const NEEDS: &str = "cap_net_raw,cap_net_admin";
/// Bytes of Ethernet header and two tags.
const ETHERNET: usize = 14 + 8;
/// Bytes of the longest super-segment.
const LONGEST: usize = 65_535;

/// Groups of sockets that share an interface's flows, numbered apart.
static GROUP: AtomicU16 = AtomicU16::new(1);

/// Carries out requests about interfaces of the kind.
pub struct PacketHandler {
    driver: Driver<PacketRx>,
}

fn geometry(spec: &PacketSpec, mtu: u32) -> Geometry {
    let longest = match spec.offload {
        Switch::On => LONGEST,
        Switch::Off => mtu as usize,
    };
    Geometry::new(spec.ring as usize, longest + ETHERNET)
}

type Queues = (Vec<PacketRx>, Vec<PacketTx>);

/// Open the sockets, in this thread's namespace.
fn open(
    spec: &PacketSpec,
    link: &Link,
    (places, workers): (usize, usize),
) -> Result<Queues, LinuxError> {
    let failed = |error| LinuxError::of("opening a packet socket", NEEDS, error);
    let geometry = geometry(spec, link.mtu);
    // Groups are numbered by host, not by process.
    let group = (std::process::id() as u16) ^ GROUP.fetch_add(1, Ordering::Relaxed).rotate_right(6);
    let mut rx = Vec::new();
    for _ in 0..spec.queues {
        let ring =
            RxRing::open(link.index, geometry).map_err(|error| match error.raw_os_error() {
                Some(libc::ENOMEM) => LinuxError::System(
                    format!(
                        "a ring of {} MB; choose a smaller ring-size",
                        geometry.bytes() >> 20
                    ),
                    error,
                ),
                _ => failed(error),
            })?;
        if spec.queues > 1 {
            sys::share(ring.socket(), group).map_err(failed)?;
        }
        rx.push(PacketRx::new(ring));
    }
    // A worker that comes later shares the socket of another: the kernel lets several threads send by one.
    let sockets = (0..workers).map(|_| sys::sender(link.index).map(Arc::new));
    let sockets: std::io::Result<Vec<_>> = sockets.collect();
    let sockets = sockets.map_err(failed)?;
    let tx = (0..places).map(|place| PacketTx::new(sockets[place % workers].clone()));
    Ok((rx, tx.collect()))
}

/// Setting our interface up sets the kernel's up.
struct PacketPort {
    links: Rc<Links>,
    link: u32,
}

impl Port for PacketPort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), Refusal> {
        match state {
            AdminState::Up => self.links.set_up(self.link, true).map_err(Refusal::new),
            AdminState::Down => Ok(()),
        }
    }
}

fn details(spec: &PacketSpec, link: &Link) -> Vec<String> {
    let namespace = Namespace::new(spec.namespace.as_deref());
    let geometry = geometry(spec, link.mtu);
    let segments = match spec.offload {
        Switch::On => "and segmentation",
        Switch::Off => "only",
    };
    vec![
        format!("kernel interface {}{}", link.name, namespace.place()),
        format!(
            "{} receive ring(s) of {} frames up to {} bytes ({} MB each)",
            spec.queues,
            geometry.slots(),
            geometry.longest(),
            geometry.bytes() >> 20
        ),
        format!("offload checksum {segments}"),
    ]
}

impl PacketHandler {
    /// Bring in the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let driver = Driver::register(registry)?;
        Ok(PacketHandler { driver })
    }

    fn create(&mut self, spec: &InterfaceSpec, host: &PacketSpec) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let about = |error: LinuxError| error.about(&spec.name);
        let namespace = Namespace::new(host.namespace.as_deref());
        let links = Rc::new(Links::open(&namespace).map_err(about)?);
        let link = links.by_name(&host.host).map_err(about)?;
        if link.mac.is_none() {
            return Err(about(LinuxError::NotEthernet(host.host.clone())));
        }
        let workers = (self.driver.places(), self.driver.workers());
        let (rx, tx) = namespace
            .run(|| open(host, &link, workers))
            .map_err(about)?;
        let port = PacketPort {
            links: links.clone(),
            link: link.index,
        };
        let on = host.offload == Switch::On;
        let new = NewInterface {
            mac: spec.mac.map(|m| m.0),
            mtu: spec.mtu.unwrap_or(link.mtu),
            details: details(host, &link),
            caps: Caps {
                checksum: true,
                tcp4: on,
                tcp6: on,
                udp: on,
            },
            port: Box::new(port),
            ..NewInterface::new(&spec.name, KIND)
        };
        let standing = Standing::new(new, links, link, Box::new(()));
        self.driver.attach(standing, rx, tx)?;
        Ok(Applied::one().named(&spec.name))
    }
}

impl Handler for PacketHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => match &spec.kind {
                InterfaceKind::HostInterface(host) => Some(self.create(spec, host)),
                _ => None,
            },
            Request::InterfaceDelete { name } => self.driver.delete(name),
            _ => None,
        }
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
