//! The bytes of a file and the current position. Memory is allocated as bytes arrive, never by a length that the file claims.

use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use volley_input::Input;

use super::Fault;
use super::{LinkType, PcapError};

/// A packet whose bytes are in the source's piece.
pub(super) struct Located {
    pub(super) timestamp_ns: u64,
    pub(super) orig_len: u32,
    pub(super) interface: u32,
    pub(super) linktype: LinkType,
    pub(super) data: Range<usize>,
    pub(super) commented: bool,
}

pub(super) struct Source {
    input: Input,
    path: PathBuf,
    /// Start of the current piece, in the contents.
    pub(super) offset: u64,
    /// Number of packets read so far.
    pub(super) packets: u64,
    /// The last piece.
    pub(super) piece: Vec<u8>,
}

impl Source {
    pub(super) fn new(input: Input, path: PathBuf) -> Source {
        Source {
            input,
            path,
            offset: 0,
            packets: 0,
            piece: Vec::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the source is at its end.
    pub(super) fn at_end(&mut self) -> Result<bool, PcapError> {
        match self.input.fill_buf() {
            Ok(bytes) => Ok(bytes.is_empty()),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Adds `len` bytes to the piece; `what` names their record for errors. Memory grows only as bytes arrive.
    pub(super) fn append(&mut self, len: usize, what: &'static str) -> Result<(), PcapError> {
        let before = self.piece.len();
        let result = (&mut self.input)
            .take(len as u64)
            .read_to_end(&mut self.piece);
        result.map_err(|source| self.failed(source))?;
        let have = self.piece.len() - before;
        if have == len {
            return Ok(());
        }
        let (need, have) = ((before + len) as u64, self.piece.len() as u64);
        let (path, packet, offset) = self.place();
        Err(PcapError::Truncated {
            path,
            packet,
            offset,
            what,
            need,
            have,
        })
    }

    /// Starts a new piece behind the last one.
    pub(super) fn begin(&mut self) {
        self.offset += self.piece.len() as u64;
        self.piece.clear();
    }

    fn place(&self) -> (PathBuf, u64, u64) {
        (self.path.clone(), self.packets + 1, self.offset)
    }

    fn failed(&self, source: std::io::Error) -> PcapError {
        let (path, packet, offset) = self.place();
        PcapError::Read {
            path,
            packet,
            offset,
            source,
        }
    }

    pub(super) fn malformed(&self, fault: Fault) -> PcapError {
        let (path, packet, offset) = self.place();
        PcapError::Malformed {
            path,
            packet,
            offset,
            fault,
        }
    }

    pub(super) fn too_long(&self, what: &'static str, len: u32, limit: usize) -> PcapError {
        let (path, packet, offset) = self.place();
        PcapError::TooLong {
            path,
            packet,
            offset,
            what,
            len: len.into(),
            limit: limit as u64,
        }
    }

    pub(super) fn not_a_capture(&self) -> PcapError {
        let mut start: String = self
            .piece
            .iter()
            .take(4)
            .map(|b| format!("{b:02x}"))
            .collect();
        if start.is_empty() {
            start.push_str("nothing (it is empty)");
        }
        PcapError::NotACapture {
            path: self.path.clone(),
            start,
        }
    }
}
