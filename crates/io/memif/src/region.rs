//! Regions of shared memory: a peer's, or this process's own.

use rustix::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use volley_shm::{Account, MapError, State};

/// The largest sum of a peer's regions.
pub const MAX_REGION: u64 = 16 << 30;

/// Memory that a peer can write to at any time: read it once, check, then use.
pub struct Map {
    map: volley_shm::Map,
    /// Bytes of the region; the map has whole pages.
    size: usize,
}

impl Map {
    /// Map a peer's region of `size` bytes, which counts against `account`.
    pub fn of_peer(
        file: BorrowedFd<'_>,
        size: u64,
        account: &Arc<Account>,
    ) -> Result<Map, MapError> {
        if size > MAX_REGION {
            return Err(MapError::Range(size));
        }
        let (map, _) = volley_shm::Map::of_peer(file, 0, size, account)?;
        let size = size as usize;
        Ok(Map { map, size })
    }

    /// Memory of this process for a peer to map.
    pub fn of_ours(size: usize) -> Result<(OwnedFd, Map), MapError> {
        let (file, map) = volley_shm::Map::of_ours("volley-memif", size)?;
        Ok((file, Map { map, size }))
    }

    /// The address of its first byte.
    #[inline(always)]
    pub fn base(&self) -> *mut u8 {
        self.map.base()
    }

    /// Its bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size
    }

    /// What the peer did to it, when it is zeros in place of the peer's memory.
    pub fn fault(&self) -> Option<&'static str> {
        match self.map.state() {
            State::Whole => None,
            State::Shrunk => Some("was truncated"),
            State::Costly => Some(
                "has pages that the peer never wrote, which would cost this process more than peer_charge_mb permits",
            ),
        }
    }
}
