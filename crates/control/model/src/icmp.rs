//! Whether the router tells senders of packets it dropped, and how often.

use crate::error::ModelError;
use crate::interface::Switch;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// ICMP and ICMPv6 errors. What a request does not name gets its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IcmpSettings {
    /// Whether errors are sent.
    pub errors: Switch,
    /// Errors a second of each class (time exceeded, unreachable, too big, parameter problem) and worker; 0 = any number.
    pub rate: u32,
    /// Errors of a class in one go.
    pub burst: u32,
    /// Errors a second to each receiver, packet-too-big ones not counted; 0 = any number.
    pub receiver_rate: u32,
}

impl Default for IcmpSettings {
    fn default() -> Self {
        IcmpSettings {
            errors: Switch::On,
            rate: 1000,
            burst: 50,
            receiver_rate: 1,
        }
    }
}

impl IcmpSettings {
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within("rate", self.rate, limits::ICMP_RATE)?;
        within("burst", self.burst, limits::ICMP_BURST)?;
        within("receiver-rate", self.receiver_rate, limits::ICMP_RATE)
    }
}

impl Display for IcmpSettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = IcmpSettings::default();
        if self.errors != usual.errors {
            write!(f, " errors {}", self.errors)?;
        }
        let numbers = [
            ("rate", self.rate, usual.rate),
            ("burst", self.burst, usual.burst),
            ("receiver-rate", self.receiver_rate, usual.receiver_rate),
        ];
        let mut unusual = numbers.iter().filter(|(_, number, usual)| number != usual);
        unusual.try_for_each(|(word, number, _)| write!(f, " {word} {number}"))
    }
}
