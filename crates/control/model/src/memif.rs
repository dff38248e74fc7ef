//! Side of a memif connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which side of a connection an interface is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    volley_object::Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum MemifRole {
    /// Be the side that listens at the socket (server).
    #[default]
    Master,
    /// Be the side that connects and owns the shared memory (client).
    Slave,
}
