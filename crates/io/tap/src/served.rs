//! Taps whose packets the kernel's vhost-net carries: the check whether it can, and the interface that is then created.

use crate::model::{TapInterface, TapMode, TapVhost};
use crate::sys::{self, Header};
use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use volley_vhost::kernel::{self, Refused, Rings, Service};
use volley_vhost::wire::VhostPort;

/// The carrier of a tap's packets.
pub enum Carrier {
    /// The kernel, through these rings.
    Kernel(Rings),
    /// Workers, by system calls, for this reason.
    Workers(String),
}

/// Refuses a tap that cannot be served although its request demands it, before anything is created.
pub fn check(spec: &TapInterface) -> Result<(), Refused> {
    match spec.vhost {
        TapVhost::On => kernel::features().map(|_| ()),
        TapVhost::Auto | TapVhost::Off => Ok(()),
    }
}

/// Let vhost-net serve the queues of a new tap, if the request allows it and the kernel can.
pub fn carrier(spec: &TapInterface, queues: &[Arc<File>]) -> Result<Carrier, Refused> {
    if spec.vhost == TapVhost::Off {
        return Ok(Carrier::Workers("off".into()));
    }
    if spec.mode == TapMode::Tun {
        return Ok(Carrier::Workers("it serves Ethernet taps only".into()));
    }
    match serve(queues) {
        Ok(rings) => Ok(Carrier::Kernel(rings)),
        Err(refused) if spec.vhost == TapVhost::On => Err(refused),
        Err(refused) => Ok(Carrier::Workers(refused.to_string())),
    }
}

fn serve(queues: &[Arc<File>]) -> Result<Rings, Refused> {
    kernel::features()?;
    let set = |header| {
        queues
            .first()
            .map_or(Ok(()), |first| sys::set_header(first, header))
    };
    set(Header::Virtio)?;
    let queues: Vec<_> = queues.iter().map(|file| file.as_fd()).collect();
    Rings::new(&queues).or_else(|refused| {
        set(Header::Native)?;
        Err(refused)
    })
}

/// The workers' data of an interface, which is created with the first transmit node, when its index is known; and the service
/// of its rings, which starts when the data exist.
#[derive(Clone, Default)]
pub struct Served {
    pub wire: Rc<OnceCell<Arc<VhostPort>>>,
    pub service: Rc<OnceCell<Service>>,
}
