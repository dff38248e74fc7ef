//! The position of a field in a packet, in bits, and the method to write it.

/// A range of bits, most significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// First bit, from the start of the packet.
    pub(crate) at_bit: usize,
    /// Number of bits, 1 to 128.
    pub(crate) bits: usize,
}

impl Place {
    /// The bytes that contain the bits.
    pub(crate) fn bytes(self) -> std::ops::Range<usize> {
        self.at_bit / 8..(self.at_bit + self.bits).div_ceil(8)
    }

    /// The fastest method to write it.
    pub(crate) fn write(self) -> Write {
        let bytes = self.bytes();
        let (at, len) = (bytes.start, bytes.len());
        match (self.at_bit.is_multiple_of(8) && self.bits == 8 * len, len) {
            (true, 2) => Write::Two(at),
            (true, 4) => Write::Four(at),
            (true, 16) => Write::Sixteen(at),
            (true, len) => Write::Whole(at, len),
            (false, len) => {
                let shift = 8 * len - (self.at_bit % 8 + self.bits);
                let ones = u64::MAX >> (64 - self.bits.clamp(1, 56));
                Write::Bits {
                    at,
                    len,
                    shift,
                    mask: ones << shift,
                }
            }
        }
    }
}

/// The method to write a value into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// None: the packet is too short for the field.
    Nowhere,
    Two(usize),
    Four(usize),
    Sixteen(usize),
    /// Whole bytes.
    Whole(usize, usize),
    /// Some bits of at most 8 bytes.
    Bits {
        at: usize,
        len: usize,
        shift: usize,
        mask: u64,
    },
}

impl Write {
    /// Write `value` into `packet`, which contains the position.
    #[inline(always)]
    pub(crate) fn put(self, packet: &mut [u8], value: u128) {
        match self {
            Write::Nowhere => {}
            Write::Two(at) => packet[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes()),
            Write::Four(at) => packet[at..at + 4].copy_from_slice(&(value as u32).to_be_bytes()),
            Write::Sixteen(at) => packet[at..at + 16].copy_from_slice(&value.to_be_bytes()),
            Write::Whole(at, len) => {
                packet[at..at + len].copy_from_slice(&value.to_be_bytes()[16 - len..]);
            }
            Write::Bits {
                at,
                len,
                shift,
                mask,
            } => {
                let field = &mut packet[at..at + len];
                let old = field.iter().fold(0, |n, b| n << 8 | u64::from(*b));
                let new = (old & !mask) | ((value as u64) << shift & mask);
                field.copy_from_slice(&new.to_be_bytes()[8 - len..]);
            }
        }
    }
}

/// Write a value into the bits of a packet.
pub(crate) fn set(packet: &mut [u8], at_bit: usize, bits: usize, value: u128) {
    Place { at_bit, bits }.write().put(packet, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_fields() {
        let mut packet = [0xff; 20];
        set(&mut packet, 4, 12, 7); // a VLAN id behind its priority
        assert_eq!(packet[..3], [0xf0, 7, 0xff]);
        set(&mut packet, 51, 13, 0); // the fragment offset behind its flags
        assert_eq!(packet[5..9], [0xff, 0xe0, 0, 0xff]);
        set(&mut packet, 64, 48, 0x0102_0304_0506);
        assert_eq!(packet[8..15], [1, 2, 3, 4, 5, 6, 0xff]);
        set(&mut packet, 112, 32, 9);
        assert_eq!(packet[14..19], [0, 0, 0, 9, 0xff]);
    }

    proptest! {
        #[test]
        fn only_the_bits_meant_change(at_bit in 0usize..64, bits in 1usize..49, value: u64, before: [u8; 16]) {
            let mut packet = before;
            set(&mut packet, at_bit, bits, u128::from(value) & ((1 << bits) - 1));
            let number = u128::from_be_bytes;
            let shift = 128 - at_bit - bits;
            let mask = ((1u128 << bits) - 1) << shift;
            prop_assert_eq!(number(packet) & !mask, number(before) & !mask);
            prop_assert_eq!((number(packet) & mask) >> shift, u128::from(value) & ((1 << bits) - 1));
        }
    }
}
