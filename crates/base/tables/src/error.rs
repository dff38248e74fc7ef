//! Errors of tables.

/// Why a prefix was not added to a table. The table is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LpmError {
    /// The prefix is longer than an address.
    #[error(
        "prefix length {len} is longer than the {max} bits of an address: give a length of 0 to {max}"
    )]
    Length {
        /// The requested length, in bits.
        len: u8,
        /// The address width, in bits.
        max: u8,
    },
    /// The leaf id does not fit in 31 bits.
    #[error("leaf id {leaf} does not fit in 31 bits: use an id below 2147483648")]
    Leaf {
        /// The requested leaf id.
        leaf: u32,
    },
    /// Too many /24 networks contain prefixes longer than /24.
    #[error(
        "prefixes longer than /24 in more than {max} different /24 networks do not fit in one IPv4 table: \
         aggregate host routes or move some to another table"
    )]
    TooManyLong {
        /// The largest number of such /24 networks.
        max: u32,
    },
}

/// Checks a prefix of either address family.
pub(crate) fn check(len: u8, max: u8, leaf: u32) -> Result<(), LpmError> {
    if len > max {
        return Err(LpmError::Length { len, max });
    }
    if leaf > crate::MAX_LEAF {
        return Err(LpmError::Leaf { leaf });
    }
    Ok(())
}
