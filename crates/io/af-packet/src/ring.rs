//! The mapped receive ring (TPACKET_V2): a slot per frame, whose status word says who owns it.
//!
//! The kernel writes the frame first and the status last; this end reads the status first and writes 0 to it last.
//! Lengths and offsets come from the kernel, but are clamped to the slot.

#![allow(unsafe_code)]

use crate::sys::{Geometry, dropped, receiver};
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use volley_linux::vnet::{self, HEADER};

/// A VLAN tag that the kernel removed from the frame: type and value.
pub type Tag = (u16, u16);

/// A frame in its slot.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The frame's bytes, as far as the slot holds them.
    pub bytes: &'a [u8],
    /// Whether the frame is longer than the slot.
    pub is_cut: bool,
    /// The offload header.
    pub header: vnet::Bytes,
    /// The tag to restore.
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

    /// Number of frames lost because the ring was full, since the last call.
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
        // SAFETY: slots lie inside the mapping, are aligned to 64 bytes and begin with the status, which both the kernel
        // and this process access only atomically.
        unsafe { AtomicU32::from_ptr(at) }
    }

    fn is_full(&self, ahead: usize) -> bool {
        self.status(ahead).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Number of received frames, at most `most`.
    pub fn waiting(&self, most: usize) -> usize {
        let most = most.min(self.geometry.slots());
        (0..most).take_while(|&ahead| self.is_full(ahead)).count()
    }

    /// The next frame.
    pub fn first(&self) -> Option<Frame<'_>> {
        let at = self.slot(0);
        let status = self.status(0).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: this process owns the slot until its status is reset, and the header lies at the slot's start. The read
        // includes the status word, which the kernel does not write now.
        let header = unsafe { at.cast::<libc::tpacket2_hdr>().read() };
        let start = (header.tp_mac as usize).clamp(HEADER, self.geometry.slot);
        let len = (header.tp_snaplen as usize).min(self.geometry.slot - start);
        // SAFETY: start and length are clamped to the slot, and the borrow of the ring keeps the slot owned.
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

    /// Return the next frame's slot to the kernel.
    pub fn release(&mut self) {
        self.status(0)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at += 1;
        if self.at == self.geometry.slots() {
            self.at = 0;
        }
    }
}
