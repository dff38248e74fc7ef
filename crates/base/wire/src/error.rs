//! Errors of parsers of bytes ([`WireError`]: small, no allocation) and of text ([`TextError`]).

use crate::prefix::{Family, Prefix};
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

/// Why a text is not a valid address or prefix. Each message quotes the text and shows how to write it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The text is not six pairs of hex digits.
    #[error("'{0}' is not a MAC address: write six pairs of hex digits, such as 02:fe:00:00:00:01")]
    Mac(String),
    /// The text is not an IP address.
    #[error("'{0}' is not an IP address: write one such as 192.0.2.1 or 2001:db8::1")]
    Ip(String),
    /// The slash or the length is missing.
    #[error("'{0}' has no prefix length: write one such as {0}/24")]
    NoLength(String),
    /// The length is not a number, or too large for the family.
    #[error("'{text}' has a bad prefix length: {family} allows /0 to /{max}")]
    Length {
        /// The text.
        text: String,
        /// The family.
        family: Family,
        /// Maximum length.
        max: u8,
    },
    /// Bits after the prefix are set.
    #[error("'{text}' has host bits set: the prefix is {corrected}")]
    HostBits {
        /// The text.
        text: String,
        /// The prefix with the host bits cleared.
        corrected: Prefix,
    },
    /// Not an EtherType or protocol number.
    #[error("\"{0}\" is not {1}")]
    Number(String, &'static str),
}
