//! The shim over libdpdk (`shim/shim.h`), and what of it is safe to call.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex; // tidy: allow(Mutex) taken around calls of the control thread only
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use volley_graph::buf::STRIDE;

/// A part of a packet. As `struct vd_segment`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) slot: u32,
    pub(crate) at: u16,
    pub(crate) len: u16,
    pub(crate) more: u32,
    pub(crate) unused: u32,
    pub(crate) foreign: *mut c_void,
}

impl Segment {
    pub(crate) const NONE: Segment = Segment::new(0, 0, 0);

    pub(crate) const fn new(slot: u32, at: u16, len: u16) -> Self {
        Segment {
            slot,
            at,
            len,
            more: 0,
            unused: 0,
            foreign: std::ptr::null_mut(),
        }
    }
}

// SAFETY: the pointer is the name of an mbuf, which may be used by any thread that holds it.
unsafe impl Send for Segment {}

/// A packet to be sent. As `struct vd_packet`.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Segments.
    pub segments: u16,
    /// Bytes of the Ethernet header and its tags.
    pub l2: u16,
    /// Bytes of the IP header.
    pub l3: u16,
    /// Bytes of the TCP header.
    pub l4: u16,
    /// Payload bytes of each segment to be cut; 0 = none.
    pub gso: u16,
    /// [`TCP`], [`UDP`], [`IP4`], [`IP6`]; 0 = nothing is to be done.
    pub wants: u16,
}

/// A TCP checksum is to be finished.
pub const TCP: u16 = 1;
/// A UDP checksum is to be finished.
pub const UDP: u16 = 2;
/// The packet is IPv4.
pub const IP4: u16 = 4;
/// The packet is IPv6.
pub const IP6: u16 = 8;

/// Fate of a packet: sent.
pub(crate) const SENT: u8 = 0;
/// Fate of a packet: the queue is full.
pub(crate) const FULL: u8 = 1;

/// What a port says of itself. As `struct vd_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    driver: [u8; 64],
    /// The most receive queues.
    pub max_rx_queues: u16,
    /// The most transmit queues.
    pub max_tx_queues: u16,
    /// The largest MTU.
    pub max_mtu: u16,
    /// The smallest MTU.
    pub min_mtu: u16,
    /// The smallest receive buffer.
    pub min_rx_bytes: u32,
    /// The most descriptors of a receive queue.
    pub max_rx_desc: u16,
    /// The most descriptors of a transmit queue.
    pub max_tx_desc: u16,
    /// The fewest descriptors of a receive queue.
    pub min_rx_desc: u16,
    /// The fewest descriptors of a transmit queue.
    pub min_tx_desc: u16,
    /// Their number must be divisible by this.
    pub rx_desc_align: u16,
    /// Their number must be divisible by this.
    pub tx_desc_align: u16,
    /// [`CAN_CHECKSUM`] and others.
    pub can: u32,
    is_pci: u32,
}

/// Finishes TCP and UDP checksums.
pub const CAN_CHECKSUM: u32 = 1;
/// Cuts TCP.
pub const CAN_TSO: u32 = 2;
/// Sends packets of several buffers.
pub const CAN_SEGMENTS: u32 = 4;
/// Receives into several buffers.
pub const CAN_SCATTER: u32 = 8;

impl Info {
    /// Name of the driver.
    pub fn driver(&self) -> String {
        let end = self.driver.iter().position(|&b| b == 0).unwrap_or(0);
        String::from_utf8_lossy(&self.driver[..end]).into_owned()
    }
}

/// How a port is to be. As `struct vd_conf`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Conf {
    /// Receive queues.
    pub rx_queues: u16,
    /// Transmit queues.
    pub tx_queues: u16,
    /// Descriptors of a receive queue; put within the port's limits.
    pub rx_desc: u16,
    /// Descriptors of a transmit queue; put within the port's limits.
    pub tx_desc: u16,
    /// L3 MTU.
    pub mtu: u16,
    /// `CAN_...` that are to be used.
    pub used: u16,
}

/// A port's link. As `struct vd_link`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PortLink {
    up: u32,
    /// Speed; 0 = unknown.
    pub mbps: u32,
    full_duplex: u32,
}

impl PortLink {
    /// Whether packets pass.
    pub fn is_up(&self) -> bool {
        self.up != 0
    }

    /// Whether both ways at once.
    pub fn is_full_duplex(&self) -> bool {
        self.full_duplex != 0
    }
}

/// A port's own counters. As `struct vd_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that found no descriptor.
    pub rx_missed: u64,
    /// Packets received with errors.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Times that no buffer was there for a packet.
    pub rx_no_buffer: u64,
    /// Packets received by queue.
    pub queue_rx: [u64; 16],
    /// Packets sent by queue.
    pub queue_tx: [u64; 16],
}

/// One mbuf for each slot, and those that no port has. As `struct vd_pool`, opaque.
#[repr(C)]
pub(crate) struct RawPool {
    _private: [u8; 0],
}

/// Packets of one receive call that fit [`ROOM`] segments.
pub(crate) const ROOM: usize = 4096;

