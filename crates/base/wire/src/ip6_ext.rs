//! IPv6 extension headers (RFC 8200 4): hop-by-hop options, routing, fragment, destination options, and AH (RFC 4302).
//!
//! Contract: each step of [`Extensions`] consumes at least 8 bytes of payload, so a walk ends; an error ends it, too.
//! Hop-by-hop options in any position but the first are an error. The walk ends at the first protocol that is not listed above
//! (ESP included: its contents are encrypted), after "no next header", and after a fragment header of a later fragment.

use crate::header::{header, stated};
use crate::tlv::Options;
use crate::{Header, IpProto, U16, U32, WireError};

header! {
    /// The common start of hop-by-hop, routing and destination options headers.
    pub struct ExtHeader: 2, "IPv6 extension header" {
        /// Type of the next header
        pub next_header: IpProto,
        /// Length in units of 8 bytes, the first 8 not counted (AH: units of 4, less 2)
        pub len: u8,
    }
}

header! {
    /// The fragment header (RFC 8200 4.5).
    pub struct FragmentHeader: 8, "IPv6 fragment header" {
        /// Type of the next header, in the first fragment
        pub next_header: IpProto,
        /// Zero
        pub reserved: u8,
        /// Offset in units of 8 bytes (13 bits), reserved (2), more fragments (1)
        pub offset_flags: U16,
        /// Identification
        pub id: U32,
    }
}

impl FragmentHeader {
    /// Offset in bytes.
    pub fn offset(&self) -> usize {
        usize::from(self.offset_flags.get() & 0xfff8)
    }

    /// Whether more fragments follow.
    pub fn more(&self) -> bool {
        self.offset_flags.get() & 1 != 0
    }
}

header! {
    /// The fixed part of a routing header (RFC 8200 4.4).
    pub struct RoutingHeader: 4, "IPv6 routing header" {
        /// Type of the next header
        pub next_header: IpProto,
        /// Length in units of 8 bytes, the first 8 not counted
        pub len: u8,
        /// Routing type: 0 deprecated (RFC 5095), 2 mobility, 3 RPL, 4 segment routing
        pub routing_type: u8,
        /// Segments left
        pub segments_left: u8,
    }
}

/// One extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ext<'a> {
    /// Type of the header.
    pub kind: IpProto,
    /// Type of the next header.
    pub next: IpProto,
    /// The whole header, at least 8 bytes.
    pub bytes: &'a [u8],
    /// Offset of the header from the start of the payload.
    pub offset: usize,
}

impl<'a> Ext<'a> {
    /// The options of a hop-by-hop or destination options header; empty for others.
    pub fn options(&self) -> Options<'a> {
        let has = matches!(self.kind, IpProto::HOP_BY_HOP | IpProto::DEST_OPTS);
        let bytes = if has {
            self.bytes.get(2..).unwrap_or(&[])
        } else {
            &[]
        };
        Options::ip6(bytes, "IPv6 option")
    }

    /// The header as a fragment header.
    pub fn fragment(&self) -> Option<&'a FragmentHeader> {
        if self.kind != IpProto::FRAGMENT {
            return None;
        }
        FragmentHeader::split(self.bytes)
            .ok()
            .map(|(header, _)| header)
    }

    /// The header as a routing header.
    pub fn routing(&self) -> Option<&'a RoutingHeader> {
        if self.kind != IpProto::ROUTING {
            return None;
        }
        RoutingHeader::split(self.bytes)
            .ok()
            .map(|(header, _)| header)
    }
}

/// The upper-layer payload behind the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper<'a> {
    /// Protocol of the payload.
    pub proto: IpProto,
    /// Bytes of the payload.
    pub payload: &'a [u8],
    /// Offset of the payload from the start of the IPv6 payload.
    pub offset: usize,
    /// The fragment header, if any.
    pub fragment: Option<&'a FragmentHeader>,
}

impl Upper<'_> {
    /// Whether the payload starts with the protocol's own header (false for later fragments).
    pub fn has_transport_header(&self) -> bool {
        self.fragment.is_none_or(|f| f.offset() == 0)
    }
}

/// Walks the extension headers of a payload.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    next: IpProto,
    payload: &'a [u8],
    at: usize,
    over: bool,
}

impl<'a> Extensions<'a> {
    /// `next`: the next header of the fixed header; `payload`: everything behind the fixed header.
    pub fn new(next: IpProto, payload: &'a [u8]) -> Self {
        Extensions {
            next,
            payload,
            at: 0,
            over: false,
        }
    }

    /// Whether `kind` is a header that this walk supports.
    #[inline]
    pub fn is_extension(kind: IpProto) -> bool {
        use IpProto as P;
        matches!(
            kind,
            P::HOP_BY_HOP | P::ROUTING | P::FRAGMENT | P::DEST_OPTS | P::AH
        )
    }

    /// Walks to the end of the extension headers.
    pub fn upper(mut self) -> Result<Upper<'a>, WireError> {
        let mut fragment = None;
        while let Some(ext) = self.step()? {
            fragment = ext.fragment().or(fragment);
        }
        let payload = self.payload.get(self.at..).unwrap_or(&[]);
        Ok(Upper {
            proto: self.next,
            payload,
            offset: self.at,
            fragment,
        })
    }

    fn step(&mut self) -> Result<Option<Ext<'a>>, WireError> {
        if self.over || !Self::is_extension(self.next) {
            return Ok(None);
        }
        if self.next == IpProto::HOP_BY_HOP && self.at != 0 {
            return Err(WireError::HopByHopNotFirst);
        }
        let rest = self.payload.get(self.at..).unwrap_or(&[]);
        let (header, _) = ExtHeader::split(rest)?;
        let (bytes, _) = stated(
            rest,
            ext_len(self.next, header.len),
            "IPv6 extension header",
        )?;
        let ext = Ext {
            kind: self.next,
            next: header.next_header,
            bytes,
            offset: self.at,
        };
        self.at += bytes.len();
        self.next = header.next_header;
        self.over = ext.fragment().is_some_and(|f| f.offset() != 0);
        Ok(Some(ext))
    }
}

