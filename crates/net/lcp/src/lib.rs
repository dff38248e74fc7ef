//! The data side of the Linux mirror (VPP: linux-cp): an interface's twin is a tap whose other end is in the kernel. What is
//! for the kernel goes to the twin as it came (`linux-cp-punt`), and what the kernel sends there leaves by the interface
//! as it is (`linux-cp-xc`): no feature, no lookup, no rewrite.
//!
//! - True on entry: both interfaces are there; the tap is nobody else's.
//! - True on exit: a pair is dissolved when either interface goes.
#![forbid(unsafe_code)]

mod control;
mod model;
pub mod node;
mod reply;
mod show;

pub use control::LcpTaps;
pub use model::{LcpResync, LcpTap, classes};
pub use reply::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
pub use show::{ShowLcp, ShowLcpAudit};

use control::LcpHandler;
use node::linux_cp_punt::LinuxCpPunt;
use node::linux_cp_xc::LinuxCpXc;
use volley_graph::{GraphError, Node};
use volley_iface::{ReceiveFeature, Registry};
use volley_model::ModelError;

/// Bring in `linux-cp-punt`, `linux-cp-xc` and the requests that pair interfaces.
pub fn register(registry: &mut Registry) -> Result<LcpTaps, GraphError> {
    let (punt, xc) = (registry.table(), registry.table());
    {
        let mut engine = registry.engine.borrow_mut();
        let size = engine.settings().vector_size;
        engine.add(LinuxCpPunt::NAME, move |_| {
            LinuxCpPunt::new(punt.clone(), size)
        })?;
        engine.add(LinuxCpXc::NAME, move |_| LinuxCpXc::new(xc.clone(), size))?;
    }
    let xc = ReceiveFeature::consumer(&registry.engine, LinuxCpXc::NAME)?;
    let pairs = LcpTaps::new(&registry.interfaces);
    let handler = LcpHandler::new(registry.interfaces.clone(), pairs.clone(), xc);
    queries(registry, pairs.clone());
    registry.own(move |key, now: Option<LcpTap>| match now {
        Some(tap) => handler.create(tap),
        None => handler.delete(key.owner().unwrap_or_default()),
    });
    Ok(pairs)
}

/// Answers as far as this crate can: the Linux control plane adds the rest, and it alone compares and reads once more.
fn queries(registry: &mut Registry, pairs: LcpTaps) {
    let interfaces = registry.interfaces.clone();
    registry.answer(move |_: ShowLcp| {
        Ok(LcpReply {
            pairs: pairs.rows(&interfaces.borrow()),
            ..LcpReply::default()
        })
    });
    registry.answer(|_: ShowLcpAudit| {
        let why = "no mirror runs here: ask a daemon";
        Err(ModelError::invalid("lcp audit", why))
    });
    registry.perform(|_: LcpResync| {
        let why = "a daemon does it, as a request by itself";
        Err(ModelError::invalid("lcp resync", why))
    });
}
