//! The packed form of a value.

/// Size of a packed value in bytes.
pub const PACKED: usize = 18;

/// A packed key value. The order of packed values is the order of the values; the first byte is the IP version of the value, or
/// 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packed(pub [u8; PACKED]);

/// Packing of the texts of a type.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Packs a text; `None` when the text does not have the type's syntax.
    pub pack: fn(&str) -> Option<Packed>,
    /// Unpacks to the text in normal form.
    pub text: fn(&Packed) -> String,
    /// The value a number of steps later; `None` past the last value.
    pub step: fn(&Packed, u64) -> Option<Packed>,
}

impl Packed {
    /// The IP version of the value; 0 if it has none.
    pub fn version(&self) -> u8 {
        self.0[0]
    }
}
