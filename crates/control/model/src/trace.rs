//! Looking at packets: captures and filters.

use crate::error::ModelError;
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;
use std::str::FromStr;
use volley_object::text_field;

/// The text of a filter of packets. Captures and traces check its syntax.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FilterText(pub String);

text_field!(
    FilterText,
    "a filter",
    Rest,
    ["ip4.dst == 10.0.0.0/8 and udp", "icmp"]
);

impl FromStr for FilterText {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        if text.trim().is_empty() {
            return Err(ModelError::invalid("filter", "it is empty"));
        }
        if text.len() > limits::FILTER_LEN {
            let (asked, limit) = (text.len() as u64, limits::FILTER_LEN as u64);
            return Err(ModelError::limit("length of the filter", asked, limit));
        }
        Ok(FilterText(text.to_owned()))
    }
}

impl Display for FilterText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Deref for FilterText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Bytes that a capture keeps of each packet.
pub const CAPTURED_BYTES: std::ops::RangeInclusive<u32> = 14..=65_535;
