//! Errors of the FIB. A refused change has changed nothing.

use std::net::IpAddr;

use volley_model::IfAddress;
use volley_tables::LpmError;

use crate::family::Af;

/// Why the FIB refused a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// No table with this number.
    #[error("there is no {af} table {table}: add it first")]
    NoTable {
        /// Family.
        af: Af,
        /// The operator's number.
        table: u32,
    },
    /// The table exists already.
    #[error("{af} table {table} exists already")]
    TableExists {
        /// Family.
        af: Af,
        /// The operator's number.
        table: u32,
    },
    /// An object uses the table.
    #[error("{af} table {table} is in use by {by}: remove that first")]
    TableInUse {
        /// Family.
        af: Af,
        /// The operator's number.
        table: u32,
        /// The user of the table.
        by: String,
    },
    /// No interface with this index.
    #[error("there is no interface with index {iface}")]
    NoInterface {
        /// Interface index.
        iface: u32,
    },
    /// An object uses the interface.
    #[error("interface {name} is in use by {by}: remove that first")]
    InterfaceInUse {
        /// Interface name.
        name: String,
        /// The user of the interface.
        by: String,
    },
    /// The source has no such route.
    #[error("there is no {source_name} route {prefix} in table {table}")]
    NoRoute {
        /// Prefix.
        prefix: String,
        /// Table number.
        table: u32,
        /// Source.
        source_name: &'static str,
    },
    /// The route has no such path.
    #[error("route {prefix} has no path {path}")]
    NoPath {
        /// Prefix.
        prefix: String,
        /// The path.
        path: String,
    },
    /// The prefix does not belong to this family.
    #[error("{prefix} is no {af} prefix: the length is at most {} and host bits are zero", .af.bits())]
    Prefix {
        /// Prefix as given.
        prefix: String,
        /// Family.
        af: Af,
    },
    /// A path is invalid.
    #[error("path {path} is not valid: {why}")]
    Path {
        /// The path.
        path: String,
        /// Why the path is invalid, and what would be valid.
        why: &'static str,
    },
    /// The interface has the address already, or another one in the same table has.
    #[error("address {addr} is on interface {name} already")]
    AddressExists {
        /// Address.
        addr: IpAddr,
        /// Interface.
        name: String,
    },
    /// The address is not valid for an interface.
    #[error("address {addr} is not valid on an interface: {why}")]
    Address {
        /// Address.
        addr: IpAddr,
        /// Why the address is invalid.
        why: &'static str,
    },
    /// The interface created the address by SLAAC.
    #[error(
        "{name} made the address {addr} itself: `ip6 nd address autoconfig {name} disable` ends that"
    )]
    Automatic {
        /// Address.
        addr: IfAddress,
        /// Interface.
        name: String,
    },
    /// An interface cannot be unnumbered with these addresses.
    #[error("{name} cannot use the addresses of {numbered}: {why}")]
    Unnumbered {
        /// Interface.
        name: String,
        /// Interface that lends its addresses.
        numbered: String,
        /// Why not, and how to correct it.
        why: &'static str,
    },
    /// The interface has no such address.
    #[error("interface {name} has no address {addr}")]
    NoAddress {
        /// Address.
        addr: IpAddr,
        /// Interface.
        name: String,
    },
    /// The interface has no such neighbour.
    #[error("interface {name} has no neighbor {addr}")]
    NoNeighbor {
        /// Address.
        addr: IpAddr,
        /// Interface.
        name: String,
    },
    /// More path lists than the FIB can number.
    #[error("more than {limit} different sets of paths: let routes share next hops")]
    TooManyLists {
        /// The limit.
        limit: u32,
    },
    /// The longest-prefix match refused a prefix.
    #[error("{prefix}: {source}")]
    Lpm {
        /// Prefix, or name of the loaded table.
        prefix: String,
        /// Error of the longest-prefix match.
        source: LpmError,
    },
    /// A file could not be read or has invalid content; nothing of it was loaded.
    #[error("{path}{}{place}: {why}", if .place.is_empty() { "" } else { ", " })]
    File {
        /// Path of the file.
        path: String,
        /// Line or record; empty if the error concerns the whole file.
        place: String,
        /// Description of the error.
        why: String,
    },
}
