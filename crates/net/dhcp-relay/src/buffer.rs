//! Buffer for building a message in preallocated memory: workers do not allocate.

use volley_graph::PacketView;
use volley_graph::buf::DATA;

/// Bytes of the headers in front of a message: Ethernet, IPv6, UDP.
const HEADERS: usize = 14 + 40 + 8;
/// Bytes of the longest message: with its headers it fits into one packet buffer.
pub const LONGEST: usize = DATA - HEADERS;

/// Error: the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A byte buffer of fixed capacity.
pub struct Buffer {
    bytes: Box<[u8; LONGEST]>,
    len: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer {
            bytes: Box::new([0; LONGEST]),
            len: 0,
        }
    }
}

impl Buffer {
    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The contents, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends bytes; nothing is appended if they do not fit.
    pub fn put(&mut self, more: &[u8]) -> Result<(), Full> {
        let end = self.len + more.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(Full)?;
        room.copy_from_slice(more);
        self.len = end;
        Ok(())
    }

    /// Appends zeros up to a length.
    pub fn pad(&mut self, len: usize) -> Result<(), Full> {
        let len = len.max(self.len);
        self.bytes.get_mut(self.len..len).ok_or(Full)?.fill(0);
        self.len = len;
        Ok(())
    }

    /// Replaces the contents by `len` bytes of a packet from `at` on, which may be in several segments.
    pub fn read(&mut self, packet: &PacketView<'_>, at: usize, len: usize) -> Result<(), Full> {
        self.clear();
        let (mut skip, mut left) = (at, len);
        for segment in packet.slices() {
            let from = skip.min(segment.len());
            let part = left.min(segment.len() - from);
            self.put(&segment[from..from + part])?;
            (skip, left) = (skip - from, left - part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_whole() {
        let mut buffer = Buffer::default();
        buffer.put(&[1; LONGEST - 48]).unwrap();
        assert_eq!(buffer.put(&[2; 49]), Err(Full));
        assert_eq!(buffer.bytes(), [1; LONGEST - 48]);
        buffer.put(&[2; 48]).unwrap();
        assert_eq!(buffer.put(&[3]), Err(Full));
        assert_eq!(buffer.pad(LONGEST + 1), Err(Full));
        buffer.clear();
        buffer.put(&[9]).unwrap();
        buffer.pad(4).unwrap();
        buffer.pad(2).unwrap();
        assert_eq!(buffer.bytes(), [9, 0, 0, 0]);
    }
}
