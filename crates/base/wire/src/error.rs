//! Errors of parsers of bytes ([`WireError`]: small, no allocation) and of text ([`TextError`]).

use alloc::string::String;

/// Why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the header, or than its length field states.
    #[error("{what} cut short: needs {need} bytes, has {have}")]
    Short {
        /// The header or field.
        what: &'static str,
        /// Bytes required.
        need: usize,
        /// Bytes available.
        have: usize,
    },
    /// The version field of an IP header names another protocol.
    #[error("{what} header says version {version}")]
    Version {
        /// The protocol expected.
        what: &'static str,
        /// The version found.
        version: u8,
    },
    /// A length field is smaller than the header itself.
    #[error("{what} length field is {len}, less than the least of {min}")]
    LengthBelow {
        /// The header or option.
        what: &'static str,
        /// The value of the length field, in bytes.
        len: usize,
        /// The minimum.
        min: usize,
    },
    /// A length field exceeds the available bytes.
    #[error("{what} length field is {len}, more than the {have} bytes there are")]
    LengthBeyond {
        /// The header or option.
        what: &'static str,
        /// The value of the length field, in bytes.
        len: usize,
        /// Bytes available.
        have: usize,
    },
    /// A field has a value that its standard does not allow.
    #[error("{what} is {value}, which its standard does not allow here")]
    Field {
        /// Header and field.
        what: &'static str,
        /// The value found.
        value: u32,
    },
    /// A hop-by-hop options header that does not follow the IPv6 header (RFC 8200 4.1).
    #[error("IPv6 hop-by-hop options header is not the first extension header")]
    HopByHopNotFirst,
    /// The output buffer is too short.
    #[error("no room for {what}: needs {need} bytes, has {have}")]
    NoRoom {
        /// The header.
        what: &'static str,
        /// Bytes required.
        need: usize,
        /// Bytes available.
        have: usize,
    },
}

impl WireError {
    /// The number of missing bytes, if only bytes at the end are missing.
    pub(crate) fn shortfall(&self) -> Option<usize> {
        match *self {
            WireError::Short { need, have, .. } => need.checked_sub(have),
            WireError::LengthBeyond { len, have, .. } => len.checked_sub(have),
            _ => None,
        }
    }

    /// The same error for a buffer that is `bytes` longer than the one that was parsed.
    pub(crate) fn with_more(mut self, bytes: usize) -> Self {
        if let WireError::Short { have, .. } | WireError::LengthBeyond { have, .. } = &mut self {
            *have += bytes;
        }
        self
    }
}

/// Why a text is not a valid address, prefix or range. Each message quotes the text and shows how to write it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Not a MAC address.
    #[error("\"{0}\" is not a MAC address; write it like 02:00:00:00:00:01")]
    Mac(String),
    /// Not an IP address.
    #[error("\"{0}\" is not an IP{1} address")]
    Address(String, &'static str),
    /// A prefix without `/`.
    #[error("\"{text}\" has no prefix length; write it like {text}/{full}")]
    NoLength {
        /// The text.
        text: String,
        /// The length of a host prefix.
        full: u8,
    },
    /// A prefix length that is no number or too large.
    #[error("\"{text}\": the prefix length must be a number from 0 to {max}")]
    Length {
        /// The text.
        text: String,
        /// The largest length.
        max: u8,
    },
    /// Bits set behind the prefix length.
    #[error("{text} has bits set behind its prefix length; the prefix is {prefix}")]
    HostBits {
        /// The text.
        text: String,
        /// The prefix with the host bits cleared.
        prefix: String,
    },
    /// A range whose last address is below its first.
    #[error("\"{0}\": the last address of a range must not lie before the first")]
    Backwards(String),
    /// Not an EtherType or protocol number.
    #[error("\"{0}\" is not {1}")]
    Number(String, &'static str),
}
