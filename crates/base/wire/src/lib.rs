//! Wire formats: parsing and writing of headers, without any policy.
//!
//! Contract of every module here:
//! - A header is a `#[repr(C)]` struct of big-endian fields without padding, of alignment 1; its size is asserted at compile
//!   time.
//! - `split` / `parse` take any bytes and return a view into them or a [`WireError`]; they never panic, allocate or
//!   read past the slice. A returned view fulfils the function's documentation, so its accessors are infallible.
//! - `emit` writes into a caller's slice and returns the rest of it, or an error with the required length.
//! - Checksums are checked only by functions whose documentation states it; no check is repeated.
//!
//! | module | contents | source |
//! |---|---|---|
//! | [`eth`], [`vlan`], [`arp`] | Ethernet II / 802.3, 802.1Q and 802.1ad tags, ARP | IEEE 802.3, 802.1Q, RFC 826 |
//! | [`ip4`], [`icmp4`] | IPv4 with options, ICMP | RFC 791, 792, 1812 |
//! | [`ip6`], [`ip6_ext`], [`icmp6`], [`nd`] | IPv6, extension headers, ICMPv6, neighbour discovery | RFC 8200, 4443, 4861 |
//! | [`udp`], [`tcp`] | transport headers | RFC 768, 9293 |
//! | [`checksum`] | Internet checksum, whole and incremental | RFC 1071, 1624 |
//! | [`addr`], [`prefix`], [`ethertype`] | MAC addresses, protocol numbers, prefixes and interface addresses, with their text | |
//! | [`field`] | fields of headers by name: their position, width and type | |
//! | [`dissect`] | a packet's headers as text | |
//! | [`build`] | packets for tests and templates | |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod addr;
pub mod arp;
pub mod build;
pub mod checksum;
pub mod dissect;
mod error;
pub mod eth;
pub mod ethertype;
pub mod field;
mod header;
pub mod icmp4;
pub mod icmp6;
pub mod ip4;
pub mod ip6;
pub mod ip6_ext;
#[cfg(feature = "json")]
mod json;
pub mod nd;
pub mod prefix;
pub mod tcp;
pub mod tlv;
pub mod udp;
pub mod vlan;

pub use addr::{EtherType, IpProto, MacAddr};
pub use error::{TextError, WireError};
pub use header::Header;
pub use prefix::{Family, IfAddress, Prefix};
pub use zerocopy::byteorder::network_endian::{U16, U32, U64};
pub use zerocopy::{FromBytes, IntoBytes};
