//! Data path of the Linux control plane (VPP: linux-cp). The LCP tap of an interface is a tap whose other end is in the kernel.
//! Packets for the kernel are sent unchanged to the LCP tap (`linux-cp-punt`), and packets that the kernel sends there leave
//! through the interface unchanged, without features, lookup or rewrite (`linux-cp-xc`).
//!
//! - On entry: both interfaces exist, and the tap belongs to no other pair.
//! - On exit: a pair is dissolved when either interface is deleted.
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

/// Registers `linux-cp-punt`, `linux-cp-xc` and the requests that pair interfaces.
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

/// Answers queries with what this crate knows. The Linux control plane adds the rest; only it audits and resynchronises.
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
