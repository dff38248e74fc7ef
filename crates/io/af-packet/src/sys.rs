//! Packet sockets: set-up, and sending a batch.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use volley_graph::{MAX_SEGMENTS, PacketView};
use volley_linux::sys::{bind_packet, check, option, set_option, socket};
use volley_linux::vnet::{self, HEADER};

const LEVEL: i32 = libc::SOL_PACKET;
const ALL: u16 = libc::ETH_P_ALL as u16;
/// Maximum number of frames in a batch.
pub const BATCH: usize = 64;

/// Bytes of a slot before the frame: the kernel's headers and their alignment.
const OVERHEAD: usize = HEADER + size_of::<libc::tpacket2_hdr>() + 128;

/// Geometry of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of a slot in bytes, a multiple of 16.
    pub slot: usize,
    /// Slots in a block.
    pub per_block: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Size of a block in bytes, a multiple of the page size.
    pub block: usize,
}

impl Geometry {
    /// Geometry for `slots` frames of up to `frame` bytes. A slot is an odd number of cache lines, so that slots do not
    /// share cache sets.
    pub fn new(slots: usize, frame: usize) -> Self {
        let room = frame + OVERHEAD;
        let lines = room.div_ceil(64) | 1;
        let slot = lines * 64;
        let per_block = ((1 << 20) / slot).clamp(1, slots);
        Geometry {
            slot,
            per_block,
            blocks: slots.div_ceil(per_block),
            block: (per_block * slot).next_multiple_of(4096),
        }
    }

    /// Length of the longest frame.
    pub fn longest(&self) -> usize {
        self.slot - OVERHEAD
    }

    /// Total number of slots.
    pub fn slots(&self) -> usize {
        self.per_block * self.blocks
    }

    /// Size of the mapping in bytes.
    pub fn bytes(&self) -> usize {
        self.block * self.blocks
    }
}

/// A socket that receives into a ring the packets that `interface` receives, not those that it sends.
pub fn receiver(interface: u32, geometry: Geometry) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let set = |name, value: i32| set_option(fd.as_fd(), LEVEL, name, &value);
    set(
        libc::PACKET_VERSION,
        libc::tpacket_versions::TPACKET_V2 as i32,
    )?;
    set(libc::PACKET_IGNORE_OUTGOING, 1)?;
    set(libc::PACKET_VNET_HDR, 1)?;
    let request = libc::tpacket_req {
        tp_block_size: geometry.block as u32,
        tp_block_nr: geometry.blocks as u32,
        tp_frame_size: geometry.slot as u32,
        tp_frame_nr: geometry.slots() as u32,
    };
    set_option(fd.as_fd(), LEVEL, libc::PACKET_RX_RING, &request)?;
    let promiscuous = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd.as_fd(), LEVEL, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
    bind_packet(fd.as_fd(), interface, ALL)?;
    Ok(fd)
}

/// Add the socket to fanout group `group`, whose sockets share an interface's flows by hash.
pub fn share(fd: &OwnedFd, group: u16) -> io::Result<()> {
    let word = i32::from(group) | (libc::PACKET_FANOUT_HASH as i32) << 16;
    set_option(fd.as_fd(), LEVEL, libc::PACKET_FANOUT, &word)
}

/// A socket that sends on `interface` and receives nothing.
pub fn sender(interface: u32) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    set_option(fd.as_fd(), LEVEL, libc::PACKET_QDISC_BYPASS, &1i32)?;
    set_option(fd.as_fd(), LEVEL, libc::PACKET_VNET_HDR, &1i32)?;
    set_option(
        fd.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_SNDBUF,
        &(16i32 << 20),
    )?;
    bind_packet(fd.as_fd(), interface, 0)?;
    Ok(fd)
}

/// Clear the error that a socket keeps after its interface was down: with an error its descriptor is always ready.
pub fn clear_error(fd: &OwnedFd) {
    let _: io::Result<i32> = option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
}

/// Number of frames dropped because the ring was full, since the last call. Reading resets the kernel's counter.
pub fn dropped(fd: &OwnedFd) -> u64 {
    let stats: io::Result<libc::tpacket_stats> = option(fd.as_fd(), LEVEL, libc::PACKET_STATISTICS);
    stats.map_or(0, |stats| u64::from(stats.tp_drops))
}

/// Memory for the batch that is being sent, allocated once. Its pointers are valid only inside [`Batch::send`].
pub struct Batch {
    headers: [vnet::Bytes; BATCH],
    pieces: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers are written and used within one call of `send`, which has exclusive access.
unsafe impl Send for Batch {}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            headers: [[0; HEADER]; BATCH],
            pieces: Vec::with_capacity(BATCH * (MAX_SEGMENTS + 2)),
            messages: Vec::with_capacity(BATCH),
        }
    }
}

impl Batch {
    /// Send up to [`BATCH`] packets by `fd`, each with an offload header. Returns the number that the kernel accepted; an
    /// error concerns the first packet.
    pub fn send<'a>(
        &mut self,
        fd: &OwnedFd,
        packets: impl Iterator<Item = PacketView<'a>>,
    ) -> io::Result<usize> {
        self.pieces.clear();
        self.messages.clear();
        for (packet, header) in packets.zip(&mut self.headers) {
            let first = self.pieces.len();
            *header = vnet::emit(&packet.offload());
            self.pieces.push(piece(header));
            self.pieces
                .extend(packet.slices().take(MAX_SEGMENTS + 1).map(piece));
            // SAFETY: zero is a value of this plain struct.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iovlen = self.pieces.len() - first;
            self.messages.push(message);
        }
        // Nothing is added after this point, so the pieces do not move.
        let mut at = 0;
        for message in &mut self.messages {
            message.msg_hdr.msg_iov = self.pieces[at..].as_mut_ptr();
            at += message.msg_hdr.msg_iovlen;
        }
        let n = self.messages.len() as libc::c_uint;
        // SAFETY: messages point at pieces, pieces at headers of this batch and at packets that the caller's views
        // borrow; all of them outlive the call, which only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                n,
                libc::MSG_DONTWAIT,
            )
        };
        check(sent).map(|sent| sent as usize)
    }
}

fn piece(bytes: impl AsRef<[u8]>) -> libc::iovec {
    let bytes = bytes.as_ref();
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}
