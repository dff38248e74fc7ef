//! Peers that are not run, with the reasons.

use crate::switch::ADAPTERS;

/// The peers that are not part of a run on this machine, with the reasons.
pub fn skipped_peers() -> Vec<(&'static str, String)> {
    ADAPTERS
        .into_iter()
        .filter_map(|a| Some((a.title, a.missing()?)))
        .collect()
}
