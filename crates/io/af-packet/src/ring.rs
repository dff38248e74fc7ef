//! The mapped receive ring (TPACKET_V2): a slot per frame, handed over by its status word.
//!
//! The kernel writes a frame and then, as the last thing, the status; we read the status first and write 0 as the last
//! thing. Lengths and offsets are the kernel's, but are clamped to the slot all the same.

#![allow(unsafe_code)]

use crate::sys::{Geometry, dropped, receiver};
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use volley_linux::vnet::{self, HEADER};

/// A tag that the kernel took out of the frame: type and value.
pub type Tag = (u16, u16);

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its bytes as far as the slot holds them.
    pub bytes: &'a [u8],
    /// Whether that is less than there were.
    pub is_cut: bool,
    /// The offload header.
    pub header: vnet::Bytes,
    /// The tag that has to be put back.
    pub tag: Option<Tag>,
}

/// A ring, and the socket that fills it.
pub struct RxRing {
    map: MmapRaw,
    geometry: Geometry,
    at: usize,
    socket: OwnedFd,
}

impl RxRing {
    /// Open a ring on an interface of this thread's namespace.
    pub fn open(interface: u32, geometry: Geometry) -> io::Result<Self> {
        let socket = receiver(interface, geometry)?;
        let map = MmapOptions::new()
            .len(geometry.bytes())
            .populate()
            .map_raw(&socket)?;
        Ok(RxRing {
            map,
            geometry,
            at: 0,
            socket,
        })
    }

    /// The socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Frames lost for want of room since the last time.
    pub fn dropped(&self) -> u64 {
        dropped(&self.socket)
    }

    fn slot(&self, ahead: usize) -> *mut u8 {
        let Geometry {
            slot,
            per_block,
            block,
            ..
        } = self.geometry;
        let mut at = self.at + ahead;
        if at >= self.geometry.slots() {
            at -= self.geometry.slots();
        }
        self.map
            .as_mut_ptr()
            .wrapping_add(at / per_block * block + at % per_block * slot)
    }

    fn status(&self, ahead: usize) -> &AtomicU32 {
        let at = self.slot(ahead).cast::<u32>();
        // SAFETY: slots lie inside the mapping, are aligned to 64 bytes and begin with the status, which the kernel and we
        // touch atomically only.
        unsafe { AtomicU32::from_ptr(at) }
    }

    fn is_full(&self, ahead: usize) -> bool {
        self.status(ahead).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// How many frames wait, as far as `most`.
    pub fn waiting(&self, most: usize) -> usize {
        let most = most.min(self.geometry.slots());
        (0..most).take_while(|&ahead| self.is_full(ahead)).count()
    }

    /// The frame in turn.
    pub fn first(&self) -> Option<Frame<'_>> {
        let at = self.slot(0);
        let status = self.status(0).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until its status is set back, its header lies at its start; the status word itself, which
        // the kernel does not touch now either, is read along.
        let header = unsafe { at.cast::<libc::tpacket2_hdr>().read() };
        let start = (header.tp_mac as usize).clamp(HEADER, self.geometry.slot);
        let len = (header.tp_snaplen as usize).min(self.geometry.slot - start);
        // SAFETY: start and length are clamped to the slot, and the borrow of the ring keeps it ours.
        let bytes = unsafe { std::slice::from_raw_parts(at.wrapping_add(start), len) };
        // SAFETY: `start` is at least HEADER, so these bytes lie in the slot.
        let vnet = unsafe { at.wrapping_add(start - HEADER).cast::<vnet::Bytes>().read() };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => libc::ETH_P_8021Q as u16,
                _ => header.tp_vlan_tpid,
            };
            (kind, header.tp_vlan_tci)
        });
        Some(Frame {
            bytes,
            is_cut: len < header.tp_len as usize,
            header: vnet,
            tag,
        })
    }

    /// Give the frame in turn back.
    pub fn release(&mut self) {
        self.status(0)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at += 1;
        if self.at == self.geometry.slots() {
            self.at = 0;
        }
    }
}
