//! System calls for which neither the standard library nor a used library has a safe function.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Types that the kernel reads and writes as bytes.
///
/// # Safety
/// Every bit pattern is a value, and there is no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: four integers of the same size.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: two integers of the same size.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: integers without padding: 4 + 2 + 2 + 8 bytes.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: integers without padding: 8 + 8 + 4 + 4 + 4 + 4 bytes.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers of the same size.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers of the same size.
unsafe impl Plain for libc::xdp_statistics {}

/// The result of a call that returns -1 for an error.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Move this thread to the network namespace that `fd` refers to.
pub fn enter_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}

/// A non-blocking socket with close-on-exec.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the call has just created it, and no other code has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Set a socket option.
pub fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads the size of the value.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Read a socket option; bytes that the kernel does not write stay zero.
pub fn option<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: zero is a value of every `Plain` type; the kernel writes at most `size` bytes of it.
    unsafe {
        let mut value: T = std::mem::zeroed();
        check(libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut size,
        ))?;
        Ok(value)
    }
}

/// Bind a packet socket to an interface; with `protocol` 0 it receives nothing.
pub fn bind_packet(fd: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: zero is a value of this plain struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    // SAFETY: the kernel reads the size of the address.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Frames that the kernel generates: an XDP program that returns XDP_TX for every packet, run with a frame that no
/// interface received (`BPF_PROG_TEST_RUN` in its live mode, Linux 5.18). A source without sockets, for measurements.
pub struct LiveFrames {
    program: OwnedFd,
    interface: u32,
}

impl LiveFrames {
    /// Generator of frames that leave by this interface of the calling thread's namespace.
    pub fn new(interface: u32) -> io::Result<Self> {
        const PROG_LOAD: libc::c_long = 5;
        const PROG_XDP: u32 = 6;
        // r0 = XDP_TX; exit.
        let instructions: [u64; 2] = [0x0000_0003_0000_00b7, 0x95];
        #[repr(C)]
        struct Load {
            kind: u32,
            count: u32,
            instructions: u64,
            license: u64,
        }
        let load = Load {
            kind: PROG_XDP,
            count: 2,
            instructions: instructions.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
        };
        // SAFETY: the kernel reads the attribute and the memory that it points to, all of which outlives the call.
        let fd = check(unsafe {
            libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const load, size_of::<Load>())
        } as libc::c_int)?;
        Ok(LiveFrames {
            // SAFETY: the call has just created it, and no other code has it.
            program: unsafe { OwnedFd::from_raw_fd(fd) },
            interface,
        })
    }

    /// Send a frame this many times; call it from a thread in the interface's namespace.
    pub fn send(&self, frame: &[u8], times: u32) -> io::Result<()> {
        const TEST_RUN: libc::c_long = 10;
        const LIVE: u32 = 1 << 1;
        #[repr(C)]
        #[derive(Default)]
        struct Run {
            program: u32,
            result: u32,
            in_size: u32,
            out_size: u32,
            data_in: u64,
            data_out: u64,
            repeat: u32,
            duration: u32,
            context_in_size: u32,
            context_out_size: u32,
            context_in: u64,
            context_out: u64,
            flags: u32,
            core: u32,
            batch: u32,
            pad: u32,
        }
        // Begin and end of the data, of the metadata, the receiving interface, its queue, the transmitting interface.
        let context: [u32; 6] = [0, frame.len() as u32, 0, self.interface, 0, 0];
        let mut run = Run {
            program: self.program.as_raw_fd() as u32,
            in_size: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: times,
            context_in_size: size_of_val(&context) as u32,
            context_in: context.as_ptr() as u64,
            flags: LIVE,
            ..Run::default()
        };
        // SAFETY: the kernel reads the attribute and the memory that it points to, all of which outlives the call, and
        // writes the result and the duration only into the attribute, which this function owns.
        check(
            unsafe { libc::syscall(libc::SYS_bpf, TEST_RUN, &raw mut run, size_of::<Run>()) }
                as libc::c_int,
        )
        .map(|_| ())
    }
}

/// The ioctl for settings of a link.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// `ETHTOOL_GLINKSETTINGS`.
const LINK_SETTINGS: u32 = 0x4c;
/// Words of `struct ethtool_link_settings` with the largest possible masks of link modes.
const SETTINGS_WORDS: usize = 12 + 3 * 127;

/// The speed of a kernel interface in Mbit/s, by a socket of its namespace; `None` if the kernel does not know it.
pub fn link_speed(socket: BorrowedFd<'_>, name: &str) -> Option<u32> {
    let mut settings = [0u32; SETTINGS_WORDS];
    settings[0] = LINK_SETTINGS;
    // SAFETY: all zeros are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = settings.as_mut_ptr().cast();
    // SAFETY: `request` points to `settings`, which has space for the header and the largest possible masks; both outlive
    // the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }).ok()?;
    // The first reply has the number of words of a mask, negative, in the last byte of the fourth word, and nothing else.
    let [a, b, c, words] = settings[3].to_ne_bytes();
    settings[3] = u32::from_ne_bytes([a, b, c, (words as i8).unsigned_abs()]);
    settings[0] = LINK_SETTINGS;
    request.ifr_ifru.ifru_data = settings.as_mut_ptr().cast();
    // SAFETY: as above.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }).ok()?;
    Some(settings[1]).filter(|mbps| ![0, u32::MAX].contains(mbps))
}
