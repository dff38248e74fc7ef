//! How an interface configures itself from the routers of its link (RFC 4862; RFC 4861, 6.3).

use crate::error::ModelError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// What an interface takes from advertisements: addresses and the networks of its link, and more where that is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Autoconf {
    /// The routers that advertise themselves are the way to everywhere.
    pub default_route: bool,
}

impl Display for Autoconf {
    /// The word of the configuration file.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.default_route {
            "default-route"
        } else {
            "on"
        })
    }
}

impl FromStr for Autoconf {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let default_route = match text.trim() {
            "" | "on" => false,
            "default-route" => true,
            other => {
                let why = "it is no word of autoconfiguration: write on or default-route";
                return Err(ModelError::invalid(format!("'{other}'"), why));
            }
        };
        Ok(Autoconf { default_route })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_settings_are_each_other() {
        for text in ["on", "default-route"] {
            let it: Autoconf = text.parse().unwrap();
            assert_eq!(it.to_string(), text);
        }
        let error = "disable".parse::<Autoconf>().unwrap_err().to_string();
        assert!(error.contains("write on or default-route"), "{error}");
    }
}
