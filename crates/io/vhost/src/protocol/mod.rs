//! The vhost-user control channel: message formats and the socket.
//!
//! The `vhost` crate of rust-vmm is not used: its handlers read and answer messages with blocking calls, so a peer that
//! stops in the middle of a message would block the control thread.

mod socket;

pub use socket::{Arrived, Bind, Link, Listener, connect};

use crate::fault::Fault;
use crate::memory::{MAX_REGIONS, RegionSpec};
use std::os::fd::OwnedFd;

/// Bytes of a message header.
pub const HEAD: usize = 12;
/// Largest payload of a supported message.
pub const MAX_PAYLOAD: usize = 8 + 32 * MAX_REGIONS;
/// Flags: protocol version 1, reply, need_reply.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;

/// Message numbers.
pub mod code {
    #![allow(missing_docs)]
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const RESET_OWNER: u32 = 4;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
}

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Message number.
    pub code: u32,
    /// Flags.
    pub flags: u32,
    /// Bytes after the header.
    pub payload: Vec<u8>,
    /// File descriptors of the message.
    pub files: Vec<OwnedFd>,
}

/// Payload of a message about a ring: the ring's number and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingState {
    /// Number of the ring.
    pub ring: u32,
    /// Value.
    pub num: u32,
}

/// Addresses of a ring in the front end's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingAddr {
    /// Number of the ring.
    pub ring: u32,
    /// 1 = log writes.
    pub flags: u32,
    /// Address of the descriptors.
    pub desc: u64,
    /// Address of the used ring or device event structure.
    pub used: u64,
    /// Address of the available ring or driver event structure.
    pub avail: u64,
}

fn short(code: u32, len: usize) -> Fault {
    Fault::new(
        "bad-message-size",
        format!("message {code} has {len} bytes"),
    )
}

/// Check a header; returns the number of bytes that follow.
pub fn payload_len(head: &[u8; HEAD]) -> Result<usize, Fault> {
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(4) & VERSION_MASK != VERSION {
        let text = format!(
            "message {} is of version {}",
            word(0),
            word(4) & VERSION_MASK
        );
        return Err(Fault::new("bad-message-version", text));
    }
    let len = word(8) as usize;
    if len > MAX_PAYLOAD {
        return Err(short(word(0), len));
    }
    Ok(len)
}

impl Message {
    /// A message from its header, payload and file descriptors.
    pub fn new(head: &[u8; HEAD], payload: Vec<u8>, files: Vec<OwnedFd>) -> Message {
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Message {
            code: word(0),
            flags: word(4),
            payload,
            files,
        }
    }

    /// Whether the message is a reply.
    pub fn is_reply(&self) -> bool {
        self.flags & REPLY != 0
    }

    /// Whether the sender requests an acknowledgement.
    pub fn needs_reply(&self) -> bool {
        self.flags & NEED_REPLY != 0
    }

    fn exactly<const N: usize>(&self) -> Result<[u8; N], Fault> {
        let bytes = <[u8; N]>::try_from(self.payload.as_slice());
        bytes.map_err(|_| short(self.code, self.payload.len()))
    }

    /// Check that the payload is empty.
    pub fn nothing(&self) -> Result<(), Fault> {
        self.exactly::<0>().map(|_| ())
    }

    /// Payload of one number.
    pub fn number(&self) -> Result<u64, Fault> {
        self.exactly().map(u64::from_le_bytes)
    }

    /// Payload of a ring number and a value.
    pub fn ring_state(&self) -> Result<RingState, Fault> {
        let both = self.number()?;
        Ok(RingState {
            ring: both as u32,
            num: (both >> 32) as u32,
        })
    }

    /// Payload of ring addresses.
    pub fn ring_addr(&self) -> Result<RingAddr, Fault> {
        let bytes = self.exactly::<40>()?;
        let long = |at: usize| u64_at(&bytes, at);
        Ok(RingAddr {
            ring: long(0) as u32,
            flags: (long(0) >> 32) as u32,
            desc: long(8),
            used: long(16),
            avail: long(24),
        })
    }

