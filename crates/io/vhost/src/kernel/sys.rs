//! The ioctls of `/dev/vhost-net`, and the memory that its kernel thread uses. The only unsafe code of `kernel`.
//!
//! Contract: a [`Device`] gets one memory when it is created and keeps it. The kernel accesses only that memory, whatever
//! the rings contain, and the memory is freed only after the kernel has released both rings.

use crate::device::Layout;
use crate::memory::{Memory, Place};
use rustix::ioctl::{Getter, NoArg, Opcode, Setter, opcode};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

/// The device.
pub const PATH: &str = "/dev/vhost-net";
/// Number of rings of a device: receive and transmit.
pub const RINGS: usize = 2;
const GROUP: u8 = 0xaf;
const GET_FEATURES: Opcode = opcode::read::<u64>(GROUP, 0x00);
const SET_FEATURES: Opcode = opcode::write::<u64>(GROUP, 0x00);
const SET_OWNER: Opcode = opcode::none(GROUP, 0x01);
/// The request number does not include the size of the table's regions.
const SET_MEM_TABLE: Opcode = opcode::write::<[u32; 2]>(GROUP, 0x03);
const SET_VRING_NUM: Opcode = opcode::write::<State>(GROUP, 0x10);
const SET_VRING_ADDR: Opcode = opcode::write::<Addresses>(GROUP, 0x11);
const SET_VRING_BASE: Opcode = opcode::write::<State>(GROUP, 0x12);
const SET_VRING_KICK: Opcode = opcode::write::<Descriptor>(GROUP, 0x20);
const SET_VRING_CALL: Opcode = opcode::write::<Descriptor>(GROUP, 0x21);
const SET_VRING_ERR: Opcode = opcode::write::<Descriptor>(GROUP, 0x22);
const SET_BACKEND: Opcode = opcode::write::<Descriptor>(GROUP, 0x30);
/// No descriptor.
const NONE: i32 = -1;

/// `vhost_vring_state`.
#[repr(C)]
struct State {
    ring: u32,
    number: u32,
}

/// `vhost_vring_file`.
#[repr(C)]
struct Descriptor {
    ring: u32,
    fd: i32,
}

/// `vhost_vring_addr`.
#[repr(C)]
struct Addresses {
    ring: u32,
    flags: u32,
    desc: u64,
    used: u64,
    avail: u64,
    log: u64,
}

/// `vhost_memory` with one region.
#[repr(C)]
struct Table {
    regions: u32,
    padding: u32,
    guest: u64,
    size: u64,
    user: u64,
    flags: u64,
}

/// Event counters of a ring.
pub struct Events<'a> {
    /// Kick: the driver notifies the kernel of buffers.
    pub kick: BorrowedFd<'a>,
    /// Call: the kernel notifies the driver of buffers, if requested.
    pub call: Option<BorrowedFd<'a>>,
    /// Error: the kernel reports an invalid ring.
    pub fault: BorrowedFd<'a>,
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(PATH)
}

fn features(file: &File) -> io::Result<u64> {
    // SAFETY: the kernel writes one `u64`.
    Ok(unsafe { rustix::ioctl::ioctl(file, Getter::<GET_FEATURES, u64>::new()) }?)
}

/// Features that this machine's device offers.
pub fn offered() -> io::Result<u64> {
    features(&open()?)
}

/// A device that serves a pair of rings.
pub struct Device {
    file: File,
    memory: Arc<Memory>,
    bound: [bool; RINGS],
}

impl Device {
    /// Create a device that uses `memory`, which has a single region.
    pub fn new(memory: Arc<Memory>, taken: u64) -> io::Result<Device> {
        let device = Device {
            file: open()?,
            memory,
            bound: [false; RINGS],
        };
        // SAFETY: it takes no argument.
        unsafe { rustix::ioctl::ioctl(&device.file, NoArg::<SET_OWNER>::new()) }?;
        device.set::<SET_FEATURES, u64>(taken)?;
        let gone = || io::Error::other("the rings have no memory");
        let spec = device.memory.describe().next().ok_or_else(gone)?;
        let first = device.memory.guest(spec.guest, 1).map_err(|_| gone())?;
        device.set::<SET_MEM_TABLE, Table>(Table {
            regions: 1,
            padding: 0,
            guest: spec.guest,
            size: spec.size,
            user: device.address(first)?,
            flags: 0,
        })?;
        Ok(device)
    }

    fn address(&self, place: Place) -> io::Result<u64> {
        let view = self.memory.view(place);
        let view = view.ok_or_else(|| io::Error::other("the rings lie outside their memory"))?;
        Ok(view.address())
    }

    /// An ioctl whose argument the kernel reads: a plain struct or number.
    fn set<const REQUEST: Opcode, T>(&self, argument: T) -> io::Result<()> {
        // SAFETY: every request of this file reads the type that it is called with here (`vhost.h`), and the addresses
        // passed to the kernel lie in `self.memory`, which outlives the rings: see `Drop`.
        Ok(unsafe { rustix::ioctl::ioctl(&self.file, Setter::<REQUEST, T>::new(argument)) }?)
    }

    /// Describe a ring to the kernel.
    pub fn describe(&self, ring: usize, layout: &Layout, events: &Events<'_>) -> io::Result<()> {
        let ring = ring as u32;
        let state = |number| State { ring, number };
        let file = |fd| Descriptor { ring, fd };
        self.set::<SET_VRING_NUM, _>(state(u32::from(layout.size)))?;
        self.set::<SET_VRING_BASE, _>(state(layout.base))?;
        self.set::<SET_VRING_ADDR, _>(Addresses {
            ring,
            flags: 0,
            desc: self.address(layout.desc)?,
            used: self.address(layout.used)?,
            avail: self.address(layout.avail)?,
            log: 0,
        })?;
        let call = events.call.map_or(NONE, |fd| fd.as_raw_fd());
        self.set::<SET_VRING_KICK, _>(file(events.kick.as_raw_fd()))?;
        self.set::<SET_VRING_CALL, _>(file(call))?;
        self.set::<SET_VRING_ERR, _>(file(events.fault.as_raw_fd()))
    }

    /// Start both rings, connected to this queue of a tap.
    pub fn bind(&mut self, queue: BorrowedFd<'_>) -> io::Result<()> {
        for ring in 0..RINGS {
            let fd = queue.as_fd().as_raw_fd();
            self.set::<SET_BACKEND, _>(Descriptor {
                ring: ring as u32,
                fd,
            })?;
            self.bound[ring] = true;
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        for ring in (0..RINGS).filter(|&ring| self.bound[ring]) {
            let none = Descriptor {
                ring: ring as u32,
                fd: NONE,
            };
            // The call returns when no operation is in progress. Closing has the same effect, except while a process that
            // was just forked also has the descriptor.
            if self.set::<SET_BACKEND, _>(none).is_err() {
                // Leak the memory rather than let the kernel write into memory that has been reused.
                std::mem::forget(self.memory.clone());
            }
        }
    }
}
