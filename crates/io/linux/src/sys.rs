//! The system calls that neither the standard library nor a library in use here makes safe.

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
// SAFETY: integers that fill it: 4 + 2 + 2 + 8 bytes.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: integers that fill it: 8 + 8 + 4 + 4 + 4 + 4 bytes.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: integers of the same size.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers of the same size.
unsafe impl Plain for libc::xdp_statistics {}

/// The result of a call that says -1 for an error.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Let this thread live in the network namespace that `fd` names.
pub fn enter_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}

/// A socket that does not block and closes on exec.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the call has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Set a socket option.
pub fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has.
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

/// Read a socket option; what the kernel leaves out stays zero.
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

/// Bind a packet socket to an interface; `protocol` 0 receives nothing.
pub fn bind_packet(fd: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: zero is a value of this plain struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    // SAFETY: the kernel reads as many bytes as the address has.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}
