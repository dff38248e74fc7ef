//! Addresses as sortable keys: the upper half of an IPv6 address, or the whole of it.

use volley_simd::Isa;

/// A key of a range table. `stored` is the form in which keys are compared (signed where the
/// vector units only have signed comparisons).
pub(super) trait Key: Copy + Ord + Send + Sync + 'static {
    type Stored: Copy + Ord + Send + Sync + 'static;
    const BITS: u8;
    const ZERO: Self;
    const MAX: Self;
    /// The largest key.
    const PAD: Self::Stored;
    fn stored(self) -> Self::Stored;
    /// The host bits of a prefix length of at most `BITS`, all set.
    fn host_mask(len: u8) -> Self;
    fn first(self, len: u8) -> Self;
    fn last(self, len: u8) -> Self;
    fn next(self) -> Option<Self>;
    /// The bound that a key exceeds if and only if it is at least `self`; `self` is not zero.
    fn bound(self) -> Self::Stored;
    /// The number of sorted bounds that `x` exceeds.
    fn above<I: Isa, const N: usize>(isa: I, bounds: &[Self::Stored; N], x: Self::Stored) -> usize;
}

/// The number of sorted bounds that `x` exceeds, for one key at a time.
#[inline(always)]
pub(super) fn above<S: Copy + Ord, const N: usize>(bounds: &[S; N], x: S) -> usize {
    bounds.iter().map(|&b| u8::from(x > b)).sum::<u8>() as usize
}

macro_rules! key {
    ($key:ty, $stored:ty, $flip:expr, $above:expr) => {
        impl Key for $key {
            type Stored = $stored;
            const BITS: u8 = <$key>::BITS as u8;
            const ZERO: Self = 0;
            const MAX: Self = <$key>::MAX;
            const PAD: $stored = <$stored>::MAX;
            #[inline(always)]
            fn stored(self) -> $stored {
                (self ^ $flip) as $stored
            }
            fn host_mask(len: u8) -> Self {
                <$key>::MAX.checked_shr(u32::from(len)).unwrap_or(0)
            }
            fn first(self, len: u8) -> Self {
                self & !Self::host_mask(len)
            }
            fn last(self, len: u8) -> Self {
                self | Self::host_mask(len)
            }
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn bound(self) -> $stored {
                self.wrapping_sub(1).stored()
            }
            #[inline(always)]
            fn above<I: Isa, const N: usize>(isa: I, bounds: &[$stored; N], x: $stored) -> usize {
                $above(isa, bounds, x)
            }
        }
    };
}

// The sign bit is flipped because AVX2 compares signed integers only.
key!(u64, i64, 1 << 63, I::above);
key!(u128, u128, 0, |_, bounds, x| above(bounds, x));
