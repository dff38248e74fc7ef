//! The text of a filter, and the limits of traces and captures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::{Deref, RangeInclusive};
use std::str::FromStr;
use volley_model::ModelError;
use volley_object::text_field;

/// The number of packets of one trace or capture.
pub const TRACE_PACKETS: RangeInclusive<u64> = 1..=1_000_000;
/// The number of bytes that a capture keeps of each packet.
pub(crate) const CAPTURED_BYTES: RangeInclusive<u32> = 14..=65_535;
/// The maximum number of bytes of a filter.
const FILTER_LEN: usize = 1024;

/// The text of a packet filter. Captures and traces check its syntax.
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
        if text.len() > FILTER_LEN {
            let (asked, limit) = (text.len() as u64, FILTER_LEN as u64);
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