/// Length of an extension header in bytes, by its type and length field.
fn ext_len(kind: IpProto, field: u8) -> usize {
    let field = usize::from(field);
    match kind {
        IpProto::FRAGMENT => FragmentHeader::LEN,
        // RFC 4302 2.2: units of 4 bytes, less 2; a field of 0 is the form without sequence number (RFC 1826), still seen
        IpProto::AH => (field + 2) * 4,
        _ => (field + 1) * 8,
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Ext<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.step();
        self.over |= result.is_err();
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    /// Hop-by-hop (router alert), routing type 0 with one address, destination options, AH, first fragment, UDP.
    fn chain() -> Vec<u8> {
        let mut bytes = Vec::from([43u8, 0, 5, 2, 0, 0, 1, 0]);
        bytes.extend([60, 2, 0, 1, 0, 0, 0, 0]);
        bytes.extend([0xfe; 16]);
        bytes.extend([51, 0, 1, 4, 0, 0, 0, 0]);
        bytes.extend([44, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
        bytes.extend([0xaa; 12]);
        bytes.extend([17, 0, 0, 1, 0, 0, 0, 9]);
        bytes.extend([1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn a_chain_of_all() {
        let bytes = chain();
        let walk = Extensions::new(IpProto::HOP_BY_HOP, &bytes);
        let seen: Vec<_> = walk
            .clone()
            .map(|e| e.map(|e| (e.kind.0, e.offset, e.bytes.len())).unwrap())
            .collect();
        assert_eq!(
            seen,
            [
                (0, 0, 8),
                (43, 8, 24),
                (60, 32, 8),
                (51, 40, 24),
                (44, 64, 8)
            ]
        );
        let upper = walk.clone().upper().unwrap();
        assert_eq!(
            (upper.proto, upper.offset, upper.payload),
            (IpProto::UDP, 72, &[1, 2, 3, 4][..])
        );
        assert!(upper.has_transport_header() && upper.fragment.unwrap().more());
        let exts: Vec<_> = walk.map(Result::unwrap).collect();
        assert_eq!(
            exts[0]
                .options()
                .map(|o| o.unwrap().kind)
                .collect::<Vec<_>>(),
            [5]
        );
        assert_eq!(
            exts[1].routing().map(|r| (r.routing_type, r.segments_left)),
            Some((0, 1))
        );
        assert_eq!(exts[1].options().count(), 0);
    }

    #[test]
    fn every_cut_of_the_chain_is_an_error() {
        let bytes = chain();
        for cut in 0..72 {
            assert!(
                Extensions::new(IpProto::HOP_BY_HOP, &bytes[..cut])
                    .upper()
                    .is_err(),
                "{cut}"
            );
        }
    }

    #[test]
    fn hop_by_hop_comes_first_or_not_at_all() {
        let bytes = [0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0];
        let error = Extensions::new(IpProto::DEST_OPTS, &bytes)
            .upper()
            .unwrap_err();
        assert_eq!(error, WireError::HopByHopNotFirst);
        assert_eq!(
            Extensions::new(IpProto::DEST_OPTS, &bytes)
                .filter(Result::is_err)
                .count(),
            1
        );
    }

    #[test]
    fn a_later_fragment_ends_the_walk() {
        let bytes = [60, 0, 0, 8, 0, 0, 0, 9, 0xff, 0xff];
        let upper = Extensions::new(IpProto::FRAGMENT, &bytes).upper().unwrap();
        assert_eq!(
            (upper.proto, upper.offset, upper.has_transport_header()),
            (IpProto::DEST_OPTS, 8, false)
        );
        assert_eq!(Extensions::new(IpProto::FRAGMENT, &bytes).count(), 1);
    }

    #[test]
    fn lengths_that_lie() {
        let error = Extensions::new(IpProto::DEST_OPTS, &[17, 1, 0, 0, 0, 0, 0, 0])
            .upper()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv6 extension header length field is 16, more than the 8 bytes there are"
        );
        let upper = Extensions::new(IpProto::AH, &[17, 0, 0, 0, 0, 0, 0, 0])
            .upper()
            .unwrap();
        assert_eq!((upper.proto, upper.offset), (IpProto::UDP, 8));
    }

    #[test]
    fn no_extension_at_all() {
        let upper = Extensions::new(IpProto::NO_NEXT, &[1]).upper().unwrap();
        assert_eq!(
            (upper.proto, upper.offset, upper.payload.len()),
            (IpProto::NO_NEXT, 0, 1)
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_ends(next in proptest::sample::select(alloc::vec![0u8, 43, 44, 51, 60]), bytes: Vec<u8>) {
            let walk = Extensions::new(IpProto(next), &bytes);
            proptest::prop_assert!(walk.clone().count() <= bytes.len() / 8 + 1);
            for ext in walk.clone().flatten() {
                let _ = (ext.options().count(), ext.fragment(), ext.routing());
            }
            if let Ok(upper) = walk.upper() {
                proptest::prop_assert_eq!(upper.offset + upper.payload.len(), bytes.len());
            }
        }
    }
}
