//! Entry points for the fuzz targets in `fuzz/`.

use crate::message::{self, KernelMessage};

/// Parses bytes received from a netlink socket; returns the number of messages, and how many could not be parsed.
pub fn messages(bytes: &[u8], number: Option<u32>) -> (usize, usize) {
    let (mut all, mut odd) = (0, 0);
    message::read(bytes, number, |message| {
        all += 1;
        odd += usize::from(matches!(message, KernelMessage::Odd));
    });
    (all, odd)
}
