//! XDP sockets over the buffer arena: the kernel writes packets directly into the packet buffers.
//!
//! The arena is registered with unaligned chunks: a chunk begins with a slot and ends with the slot's data, and the
//! kernel's headroom of 256 bytes is the slot's headroom. So a received packet begins at the same offset as a packet in a
//! fresh buffer, and Volley copies nothing.
//!
//! Each ring has one writer of its producer index and one of its consumer index: this process and the kernel. The
//! kernel's values are checked against the arena nevertheless.

#![allow(unsafe_code)]

use crate::sys;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use volley_graph::buf::{BufIdx, Pool, START, STRIDE};
use volley_graph::buf::{DATA, END};
use volley_graph::{Isa, NewVector, Nexts, Output, Vector};
use volley_linux::sys::{option, set_option};

const LEVEL: i32 = libc::SOL_XDP;
/// Number of address bits of a descriptor that name the chunk; the higher bits are an offset.
const OFFSET: u32 = 48;
const CHUNK: u64 = (1 << OFFSET) - 1;

/// One ring of a socket.
struct Ring {
    map: MmapRaw,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// The index that this process writes.
    ours: u32,
    /// The kernel's index when last read.
    theirs: u32,
}

impl Ring {
    fn new(
        fd: &OwnedFd,
        entries: u32,
        entry: usize,
        offsets: libc::xdp_ring_offset,
        page: u64,
    ) -> io::Result<Self> {
        let len = offsets.desc as usize + entries as usize * entry;
        let map = MmapOptions::new()
            .len(len)
            .offset(page)
            .populate()
            .map_raw(fd)?;
        Ok(Ring {
            map,
            offsets,
            mask: entries - 1,
            ours: 0,
            theirs: 0,
        })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        let at = self.map.as_mut_ptr().wrapping_add(offset as usize).cast();
        // SAFETY: the kernel places the three words, aligned, before the entries; both sides use them atomically.
        unsafe { AtomicU32::from_ptr(at) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn wants_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Address of entry `at` of type `T`, modulo the ring size.
    fn entry<T>(&self, at: u32) -> *mut T {
        let base = self
            .map
            .as_mut_ptr()
            .wrapping_add(self.offsets.desc as usize);
        base.cast::<T>().wrapping_add((at & self.mask) as usize)
    }

    /// As producer: number of free entries.
    fn room(&mut self) -> u32 {
        self.theirs = self.consumer().load(Ordering::Acquire);
        (self.mask + 1).saturating_sub(self.ours.wrapping_sub(self.theirs))
    }

    /// As consumer: number of available entries.
    fn waiting(&mut self) -> u32 {
        self.theirs = self.producer().load(Ordering::Acquire);
        self.theirs.wrapping_sub(self.ours).min(self.mask + 1)
    }

    /// As producer: write the next entry; [`Ring::publish`] makes it visible.
    fn put<T>(&mut self, value: T) {
        // SAFETY: the entry lies in the mapping, and is free because the caller checked `room`.
        unsafe { self.entry::<T>(self.ours).write(value) };
        self.ours = self.ours.wrapping_add(1);
    }

    fn publish(&self) {
        self.producer().store(self.ours, Ordering::Release);
    }

    /// As consumer: read the next entry; [`Ring::release`] returns it to the kernel.
    fn get<T: Copy>(&mut self) -> T {
        // SAFETY: the entry lies in the mapping, and was written because the caller checked `waiting`.
        let value = unsafe { self.entry::<T>(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        value
    }

    fn release(&self) {
        self.consumer().store(self.ours, Ordering::Release);
    }
}

// SAFETY: only the owner of the ring uses its mapping, besides the kernel.
unsafe impl Send for Ring {}

/// The buffers of the arena that a device owns.
struct Held(Vec<u64>);

impl Held {
    fn new(buffers: usize) -> Self {
        Held(vec![0; buffers.div_ceil(64)])
    }

    fn set(&mut self, buffer: BufIdx) {
        if let Some(word) = self.0.get_mut(buffer.0 as usize / 64) {
            *word |= 1 << (buffer.0 % 64);
        }
    }

    /// Remove a buffer; false if the device did not own it.
    fn clear(&mut self, buffer: BufIdx) -> bool {
        let Some(word) = self.0.get_mut(buffer.0 as usize / 64) else {
            return false;
        };
        let bit = 1 << (buffer.0 % 64);
        let had = *word & bit != 0;
        *word &= !bit;
        had
    }

    fn all(&self) -> Vec<u32> {
        let bits = self.0.iter().enumerate();
        let bits = bits.flat_map(|(at, &word)| (0..64).map(move |bit| (at, word, bit)));
        bits.filter(|(_, word, bit)| word >> bit & 1 != 0)
            .map(|(at, _, bit)| (at * 64 + bit) as u32)
            .collect()
    }
}

/// A socket, and what its two halves left when they were dropped.
struct Shared {
    fd: Option<OwnedFd>,
    pool: Arc<Pool>,
    left: [OnceLock<Vec<u32>>; 2],
}

impl Shared {
    fn fd(&self) -> &OwnedFd {
        // `None` only during `drop`.
        match &self.fd {
            Some(fd) => fd,
            None => unreachable!(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // After the socket is closed, the kernel does not use the memory any more, and the buffers are free.
        drop(self.fd.take());
        let mut cache = self.pool.cache();
        for left in self.left.iter().filter_map(OnceLock::get) {
            cache.free(left);
        }
    }
}

/// The receiving half of a socket.
pub struct RxHalf {
    rx: Ring,
    fill: Ring,
    held: Held,
    /// Number of buffers that the kernel owns.
    posted: u32,
    rows: Vec<(BufIdx, usize, usize)>,
    whole: Vec<u8>,
    shared: Arc<Shared>,
}

/// The transmitting half.
pub struct TxHalf {
    tx: Ring,
    done: Ring,
    held: Held,
    back: Vec<BufIdx>,
    zero_copy: bool,
    shared: Arc<Shared>,
}

/// Parameters of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The kernel's interface.
    pub interface: u32,
    /// Queue of the kernel's interface.
    pub queue: u32,
    /// Entries of each ring.
    pub ring: u32,
    /// `XDP_COPY`, `XDP_ZEROCOPY` or 0 for the kernel's choice.
    pub copy: u16,
}

fn register(fd: &OwnedFd, pool: &Pool, ring: u32) -> io::Result<()> {
    // SAFETY: only the address is used here.
    let base = unsafe { pool.at(0, 0) };
    let region = libc::xdp_umem_reg {
        addr: base as u64,
        len: (pool.total() * STRIDE).next_multiple_of(4096) as u64,
        chunk_size: END as u32,
        headroom: 0,
        flags: libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG,
        tx_metadata_len: 0,
    };
    set_option(fd.as_fd(), LEVEL, libc::XDP_UMEM_REG, &region)?;
    let rings = [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ];
    rings
        .into_iter()
        .try_for_each(|name| set_option(fd.as_fd(), LEVEL, name, &ring))
}

/// Open a socket on a queue of an interface of this thread's namespace.
pub fn open(pool: &Arc<Pool>, wanted: Wanted) -> io::Result<(RxHalf, TxHalf)> {
    let fd = sys::xdp_socket()?;
    register(&fd, pool, wanted.ring)?;
    let at: libc::xdp_mmap_offsets = option(fd.as_fd(), LEVEL, libc::XDP_MMAP_OFFSETS)?;
    let ring = |offsets, page: u64, entry| Ring::new(&fd, wanted.ring, entry, offsets, page);
    let desc = size_of::<libc::xdp_desc>();
    let rx = ring(at.rx, libc::XDP_PGOFF_RX_RING as u64, desc)?;
    let tx = ring(at.tx, libc::XDP_PGOFF_TX_RING as u64, desc)?;
    let fill = ring(at.fr, libc::XDP_UMEM_PGOFF_FILL_RING, 8)?;
    let done = ring(at.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING, 8)?;
    let flags = libc::XDP_USE_NEED_WAKEUP | wanted.copy;
    let (interface, queue) = (wanted.interface, wanted.queue);
    match sys::bind(&fd, interface, queue, flags | libc::XDP_USE_SG) {
        // Kernels before 6.6 do not support packets of several buffers, nor do some drivers in zero-copy mode.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            sys::bind(&fd, interface, queue, flags)?;
        }
        other => other?,
    }
    let word: u32 = option(fd.as_fd(), LEVEL, libc::XDP_OPTIONS)?;
    let shared = Arc::new(Shared {
        fd: Some(fd),
        pool: pool.clone(),
        left: [const { OnceLock::new() }; 2],
    });
    let (buffers, entries) = (pool.total(), wanted.ring as usize);
    let rx = RxHalf {
        rx,
        fill,
        held: Held::new(buffers),
        posted: 0,
        rows: Vec::with_capacity(entries),
        whole: Vec::with_capacity(1 << 17),
        shared: shared.clone(),
    };
    let tx = TxHalf {
        tx,
        done,
        held: Held::new(buffers),
        back: Vec::with_capacity(entries),
        zero_copy: word & libc::XDP_OPTIONS_ZEROCOPY != 0,
        shared,
    };
    Ok((rx, tx))
}

fn buffer(address: u64) -> BufIdx {
    BufIdx(((address & CHUNK) / STRIDE as u64) as u32)
}

impl RxHalf {
    /// The socket.
    pub fn socket(&self) -> &OwnedFd {
        self.shared.fd()
    }

    /// Number of available descriptors: packets, or parts of them.
    pub fn waiting(&mut self) -> usize {
        self.rx.waiting() as usize
    }

    /// Number of packets that the kernel dropped because no buffer or no entry was free.
    pub fn lost(&self) -> u64 {
        let stats = option(self.socket().as_fd(), LEVEL, libc::XDP_STATISTICS);
        stats.map_or(0, |s: libc::xdp_statistics| s.rx_dropped + s.rx_ring_full)
    }

    /// Fill the kernel's ring with empty buffers.
    pub fn refill<I: Isa, X: Nexts>(&mut self, out: &mut Output<'_, I, X>) {
        const BATCH: usize = 64;
        let size = self.fill.mask + 1;
        while self.posted + BATCH as u32 <= size && self.fill.room() >= BATCH as u32 {
            let mut fresh = [BufIdx(0); BATCH];
            let n = out.post_to_device(&mut fresh);
            for &one in &fresh[..n] {
                self.held.set(one);
                self.fill.put(u64::from(one.0) * STRIDE as u64);
            }
            self.posted += n as u32;
            self.fill.publish();
            if n < BATCH {
                return;
            }
        }
    }

    /// Receive up to `most` packets. A packet of several buffers is copied into a chain and ends the batch; its row, and
    /// whether buffers were free for it, are returned with the batch.
    pub fn take<'o, I: Isa, X: Nexts>(
        &mut self,
        out: &'o mut Output<'_, I, X>,
        rx: u32,
        most: usize,
    ) -> (NewVector<'o, I, X>, bool) {
        self.rows.clear();
        let mut is_long = false;
        let mut waiting = self.rx.waiting();
        while waiting > 0 && self.rows.len() < most && !is_long {
            let first: libc::xdp_desc = self.rx.get();
            waiting -= 1;
            self.posted = self.posted.saturating_sub(1);
            let head = buffer(first.addr);
            if !self.held.clear(head) {
                continue;
            }
            let at = (first.addr & CHUNK) as usize % STRIDE + (first.addr >> OFFSET) as usize;
            let at = at.min(END);
            let len = (first.len as usize).min(END - at);
            self.rows.push((head, at, len));
            if first.options & libc::XDP_PKT_CONTD != 0 {
                is_long = true;
                self.gather(out, (head, at, len), &mut waiting);
            }
        }
        self.rx.release();
        // SAFETY: each buffer was lent by `refill`, the kernel owned it until now, and it returned once.
        let mut fresh = unsafe { out.receive_into_posted(rx, &self.rows) };
        let row = self.rows.len().saturating_sub(1);
        let whole = !is_long || fresh.write(row, &self.whole);
        (fresh, whole)
    }

    /// Copy a packet of several buffers together; its first buffer stays the row's.
    fn gather<I: Isa, X: Nexts>(
        &mut self,
        out: &mut Output<'_, I, X>,
        (head, at, len): (BufIdx, usize, usize),
        waiting: &mut u32,
    ) {
        self.whole.clear();
        let mut part = (head, at, len);
        let mut more = true;
        loop {
            let (one, at, len) = part;
            // SAFETY: this process owns the buffer; start and length are clamped to its slot.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.shared.pool.at(one.0, at).cast_const(), len)
            };
            self.whole.extend_from_slice(bytes);
            if one != head {
                // SAFETY: lent by `refill`, returned by the kernel, and not among the rows.
                unsafe { out.reclaim(&[one]) };
            }
            if !more || *waiting == 0 {
                return;
            }
            let next: libc::xdp_desc = self.rx.get();
            *waiting -= 1;
            self.posted = self.posted.saturating_sub(1);
            more = next.options & libc::XDP_PKT_CONTD != 0;
            let one = buffer(next.addr);
            if !self.held.clear(one) {
                return;
            }
            let at = (next.addr & CHUNK) as usize % STRIDE + (next.addr >> OFFSET) as usize;
            let at = at.min(END);
            part = (one, at, (next.len as usize).min(END - at));
        }
    }
}

impl Drop for RxHalf {
    fn drop(&mut self) {
        let _ = self.shared.left[0].set(self.held.all());
    }
}

impl TxHalf {
    /// Whether the kernel reads Volley's buffers while it sends.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Reclaim sent buffers.
    pub fn reclaim<I: Isa, X: Nexts>(&mut self, v: &mut Vector<'_, I, X>) {
        self.back.clear();
        for _ in 0..self.done.waiting() {
            let address: u64 = self.done.get();
            let one = buffer(address);
            // Parts of chains have an offset, and are not lent.
            if address >> OFFSET == 0 && self.held.clear(one) {
                self.back.push(one);
            }
        }
        self.done.release();
        // SAFETY: each was lent (it was in `held`), is removed from `held`, and the kernel reports that it has finished
        // with it.
        unsafe { v.reclaim(&self.back) };
    }

    /// Post a packet; false when the ring is full. A packet of several buffers must be sent before its buffers are freed.
    pub fn post<I: Isa, X: Nexts>(&mut self, v: &Vector<'_, I, X>, row: usize) -> bool {
        let view = v.view(row);
        if !view.is_chain() {
            if self.tx.room() == 0 {
                return false;
            }
            let one = view.buffer();
            self.held.set(one);
            self.tx.put(libc::xdp_desc {
                addr: u64::from(one.0) * STRIDE as u64 + view.position() as u64,
                len: view.bytes().len() as u32,
                options: 0,
            });
            return true;
        }
        let parts = view.slices().filter(|s| !s.is_empty()).count();
        if (self.tx.room() as usize) < parts || (self.done.mask as usize) < parts {
            return false;
        }
        // SAFETY: no more than the address is taken here.
        let base = unsafe { self.shared.pool.at(0, 0) } as u64;
        for (at, bytes) in view.slices().filter(|s| !s.is_empty()).enumerate() {
            let address = bytes.as_ptr() as u64 - base;
            let start = address / STRIDE as u64 * STRIDE as u64;
            self.tx.put(libc::xdp_desc {
                addr: start | (address - start) << OFFSET,
                len: bytes.len() as u32,
                options: if at + 1 < parts {
                    libc::XDP_PKT_CONTD
                } else {
                    0
                },
            });
        }
        true
    }

    /// Publish the posted packets to the kernel, and send them. Returns when the kernel has taken all, or with its error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.tx.publish();
        // The kernel takes at least one packet per call, or returns an error.
        for _ in 0..=self.tx.mask {
            if self.tx.consumer().load(Ordering::Acquire) == self.tx.ours {
                return Ok(());
            }
            if !self.tx.wants_wakeup() {
                return Ok(());
            }
            match sys::kick(self.shared.fd()) {
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                other => other?,
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }
}

impl Drop for TxHalf {
    fn drop(&mut self) {
        let _ = self.shared.left[1].set(self.held.all());
    }
}

const _: () = assert!(START == 256 && END == START + DATA && END <= 4096 && END >= 2048);
