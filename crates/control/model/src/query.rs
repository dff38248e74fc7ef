//! Every question (`show ...`) as one typed value.

use crate::error::ModelError;
use crate::log::LogLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{Instance, Query as Define, QueryClass, classes};

/// One question. Each variant is answered by the [`crate::Reply`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Query {
    /// The records of the log that are in memory, the newest of them.
    Log {
        /// At most this many records; none = 100.
        #[serde(default)]
        max: Option<u64>,
        /// Only records of this level and of more serious ones.
        #[serde(default)]
        level: Option<LogLevel>,
        /// Only records of this module.
        #[serde(default)]
        module: Option<String>,
        /// Only records behind this number.
        #[serde(default)]
        after: Option<u64>,
    },
    /// A query that a crate of a feature defines: its parameters.
    #[serde(skip)]
    Registered(Instance),
}

impl Query {
    /// A query that a crate of a feature defines.
    pub fn of<Q: Define>(query: &Q) -> Result<Query, ModelError> {
        let asked = query.asked();
        asked
            .map(Query::Registered)
            .map_err(|error| ModelError::invalid(Q::NAME, error))
    }

    /// The query of the registry.
    pub fn class(&self) -> Option<QueryClass> {
        match self {
            Query::Registered(asked) => classes().query(asked.class().name()).cloned(),
            Query::Log { .. } => None,
        }
    }

    /// The parameters of a query whose reply comes in items over time; none where it does not.
    pub fn stream(&self) -> Option<&Instance> {
        let class = self.class();
        class.as_ref()?.stream()?;
        match self {
            Query::Registered(asked) => Some(asked),
            Query::Log { .. } => None,
        }
    }
}
