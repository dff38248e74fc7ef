//! Packet buffers: fixed slots in one arena, named by a 32-bit index, allocated from lock-free free lists, one for each memory
//! node.
//!
//! Contract: an index that [`Cache::alloc`] returned belongs to exactly one owner until [`Cache::free`].
//! The arena never moves and lives as long as its [`Pool`]. Every slot is readable for [`READABLE`] bytes behind any
//! data offset up to [`POS_MAX`], so that node bodies load headers without a length check first.
//!
//! Layout of a slot (an odd number of cache lines, so that equal offsets of neighbours do not share a cache set):
//! 128 bytes of metadata ([`Meta`]), [`HEADROOM`] bytes, [`DATA`] bytes, one spare line.

mod arena;
mod cache;
mod meta;
mod pool;
mod ring;
mod sync;

pub use arena::{Backing, BufError, OnNode};
pub use cache::{Cache, OwnPool};
pub use meta::{Meta, NO_BUFFER};
pub use pool::{Base, Pool, PoolReport};
pub use ring::BatchRing;

/// Bytes of metadata at the start of a slot.
pub const META: usize = 128;
/// Bytes in front of the packet for headers to be pushed.
pub const HEADROOM: usize = 128;
/// Bytes of packet data in one slot; longer packets are chains.
pub const DATA: usize = 2048;
/// Bytes from one slot to the next: 37 cache lines.
pub const STRIDE: usize = META + HEADROOM + DATA + 64;
/// Offset of a new packet's first byte in its slot.
pub const START: usize = META + HEADROOM;
/// Offset of the end of a slot's data.
pub const END: usize = START + DATA;
/// Bytes readable behind every data offset.
pub const READABLE: usize = 128;
/// The largest data offset: [`READABLE`] bytes still fit into the slot behind it.
pub const POS_MAX: usize = STRIDE - READABLE;

/// The index of a buffer: its slot number in the arena.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufIdx(pub u32);
