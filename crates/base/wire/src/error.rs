//! What can be wrong with bytes ([`WireError`]: small, no allocation) and with text ([`TextError`]).

use alloc::string::String;

/// Why bytes are not the header they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the header, or than the length it states.
    #[error("{what} cut short: needs {need} bytes, has {have}")]
    Short {
        /// The header or field.
        what: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
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
    /// A length field is below what the header itself takes.
    #[error("{what} length field is {len}, less than the least of {min}")]
    LengthBelow {
        /// The header or option.
        what: &'static str,
        /// The length stated, in bytes.
        len: usize,
        /// The least it can be.
        min: usize,
    },
    /// A length field is beyond the bytes there are.
    #[error("{what} length field is {len}, more than the {have} bytes there are")]
    LengthBeyond {
        /// The header or option.
        what: &'static str,
        /// The length stated, in bytes.
        len: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A field has a value its standard does not allow here.
    #[error("{what} is {value}, which its standard does not allow here")]
    Field {
        /// Header and field.
        what: &'static str,
        /// The value found.
        value: u32,
    },
    /// A hop-by-hop options header anywhere but right behind the IPv6 header (RFC 8200 4.1).
    #[error("IPv6 hop-by-hop options header is not the first extension header")]
    HopByHopNotFirst,
    /// No room to write.
    #[error("no room for {what}: needs {need} bytes, has {have}")]
    NoRoom {
        /// The header.
        what: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
}

impl WireError {
    /// How many bytes more there would have to be, where it is only that bytes are missing at the end.
    pub(crate) fn shortfall(&self) -> Option<usize> {
        match *self {
            WireError::Short { need, have, .. } => need.checked_sub(have),
            WireError::LengthBeyond { len, have, .. } => len.checked_sub(have),
            _ => None,
        }
    }

    /// The same fault where there are so many bytes more than were looked at.
    pub(crate) fn with_more(mut self, bytes: usize) -> Self {
        if let WireError::Short { have, .. } | WireError::LengthBeyond { have, .. } = &mut self {
            *have += bytes;
        }
        self
    }
}

/// Why a text is not the address, prefix or range it should be. Each message quotes the text and says how to write it.
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
        /// The prefix meant, perhaps.
        prefix: String,
    },
    /// A range whose last address lies before its first.
    #[error("\"{0}\": the last address of a range must not lie before the first")]
    Backwards(String),
    /// Not an EtherType or protocol number.
    #[error("\"{0}\" is not {1}")]
    Number(String, &'static str),
}
