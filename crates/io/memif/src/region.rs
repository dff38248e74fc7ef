//! Regions of shared memory, of a peer or of this process.

use rustix::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use volley_shm::{Account, MapError, State};

/// Maximum total size of a peer's regions.
pub const MAX_REGION: u64 = 16 << 30;

/// Memory that a peer can write to at any time: read each value once, check it, then use it.
pub struct Map {
    map: volley_shm::Map,
    /// Size of the region in bytes; the map has whole pages.
    size: usize,
}

impl Map {
    /// Map a peer's region of `size` bytes and charge it to `account`.
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

    /// New memory of this process for a peer to map.
    pub fn of_ours(size: usize) -> Result<(OwnedFd, Map), MapError> {
        let (file, map) = volley_shm::Map::of_ours("volley-memif", size)?;
        Ok((file, Map { map, size }))
    }

    /// Address of the first byte.
    #[inline(always)]
    pub fn base(&self) -> *mut u8 {
        self.map.base()
    }

    /// Size in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The peer's fault, if the region was replaced by zeros.
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
