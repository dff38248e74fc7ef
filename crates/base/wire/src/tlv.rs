//! The option lists of IPv4 (RFC 791), TCP (RFC 9293) and IPv6 (RFC 8200 4.2): type, length, value.
//!
//! Contract: each step of [`Options`] consumes at least one byte, so the number of steps is at most the number of bytes;
//! an error ends the list. Padding is skipped.

use crate::WireError;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlvOption<'a> {
    /// The option's number, with its flag bits.
    pub kind: u8,
    /// The bytes behind type and length.
    pub data: &'a [u8],
    /// Offset of the option's type from the start of the list.
    pub offset: usize,
}

/// The encoding of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// IPv4 and TCP: 0 ends the list, 1 is padding, the length includes type and length.
    Classic,
    /// IPv6: 0 is one byte of padding, 1 is padding with a length, the length is that of the data only.
    Ip6,
}

/// The options of a header; an error where the list is truncated or a length is wrong.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
    style: Style,
    what: &'static str,
}

impl<'a> Options<'a> {
    /// A list as in IPv4 and TCP headers; `what` is the name of an option in errors.
    pub fn classic(bytes: &'a [u8], what: &'static str) -> Self {
        Options {
            bytes,
            at: 0,
            style: Style::Classic,
            what,
        }
    }

    /// A list as in IPv6 hop-by-hop and destination options headers.
    pub fn ip6(bytes: &'a [u8], what: &'static str) -> Self {
        Options {
            bytes,
            at: 0,
            style: Style::Ip6,
            what,
        }
    }

    /// Checks that the whole list is well-formed.
    pub fn check(self) -> Result<(), WireError> {
        self.into_iter().try_for_each(|option| option.map(|_| ()))
    }

    /// Whether an option of this type with exactly this data exists, in front of any error.
    pub fn has(self, kind: u8, data: &[u8]) -> bool {
        let mut good = self.into_iter().map_while(Result::ok);
        good.any(|option| option.kind == kind && option.data == data)
    }

    /// The next option, or none at the end.
    fn step(&mut self) -> Result<Option<TlvOption<'a>>, WireError> {
        loop {
            let Some((&kind, rest)) = self.bytes.get(self.at..).and_then(|b| b.split_first())
            else {
                return Ok(None);
            };
            let offset = self.at;
            match (self.style, kind) {
                (Style::Classic, 0) => return Ok(None),
                (Style::Classic, 1) | (Style::Ip6, 0) => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let data = self.value(rest)?;
            self.at = offset + 2 + data.len();
            if self.style == Style::Ip6 && kind == 1 {
                continue;
            }
            return Ok(Some(TlvOption { kind, data, offset }));
        }
    }

    /// The value behind a type; `rest` starts with the length.
    fn value(&self, rest: &'a [u8]) -> Result<&'a [u8], WireError> {
        let what = self.what;
        let (&stated, rest) = rest.split_first().ok_or(WireError::Short {
            what,
            need: 2,
            have: 1,
        })?;
        let counted = if self.style == Style::Classic { 2 } else { 0 };
        let len = usize::from(stated);
        let data = len.checked_sub(counted).ok_or(WireError::LengthBelow {
            what,
            len,
            min: counted,
        })?;
        rest.get(..data).ok_or(WireError::LengthBeyond {
            what,
            len,
            have: rest.len() + counted,
        })
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TlvOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.step();
        if !matches!(result, Ok(Some(_))) {
            self.at = self.bytes.len();
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn kinds(options: Options<'_>) -> Vec<Result<(u8, usize), WireError>> {
        options.map(|o| o.map(|o| (o.kind, o.data.len()))).collect()
    }

    #[test]
    fn classic_lists() {
        let bytes = [1, 148, 4, 0, 0, 7, 3, 4, 0, 9, 9];
        assert_eq!(
            kinds(Options::classic(&bytes, "option")),
            [Ok((148, 2)), Ok((7, 1))]
        );
        let error = Options::classic(&[148, 1], "IPv4 option")
            .check()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv4 option length field is 1, less than the least of 2"
        );
        let error = Options::classic(&[1, 7, 9, 4], "IPv4 option")
            .check()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv4 option length field is 9, more than the 3 bytes there are"
        );
        assert!(Options::classic(&[7], "IPv4 option").check().is_err());
    }

    #[test]
    fn ip6_lists() {
        let bytes = [5, 2, 0, 0, 1, 0, 0, 0xc2, 4, 0, 1, 0, 0];
        assert_eq!(
            kinds(Options::ip6(&bytes, "option")),
            [Ok((5, 2)), Ok((0xc2, 4))]
        );
        assert_eq!(kinds(Options::ip6(&[1, 4, 0, 0], "option")).len(), 1);
        assert!(Options::ip6(&[1, 4, 0, 0], "option").check().is_err());
    }

    #[test]
    fn a_list_is_over_after_an_error() {
        let mut options = Options::classic(&[7, 0, 7, 3, 1], "option");
        assert!(options.next().unwrap().is_err());
        assert!(options.next().is_none());
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_ends(bytes: Vec<u8>) {
            proptest::prop_assert!(Options::classic(&bytes, "x").count() <= bytes.len());
            proptest::prop_assert!(Options::ip6(&bytes, "x").count() <= bytes.len());
        }
    }
}
