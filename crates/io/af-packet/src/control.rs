//! Opens packet sockets on interfaces of the kernel, and closes them.

use crate::model::HostInterface;
use crate::queue::{PacketRx, PacketTx};
use crate::ring::RxRing;
use crate::sys::{self, Geometry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use volley_graph::GraphError;
use volley_iface::Registry;
use volley_iface::driver::Caps;
use volley_linux::{
    Driver, KernelLink, LinuxError, Namespace, Opened, Opener, Sharers, check_present,
};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};

/// Name of the kind.
pub const KIND: &str = "host-interface";
const NEEDS: &str = "cap_net_raw,cap_net_admin";
/// Bytes of an Ethernet header and two VLAN tags.
const ETHERNET: usize = 14 + 8;
/// Bytes of the longest super-segment.
const LONGEST: usize = 65_535;

/// Number of the next fanout group; the sockets of a group share an interface's flows.
static GROUP: AtomicU16 = AtomicU16::new(1);

/// The request handler of the interface kind.
pub struct PacketHandler {
    driver: Driver<PacketRx>,
}

fn geometry(spec: &HostInterface, mtu: u32) -> Geometry {
    let longest = match spec.offload {
        true => LONGEST,
        false => mtu as usize,
    };
    Geometry::new(spec.ring as usize, longest + ETHERNET)
}

/// Opens packet sockets on the kernel's interface.
struct PacketOpener {
    spec: HostInterface,
    /// Length of the longest frame that fits the rings.
    longest: usize,
}

type Queues = (Vec<PacketRx>, Vec<PacketTx>);

/// Open the sockets, in this thread's namespace.
fn open(spec: &HostInterface, link: &KernelLink, sharers: Sharers) -> Result<Queues, LinuxError> {
    let failed = |error| LinuxError::of("opening a packet socket", NEEDS, error);
    let geometry = geometry(spec, link.mtu);
    // Group numbers are unique in the host, not in the process.
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
    // A worker that is started later shares a socket: the kernel permits several threads to send by one.
    let workers = sharers.workers.max(1);
    let sockets = (0..workers).map(|_| sys::sender(link.index).map(Arc::new));
    let sockets: std::io::Result<Vec<_>> = sockets.collect();
    let sockets = sockets.map_err(failed)?;
    let tx = (0..sharers.places).map(|place| PacketTx::new(sockets[place % workers].clone()));
    Ok((rx, tx.collect()))
}

impl Opener for PacketOpener {
    type Rx = PacketRx;
    type Tx = PacketTx;

    fn open(
        &mut self,
        namespace: &Namespace,
        link: &KernelLink,
        sharers: Sharers,
    ) -> Result<Opened<PacketRx, PacketTx>, LinuxError> {
        let spec = &self.spec;
        let ((rx, tx), twice) =
            namespace.run(|| Ok((open(spec, link, sharers)?, forwarded_twice(&link.name))))?;
        self.longest = geometry(spec, link.mtu).longest();
        let mut details = details(spec, link);
        details.extend(twice);
        Ok(Opened {
            rx,
            tx,
            details,
            keep: Box::new(()),
        })
    }

    fn has_room(&self, mtu: u32) -> bool {
        geometry(&self.spec, mtu).longest() <= self.longest
    }
}

/// A warning if the kernel also forwards the packets of this interface in this thread's namespace: it has the same MAC
/// address as Volley's interface.
fn forwarded_twice(name: &str) -> Option<String> {
    let setting = |family| format!("net/{family}/conf/{name}/forwarding");
    let on = |setting: &String| {
        let value = std::fs::read_to_string(format!("/proc/sys/{setting}"));
        value.is_ok_and(|value| value.trim() != "0")
    };
    let all = ["ipv4", "ipv6"].map(setting);
    let on: Vec<String> = all.into_iter().filter(on).collect();
    let settings: Vec<String> = on
        .iter()
        .map(|s| format!("{}=0", s.replace('/', ".")))
        .collect();
    let what = format!(
        "WARNING: the kernel forwards what comes in on {name} as well, packets are sent twice: sysctl {}",
        settings.join(" ")
    );
    (!settings.is_empty()).then_some(what)
}

fn details(spec: &HostInterface, link: &KernelLink) -> Vec<String> {
    let namespace = Namespace::new(spec.namespace.as_deref());
    let geometry = geometry(spec, link.mtu);
    let segments = match spec.offload {
        true => "and segmentation",
        false => "only",
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
    /// Register the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let driver = Driver::register(registry)?;
        Ok(PacketHandler { driver })
    }

    fn create(
        &mut self,
        spec: &InterfaceSpec,
        host: &HostInterface,
    ) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let on = host.offload;
        let caps = Caps {
            checksum: true,
            tcp4: on,
            tcp6: on,
            udp: on,
        };
        let opener = PacketOpener {
            spec: host.clone(),
            longest: 0,
        };
        let wanted = (&*host.host, Namespace::new(host.namespace.as_deref()));
        self.driver.bind(spec, (KIND, caps), wanted, opener)?;
        Ok(Applied::one().named(&spec.name))
    }
}

impl Handler for PacketHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => Some(self.create(spec, &spec.kind_as()?)),
            Request::InterfaceDelete { name } => self.driver.delete(name),
            _ => None,
        }
    }

    fn ready(&mut self, request: &Request) -> Option<Result<(), ModelError>> {
        let Request::InterfaceCreate(spec) = request else {
            return None;
        };
        let host: HostInterface = spec.kind_as()?;
        let namespace = Namespace::new(host.namespace.as_deref());
        let wanted = (&*host.host, &namespace);
        Some(check_present(&spec.name, wanted, host.wait))
    }
}
