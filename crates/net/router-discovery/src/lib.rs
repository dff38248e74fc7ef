//! Router and prefix discovery (RFC 4861, 6), SLAAC (RFC 4862), and the listener's side of MLD (RFC 3810).
//!
//! Each protocol is a state machine: [`Advertisers`], [`Autoconfiguration`], [`Listeners`]. A state machine has no clock, no
//! queues and no packets in flight. It gets a [`Moment`] (the time, the links, the FIB, random numbers) and adds [`Effect`]s to
//! it, which `volley-neighbor` carries out: frames to send, flags for workers, messages for the operator.
#![forbid(unsafe_code)]

mod advert;
mod autoconf;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod link;
mod mld;
mod model;
mod moment;
pub mod nd;
mod neighbor_state;
pub mod node;
mod show;
mod trace;

pub use advert::Advertisers;
pub use autoconf::received::ReceivedAdvert;
pub use autoconf::{Autoconfiguration, Reachability, is_advertisement};
pub use mld::{Listeners, MldQueue};
pub use model::{AdvertisedPrefix, Autoconf, AutoconfMode, PREFIXES, RouterAdvertisement, classes};
pub use moment::{Effect, Moment, Random};
pub use neighbor_state::NeighborState;
pub use show::{
    AddressState, AdvertRow, AutoconfAddressRow, AutoconfRow, AutoconfState, OnLinkRow, RouterRow,
};
pub use trace::NdTrace;

use node::mld_input::MldInput;
use std::sync::Arc;
use volley_graph::{GraphError, Node};
use volley_iface::Registry;

/// The state machines of one router.
#[derive(Default)]
pub struct RouterDiscovery {
    /// Router advertisements that interfaces send.
    pub advertisers: Advertisers,
    /// SLAAC and default routers of interfaces.
    pub autoconf: Autoconfiguration,
    /// Multicast groups that interfaces listen to.
    pub listeners: Listeners,
}

/// Adds the node `mld-input`, and returns its queues to the control thread, one for each worker.
pub fn register(registry: &mut Registry) -> Result<Vec<Arc<MldQueue>>, GraphError> {
    let mut engine = registry.engine.borrow_mut();
    let workers = engine.settings().workers;
    let queues: Vec<Arc<MldQueue>> = (0..workers).map(|_| Arc::default()).collect();
    let of = queues.clone();
    engine.add(MldInput::NAME, move |worker| {
        MldInput::new(of[worker].clone())
    })?;
    Ok(queues)
}
