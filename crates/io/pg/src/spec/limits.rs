//! Limits of streams.

use std::ops::RangeInclusive;

/// Length of a packet, in bytes without frame check sequence.
pub const PACKET_SIZE: RangeInclusive<u32> = 14..=65_535;
/// The maximum number of layers of one template.
pub(super) const LAYERS: usize = 32;
/// The maximum number of bytes of payload or raw data in one template.
pub(super) const TEMPLATE_BYTES: usize = 65_535;
/// The maximum number of edits of one stream.
pub(super) const EDITS: usize = 32;
/// The maximum number of values in the list of one edit.
pub(super) const EDIT_LIST: usize = 65_536;
/// The maximum number of parts of one mix of lengths.
pub(super) const IMIX_PARTS: usize = 16;
