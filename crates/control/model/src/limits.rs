//! Limits of the control plane's language: a request beyond a limit is refused, and the error names the limit.

/// Maximum length in bytes of the name of an interface, node, feature or arc.
pub const NAME_LEN: usize = 63;
/// Minimum and maximum L3 MTU of an interface in bytes (RFC 791: a router must forward 68 bytes without fragmentation).
pub const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Packets per vector.
pub const VECTOR_SIZE: std::ops::RangeInclusive<u32> = 1..=1024;
/// Numbers of workers.
pub const WORKER: std::ops::RangeInclusive<u32> = 0..=63;
/// Numbers of processor cores: the size of the kernel's CPU set.
pub const CORE: std::ops::RangeInclusive<u32> = 0..=1023;
/// Maximum number of names in an error message.
pub const NAMES_LISTED: usize = 12;