    /// Payload of a memory table.
    pub fn regions(&self) -> Result<Vec<RegionSpec>, Fault> {
        let bytes = &self.payload;
        let wrong = || short(self.code, bytes.len());
        if bytes.len() < 8 {
            return Err(wrong());
        }
        let count = u64_at(bytes, 0) as u32 as usize;
        // Some front ends send space for all regions, whatever their number.
        if count > MAX_REGIONS || bytes.len() < 8 + 32 * count {
            return Err(wrong());
        }
        let spec = |at: usize| RegionSpec {
            guest: u64_at(bytes, at),
            size: u64_at(bytes, at + 8),
            user: u64_at(bytes, at + 16),
            offset: u64_at(bytes, at + 24),
        };
        Ok((0..count).map(|i| spec(8 + 32 * i)).collect())
    }

    /// The number of a ring and its file descriptor; no descriptor if bit 8 is set.
    pub fn ring_file(&mut self) -> Result<(u32, Option<OwnedFd>), Fault> {
        let number = self.number()?;
        let expected = usize::from(number & 0x100 == 0);
        if number > 0x1ff || self.files.len() != expected {
            let text = format!(
                "message {} with {} files and number {number:#x}",
                self.code,
                self.files.len()
            );
            return Err(Fault::new("wrong-file-count", text));
        }
        Ok((number as u32 & 0xff, self.files.pop()))
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Encode a message.
pub fn encode(code: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + payload.len());
    for word in [code, VERSION | flags, payload.len() as u32] {
        out.extend(word.to_le_bytes());
    }
    out.extend(payload);
    out
}

/// Encode a reply.
pub fn reply(code: u32, number: u64) -> Vec<u8> {
    encode(code, REPLY, &number.to_le_bytes())
}

/// Encode the payload of a ring address message.
pub fn ring_addr(addr: &RingAddr) -> Vec<u8> {
    let first = u64::from(addr.ring) | u64::from(addr.flags) << 32;
    let words = [first, addr.desc, addr.used, addr.avail, 0];
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Encode the payload of a memory table message.
pub fn regions(specs: &[RegionSpec]) -> Vec<u8> {
    let head = (specs.len() as u64).to_le_bytes();
    let words = specs
        .iter()
        .flat_map(|s| [s.guest, s.size, s.user, s.offset]);
    head.into_iter()
        .chain(words.flat_map(u64::to_le_bytes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> Message {
        let head: [u8; HEAD] = bytes[..HEAD].try_into().unwrap();
        assert_eq!(payload_len(&head), Ok(bytes.len() - HEAD));
        Message::new(&head, bytes[HEAD..].to_vec(), vec![])
    }

    #[test]
    fn real_bytes_both_ways() {
        let bytes = [10, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0];
        let m = message(&bytes);
        assert!(m.needs_reply() && !m.is_reply());
        assert_eq!(m.ring_state(), Ok(RingState { ring: 1, num: 256 }));
        assert_eq!(encode(m.code, NEED_REPLY, &m.payload), bytes);
        let addr = RingAddr {
            ring: 3,
            flags: 0,
            desc: 0x1000,
            used: 0x3000,
            avail: 0x2000,
        };
        let bytes = encode(code::SET_VRING_ADDR, 0, &ring_addr(&addr));
        assert_eq!(message(&bytes).ring_addr(), Ok(addr));
        assert_eq!(bytes.len(), 52);
        let spec = RegionSpec {
            guest: 1,
            size: 2,
            user: 3,
            offset: 4,
        };
        let mut table = message(&encode(5, 0, &regions(&[spec, spec])));
        assert_eq!(table.regions(), Ok(vec![spec, spec]));
        table.payload.truncate(71);
        assert_eq!(table.regions().unwrap_err().name, "bad-message-size");
        table.payload[0] = 9;
        assert_eq!(table.regions().unwrap_err().name, "bad-message-size");
    }

    #[test]
    fn faulty_heads_are_named() {
        let name = |bytes: [u8; 12]| payload_len(&bytes).unwrap_err().name;
        assert_eq!(
            name([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]),
            "bad-message-version"
        );
        assert_eq!(
            name([1, 0, 0, 0, 1, 0, 0, 0, 9, 1, 0, 0]),
            "bad-message-size"
        );
        let mut kick = message(&encode(code::SET_VRING_KICK, 0, &0u64.to_le_bytes()));
        assert_eq!(kick.ring_file().unwrap_err().name, "wrong-file-count");
        assert_eq!(kick.ring_addr().unwrap_err().name, "bad-message-size");
    }
}
