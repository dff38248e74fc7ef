//! Taps whose packets the kernel's vhost-net carries: whether it can, and the interface that is made then.

use crate::model::{TapInterface, TapMode, TapVhost};
use crate::sys::{self, Header};
use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use volley_vhost::kernel::{self, Refused, Rings, Service};
use volley_vhost::wire::VhostPort;

/// Who carries a tap's packets.
pub enum Carrier {
    /// The kernel, through these rings.
    Kernel(Rings),
    /// Workers, by system calls, for this reason.
    Workers(String),
}

/// Why a tap that is to be served cannot be, before anything is made.
pub fn check(spec: &TapInterface) -> Result<(), Refused> {
    match spec.vhost {
        TapVhost::On => kernel::features().map(|_| ()),
        TapVhost::Auto | TapVhost::Off => Ok(()),
    }
}

/// Have the queues of a tap that was just made served, if it is wanted and can be.
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

/// What workers know of an interface, made with its first transmit node, when its number is known; and its rings' service,
/// begun when it is there.
#[derive(Clone, Default)]
pub struct Served {
    pub wire: Rc<OnceCell<Arc<VhostPort>>>,
    pub service: Rc<OnceCell<Service>>,
}
