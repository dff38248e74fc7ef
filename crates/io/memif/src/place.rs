//! Layout of shared memory: regions, rings and buffers, and scratch space for a batch. Nothing here reads or writes the
//! shared memory.

use crate::fault::{Fault, Kind};
use crate::region::Map;
use crate::ring::BATCH;
use std::sync::Arc;

/// All regions of a connection.
pub struct Memory {
    maps: Vec<Map>,
}

impl Memory {
    /// The regions, by number.
    pub fn new(maps: Vec<Map>) -> Arc<Memory> {
        Arc::new(Memory { maps })
    }

    /// The first region that was replaced by zeros, and the peer's fault.
    pub fn broken(&self) -> Option<(usize, &'static str)> {
        let mut maps = self.maps.iter().enumerate();
        maps.find_map(|(number, map)| Some((number, map.fault()?)))
    }

    /// Number of regions, and their size in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.maps.len(), self.maps.iter().map(Map::size).sum())
    }

    /// Address of `len` bytes at `offset` of `region`, if they lie inside it.
    #[inline(always)]
    pub(crate) fn locate(&self, region: u16, offset: u32, len: u32) -> Result<*mut u8, Fault> {
        let region = self.region(region)?;
        region.locate(offset, len as usize)
    }

    /// A region, found once for all the packets in it.
    #[inline(always)]
    pub(crate) fn region(&self, number: u16) -> Result<Region, Fault> {
        match self.maps.get(number as usize) {
            Some(map) => Ok(Region {
                number,
                base: map.base(),
                size: map.size(),
            }),
            None => Err(Fault::new(Kind::Region, u32::from(number))),
        }
    }

    /// Number of bytes from `offset` to the end of `region`.
    #[inline(always)]
    pub(crate) fn behind(&self, region: u16, offset: u32) -> usize {
        let len = self.maps.get(region as usize).map_or(0, Map::size);
        len.saturating_sub(offset as usize)
    }
}

/// One region of a [`Memory`], which must outlive it.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    pub(crate) number: u16,
    base: *mut u8,
    size: usize,
}

impl Region {
    /// Address of `len` bytes at `offset`, if they lie inside the region.
    #[inline(always)]
    pub(crate) fn locate(&self, offset: u32, len: usize) -> Result<*mut u8, Fault> {
        if offset as usize + len > self.size {
            return Err(Fault::new(Kind::Bounds, offset));
        }
        Ok(self.base.wrapping_add(offset as usize))
    }
}

/// Reason why a ring's location is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// Larger than the protocol permits.
    #[error("ring of 2^{0} descriptors, at most 2^14 are allowed")]
    Size(u8),
    /// The region does not exist.
    #[error("ring in region {0}, which does not exist")]
    Region(u16),
    /// The ring exceeds its region.
    #[error("ring at offset {0} does not lie inside its region")]
    Bounds(u32),
    /// The ring is not aligned for reading a descriptor at once.
    #[error("ring at offset {0}, which is not a multiple of 16")]
    Unaligned(u32),
    /// The cookie is wrong.
    #[error("ring with wrong cookie {0:#x}")]
    Cookie(u32),
}

/// Location of the client's buffers: slot `k` of the ring has the `k`-th one.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Region of the buffers.
    pub region: u16,
    /// Offset of the first buffer.
    pub first: u32,
    /// Size of a buffer in bytes.
    pub size: u32,
    /// Distance between two buffers in bytes.
    pub stride: u32,
}

impl Buffers {
    pub(crate) const NONE: Buffers = Buffers {
        region: 0,
        first: 0,
        size: 0,
        stride: 0,
    };

    #[inline(always)]
    pub(crate) fn offset(&self, slot: u16) -> u32 {
        self.first + u32::from(slot) * self.stride
    }
}

/// A descriptor, read in one access.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor {
    pub(crate) flags: u16,
    pub(crate) region: u16,
    pub(crate) length: u32,
    pub(crate) offset: u32,
}

/// The descriptor of a posted buffer.
#[inline(always)]
pub(crate) fn empty(buffers: Buffers, slot: u16) -> Descriptor {
    Descriptor {
        flags: 0,
        region: buffers.region,
        length: buffers.size,
        offset: buffers.offset(slot),
    }
}

/// Location of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Region of the ring.
    pub region: u16,
    /// Offset in the region.
    pub offset: u32,
    /// Binary logarithm of the number of descriptors.
    pub log2: u8,
}

/// Scratch space of one thread for a batch, shared by all rings that it uses.
pub struct Scratch {
    pub(crate) address: Box<[usize; BATCH]>,
    pub(crate) length: Box<[u32; BATCH]>,
    pub(crate) start: Box<[u32; BATCH + 1]>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            address: Box::new([0; BATCH]),
            length: Box::new([0; BATCH]),
            start: Box::new([0; BATCH + 1]),
        }
    }
}
