//! Makes taps, sets them up in the kernel, takes them away.

use crate::queue::{TapRx, TapTx};
use crate::sys::{self, Layer};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::GraphError;
use volley_iface::driver::{Caps, Port, Refusal};
use volley_iface::{NewInterface, Registry};
use volley_linux::{Driver, Link, Links, LinuxError, Made, Namespace, Status};
use volley_model::{
    AdminState, Applied, Handler, InterfaceKind, InterfaceSpec, ModelError, Query, Reply, Request,
    Switch, TapMode, TapSpec,
};

/// Name of the kind.
pub const KIND: &str = "tap";
const MTU: u32 = 1500;
const NEEDS: &str = "cap_net_admin";

/// Carries out requests about interfaces of the kind.
pub struct TapHandler {
    driver: Driver<TapRx>,
}

/// A tap in the kernel. Gone when its files are closed.
struct Tap {
    files: Vec<Arc<File>>,
    links: Links,
    link: Link,
    udp: bool,
}

fn layer(spec: &TapSpec) -> Layer {
    match spec.mode {
        TapMode::Tap => Layer::Ethernet,
        TapMode::Tun => Layer::Ip,
    }
}

/// Open the queues, in this thread's namespace.
fn open(name: &str, spec: &TapSpec) -> Result<(Vec<Arc<File>>, bool), LinuxError> {
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
        if spec.offload == Switch::On {
            udp = sys::take_offloads(&file).map_err(failed)?;
        }
        files.push(Arc::new(file));
    }
    Ok((files, udp))
}

impl Tap {
    fn make(spec: &InterfaceSpec, tap: &TapSpec) -> Result<Self, LinuxError> {
        let namespace = Namespace::new(tap.namespace.as_deref());
        let name = tap.host.as_deref().unwrap_or(&spec.name);
        let links = Links::open(&namespace)?;
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

fn caps(offload: Switch, udp: bool) -> Caps {
    let on = offload == Switch::On;
    Caps {
        checksum: true,
        tcp4: on,
        tcp6: on,
        udp: on && udp,
    }
}

fn details(spec: &TapSpec, link: &Link) -> Vec<String> {
    let namespace = Namespace::new(spec.namespace.as_deref());
    let mode = match spec.mode {
        TapMode::Tap => "tap",
        TapMode::Tun => "tun",
    };
    let offload = match spec.offload {
        Switch::On => "checksum and segmentation",
        Switch::Off => "none",
    };
    let vhost = match std::path::Path::new("/dev/vhost-net").exists() {
        true => "/dev/vhost-net is here, but not used: this driver has no vhost acceleration",
        false => "/dev/vhost-net is not on this machine: no vhost acceleration",
    };
    vec![
        format!(
            "{mode} {}{}, {} queue(s)",
            link.name,
            namespace.place(),
            spec.queues
        ),
        format!("offload {offload}"),
        vhost.to_owned(),
    ]
}

/// The kernel's end sees a carrier while ours is meant to be up.
struct TapPort {
    file: Arc<File>,
    links: Rc<Links>,
    link: u32,
    follows_mtu: bool,
}

impl Port for TapPort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), Refusal> {
        // The device may be gone, and then there is nothing to tell: the link says so.
        let _ = sys::set_carrier(&self.file, state == AdminState::Up);
        Ok(())
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<(), Refusal> {
        if self.follows_mtu {
            self.links.set_mtu(self.link, mtu).map_err(Refusal::new)?;
        }
        Ok(())
    }
}

impl TapHandler {
    /// Bring in the receive node.
    pub fn new(registry: &mut Registry) -> Result<Self, GraphError> {
        let driver = Driver::register(registry)?;
        Ok(TapHandler { driver })
    }

    fn create(&mut self, spec: &InterfaceSpec, tap: &TapSpec) -> Result<Applied, ModelError> {
        self.driver.host().check_free(&spec.name)?;
        let about = |error: LinuxError| error.about(&spec.name);
        let Tap {
            files,
            links,
            link,
            udp,
        } = Tap::make(spec, tap).map_err(about)?;
        let (links, status) = (Rc::new(links), Arc::new(Status::default()));
        let port = TapPort {
            file: files[0].clone(),
            links: links.clone(),
            link: link.index,
            follows_mtu: tap.host_mtu.is_none(),
        };
        // Ours is down until it is set up.
        let _ = sys::set_carrier(&files[0], false);
        let layer = layer(tap);
        let new = NewInterface {
            mac: spec.mac.map(|m| m.0),
            mtu: spec.mtu.unwrap_or(MTU),
            details: details(tap, &link),
            caps: caps(tap.offload, udp),
            port: Box::new(port),
            ..NewInterface::new(&spec.name, KIND)
        };
        let rx = files.iter().map(|file| {
            TapRx::new(
                file.clone(),
                status.clone(),
                layer,
                spec.mac.map_or([0; 6], |m| m.0),
            )
        });
        let tx = (0..self.driver.places())
            .map(|worker| TapTx::new(files[worker % files.len()].clone(), layer));
        let made = Made {
            new,
            status: status.clone(),
            rx: rx.collect(),
            tx: tx.collect(),
            keep: Box::new(Gone(links.clone(), link.index)),
            links,
            link,
        };
        self.driver.attach(made)?;
        Ok(Applied::one().named(&spec.name))
    }
}

/// Takes the kernel's end away at once, not when the last worker has given its queue back.
struct Gone(Rc<Links>, u32);

impl Drop for Gone {
    fn drop(&mut self) {
        // It may be gone already; else it goes with its files.
        let _ = self.0.delete(self.1);
    }
}

impl Handler for TapHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => match &spec.kind {
                InterfaceKind::Tap(tap) => Some(self.create(spec, tap)),
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