unsafe extern "C" {
    fn vd_start(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn vd_complaint(out: *mut u8, room: usize) -> usize;
    fn vd_version() -> *const c_char;
    fn vd_errno() -> c_int;
    fn vd_error(code: c_int) -> *const c_char;
    pub(crate) fn vd_pool_new(
        name: *const c_char,
        arena: *mut u8,
        bytes: usize,
        page: usize,
        slots: u32,
        stride: u32,
        front: u32,
        room: u32,
    ) -> *mut RawPool;
    pub(crate) fn vd_pool_free(pool: *mut RawPool);
    pub(crate) fn vd_pool_level(pool: *const RawPool) -> u32;
    pub(crate) fn vd_pool_put(pool: *mut RawPool, slots: *const u32, count: u32);
    pub(crate) fn vd_pool_take(pool: *mut RawPool, slots: *mut u32, count: u32) -> u32;
    fn vd_probe(device: *const c_char, port: *mut u16) -> c_int;
    fn vd_map(port: u16, pool: *mut RawPool) -> c_int;
    fn vd_describe(port: u16, info: *mut Info) -> c_int;
    fn vd_configure(port: u16, conf: *mut Conf, pool: *mut RawPool) -> c_int;
    fn vd_run(port: u16) -> c_int;
    fn vd_close(port: u16, pool: *const RawPool, runs: c_int);
    fn vd_mac(port: u16, mac: *mut u8) -> c_int;
    fn vd_set_mac(port: u16, mac: *const u8) -> c_int;
    fn vd_set_mtu(port: u16, mtu: u16) -> c_int;
    fn vd_set_promiscuous(port: u16, on: c_int) -> c_int;
    fn vd_set_link(port: u16, up: c_int) -> c_int;
    fn vd_link(port: u16, link: *mut PortLink) -> c_int;
    fn vd_stats(port: u16, stats: *mut Stats) -> c_int;
    pub(crate) fn vd_receive(
        pool: *const RawPool,
        port: u16,
        queue: u16,
        out: *mut Segment,
        most: u32,
        lost: *mut u32,
    ) -> u32;
    pub(crate) fn vd_copy(foreign: *const c_void, out: *mut u8, room: u32) -> u32;
    pub(crate) fn vd_free(foreign: *mut c_void);
    pub(crate) fn vd_send(
        pool: *const RawPool,
        port: u16,
        queue: u16,
        packets: *const Outgoing,
        segments: *const Segment,
        fate: *mut u8,
        count: u16,
    );
}

// The stride is compiled into the shim.
const _: () = assert!(STRIDE == 2368);

/// What libdpdk answers to what it does not do: its error, and the first line it logged about it, if it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .line.as_str() { "" => .text, line => line })]
pub struct Refused {
    /// `-errno`.
    pub code: i32,
    text: String,
    line: String,
}

impl Refused {
    /// The operation is not known to the driver.
    pub fn is_unsupported(&self) -> bool {
        // ENOTSUP and ENOSYS of Linux.
        matches!(self.code.abs(), 95 | 38)
    }

    /// There is something of this name.
    pub fn is_there(&self) -> bool {
        self.code.abs() == 17
    }
}

/// Control calls of all threads, one after the other: libdpdk wants them so, and the line it logs belongs to one of them.
// tidy: allow(Mutex) control threads only
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn complaint() -> String {
    let mut text = [0u8; 240];
    // SAFETY: no more than the array's length is written.
    let n = unsafe { vd_complaint(text.as_mut_ptr(), text.len()) };
    let line = String::from_utf8_lossy(&text[..n.min(text.len())]).into_owned();
    line.trim_end_matches(['.', ' ']).to_owned()
}

fn refused(code: c_int) -> Refused {
    // SAFETY: libdpdk has a text for every number, which lives until this thread asks again.
    let text = unsafe { CStr::from_ptr(vd_error(code.abs())) };
    Refused {
        code,
        text: text.to_string_lossy().into_owned(),
        line: complaint(),
    }
}

/// Make a control call, alone.
fn call(body: impl FnOnce() -> c_int) -> Result<(), Refused> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    // What somebody else's threads logged before.
    let _ = complaint();
    match body() {
        0.. => Ok(()),
        code => Err(refused(code)),
    }
}

/// Version of the library that is loaded ("DPDK 22.11.11").
pub fn version() -> String {
    // SAFETY: a constant text.
    let text = unsafe { CStr::from_ptr(vd_version()) };
    text.to_string_lossy().into_owned()
}

fn text(word: &str) -> CString {
    // Requests with a NUL byte are refused before they come here.
    CString::new(word.replace('\0', "")).unwrap_or_default()
}

/// Start the EAL with these arguments. Once for a process.
pub(crate) fn start(arguments: &[String]) -> Result<(), Refused> {
    let words: Vec<CString> = arguments.iter().map(|a| text(a)).collect();
    // It keeps pointers to the words, and reorders the list.
    let mut list: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    let count = list.len() as c_int;
    list.push(std::ptr::null_mut());
    let list = list.leak();
    // SAFETY: `list` has `count` texts and a null pointer behind them, all of which live for ever.
    call(|| unsafe { vd_start(count, list.as_mut_ptr()) })
}

