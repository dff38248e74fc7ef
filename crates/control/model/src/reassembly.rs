//! How much of datagrams may wait for its missing fragments, and how long: of those for the router, and of those in transit.

use crate::addr::Family;
use crate::error::ModelError;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// Full and virtual reassembly of one IP version, each on each worker. What a request does not name gets its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReassemblySettings {
    /// Datagrams that wait, or in transit whose flow is known; the oldest gives way.
    pub max_reassemblies: u32,
    /// Fragments of one datagram; in transit those that wait for the first one.
    pub max_reassembly_length: u32,
    /// Fragments of all datagrams: a buffer each, or more where they are long.
    pub max_buffers: u32,
    /// Seconds that a datagram waits for its fragments; none = 30 for IPv4, 60 for IPv6.
    pub timeout: Option<u32>,
    /// Milliseconds that fragments in transit wait for the first one, and that their flow is known after the last one.
    pub virtual_timeout_ms: u32,
}

impl Default for ReassemblySettings {
    fn default() -> Self {
        ReassemblySettings {
            max_reassemblies: 1024,
            max_reassembly_length: 64,
            max_buffers: 1024,
            timeout: None,
            virtual_timeout_ms: 100,
        }
    }
}

impl ReassemblySettings {
    /// Seconds that a datagram waits (RFC 791, 3.2 and RFC 1122, 3.3.2; RFC 8200, 4.5).
    pub fn seconds(&self, family: Family) -> u32 {
        let usual = match family {
            Family::V4 => 30,
            Family::V6 => 60,
        };
        self.timeout.unwrap_or(usual)
    }

    /// The command that sets them.
    pub(crate) fn spell(&self, family: Family, f: &mut Formatter<'_>) -> fmt::Result {
        let ip = match family {
            Family::V4 => "ip4",
            Family::V6 => "ip6",
        };
        write!(f, "set {ip} reassembly{self}")
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within(
            "max-reassemblies",
            self.max_reassemblies,
            limits::REASSEMBLIES,
        )?;
        let length = limits::REASSEMBLY_LENGTH;
        within("max-reassembly-length", self.max_reassembly_length, length)?;
        within("max-buffers", self.max_buffers, limits::REASSEMBLY_BUFFERS)?;
        let timeout = self.timeout.unwrap_or(*limits::REASSEMBLY_TIMEOUT.start());
        within("timeout", timeout, limits::REASSEMBLY_TIMEOUT)?;
        let range = limits::VIRTUAL_TIMEOUT_MS;
        within("virtual-timeout", self.virtual_timeout_ms, range)
    }
}

impl Display for ReassemblySettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = ReassemblySettings::default();
        let numbers = [
            (
                "max-reassemblies",
                self.max_reassemblies,
                usual.max_reassemblies,
            ),
            (
                "max-reassembly-length",
                self.max_reassembly_length,
                usual.max_reassembly_length,
            ),
            ("max-buffers", self.max_buffers, usual.max_buffers),
        ];
        let mut unusual = numbers.iter().filter(|(_, number, usual)| number != usual);
        unusual.try_for_each(|(word, number, _)| write!(f, " {word} {number}"))?;
        self.timeout.map_or(Ok(()), |s| write!(f, " timeout {s}"))?;
        match self.virtual_timeout_ms {
            ms if ms == usual.virtual_timeout_ms => Ok(()),
            ms => write!(f, " virtual-timeout {ms}"),
        }
    }
}
