//! What the FIB refuses, and why. A refused change has changed nothing.

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
    /// The table is there already.
    #[error("{af} table {table} exists already")]
    TableExists {
        /// Family.
        af: Af,
        /// The operator's number.
        table: u32,
    },
    /// Something needs the table.
    #[error("{af} table {table} is in use by {by}: remove that first")]
    TableInUse {
        /// Family.
        af: Af,
        /// The operator's number.
        table: u32,
        /// Who.
        by: String,
    },
    /// No interface with this index.
    #[error("there is no interface with index {iface}")]
    NoInterface {
        /// Its index.
        iface: u32,
    },
    /// Something needs the interface.
    #[error("interface {name} is in use by {by}: remove that first")]
    InterfaceInUse {
        /// Its name.
        name: String,
        /// Who.
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
    /// The prefix is not one of this family.
    #[error("{prefix} is no {af} prefix: the length is at most {} and host bits are zero", .af.bits())]
    Prefix {
        /// As given.
        prefix: String,
        /// Family.
        af: Af,
    },
    /// A path cannot be.
    #[error("path {path} is not valid: {why}")]
    Path {
        /// The path.
        path: String,
        /// Why not, and what would be right.
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
    /// The address cannot be an interface's.
    #[error("address {addr} is not valid on an interface: {why}")]
    Address {
        /// Address.
        addr: IpAddr,
        /// Why not.
        why: &'static str,
    },
    /// The interface made the address itself.
    #[error(
        "{name} made the address {addr} itself: `ip6 nd address autoconfig {name} disable` ends that"
    )]
    Automatic {
        /// Address.
        addr: IfAddress,
        /// Interface.
        name: String,
    },
    /// An interface cannot use another's addresses.
    #[error("{name} cannot use the addresses of {lender}: {why}")]
    Unnumbered {
        /// Interface.
        name: String,
        /// Whose addresses they are.
        lender: String,
        /// Why not, and what would help.
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
        /// Prefix, or what was loaded.
        prefix: String,
        /// Its reason.
        source: LpmError,
    },
    /// A file could not be read or says something wrong; nothing of it was loaded.
    #[error("{path}{}{place}: {why}", if .place.is_empty() { "" } else { ", " })]
    File {
        /// Its path.
        path: String,
        /// Line or record, empty when the whole file is meant.
        place: String,
        /// What is wrong.
        why: String,
    },
}
