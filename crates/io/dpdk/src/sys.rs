//! The shim over libdpdk (`shim/shim.h`), and safe wrappers.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex; // tidy: allow(Mutex) taken around calls of the control thread only
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use volley_graph::buf::STRIDE;

/// A segment of a packet. As `struct vd_segment`.
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

// SAFETY: the pointer identifies an mbuf, which any thread that owns it may use.
unsafe impl Send for Segment {}

/// A packet to be sent. As `struct vd_packet`.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Number of segments.
    pub segments: u16,
    /// Bytes of the Ethernet header and its tags.
    pub l2: u16,
    /// Bytes of the IP header.
    pub l3: u16,
    /// Bytes of the TCP header.
    pub l4: u16,
    /// Payload bytes of each segment that TSO produces; 0 = no TSO.
    pub gso: u16,
    /// [`TCP`], [`UDP`], [`IP4`], [`IP6`]; 0 = no request.
    pub wants: u16,
}

/// The port is to complete a TCP checksum.
pub const TCP: u16 = 1;
/// The port is to complete a UDP checksum.
pub const UDP: u16 = 2;
/// The packet is IPv4.
pub const IP4: u16 = 4;
/// The packet is IPv6.
pub const IP6: u16 = 8;

/// Result for a packet: sent.
pub(crate) const SENT: u8 = 0;
/// Result for a packet: the queue is full.
pub(crate) const FULL: u8 = 1;

/// Capabilities of a port. As `struct vd_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    driver: [u8; 64],
    /// Maximum number of receive queues.
    pub max_rx_queues: u16,
    /// Maximum number of transmit queues.
    pub max_tx_queues: u16,
    /// The largest MTU.
    pub max_mtu: u16,
    /// The smallest MTU.
    pub min_mtu: u16,
    /// Minimum size of a receive buffer.
    pub min_rx_bytes: u32,
    /// Maximum number of descriptors of a receive queue.
    pub max_rx_desc: u16,
    /// Maximum number of descriptors of a transmit queue.
    pub max_tx_desc: u16,
    /// Minimum number of descriptors of a receive queue.
    pub min_rx_desc: u16,
    /// Minimum number of descriptors of a transmit queue.
    pub min_tx_desc: u16,
    /// The number of receive descriptors must be divisible by this.
    pub rx_desc_align: u16,
    /// The number of transmit descriptors must be divisible by this.
    pub tx_desc_align: u16,
    /// Bits [`CAN_CHECKSUM`] and others.
    pub can: u32,
    is_pci: u32,
}

/// The port completes TCP and UDP checksums.
pub const CAN_CHECKSUM: u32 = 1;
/// The port segments TCP (TSO).
pub const CAN_TSO: u32 = 2;
/// The port sends packets of several buffers.
pub const CAN_SEGMENTS: u32 = 4;
/// The port receives into several buffers.
pub const CAN_SCATTER: u32 = 8;

impl Info {
    /// Name of the driver.
    pub fn driver(&self) -> String {
        let end = self.driver.iter().position(|&b| b == 0).unwrap_or(0);
        String::from_utf8_lossy(&self.driver[..end]).into_owned()
    }
}

/// Configuration of a port. As `struct vd_conf`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Conf {
    /// Number of receive queues.
    pub rx_queues: u16,
    /// Number of transmit queues.
    pub tx_queues: u16,
    /// Descriptors of a receive queue; adjusted to the port's limits.
    pub rx_desc: u16,
    /// Descriptors of a transmit queue; adjusted to the port's limits.
    pub tx_desc: u16,
    /// L3 MTU.
    pub mtu: u16,
    /// Bits `CAN_...` of the capabilities to use.
    pub used: u16,
}

/// A port's link. As `struct vd_link`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PortLink {
    up: u32,
    /// Speed in Mbit/s; 0 = unknown.
    pub mbps: u32,
    full_duplex: u32,
}

impl PortLink {
    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.up != 0
    }

    /// Whether the link is full duplex.
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
    /// Packets dropped because no descriptor was free.
    pub rx_missed: u64,
    /// Packets received with errors.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Number of times that no buffer was free for a packet.
    pub rx_no_buffer: u64,
    /// Packets received, by queue.
    pub queue_rx: [u64; 16],
    /// Packets sent, by queue.
    pub queue_tx: [u64; 16],
}

/// The mbufs of all slots, and the free slots. As `struct vd_pool`, opaque.
#[repr(C)]
pub(crate) struct RawPool {
    _private: [u8; 0],
}

/// Maximum number of segments of one receive call.
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
        outcome: *mut u8,
        count: u16,
    );
}

// The stride is compiled into the shim.
const _: () = assert!(STRIDE == 2368);

/// An error of libdpdk, with the first line that it logged about the error, if any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .line.as_str() { "" => .text, line => line })]
pub struct Refused {
    /// `-errno`.
    pub code: i32,
    text: String,
    line: String,
}

impl Refused {
    /// Whether the driver does not support the operation.
    pub fn is_unsupported(&self) -> bool {
        // ENOTSUP and ENOSYS of Linux.
        matches!(self.code.abs(), 95 | 38)
    }

    /// Whether an object of this name exists already.
    pub fn is_there(&self) -> bool {
        self.code.abs() == 17
    }
}

/// Serialises the control calls of all threads: libdpdk requires it, and the logged line belongs to one call.
// tidy: allow(Mutex) control threads only
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn complaint() -> String {
    let mut text = [0u8; 240];
    // SAFETY: at most the array's length is written.
    let n = unsafe { vd_complaint(text.as_mut_ptr(), text.len()) };
    let line = String::from_utf8_lossy(&text[..n.min(text.len())]).into_owned();
    line.trim_end_matches(['.', ' ']).to_owned()
}

