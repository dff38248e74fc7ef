//! Layer 2: patches and cross-connects between two interfaces.
#![forbid(unsafe_code)]

mod control;
pub mod node;

pub use control::L2Handler;
pub use node::l2_patch::L2Patch;
pub use node::l2_xconnect::L2Xconnect;

use volley_graph::{GraphError, Node};
use volley_iface::Registry;

/// Bring in `l2-patch`, `l2-xconnect` and their requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let (patch_table, xconnect_table) = (registry.table(), registry.table());
    let patch = {
        let mut engine = registry.engine.borrow_mut();
        let patch = engine.add(L2Patch::NAME, move |_| L2Patch::new(patch_table.clone()))?;
        engine.add(L2Xconnect::NAME, move |_| {
            L2Xconnect::new(xconnect_table.clone())
        })?;
        patch
    };
    registry
        .handlers
        .push(Box::new(L2Handler::new(registry.interfaces.clone(), patch)));
    Ok(())
}
