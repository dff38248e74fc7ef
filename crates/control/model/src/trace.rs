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

/// Where packets are captured. At least one must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Directions {
    /// On receipt from an interface.
    pub rx: bool,
    /// On transmission to an interface.
    pub tx: bool,
    /// When dropped.
    pub drop: bool,
}

/// Bytes that a capture keeps of each packet.
pub const CAPTURED_BYTES: std::ops::RangeInclusive<u32> = 14..=65_535;

/// Show packets to one client as they pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Where.
    pub directions: Directions,
    /// Only this interface; none = any.
    pub interface: Option<String>,
    /// End after this many packets, up to 1000000; none = when the client ends it.
    pub count: Option<u64>,
    /// Bytes kept of each packet; none = all.
    pub snap: Option<u32>,
    /// Only packets that match this expression, written as for a capture.
    pub filter: Option<String>,
    /// A capture in the format pcapng, instead of a line of text for each packet.
    pub pcapng: bool,
}
