//! Roles of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use volley_object::{Choice, choice_named};

/// A role of a client. Each one may do what the roles before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Show, metrics, events and the log.
    Read,
    /// Also commands that change no configuration: clear, trace, capture, ping.
    Operate,
    /// Everything.
    Configure,
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        choice_named(text)
            .map_err(|why| format!("'{}' is no role: {why}", volley_object::shown(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_read_as_they_are_written() {
        for (name, _, role) in Role::ALL {
            assert_eq!(
                (name.parse(), role.to_string()),
                (Ok(*role), name.to_string())
            );
        }
        assert!(Role::Read < Role::Operate && Role::Operate < Role::Configure);
        for bad in ["", "Read", "root", "\u{1b}[2J"] {
            let error = Role::from_str(bad).unwrap_err();
            assert!(error.contains("read, operate or configure"), "{error}");
            assert!(!error.contains('\u{1b}'), "{error:?}");
        }
    }
}