/// Make the pool of mbufs over an arena.
///
/// # Safety
/// `arena` has `bytes` bytes that are there until [`vd_pool_free`], and slots of [`STRIDE`] bytes in them.
pub(crate) unsafe fn pool(
    name: &str,
    (arena, bytes, page): (*mut u8, usize, usize),
    slots: u32,
    (front, room): (u32, u32),
) -> Result<*mut RawPool, Refused> {
    let (name, mut made) = (text(name), std::ptr::null_mut());
    call(|| {
        // SAFETY: the caller's contract.
        made = unsafe {
            let stride = STRIDE as u32;
            vd_pool_new(
                name.as_ptr(),
                arena,
                bytes,
                page,
                slots,
                stride,
                front,
                room,
            )
        };
        match made.is_null() {
            // SAFETY: a number.
            true => unsafe { -vd_errno().abs().max(1) },
            false => 0,
        }
    })?;
    Ok(made)
}

/// A port of ours, by its number in libdpdk. Closed and its device removed when dropped.
pub(crate) struct RawPort {
    pub(crate) number: u16,
    /// The pool whose arena the device knows.
    mapped: AtomicPtr<RawPool>,
    runs: AtomicBool,
}

impl RawPort {
    /// Bring a device in: a PCI address or a virtual device with its arguments.
    pub(crate) fn probe(device: &str) -> Result<Self, Refused> {
        let (device, mut port) = (text(device), 0);
        // SAFETY: a text and a place for a number.
        call(|| unsafe { vd_probe(device.as_ptr(), &raw mut port) })?;
        Ok(RawPort {
            number: port,
            mapped: AtomicPtr::default(),
            runs: AtomicBool::default(),
        })
    }

    /// What it can do.
    pub(crate) fn info(&self) -> Result<Info, Refused> {
        // SAFETY: zeros are a value of this plain struct.
        let mut info: Info = unsafe { std::mem::zeroed() };
        // SAFETY: a place for one `Info`.
        call(|| unsafe { vd_describe(self.number, &raw mut info) })?;
        Ok(info)
    }

    /// Let the device reach the pool's arena.
    ///
    /// # Safety
    /// The pool lives as long as the port.
    pub(crate) unsafe fn map(&self, pool: *mut RawPool) -> Result<(), Refused> {
        // SAFETY: the caller's contract.
        call(|| unsafe { vd_map(self.number, pool) })?;
        self.mapped.store(pool, Relaxed);
        Ok(())
    }

    /// Make its queues. The descriptors that it really has are in `conf` then.
    ///
    /// # Safety
    /// The pool lives as long as the port.
    pub(crate) unsafe fn configure(
        &self,
        conf: &mut Conf,
        pool: *mut RawPool,
    ) -> Result<(), Refused> {
        // SAFETY: the caller's contract.
        call(|| unsafe { vd_configure(self.number, conf, pool) })
    }

    /// Let it receive and send.
    pub(crate) fn run(&self) -> Result<(), Refused> {
        // SAFETY: a number of a port that is there.
        call(|| unsafe { vd_run(self.number) })?;
        self.runs.store(true, Relaxed);
        Ok(())
    }

    /// Its MAC address.
    pub(crate) fn mac(&self) -> Result<[u8; 6], Refused> {
        let mut mac = [0; 6];
        // SAFETY: a place for six bytes.
        call(|| unsafe { vd_mac(self.number, mac.as_mut_ptr()) })?;
        Ok(mac)
    }

    /// Give it another.
    pub(crate) fn set_mac(&self, mac: [u8; 6]) -> Result<(), Refused> {
        // SAFETY: six bytes.
        call(|| unsafe { vd_set_mac(self.number, mac.as_ptr()) })
    }

    /// Give it another MTU.
    pub(crate) fn set_mtu(&self, mtu: u16) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_mtu(self.number, mtu) })
    }

    /// Let it take every frame, or those for its own address.
    pub(crate) fn set_promiscuous(&self, on: bool) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_promiscuous(self.number, c_int::from(on)) })
    }

    /// Take its link up or down.
    pub(crate) fn set_link(&self, up: bool) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_link(self.number, c_int::from(up)) })
    }

    /// Its link now.
    pub(crate) fn link(&self) -> Result<PortLink, Refused> {
        let mut link = PortLink::default();
        // SAFETY: a place for one `PortLink`.
        call(|| unsafe { vd_link(self.number, &raw mut link) })?;
        Ok(link)
    }

    /// Its counters now.
    pub(crate) fn stats(&self) -> Result<Stats, Refused> {
        let mut stats = Stats::default();
        // SAFETY: a place for one `Stats`.
        call(|| unsafe { vd_stats(self.number, &raw mut stats) })?;
        Ok(stats)
    }
}

impl Drop for RawPort {
    fn drop(&mut self) {
        // SAFETY: nobody else uses the port: it is owned. The pool, if there is one, lives by the contract of `map`.
        let _ = call(|| unsafe {
            vd_close(
                self.number,
                self.mapped.load(Relaxed),
                c_int::from(self.runs.load(Relaxed)),
            );
            0
        });
    }
}
