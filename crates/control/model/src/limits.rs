//! Every limit of the control plane's language, in one place: a request beyond them is refused with its limit named.

/// Longest name of an interface, node, feature or arc, in bytes.
pub const NAME_LEN: usize = 63;
/// Smallest and largest L3 MTU of an interface, in bytes (RFC 791 asks a router to take 68).
pub const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Packets per vector.
pub const VECTOR_SIZE: std::ops::RangeInclusive<u32> = 1..=1024;
/// Numbers of workers.
pub const WORKER: std::ops::RangeInclusive<u32> = 0..=63;
/// Numbers of processor cores: what a set of the kernel has room for.
pub const CORE: std::ops::RangeInclusive<u32> = 0..=1023;
/// Names that an error message lists at most.
pub const NAMES_LISTED: usize = 12;
