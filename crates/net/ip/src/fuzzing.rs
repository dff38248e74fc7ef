//! Entry points for the fuzz targets in `fuzz/`.

use crate::{extensions, options4};

/// Parses the options of an IPv4 header and fills in the requested ones. Returns the options; none if they are malformed.
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

/// The upper layer of an IPv6 packet behind its extension headers: protocol and offset.
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
            // The offset may be one behind the end, for a header that is missing.
            assert!(fault.at <= packet.len() + 1, "the fault is in the packet");
            None
        }
    }
}
