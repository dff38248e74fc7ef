//! The memory that a peer shares: checked regions and address translation.
//!
//! An address that the peer wrote is translated into a [`Place`] once, when it is read. Each use of a place is
//! bounds-checked again, so a place that belongs to another memory cannot lead outside the map.

use crate::fault::{Fault, RingFault};
use crate::sys::{Map, View};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use volley_shm::{Account, MapError, State};

/// Maximum number of regions of a peer (the protocol's limit without memory slots).
pub const MAX_REGIONS: usize = 8;
/// Maximum size of a region: 32 TiB, a quarter of a process's address space.
const MAX_SIZE: u64 = 1 << 45;

/// A region as the peer describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Guest address of the region, used in descriptors.
    pub guest: u64,
    /// Size in bytes.
    pub size: u64,
    /// Address in the peer's process, used for ring addresses.
    pub user: u64,
    /// Offset of the region in its file.
    pub offset: u64,
}

struct Region {
    spec: RegionSpec,
    map: Map,
    /// Offset of the region in the map.
    at: usize,
}

/// A part of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    region: u32,
    /// Size in bytes.
    pub len: u32,
    at: u64,
}

/// All regions of one peer.
pub struct Memory {
    regions: Vec<Region>,
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.0 + b.1 && b.0 < a.0 + a.1
}

impl Memory {
    /// Check and map the described regions; each region has one file. Charges the memory to `account`.
    pub fn map(
        specs: &[RegionSpec],
        files: Vec<OwnedFd>,
        account: &Arc<Account>,
    ) -> Result<Memory, Fault> {
        if specs.is_empty() || specs.len() > MAX_REGIONS {
            let text = format!("{} regions, 1 to {MAX_REGIONS} are possible", specs.len());
            return Err(Fault::new("bad-region-count", text));
        }
        if specs.len() != files.len() {
            let text = format!("{} regions came with {} files", specs.len(), files.len());
            return Err(Fault::new("wrong-file-count", text));
        }
        for (number, spec) in specs.iter().enumerate() {
            check(number, spec, &specs[..number])?;
        }
        let regions = specs.iter().zip(&files).enumerate();
        let regions = regions.map(|(number, (spec, file))| region(number, *spec, file, account));
        Ok(Memory {
            regions: regions.collect::<Result<_, _>>()?,
        })
    }

    /// New memory of this process in one region, and the file to send to the peer.
    pub fn of_ours(spec: RegionSpec) -> std::io::Result<(Memory, OwnedFd)> {
        let failed = |error: MapError| std::io::Error::other(error.to_string());
        let (file, map) = Map::of_ours(spec.size as usize).map_err(failed)?;
        let regions = vec![Region { spec, map, at: 0 }];
        Ok((Memory { regions }, file))
    }

    /// Whether a region was replaced by zeros because the peer broke it.
    #[inline(always)]
    pub fn is_broken(&self) -> bool {
        self.regions.iter().any(|r| r.map.is_broken())
    }

    /// The fault that broke a region.
    #[cold]
    pub fn fault(&self) -> RingFault {
        let costly = |r: &Region| r.map.state() == State::Costly;
        match self.regions.iter().any(costly) {
            true => RingFault::Charge,
            false => RingFault::Shrunk,
        }
    }

    /// Translate the `len` bytes at the peer's process address `user`, if they lie in one region.
    pub fn user(&self, user: u64, len: u64) -> Option<Place> {
        let found = self.regions.iter().enumerate().find_map(|(i, r)| {
            let off = user.wrapping_sub(r.spec.user);
            let inside = off < r.spec.size && len <= r.spec.size - off;
            inside.then(|| (i, r.at as u64 + off))
        });
        let (region, at) = found?;
        Some(Place {
            region: region as u32,
            at,
            len: u32::try_from(len).ok()?,
        })
    }

    /// Translate guest address `addr`: as many of the `len` bytes as are contiguous, at least one.
    #[inline(always)]
    pub fn guest(&self, addr: u64, len: u32) -> Result<Place, RingFault> {
        for (i, r) in self.regions.iter().enumerate() {
            let off = addr.wrapping_sub(r.spec.guest);
            if off < r.spec.size {
                let len = u64::from(len).min(r.spec.size - off) as u32;
                return Ok(Place {
                    region: i as u32,
                    at: r.at as u64 + off,
                    len,
                });
            }
        }
        Err(RingFault::Address)
    }

    /// View of a place of this memory. A place outside this memory gives an empty view.
    #[inline(always)]
    pub fn view(&self, place: Place) -> Option<View<'_>> {
        let region = self.regions.get(place.region as usize)?;
        region.map.view(place.at as usize, place.len as usize)
    }

    /// The regions, for `show`.
    pub fn describe(&self) -> impl Iterator<Item = RegionSpec> + '_ {
        self.regions.iter().map(|r| r.spec)
    }
}

