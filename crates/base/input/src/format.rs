//! Which compression a file uses, by its first bytes, and the decompressor for it.

use std::io::{self, BufRead, Read};

use crate::Limits;

/// A compression format, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Not compressed, or in no format known here.
    Plain,
    /// RFC 1952.
    Gzip,
    /// `BZh`.
    Bzip2,
    /// The .xz file format 1.2.
    Xz,
    /// RFC 8878.
    Zstd,
}

impl Format {
    /// Detects the format by the first bytes, without consuming them.
    pub fn detect(input: &mut impl BufRead) -> io::Result<Format> {
        Ok(Self::of(input.fill_buf()?))
    }

    /// The format of a file by `start`, its first six bytes or more.
    pub fn of(start: &[u8]) -> Format {
        match start {
            [0x1f, 0x8b, 8, ..] => Format::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => Format::Bzip2,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Format::Bzip2, // an empty stream
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Format::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Format::Zstd,
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Format::Zstd, // a skippable frame first
            _ => Format::Plain,
        }
    }

    /// The common name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Plain => "plain",
            Format::Gzip => "gzip",
            Format::Bzip2 => "bzip2",
            Format::Xz => "xz",
            Format::Zstd => "zstd",
        }
    }

    pub(crate) fn decoder(
        self,
        raw: impl BufRead + Send + 'static,
        limits: Limits,
    ) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Format::Plain => Box::new(raw),
            Format::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Format::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
            Format::Xz => Box::new(xz(raw, limits)?),
            Format::Zstd => Box::new(zstd(raw, limits)?),
        })
    }
}

fn xz<R: BufRead>(raw: R, limits: Limits) -> io::Result<liblzma::bufread::XzDecoder<R>> {
    let stream =
        liblzma::stream::Stream::new_stream_decoder(limits.memory, liblzma::stream::CONCATENATED)?;
    Ok(liblzma::bufread::XzDecoder::new_stream(raw, stream))
}

fn zstd<R: BufRead>(raw: R, limits: Limits) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(raw)?;
    // the library accepts 10..=31
    decoder.window_log_max(limits.memory.max(1).ilog2().clamp(10, 31))?;
    Ok(decoder)
}
