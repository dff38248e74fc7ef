//! Answers to [`crate::Query`]: one plain struct each, rich enough for text tables and JSON alike.
//!
//! Units are in the field's text. Counters count since start or since the last `clear`.

mod interfaces;
mod lcp;
mod log;
mod neighbor;

use crate::error::ModelError;
pub use interfaces::{InterfaceTables, SubInterfaceRow, VlanTag};
pub use lcp::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
pub use log::LogReply;
pub use neighbor::NeighborState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{Answer, DefinitionError, Query as Define};

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
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

    /// Why the run that has ended with this reply has failed; none where it has not, or the query has no runs.
    pub fn failure(&self) -> Option<String> {
        match self {
            Reply::Registered(answer) => answer.failure(),
            Reply::Log(_) => None,
        }
    }

    /// The reply to a query that a crate of a feature defines; none when it is to another one.
    pub fn into_answer<Q: Define>(self) -> Option<Q::Reply> {
        match self {
            Reply::Registered(answer) => answer.get().cloned(),
            _ => None,
        }
    }
}