fn refused(code: c_int) -> Refused {
    // SAFETY: libdpdk has a text for every number, which is valid until this thread calls again.
    let text = unsafe { CStr::from_ptr(vd_error(code.abs())) };
    Refused {
        code,
        text: text.to_string_lossy().into_owned(),
        line: complaint(),
    }
}

/// Make a control call, with no other one at the same time.
fn call(body: impl FnOnce() -> c_int) -> Result<(), Refused> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    // Discard lines that other threads logged before.
    let _ = complaint();
    match body() {
        0.. => Ok(()),
        code => Err(refused(code)),
    }
}

/// Version of the loaded library ("DPDK 22.11.11").
pub fn version() -> String {
    // SAFETY: a constant text.
    let text = unsafe { CStr::from_ptr(vd_version()) };
    text.to_string_lossy().into_owned()
}

fn text(word: &str) -> CString {
    // Requests with a NUL byte are refused earlier.
    CString::new(word.replace('\0', "")).unwrap_or_default()
}

/// Start the EAL with these arguments, once per process.
pub(crate) fn start(arguments: &[String]) -> Result<(), Refused> {
    let words: Vec<CString> = arguments.iter().map(|a| text(a)).collect();
    // The EAL keeps pointers to the words, and reorders the list.
    let mut list: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    let count = list.len() as c_int;
    list.push(std::ptr::null_mut());
    let list = list.leak();
    // SAFETY: `list` has `count` texts and a terminating null pointer, all of which live for ever.
    call(|| unsafe { vd_start(count, list.as_mut_ptr()) })
}

/// Create the pool of mbufs over an arena.
///
/// # Safety
/// `arena` has `bytes` bytes that are valid until [`vd_pool_free`], and slots of [`STRIDE`] bytes in them.
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

/// A port by its number in libdpdk. Dropping it closes the port and removes its device.
pub(crate) struct RawPort {
    pub(crate) number: u16,
    /// The pool whose arena is mapped for the device.
    mapped: AtomicPtr<RawPool>,
    runs: AtomicBool,
}

impl RawPort {
    /// Probe a device: a PCI address or a virtual device with its arguments.
    pub(crate) fn probe(device: &str) -> Result<Self, Refused> {
        let (device, mut port) = (text(device), 0);
        // SAFETY: a text, and a pointer to a number.
        call(|| unsafe { vd_probe(device.as_ptr(), &raw mut port) })?;
        Ok(RawPort {
            number: port,
            mapped: AtomicPtr::default(),
            runs: AtomicBool::default(),
        })
    }

    /// Capabilities of the port.
    pub(crate) fn info(&self) -> Result<Info, Refused> {
        // SAFETY: zeros are a value of this plain struct.
        let mut info: Info = unsafe { std::mem::zeroed() };
        // SAFETY: a pointer to an `Info`.
        call(|| unsafe { vd_describe(self.number, &raw mut info) })?;
        Ok(info)
    }

    /// Map the pool's arena for the device.
    ///
    /// # Safety
    /// The pool lives as long as the port.
    pub(crate) unsafe fn map(&self, pool: *mut RawPool) -> Result<(), Refused> {
        // SAFETY: the caller's contract.
        call(|| unsafe { vd_map(self.number, pool) })?;
        self.mapped.store(pool, Relaxed);
        Ok(())
    }

    /// Create the port's queues. On return `conf` has the actual numbers of descriptors.
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

    /// Start the port.
    pub(crate) fn run(&self) -> Result<(), Refused> {
        // SAFETY: the number of an existing port.
        call(|| unsafe { vd_run(self.number) })?;
        self.runs.store(true, Relaxed);
        Ok(())
    }

    /// The port's MAC address.
    pub(crate) fn mac(&self) -> Result<[u8; 6], Refused> {
        let mut mac = [0; 6];
        // SAFETY: a pointer to six bytes.
        call(|| unsafe { vd_mac(self.number, mac.as_mut_ptr()) })?;
        Ok(mac)
    }

    /// Set the MAC address.
    pub(crate) fn set_mac(&self, mac: [u8; 6]) -> Result<(), Refused> {
        // SAFETY: six bytes.
        call(|| unsafe { vd_set_mac(self.number, mac.as_ptr()) })
    }

    /// Set the MTU.
    pub(crate) fn set_mtu(&self, mtu: u16) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_mtu(self.number, mtu) })
    }

    /// Turn promiscuous mode on or off.
    pub(crate) fn set_promiscuous(&self, on: bool) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_promiscuous(self.number, c_int::from(on)) })
    }

    /// Set the link up or down.
    pub(crate) fn set_link(&self, up: bool) -> Result<(), Refused> {
        // SAFETY: numbers.
        call(|| unsafe { vd_set_link(self.number, c_int::from(up)) })
    }

    /// Present state of the link.
    pub(crate) fn link(&self) -> Result<PortLink, Refused> {
        let mut link = PortLink::default();
        // SAFETY: a pointer to a `PortLink`.
        call(|| unsafe { vd_link(self.number, &raw mut link) })?;
        Ok(link)
    }

    /// Present counters of the port.
    pub(crate) fn stats(&self) -> Result<Stats, Refused> {
        let mut stats = Stats::default();
        // SAFETY: a pointer to a `Stats`.
        call(|| unsafe { vd_stats(self.number, &raw mut stats) })?;
        Ok(stats)
    }
}

impl Drop for RawPort {
    fn drop(&mut self) {
        // SAFETY: the port is owned, so it has no other user. The pool, if there is one, lives by the contract of `map`.
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
