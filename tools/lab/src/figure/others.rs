//! Peers that are not run, with the reasons.

use crate::switch::{ADAPTERS, guest_missing};

/// The peers that are not part of a run on this machine, with the reasons.
pub fn skipped_peers() -> Vec<(String, String)> {
    let adapters = ADAPTERS.into_iter();
    let guest = guest_missing().map(|why| ("VNF in a virtual machine".to_owned(), why));
    adapters
        .filter_map(|a| Some((a.title.to_owned(), a.missing()?)))
        .chain(guest)
        .collect()
}