fn check(number: usize, spec: &RegionSpec, before: &[RegionSpec]) -> Result<(), Fault> {
    let fault = |name, why: &str| Err(Fault::new(name, format!("memory region {number} {why}")));
    if spec.size == 0 || spec.size > MAX_SIZE {
        return fault("bad-region-size", "is empty or too large");
    }
    let ends = [spec.guest, spec.user, spec.offset].map(|start| start.checked_add(spec.size));
    if ends.contains(&None) {
        return fault("region-overflow", "ends behind the last address");
    }
    let guest = |s: &RegionSpec| (s.guest, s.size);
    let user = |s: &RegionSpec| (s.user, s.size);
    let meets = |b: &RegionSpec| overlap(guest(spec), guest(b)) || overlap(user(spec), user(b));
    if before.iter().any(meets) {
        return fault("region-overlap", "overlaps another");
    }
    Ok(())
}

fn region(
    number: usize,
    spec: RegionSpec,
    file: &OwnedFd,
    account: &Arc<Account>,
) -> Result<Region, Fault> {
    let (map, at) = Map::of_peer(file, &spec, account).map_err(|error| {
        let name = match error {
            MapError::NotMemory => "bad-region-file",
            MapError::Size { .. } => "region-beyond-file",
            MapError::Range(_) => "bad-region-size",
            MapError::Memory { .. } => "memory-limit",
            MapError::Charge { .. } => "memory-charge-limit",
            _ => "region-not-mapped",
        };
        Fault::new(name, format!("memory region {number}: {error}"))
    })?;
    Ok(Region { spec, map, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_shm::memory_file;

    fn spec(guest: u64, size: u64, user: u64, offset: u64) -> RegionSpec {
        RegionSpec {
            guest,
            size,
            user,
            offset,
        }
    }

    fn refused(specs: &[RegionSpec], len: usize) -> &'static str {
        let files = specs
            .iter()
            .map(|_| memory_file("t", len).unwrap())
            .collect();
        Memory::map(specs, files, &Account::new())
            .err()
            .unwrap()
            .name
    }

    #[test]
    fn regions_are_checked() {
        const M: u64 = 1 << 20;
        let good = spec(0, M, 0x7000_0000, 0);
        assert_eq!(refused(&[], 4096), "bad-region-count");
        assert_eq!(refused(&[spec(0, 0, 0, 0)], 4096), "bad-region-size");
        assert_eq!(refused(&[spec(0, 1 << 50, 0, 0)], 4096), "bad-region-size");
        assert_eq!(refused(&[spec(0, 8192, 0, 0)], 4096), "region-beyond-file");
        assert_eq!(refused(&[spec(0, 4096, 0, 1)], 4096), "region-beyond-file");
        for overflow in [
            spec(u64::MAX, 2, 0, 0),
            spec(0, 2, u64::MAX, 0),
            spec(0, 2, 0, u64::MAX),
        ] {
            assert_eq!(refused(&[overflow], 4096), "region-overflow");
        }
        for twice in [spec(M - 1, M, 0, 0), spec(2 * M, M, 0x7000_0000 + M - 1, 0)] {
            assert_eq!(refused(&[good, twice], M as usize), "region-overlap");
        }
        let count = Memory::map(&[good], vec![], &Account::new()).err().unwrap();
        assert_eq!(count.name, "wrong-file-count");
        let disk = std::fs::File::open("/proc/self/status").unwrap();
        let disk = Memory::map(&[good], vec![disk.into()], &Account::new())
            .err()
            .unwrap();
        assert_eq!(disk.name, "bad-region-file");
        let pipe = std::io::pipe().unwrap().0;
        let pipe = Memory::map(&[good], vec![pipe.into()], &Account::new())
            .err()
            .unwrap();
        assert_eq!(pipe.name, "bad-region-file");
    }

    #[test]
    fn addresses_are_found_in_their_region_and_nowhere_else() {
        let specs = [
            spec(0x1000, 0x1000, 0x9000_0000, 0x800),
            spec(0x2000, 0x1000, 0xa000_0000, 0),
        ];
        let files = [0x3000, 0x1000].map(|len| memory_file("t", len).unwrap());
        let memory = Memory::map(&specs, files.into(), &Account::new()).unwrap();
        let whole = memory.user(0x9000_0000, 0x1000).unwrap();
        assert!(memory.user(0x9000_0001, 0x1000).is_none());
        assert!(memory.user(0x8fff_ffff, 2).is_none());
        memory.view(whole).unwrap().store16(0xffe, 77);
        let end = memory.guest(0x1ffe, 100).unwrap();
        assert_eq!((end.len, memory.view(end).unwrap().load16(0)), (2, 77));
        assert_eq!(memory.guest(0x2000, 98).unwrap().len, 98);
        for outside in [0xfff, 0x3000, u64::MAX] {
            assert_eq!(memory.guest(outside, 1), Err(RingFault::Address));
        }
    }
}
