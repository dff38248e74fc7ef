//! Actions on the configuration as a whole: show, compare, commit, roll back.

use crate::error::ModelError;
use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use volley_object::Choice;

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConfigSource {
    /// What is in force now.
    Running,
    /// The commit that holds.
    Committed,
    /// The commit of this number.
    Commit(u64),
    /// A `volley.toml` that the daemon reads.
    File(PathBuf),
    /// The text of a `volley.toml`.
    Text(String),
    /// Requests that lead to it from nothing.
    Requests(Vec<Request>),
}

/// How a configuration is written out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigForm {
    /// As a `volley.toml`.
    #[default]
    Toml,
    /// As commands, one a line.
    Commands,
    /// As requests in JSON, one a line.
    Json,
}

/// Something done with the configuration as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConfigAction {
    /// Read it and check it against nothing but itself.
    Check {
        /// Which.
        source: ConfigSource,
    },
    /// Write it out.
    Show {
        /// Which.
        source: ConfigSource,
        /// How.
        #[serde(default)]
        form: ConfigForm,
    },
    /// What is different.
    Diff {
        /// From this one ...
        from: ConfigSource,
        /// ... to this one.
        to: ConfigSource,
    },
    /// Bring it in force and keep it.
    Commit {
        /// Which.
        source: ConfigSource,
        /// Take it back unless it is confirmed within so many seconds.
        #[serde(default)]
        confirm_s: Option<u64>,
        /// Why.
        #[serde(default)]
        comment: Option<String>,
    },
    /// Keep the commit that waits.
    Confirm,
    /// Bring an earlier commit in force again, as a new one.
    Rollback {
        /// Its number.
        number: u64,
    },
    /// Which commits there are.
    History,
}

/// Range of the time to confirm a commit, in seconds: up to seven days.
const CONFIRM_S: RangeInclusive<u64> = 1..=604_800;

/// Maximum length of a commit's comment, in bytes.
const COMMENT: usize = 1024;

impl ConfigAction {
    /// Checks ranges.
    pub fn validate(&self) -> Result<(), ModelError> {
        let ConfigAction::Commit {
            confirm_s, comment, ..
        } = self
        else {
            return Ok(());
        };
        if let Some(span) = confirm_s.filter(|span| !CONFIRM_S.contains(span)) {
            let why = "give 1 to 604800 seconds (168h)";
            return Err(ModelError::invalid(format!("confirm_s {span}"), why));
        }
        match comment.as_ref().map_or(0, String::len) {
            length if length > COMMENT => {
                let why = format!("it has {length} bytes, the limit is {COMMENT}");
                Err(ModelError::invalid("the comment", why))
            }
            _ => Ok(()),
        }
    }

    /// The source, if it is a file.
    pub fn file_mut(&mut self) -> Option<&mut ConfigSource> {
        let sources = match self {
            ConfigAction::Check { source }
            | ConfigAction::Show { source, .. }
            | ConfigAction::Commit { source, .. } => [Some(source), None],
            ConfigAction::Diff { from, to } => [Some(from), Some(to)],
            ConfigAction::Confirm | ConfigAction::Rollback { .. } | ConfigAction::History => {
                [None, None]
            }
        };
        let file = |source: &&mut ConfigSource| matches!(source, ConfigSource::File(_));
        sources.into_iter().flatten().find(file)
    }
}

/// The answer to a [`ConfigAction`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigReply {
    /// It is well-formed and leads to so many objects.
    Checked {
        /// Objects of the desired state.
        objects: u64,
    },
    /// It, written out.
    Text {
        /// The text.
        text: String,
    },
    /// Lines that begin with `-` (goes) or `+` (comes), in order of dependence.
    Difference {
        /// The lines.
        lines: Vec<String>,
    },
    /// It is in force and kept.
    Committed(Committed),
    /// The commit that waited is kept.
    Confirmed {
        /// Its number.
        number: u64,
    },
    /// The commits, newest first.
    History {
        /// A row each.
        commits: Vec<CommitRow>,
    },
}

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Committed {
    /// Its number.
    pub number: u64,
    /// Steps that led to it.
    pub steps: u64,
    /// It goes unless it is confirmed until then (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// Sentences for the operator.
    pub notes: Vec<String>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommitRow {
    /// Its number.
    pub number: u64,
    /// Seconds since 1970.
    pub time_s: u64,
    /// Who: a user, or `token NAME`; none for a commit of an older Volley.
    #[serde(default)]
    pub user: Option<String>,
    /// How; none for a commit of an older Volley.
    #[serde(default)]
    pub how: Option<CommitHow>,
    /// Why.
    pub comment: Option<String>,
    /// Requests that lead to it from nothing.
    pub requests: u64,
    /// It holds.
    pub current: bool,
    /// It waits to be confirmed until then (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// It was not confirmed in time, and was rolled back by the deadline then (seconds since 1970).
    #[serde(default)]
    pub lapsed_s: Option<u64>,
    /// Why the file of the commit cannot be used: nothing but its number is known.
    #[serde(default)]
    pub fault: Option<String>,
}

/// How a commit was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitHow {
    /// An operator committed it.
    Operator,
    /// An operator rolled back to an earlier commit.
    Rollback,
}

impl std::fmt::Display for CommitHow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            CommitHow::Operator => "operator",
            CommitHow::Rollback => "rollback",
        })
    }
}

/// Parses a time span such as `30s`, `5m`, `2h`; a number alone is seconds.
pub fn parse_span(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "'{text}' is not a span of time: write one such as 90s, 5m or 2h (a number alone is seconds)"
        )
    };
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let with = |(unit, scale): &(&str, u64)| Some((text.strip_suffix(unit)?, *scale));
    let (number, scale) = units.iter().find_map(with).unwrap_or((text, 1));
    let number: u64 = number.parse().map_err(|_| bad())?;
    let seconds = number.checked_mul(scale).filter(|s| CONFIRM_S.contains(s));
    seconds.ok_or_else(|| format!("'{text}' is out of range: give 1s to 168h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_bounded() {
        let commit = |confirm_s, length| ConfigAction::Commit {
            source: ConfigSource::Running,
            confirm_s,
            comment: Some("x".repeat(length)),
        };
        assert_eq!(commit(Some(604_800), 1024).validate(), Ok(()));
        assert_eq!(commit(None, 0).validate(), Ok(()));
        for (span, length) in [(0, 1), (604_801, 1), (u64::MAX, 1), (1, 1025)] {
            let error = commit(Some(span), length).validate().unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains("604800") || error.contains("1025"),
                "{error}"
            );
        }
    }

    #[test]
    fn spans_are_read() {
        assert_eq!(parse_span("5m"), Ok(300));
        assert_eq!(parse_span("90"), Ok(90));
        for bad in [
            "",
            "m",
            "0",
            "-1s",
            "5 m",
            "200h",
            "99999999999999999999h",
            "1mm",
        ] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
