//! What the fuzz targets in `fuzz/` need of this crate.

use crate::message::{self, KernelMessage};

/// Reads what a socket gave: how many messages there were, and how many could not be read.
pub fn messages(bytes: &[u8], number: Option<u32>) -> (usize, usize) {
    let (mut all, mut odd) = (0, 0);
    message::read(bytes, number, |message| {
        all += 1;
        odd += usize::from(matches!(message, KernelMessage::Odd));
    });
    (all, odd)
}
