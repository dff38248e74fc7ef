//! A buffer's metadata, in its first two cache lines. The fast path never touches it: only chains, held packets and drivers do.

/// "No further buffer" in [`Meta::next`].
pub const NO_BUFFER: u32 = u32::MAX;

/// Metadata of a buffer: a single one, a chain's head or a chain's member.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The next buffer of the chain, or [`NO_BUFFER`].
    pub next: u32,
    /// Offset in the slot of this segment's first byte (members of a chain; a head's offset travels with its row).
    pub start: u32,
    /// Offset in the slot behind this segment's last byte.
    pub end: u32,
    /// Offset in the slot of the first byte of an unfinished checksum. Valid only while the packet's row requests that a
    /// checksum is finished, and only in a chain's head.
    pub sum_start: u16,
    /// Bytes from there to the checksum's two bytes.
    pub sum_offset: u16,
}

impl Default for Meta {
    fn default() -> Self {
        Meta {
            next: NO_BUFFER,
            start: crate::START as u32,
            end: crate::START as u32,
            sum_start: 0,
            sum_offset: 0,
        }
    }
}
