//! The trait of all header structs: a name, a size, and conversions from and to bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;

/// A fixed-size header at the start of some bytes.
pub trait Header: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Sized {
    /// The name in errors.
    const NAME: &'static str;
    /// Bytes on the wire.
    const LEN: usize = size_of::<Self>();

    /// The header, and the bytes behind it.
    #[inline]
    fn split(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        Self::ref_from_prefix(bytes).map_err(|_| short::<Self>(bytes.len()))
    }

    /// As [`Self::split`], for changes in place.
    #[inline]
    fn split_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), WireError> {
        let have = bytes.len();
        Self::mut_from_prefix(bytes).map_err(|_| short::<Self>(have))
    }

    /// Writes the header and returns the rest of the buffer.
    #[inline]
    fn emit<'a>(&self, out: &'a mut [u8]) -> Result<&'a mut [u8], WireError> {
        let have = out.len();
        let (to, rest) = out
            .split_at_mut_checked(Self::LEN)
            .ok_or(WireError::NoRoom {
                what: Self::NAME,
                need: Self::LEN,
                have,
            })?;
        to.copy_from_slice(self.as_bytes());
        Ok(rest)
    }
}

fn short<H: Header>(have: usize) -> WireError {
    WireError::Short {
        what: H::NAME,
        need: H::LEN,
        have,
    }
}

/// The first `len` bytes of `what`, whose length field is `len`.
#[inline]
pub(crate) fn stated<'a>(
    bytes: &'a [u8],
    len: usize,
    what: &'static str,
) -> Result<(&'a [u8], &'a [u8]), WireError> {
    bytes.split_at_checked(len).ok_or(WireError::LengthBeyond {
        what,
        len,
        have: bytes.len(),
    })
}

/// Defines a header struct: representation, conversions, the asserted size and [`Header`].
macro_rules! header {
    ($(#[$doc:meta])* pub struct $name:ident: $len:literal, $text:literal {
        $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes,
                 zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
        const _: () = assert!(size_of::<$name>() == $len);
        impl $crate::Header for $name { const NAME: &'static str = $text; }
    };
}
pub(crate) use header;

/// Defines a wire number with named values: `Debug` and `Display` show the name if there is one.
macro_rules! numbers {
    ($(#[$doc:meta])* pub struct $name:ident($inner:ty) {
        $($(#[$vdoc:meta])* $value:ident = $num:literal $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, zerocopy::FromBytes, zerocopy::IntoBytes,
                 zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned)]
        #[repr(transparent)]
        pub struct $name(pub $inner);
        impl $name {
            $($(#[$vdoc])* pub const $value: $name = $name(<$crate::header::Num<$inner>>::make($num));)*

            /// All values with names.
            pub const NAMED: &'static [$name] = &[$(Self::$value),*];

            /// The common name of the value, if it is defined here.
            pub fn name(self) -> Option<&'static str> {
                $(if self == Self::$value { return Some($text); })*
                None
            }
        }
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use numbers;

/// Makes the `const` values of `numbers!` for both kinds of inner type.
pub(crate) struct Num<T>(core::marker::PhantomData<T>);

impl Num<u8> {
    pub(crate) const fn make(n: u8) -> u8 {
        n
    }
}

impl Num<crate::U16> {
    pub(crate) const fn make(n: u16) -> crate::U16 {
        crate::U16::from_bytes(n.to_be_bytes())
    }
}
