//! Memory and event counters that a peer shares with this process. memif, vhost-user and virtio-user map and signal
//! through this crate only. [`calls`] has the system calls of their control channels, which a simulation makes fail.
//!
//! **The peer is hostile.** It owns the open files that it sends, and shares the open files that this process sends: it
//! can shrink a file, punch holes into it, clear `O_NONBLOCK`, fill a counter, all at any time. The crate's contract:
//!
//! - [`Map`] stays valid memory as long as it lives. If the kernel cannot supply a page, zeros replace the whole map, and
//!   [`Map::state`] names the cause. The process has one SIGBUS handler ([`bus`]); the order in which drivers map does not
//!   matter, and a fault outside every map takes the default action.
//! - A peer cannot make this process pay for more memory than [`Limits`] permits ([`limits`]).
//! - [`Event::signal`] and [`Event::clear`] cannot block ([`event`]). Workers make no other system call on a file that is
//!   shared with a peer, except `ppoll` with a time limit.
//!
//! # Sealed and refused files
//!
//! Files that this process creates ([`Map::of_ours`]) are sealed against shrinking and growing before a peer gets them.
//! A peer's memfd that permits sealing gets `F_SEAL_SHRINK` here. One that permits no seals (QEMU with `seal=off`,
//! DPDK's hugepage files) is mapped unsealed, under the protection of the handler. Files whose pages are not memory are
//! refused (only memfds and files on tmpfs or hugetlbfs are mapped), and so are regions that exceed their file.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
#[path = "bus/sys.rs"]
pub mod bus;
pub mod calls;
pub mod event;
pub mod limits;
#[allow(unsafe_code)]
mod sys;

pub use event::Event;
pub use limits::{Account, Limits};
pub use sys::{Map, State, copy, file as memory_file};

use rustix::fs::FileType;
use std::io;
use std::os::fd::BorrowedFd;

/// The file systems whose pages are memory: neither a disk nor another process can delay an access.
const TMPFS: u64 = 0x0102_1994;
const HUGETLBFS: u64 = 0x9584_58f6;
/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Why a peer's file is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file is a device, a file on a disk, a pipe, ...
    #[error("it is no shared memory (only memfds and files on tmpfs or hugetlbfs are)")]
    NotMemory,
    /// The region exceeds its file.
    #[error("the peer says {stated} bytes, but the file has {has}")]
    Size {
        /// The end of the region.
        stated: u64,
        /// The size of the file.
        has: u64,
    },
    /// The region is empty, or exceeds the address space.
    #[error("{0} bytes are out of range")]
    Range(u64),
    /// A huge page cannot be mapped in part.
    #[error("{0} bytes are not whole huge pages")]
    HugePages(u64),
    /// The regions of this peer, or of all peers, would be too large.
    #[error(
        "{what} would share {wanted} MB, and {limit} MB is the limit: raise peer_memory_mb in [engine]"
    )]
    Memory {
        /// The peers that share the memory.
        what: &'static str,
        /// The total with this region.
        wanted: u64,
        /// The maximum.
        limit: u64,
    },
    /// The pages of the file that do not exist yet could cost this process too much.
    #[error(
        "{wanted} MB of it have no pages yet, which would count against this process, and {limit} MB is the limit: let the peer allocate its memory (prealloc=on of QEMU), or raise peer_charge_mb in [engine]"
    )]
    Charge {
        /// The bytes that would be charged.
        wanted: u64,
        /// The maximum.
        limit: u64,
    },
    /// The table of maps is full.
    #[error("there are {} shared memory maps already", bus::RANGES)]
    TooMany,
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for MapError {
    fn from(error: rustix::io::Errno) -> Self {
        MapError::System(error.into())
    }
}

/// The properties of a peer's file.
pub(crate) struct Kind {
    /// The page size.
    page: u64,
    /// The size of the file.
    size: u64,
    /// The number of allocated bytes.
    allocated: u64,
}

impl Kind {
    /// Examine a peer's file; an error when it is not memory.
    fn of(file: BorrowedFd<'_>) -> Result<Kind, MapError> {
        let stat = rustix::fs::fstat(file)?;
        let system = rustix::fs::fstatfs(file)?;
        let kind = system.f_type as u64;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // A file on another file system could make a worker wait for a server at every page.
        if !regular || !matches!(kind, TMPFS | HUGETLBFS) {
            return Err(MapError::NotMemory);
        }
        let huge = (system.f_bsize as u64).max(PAGE);
        Ok(Kind {
            page: if kind == HUGETLBFS { huge } else { PAGE },
            size: stat.st_size as u64,
            allocated: (stat.st_blocks as u64).saturating_mul(512),
        })
    }

    fn is_huge(&self) -> bool {
        self.page > PAGE
    }
}
