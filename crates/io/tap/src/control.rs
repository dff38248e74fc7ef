//! Creates, configures and deletes taps.

use crate::model::{TapInterface, TapMode};
use crate::queue::{OwnMac, TapRx, TapTx};
use crate::served::{self, Carrier, Served};
use crate::sys::{self, Layer};
use std::cell::Cell;
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::GraphError;
use volley_iface::AdminState;
use volley_iface::driver::{Caps, DriverHost, Port, PortRefusal};
use volley_iface::{IfIdx, NewInterface, Registry};
use volley_linux::{Driver, KernelInterface, KernelLink, KernelLinks, LinuxError, Namespace};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};
use volley_vhost::kernel::{self, Kernel, Refused, Rings};
use volley_vhost::node::vhost_user_tx::VhostTx;
use volley_vhost::wire::VhostPort;

/// Name of the interface type.
pub const KIND: &str = "tap";
const MTU: u32 = 1500;
const NEEDS: &str = "cap_net_admin";

/// Carries out requests about taps.
pub struct TapHandler {
    driver: Driver<TapRx>,
    kernel: Rc<Kernel>,
}

/// A tap in the kernel. The kernel deletes it when its files are closed.
struct Tap {
    files: Vec<Arc<File>>,
    links: KernelLinks,
    link: KernelLink,
    udp: bool,
}

fn layer(spec: &TapInterface) -> Layer {
    match spec.mode {
        TapMode::Tap => Layer::Ethernet,
        TapMode::Tun => Layer::Ip,
    }
}

/// Open the queues, in this thread's namespace.
fn open(name: &str, spec: &TapInterface) -> Result<(Vec<Arc<File>>, bool), LinuxError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => LinuxError::Unsupported(
            "there is no /dev/net/tun on this machine: load it with `modprobe tun`".into(),
        ),
        _ => LinuxError::of("making a tap", NEEDS, error),
    };
    let mut udp = false;
    let mut files = Vec::new();
    for _ in 0..spec.queues {
        let file = sys::open(name, layer(spec)).map_err(failed)?;
        if spec.offload {
            udp = sys::take_offloads(&file).map_err(failed)?;
        }
        files.push(Arc::new(file));
    }
    Ok((files, udp))
}

impl Tap {
    fn make(spec: &InterfaceSpec, tap: &TapInterface) -> Result<Self, LinuxError> {
        let namespace = Namespace::new(tap.namespace.as_deref());
        let name = tap.host.as_deref().unwrap_or(&spec.name);
        let links = KernelLinks::open(&namespace)?;
        if links.by_name(name).is_ok() {
            let place = namespace.place();
            return Err(LinuxError::Unsupported(format!(
                "the kernel has an interface {name}{place} already: choose another name with host-if-name"
            )));
        }
        let (files, udp) = namespace.run(|| open(name, tap))?;
        let link = links.by_name(name)?;
        let mtu = tap.host_mtu.or(spec.mtu).unwrap_or(MTU);
        links.set_mtu(link.index, mtu)?;
        if let (Some(mac), Layer::Ethernet) = (tap.host_mac, layer(tap)) {
            links.set_mac(link.index, mac.0)?;
        }
        for address in &tap.host_addresses {
            links.add_address(link.index, address.addr(), address.len())?;
        }
        links.set_up(link.index, true)?;
        let link = links.by_index(link.index)?.unwrap_or(link);
        Ok(Tap {
            files,
            links,
            link,
            udp,
        })
    }
}

fn caps(on: bool, udp: bool) -> Caps {
    Caps {
        checksum: true,
        tcp4: on,
        tcp6: on,
        udp: on && udp,
    }
}

fn details(spec: &TapInterface, link: &KernelLink, carrier: &Carrier) -> Vec<String> {
    let namespace = Namespace::new(spec.namespace.as_deref());
    let mode = match spec.mode {
        TapMode::Tap => "tap",
        TapMode::Tun => "tun",
    };
    let offload = match spec.offload {
        true => "checksum and segmentation",
        false => "none",
    };
    let vhost = match carrier {
        Carrier::Kernel(rings) => rings.describe(),
        Carrier::Workers(why) => format!("vhost-net does not serve it: {why}"),
    };
    vec![
        format!(
            "{mode} {}{}, {} queue(s)",
            link.name,
            namespace.place(),
            spec.queues
        ),
        format!("offload {offload}"),
        vhost,
    ]
}

/// The port of a tap: the kernel's end has a carrier while the interface is administratively up.
struct TapPort {
    file: Arc<File>,
    links: Rc<KernelLinks>,
    link: u32,
    follows_mtu: bool,
    served: Served,
    host: DriverHost,
    /// The index of the interface, once it exists.
    number: Rc<Cell<Option<IfIdx>>>,
}

