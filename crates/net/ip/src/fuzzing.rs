//! What the fuzz targets in `fuzz/` need of this crate.

use crate::{extensions, options4};

/// Reads the options of an IPv4 header, and fills in what they ask for. The options afterwards; none where they have a fault.
pub fn fill_options(options: &[u8]) -> Option<Vec<u8>> {
    let wishes = match options4::read(options) {
        Ok(wishes) => wishes,
        Err((_, at)) => {
            assert!(at <= options.len(), "the fault is in the options");
            return None;
        }
    };
    let mut filled = options.to_vec();
    options4::fill(&mut filled, wishes, (0xc000_0201, 1), |_| true);
    Some(filled)
}

/// What an IPv6 packet carries behind its extension headers: protocol and place.
pub fn upper(packet: &[u8]) -> Option<(u8, usize)> {
    match extensions::upper(packet) {
        Ok(upper) => {
            assert!(
                upper.named_at < upper.at,
                "a header is named before it begins"
            );
            Some((upper.proto, upper.at))
        }
        Err(fault) => {
            // The length of a header that is not there any more.
            assert!(fault.at <= packet.len() + 1, "the fault is in the packet");
            None
        }
    }
}
