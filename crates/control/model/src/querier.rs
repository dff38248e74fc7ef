//! How an interface asks its hosts for the groups that they listen to (RFC 3376, 8; RFC 3810, 9).

use crate::error::ModelError;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Settings of a querier, of IGMP or of MLD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct GroupQuerier {
    /// Seconds between two general queries.
    pub query_interval_s: u32,
    /// How many messages may be lost one after the other, and one.
    pub robustness: u32,
    /// Milliseconds in which general queries are to be answered.
    pub max_response_ms: u32,
    /// Milliseconds in which queries about one group are to be answered, and between two of these.
    pub last_member_ms: u32,
    /// Queries about a group before it counts as left; none = the robustness.
    pub last_member_count: Option<u32>,
}

impl Default for GroupQuerier {
    fn default() -> Self {
        GroupQuerier {
            query_interval_s: 125,
            robustness: 2,
            max_response_ms: 10_000,
            last_member_ms: 1000,
            last_member_count: None,
        }
    }
}

impl GroupQuerier {
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within("query-interval", self.query_interval_s, limits::QUERY_S)?;
        within("robustness", self.robustness, limits::ROBUSTNESS)?;
        within("max-response", self.max_response_ms, limits::RESPONSE_MS)?;
        within(
            "last-member-interval",
            self.last_member_ms,
            limits::RESPONSE_MS,
        )?;
        if self.max_response_ms >= self.query_interval_s * 1000 {
            let why = "it must be shorter than the query interval (RFC 3376, 8.3)";
            let what = format!("max-response {}", self.max_response_ms);
            return Err(ModelError::invalid(what, why));
        }
        let count = self.last_member_count.unwrap_or(1);
        within("last-member-count", count, limits::ROBUSTNESS)
    }
}

impl Display for GroupQuerier {
    /// The words behind `set interface igmp INTERFACE`, what is usual left out.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("on")?;
        let usual = GroupQuerier::default();
        let numbers = [
            (
                "query-interval",
                self.query_interval_s,
                usual.query_interval_s,
            ),
            ("robustness", self.robustness, usual.robustness),
            ("max-response", self.max_response_ms, usual.max_response_ms),
            (
                "last-member-interval",
                self.last_member_ms,
                usual.last_member_ms,
            ),
        ];
        let mut unusual = numbers.iter().filter(|(_, number, usual)| number != usual);
        unusual.try_for_each(|(word, number, _)| write!(f, " {word} {number}"))?;
        self.last_member_count
            .map_or(Ok(()), |count| write!(f, " last-member-count {count}"))
    }
}

impl FromStr for GroupQuerier {
    type Err = ModelError;

    /// Reads the words behind `set interface igmp INTERFACE`, in any order.
    fn from_str(text: &str) -> Result<Self, ModelError> {
        let mut it = GroupQuerier::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            if word == "on" {
                continue;
            }
            let value = words.next().unwrap_or("");
            let number = value.parse::<u32>();
            let number = number.map_err(|_| {
                let why = "it has no number behind it: see `help set interface igmp`";
                ModelError::invalid(format!("{word} '{value}'"), why)
            });
            match word {
                "query-interval" => it.query_interval_s = number?,
                "robustness" => it.robustness = number?,
                "max-response" => it.max_response_ms = number?,
                "last-member-interval" => it.last_member_ms = number?,
                "last-member-count" => it.last_member_count = Some(number?),
                other => {
                    let why = "it is no word of a querier: see `help set interface igmp`";
                    return Err(ModelError::invalid(format!("'{other}'"), why));
                }
            }
        }
        it.validate().map(|()| it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for text in [
            "on",
            "on query-interval 10 robustness 3 max-response 500 last-member-interval 200 last-member-count 1",
        ] {
            let it: GroupQuerier = text.parse().unwrap();
            assert_eq!(it.to_string(), text);
        }
        for bad in [
            "query-interval",
            "query-interval 0",
            "robustness 8",
            "query-interval 10 max-response 10000",
            "last-member-count 0",
            "often",
        ] {
            assert!(bad.parse::<GroupQuerier>().is_err(), "{bad}");
        }
    }
}
