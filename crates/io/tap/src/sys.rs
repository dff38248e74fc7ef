//! The ioctl requests for taps; no library in use here has safe wrappers for them.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use volley_linux::sys::check;

const DEVICE: &str = "/dev/net/tun";
/// Offloads that Volley accepts from the kernel: checksums, TCP segments with and without ECN.
const TCP: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// UDP segments, which kernels before 6.2 do not support.
const UDP: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// The type of packets: Ethernet frames or IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// A tap.
    Ethernet,
    /// A tun.
    Ip,
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: zero is a value of this plain struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, &from) in request.ifr_name[..room].iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Opens one queue of the device `name`, in this thread's namespace. The first queue creates the device.
pub fn open(name: &str, layer: Layer) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(DEVICE)?;
    let mut request = request(name);
    let kind = match layer {
        Layer::Ethernet => libc::IFF_TAP,
        Layer::Ip => libc::IFF_TUN,
    };
    let flags = kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the kernel reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(file)
}

fn set(file: &File, request: libc::Ioctl, word: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take a number, no memory.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, word) }).map(|_| ())
}

/// Allow the kernel to leave checksums and segmentation to Volley. Returns whether UDP segments are included.
pub fn take_offloads(file: &File) -> io::Result<bool> {
    let all = set(file, libc::TUNSETOFFLOAD, libc::c_ulong::from(TCP | UDP));
    match all {
        Ok(()) => Ok(true),
        Err(_) => set(file, libc::TUNSETOFFLOAD, libc::c_ulong::from(TCP)).map(|()| false),
    }
}

/// The header in front of each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// For workers that read and write packets: ten bytes, in the processor's byte order.
    Native,
    /// For rings of virtio 1: with the number of buffers, little endian.
    Virtio,
}

/// Sets the header of a device, with all its queues.
pub fn set_header(file: &File, header: Header) -> io::Result<()> {
    let (bytes, little) = match header {
        Header::Native => (volley_linux::vnet::HEADER, 0),
        Header::Virtio => (volley_vhost::kernel::HEADER_LEN, 1),
    };
    set_word(file, libc::TUNSETVNETHDRSZ, bytes as libc::c_int)?;
    set_word(file, libc::TUNSETVNETLE, little)
}

fn set_word(file: &File, request: libc::Ioctl, word: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one integer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, &raw const word) }).map(|_| ())
}

/// Set whether the kernel's side has a carrier.
pub fn set_carrier(file: &File, on: bool) -> io::Result<()> {
    set_word(file, libc::TUNSETCARRIER, libc::c_int::from(on))
}