impl Port for TapPort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), PortRefusal> {
        // If the device was deleted, there is no carrier to set, and the link state reports it.
        let _ = sys::set_carrier(&self.file, state == AdminState::Up);
        Ok(())
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<(), PortRefusal> {
        if self.follows_mtu {
            self.links
                .set_mtu(self.link, mtu)
                .map_err(PortRefusal::new)?;
            if let Some(index) = self.number.get() {
                self.host.set_device_mtu(index, mtu);
            }
        }
        Ok(())
    }

    fn speed_bps(&self) -> Option<u64> {
        self.links.speed_bps(self.link)
    }

    fn details(&self) -> Vec<String> {
        let wire = self.served.wire.get();
        wire.map_or_else(Vec::new, |wire| kernel::details(wire))
    }
}

impl TapHandler {
    /// Register the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        Ok(TapHandler {
            driver: Driver::register(registry)?,
            kernel: Kernel::register(registry)?,
        })
    }

    fn create(&mut self, spec: &InterfaceSpec, tap: &TapInterface) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let about = |error: LinuxError| error.about(&spec.name);
        let refused = |why: Refused| {
            ModelError::invalid(format!("interface {} with vhost on", spec.name), why)
        };
        served::check(tap).map_err(refused)?;
        let Tap {
            files,
            links,
            link,
            udp,
        } = Tap::make(spec, tap).map_err(about)?;
        let carrier = served::carrier(tap, &files).map_err(refused)?;
        let (links, served) = (Rc::new(links), Served::default());
        let number = Rc::<Cell<Option<IfIdx>>>::default();
        let port = TapPort {
            file: files[0].clone(),
            links: links.clone(),
            link: link.index,
            follows_mtu: tap.host_mtu.is_none(),
            served: served.clone(),
            host: self.driver.host().clone(),
            number: number.clone(),
        };
        // The interface is down at first.
        let _ = sys::set_carrier(&files[0], false);
        let layer = layer(tap);
        let new = NewInterface {
            mac: spec.mac.map(|m| m.0),
            mtu: spec.mtu.unwrap_or(link.mtu),
            configured_mtu: spec.mtu,
            default_mtu: tap.host_mtu.unwrap_or(MTU),
            details: details(tap, &link, &carrier),
            caps: caps(tap.offload, udp),
            port: Box::new(port),
            ..NewInterface::new(&spec.name, KIND)
        };
        let keep = (served.service.clone(), Gone(links.clone(), link.index));
        let kernel = KernelInterface::new(new, links, link, Box::new(keep));
        let index = match carrier {
            Carrier::Kernel(rings) => self.attach_served(kernel, &served, rings)?,
            Carrier::Workers(_) => self.attach_queues(kernel, &files, layer)?,
        };
        number.set(Some(index));
        Ok(Applied::one().named(&spec.name))
    }

    /// Creates the interface with queues that workers read and write.
    fn attach_queues(
        &mut self,
        kernel: KernelInterface,
        files: &[Arc<File>],
        layer: Layer,
    ) -> Result<IfIdx, ModelError> {
        let own = OwnMac::new(self.driver.surroundings().0);
        let rx = files
            .iter()
            .map(|file| TapRx::new(file.clone(), kernel.status.clone(), layer, own.clone()));
        let tx = (0..self.driver.places())
            .map(|worker| TapTx::new(files[worker % files.len()].clone(), layer));
        let (rx, tx) = (rx.collect(), tx.collect::<Vec<_>>());
        let index = self.driver.attach(kernel, rx, tx)?;
        own.set_index(index);
        Ok(index)
    }

    /// Creates the interface with rings that the kernel serves.
    fn attach_served(
        &mut self,
        mut kernel: KernelInterface,
        served: &Served,
        rings: Rings,
    ) -> Result<IfIdx, ModelError> {
        let (table, size) = self.driver.surroundings();
        let workers = self.driver.host().assign_workers(rings.queues());
        kernel.new.rx_node = kernel::INPUT;
        kernel.new.rx_queues = workers.clone();
        kernel.new.tx_queues = rings.queues() as u32;
        let (ended, wire) = (kernel.ended.clone(), served.wire.clone());
        let index = self
            .driver
            .attach_without_queues(kernel, move |worker, index| {
                let wire = wire.get_or_init(|| VhostPort::new(index)).clone();
                VhostTx::new(worker, table.clone(), wire, size)
            })?;
        let wire = served.wire.get_or_init(|| VhostPort::new(index)).clone();
        let service = self.kernel.start(wire, rings, &workers, ended);
        // The cell is still empty.
        let _ = served.service.set(service);
        Ok(index)
    }
}

/// Deletes the kernel's end at once, not when the last worker has released its queue.
struct Gone(Rc<KernelLinks>, u32);

impl Drop for Gone {
    fn drop(&mut self) {
        // An error means that it is deleted already; closing its files deletes it in any case.
        let _ = self.0.delete(self.1);
    }
}

impl Handler for TapHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => Some(self.create(spec, &spec.kind_as()?)),
            Request::InterfaceDelete { name } => self.driver.delete(name),
            _ => None,
        }
    }
}
