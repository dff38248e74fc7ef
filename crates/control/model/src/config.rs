//! Actions on the configuration as a whole: show, compare, commit, roll back.

use crate::error::ModelError;
use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use volley_object::Choice;

/// The source of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConfigSource {
    /// The running configuration.
    Running,
    /// The active commit.
    Committed,
    /// The commit with this number.
    Commit(u64),
    /// A `volley.toml` that the daemon reads.
    File(PathBuf),
    /// The text of a `volley.toml`.
    Text(String),
    /// Requests that lead from an empty configuration to this one.
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

/// An action on the configuration as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConfigAction {
    /// Check a configuration, independently of the running one.
    Check {
        /// Configuration to check.
        source: ConfigSource,
    },
    /// Show a configuration.
    Show {
        /// Configuration to show.
        source: ConfigSource,
        /// Format of the text.
        #[serde(default)]
        form: ConfigForm,
    },
    /// Compare two configurations.
    Diff {
        /// First configuration.
        from: ConfigSource,
        /// Second configuration.
        to: ConfigSource,
    },
    /// Apply a configuration and commit it.
    Commit {
        /// Configuration to commit.
        source: ConfigSource,
        /// Seconds until the commit is rolled back, unless it is confirmed before.
        #[serde(default)]
        confirm_s: Option<u64>,
        /// Comment of the commit.
        #[serde(default)]
        comment: Option<String>,
    },
    /// Confirm the waiting commit.
    Confirm {},
    /// Apply an earlier commit again, as a new commit.
    Rollback {
        /// Number of the commit.
        number: u64,
    },
    /// List the commits.
    History {},
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
            ConfigAction::Confirm {} | ConfigAction::Rollback { .. } | ConfigAction::History {} => {
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
    /// The configuration is valid.
    Checked {
        /// Number of objects of the desired state.
        objects: u64,
    },
    /// The configuration as text.
    Text {
        /// The text.
        text: String,
    },
    /// The differences: lines that begin with `-` (removed) or `+` (added), in order of dependence.
    Difference {
        /// The lines.
        lines: Vec<String>,
    },
    /// The configuration is active and committed.
    Committed(Committed),
    /// The waiting commit is confirmed.
    Confirmed {
        /// Number of the commit.
        number: u64,
    },
    /// The commits, newest first.
    History {
        /// One row for each commit.
        commits: Vec<CommitRow>,
    },
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Committed {
    /// Number of the commit.
    pub number: u64,
    /// Number of steps that were carried out.
    pub steps: u64,
    /// The commit is rolled back at this time (seconds since 1970) unless it is confirmed before.
    pub confirm_by: Option<u64>,
    /// Sentences for the operator.
    pub notes: Vec<String>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommitRow {
    /// Number of the commit.
    pub number: u64,
    /// Time of the commit, in seconds since 1970.
    pub time_s: u64,
    /// User who committed, or `token NAME`; none for a commit of an older Volley.
    #[serde(default)]
    pub user: Option<String>,
    /// How the commit was made; none for a commit of an older Volley.
    #[serde(default)]
    pub how: Option<CommitHow>,
    /// Comment of the commit.
    pub comment: Option<String>,
    /// Number of requests that lead from an empty configuration to the commit.
    pub requests: u64,
    /// The commit is active.
    pub current: bool,
    /// The commit waits to be confirmed until this time (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// The commit was not confirmed in time, and was rolled back at this time (seconds since 1970).
    #[serde(default)]
    pub lapsed_s: Option<u64>,
    /// Why the file of the commit cannot be used: only the number of such a commit is known.
    #[serde(default)]
    pub fault: Option<String>,
}

/// How a commit was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Choice)]
#[serde(rename_all = "kebab-case")]
pub enum CommitHow {
    /// An operator committed it.
    Operator,
    /// An operator rolled back to an earlier commit.
    Rollback,
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
