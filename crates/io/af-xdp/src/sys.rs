//! The XDP program and its map, loaded and attached by `bpf(2)` alone, and XDP sockets.
//!
//! The program is six instructions: look the receive queue up in the map of sockets and redirect to the socket; packets
//! of a queue without a socket pass to the kernel. The program is attached by a BPF link, which the kernel removes when
//! its descriptor is closed, so it is removed whenever Volley ends, for any reason.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use volley_linux::sys::{check, set_option, socket};

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const XSKMAP: u32 = 17;
const PROG_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const HAS_FRAGS: u32 = 1 << 5;
const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;
/// Socket option for the maximum number of packets per system call.
const BUDGET: i32 = 9;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

const fn op(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Instruction {
    Instruction {
        code,
        registers: from << 4 | to,
        offset,
        value,
    }
}

/// Redirect to the socket of the receive queue; without one, pass.
fn program(map: RawFd) -> [Instruction; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_MAP: u8 = 0x18;
    const MOVE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const QUEUE: i16 = 16;
    const IS_MAP: u8 = 1;
    const PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    [
        op(LOAD_WORD, 2, 1, QUEUE, 0),
        op(LOAD_MAP, 1, IS_MAP, 0, map),
        op(0, 0, 0, 0, 0),
        op(MOVE, 3, 0, 0, PASS),
        op(CALL, 0, 0, 0, REDIRECT_MAP),
        op(EXIT, 0, 0, 0, 0),
    ]
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_long, attribute: &T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads the size of the attribute; the memory that it points to outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attribute),
            size_of::<T>(),
        )
    };
    check(result as libc::c_int)
}

fn owned(fd: libc::c_int) -> OwnedFd {
    // SAFETY: `bpf` has just created it, and no other code has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A map from receive queues to sockets.
pub fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let attribute = MapCreate {
        kind: XSKMAP,
        key_size: 4,
        value_size: 4,
        entries: queues,
    };
    bpf(MAP_CREATE, &attribute).map(owned)
}

/// Redirect packets of `queue` to `socket`.
pub fn map_queue(map: &OwnedFd, queue: u32, socket: &OwnedFd) -> io::Result<()> {
    let value = socket.as_raw_fd() as u32;
    let attribute = MapUpdate {
        map: map.as_raw_fd() as u32,
        pad: 0,
        key: std::ptr::from_ref(&queue) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    bpf(MAP_UPDATE, &attribute).map(|_| ())
}

/// Load the program that redirects through `map`.
pub fn load(map: &OwnedFd) -> io::Result<OwnedFd> {
    let program = program(map.as_raw_fd());
    let mut name = [0; 16];
    name[..10].copy_from_slice(b"volley_xdp");
    let attribute = ProgLoad {
        kind: PROG_XDP,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        flags: HAS_FRAGS,
        name,
        ..ProgLoad::default()
    };
    bpf(PROG_LOAD, &attribute).map(owned)
}

/// Attach the program to an interface of this thread's namespace, until the descriptor is closed.
pub fn attach(program: &OwnedFd, interface: u32, native: bool) -> io::Result<OwnedFd> {
    let attribute = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        attach: ATTACH_XDP,
        flags: if native { NATIVE } else { GENERIC },
    };
    bpf(LINK_CREATE, &attribute).map(owned)
}

/// An XDP socket without options.
pub fn xdp_socket() -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
    // Older kernels send 32 packets per call and lack the option.
    let _ = set_option(fd.as_fd(), libc::SOL_XDP, BUDGET, &256i32);
    Ok(fd)
}

/// Bind a socket to a queue.
pub fn bind(fd: &OwnedFd, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the kernel reads the size of the address.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Let the kernel send the posted packets.
pub fn kick(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    check(sent as libc::c_int).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_what_the_kernels_manual_says() {
        let bytes = |i: Instruction| {
            let mut out = vec![i.code, i.registers];
            out.extend_from_slice(&i.offset.to_le_bytes());
            out.extend_from_slice(&i.value.to_le_bytes());
            out
        };
        let all: Vec<u8> = program(7).into_iter().flat_map(bytes).collect();
        let expected = [
            [0x61, 0x12, 16, 0, 0, 0, 0, 0],
            [0x18, 0x11, 0, 0, 7, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0xb7, 0x03, 0, 0, 2, 0, 0, 0],
            [0x85, 0x00, 0, 0, 51, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(all, expected.concat());
    }
}
