//! The packed form of a value.

/// Bytes of a packed value.
pub const PACKED: usize = 18;

/// A value of a key in few bytes. The order of packed values is the order of the values; the first byte is the IP version of
/// the value, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packed(pub [u8; PACKED]);

/// How texts of a kind are packed.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// A text in few bytes; none when it is no text of the kind.
    pub pack: fn(&str) -> Option<Packed>,
    /// The text in its normal form.
    pub text: fn(&Packed) -> String,
    /// The value that is so many steps behind; none when there is none.
    pub step: fn(&Packed, u64) -> Option<Packed>,
}

impl Packed {
    /// The IP version of the value; 0 where it has none.
    pub fn version(&self) -> u8 {
        self.0[0]
    }
}
