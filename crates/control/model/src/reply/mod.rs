//! Answers to [`crate::Query`]: one plain struct each, rich enough for text tables and JSON alike.
//!
//! Units are in the field's text. Counters count since start or since the last `clear`.

mod interfaces;
mod lcp;
mod log;
mod neighbor;
mod ping;

use crate::error::ModelError;
pub use interfaces::{InterfaceTables, SubInterfaceRow, VlanTag};
pub use lcp::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
pub use log::LogReply;
pub use neighbor::NeighborState;
pub use ping::{
    ArpingAnswer, ArpingReply, PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{Answer, DefinitionError, Query as Define};

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "few replies exist at a time")]
pub enum Reply {
    /// To [`crate::Query::Ping`].
    Ping(PingReply),
    /// To [`crate::Query::Traceroute`].
    Traceroute(TracerouteReply),
    /// To [`crate::Query::Arping`].
    Arping(ArpingReply),
    /// To [`crate::Query::Log`].
    Log(LogReply),
    /// To [`crate::Query::Registered`].
    #[serde(skip)]
    Registered(Answer),
}

impl Reply {
    /// The reply to a query that a crate of a feature defines.
    pub fn answer<Q: Define>(reply: Q::Reply) -> Result<Answer, ModelError> {
        let why = |error: DefinitionError| ModelError::invalid(Q::NAME, error.why);
        Answer::new::<Q>(reply).map_err(why)
    }

    /// The reply to a query that a crate of a feature defines; none when it is to another one.
    pub fn into_answer<Q: Define>(self) -> Option<Q::Reply> {
        match self {
            Reply::Registered(answer) => answer.get().cloned(),
            _ => None,
        }
    }
}
