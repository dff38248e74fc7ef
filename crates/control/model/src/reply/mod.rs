//! Parts of replies that several crates share.
//!
//! Units are in the field's text. Counters count since start or since the last `clear`.

mod interfaces;
mod lcp;

pub use interfaces::{InterfaceTables, SubInterfaceRow, VlanTag};
pub use lcp::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
