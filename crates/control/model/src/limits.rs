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
/// Groups of hosts on an interface, of each IP version.
pub const GROUPS: usize = 1024;
/// Sources that the hosts of an interface name of a group.
pub const GROUP_SOURCES: usize = 64;
/// Weight of one path of a route.
pub const WEIGHT: std::ops::RangeInclusive<u32> = 1..=255;
/// Paths of one route.
pub const PATHS: usize = 64;
/// Routes that one request steps over (`count N`).
pub const ROUTE_COUNT: std::ops::RangeInclusive<u64> = 1..=16_777_216;
/// Next hops that a route file is spread over.
pub const NEXT_HOPS: std::ops::RangeInclusive<u32> = 1..=65_536;
/// Packets that one trace or capture holds.
pub const TRACE_PACKETS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Bytes of a capture filter.
pub const FILTER_LEN: usize = 1024;
/// Queues of the path batcher, the default queue included.
pub const PATH_QUEUES: u32 = 64;
/// Rules of the path batcher.
pub const PATH_RULES: usize = 1024;
/// Headers that an operator may teach the path batcher.
pub const PATH_OWN_HEADERS: usize = 32;
/// Headers of one packet that the path batcher looks at.
pub const PATH_HEADERS: usize = 8;
/// Packets of a full batch.
pub const PATH_BATCH: std::ops::RangeInclusive<u32> = 1..=1024;
/// Microseconds that a packet may wait for its batch.
pub const PATH_TIMEOUT_US: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Full batches of a path batcher's queue that may wait for each other.
pub const PATH_GATHER: std::ops::RangeInclusive<u32> = 1..=16;
/// Number of a bridge domain.
pub const BRIDGE_DOMAIN: std::ops::RangeInclusive<u32> = 1..=16_777_215;
/// Multicast routes of one IP version.
pub const MROUTES: usize = 16_384;
/// Interfaces whose packets are spread over workers by software.
pub const RSS_INTERFACES: usize = 64;
/// Names that an error message lists at most.
pub const NAMES_LISTED: usize = 12;
