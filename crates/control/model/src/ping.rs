//! Requests that the router sends itself: `ping`, `traceroute` and `arping`.

use crate::addr::Family;
use crate::error::ModelError;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Echo requests to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingQuery {
    /// To whom.
    pub destination: IpAddr,
    /// From which address of the router; none = one of the interface that leads there.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// In which IP table the destination is looked up.
    #[serde(default)]
    pub table: u32,
    /// Requests, 1..=100.
    #[serde(default = "defaults::count")]
    pub count: u32,
    /// Milliseconds between two, 10..=10000.
    #[serde(default = "defaults::interval_ms")]
    pub interval_ms: u32,
    /// Bytes behind the ICMP header, 0..=1400.
    #[serde(default = "defaults::size")]
    pub size: u32,
    /// Time to live or hop limit, 1..=254.
    #[serde(default = "defaults::hops")]
    pub hops: u32,
    /// Milliseconds that an answer is waited for, 10..=10000.
    #[serde(default = "defaults::timeout_ms")]
    pub timeout_ms: u32,
}

/// Echo requests with one hop, then two, and so on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracerouteQuery {
    /// To whom.
    pub destination: IpAddr,
    /// From which address of the router; none = one of the interface that leads there.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// In which IP table the destination is looked up.
    #[serde(default)]
    pub table: u32,
    /// The most hops, 1..=64.
    #[serde(default = "defaults::most_hops")]
    pub most_hops: u32,
    /// Requests of each number of hops, 1..=5.
    #[serde(default = "defaults::probes")]
    pub probes: u32,
    /// Milliseconds that an answer is waited for, 10..=10000.
    #[serde(default = "defaults::timeout_ms")]
    pub timeout_ms: u32,
}

/// ARP requests, or neighbour solicitations, for one address of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArpingQuery {
    /// On which interface.
    pub interface: String,
    /// For which address: ARP for IPv4, neighbour discovery for IPv6.
    pub address: IpAddr,
    /// Requests, 1..=100; on the command line also more, or 0 for no end.
    #[serde(default = "defaults::count")]
    pub count: u32,
    /// Milliseconds between two, 10..=10000.
    #[serde(default = "defaults::interval_ms")]
    pub interval_ms: u32,
    /// Milliseconds that answers to the last request are waited for, 10..=10000.
    #[serde(default = "defaults::timeout_ms")]
    pub timeout_ms: u32,
}

mod defaults {
    pub fn count() -> u32 {
        5
    }
    pub fn interval_ms() -> u32 {
        1000
    }
    pub fn size() -> u32 {
        56
    }
    pub fn hops() -> u32 {
        64
    }
    pub fn timeout_ms() -> u32 {
        1000
    }
    pub fn most_hops() -> u32 {
        30
    }
    pub fn probes() -> u32 {
        3
    }
}

fn ends(destination: IpAddr, source: Option<IpAddr>) -> Result<(), ModelError> {
    if destination.is_multicast() || destination.is_unspecified() {
        let why = "it is no address of one host";
        return Err(ModelError::invalid(destination, why));
    }
    if source.is_some_and(|s| Family::of(s) != Family::of(destination)) {
        let why = "its IP version is not that of the destination";
        return Err(ModelError::invalid("source", why));
    }
    Ok(())
}

/// The time that all of it may take.
fn span(milliseconds: u64) -> Result<(), ModelError> {
    let most = limits::PING_SPAN_MS;
    if milliseconds <= most {
        return Ok(());
    }
    let why = format!(
        "it may take {} s, and {} s is the most: fewer requests, or less time for each",
        milliseconds.div_ceil(1000),
        most / 1000
    );
    Err(ModelError::invalid("the run", why))
}

impl PingQuery {
    /// To a destination, with defaults for the rest.
    pub fn new(destination: IpAddr) -> Self {
        PingQuery {
            destination,
            source: None,
            table: 0,
            count: defaults::count(),
            interval_ms: defaults::interval_ms(),
            size: defaults::size(),
            hops: defaults::hops(),
            timeout_ms: defaults::timeout_ms(),
        }
    }

    /// Whether it is within its limits.
    pub fn validate(&self) -> Result<(), ModelError> {
        ends(self.destination, self.source)?;
        within("count", self.count, limits::PING_COUNT)?;
        within("interval", self.interval_ms, limits::PING_MS)?;
        within("size", self.size, limits::PING_SIZE)?;
        within("hops", self.hops, limits::PING_HOPS)?;
        within("timeout", self.timeout_ms, limits::PING_MS)?;
        let sending = u64::from(self.count - 1) * u64::from(self.interval_ms);
        span(sending + u64::from(self.timeout_ms))
    }
}

impl ArpingQuery {
    /// For an address, with defaults for the rest.
    pub fn new(interface: impl Into<String>, address: IpAddr) -> Self {
        ArpingQuery {
            interface: interface.into(),
            address,
            count: defaults::count(),
            interval_ms: defaults::interval_ms(),
            timeout_ms: defaults::timeout_ms(),
        }
    }

    /// Whether it is within its limits, for a client that gets every answer when it comes: it may go on for as long as
    /// the client likes.
    pub fn validate_followed(&self) -> Result<(), ModelError> {
        ends(self.address, None)?;
        within("interval", self.interval_ms, limits::PING_MS)?;
        within("timeout", self.timeout_ms, limits::PING_MS)
    }

    /// Whether it is within its limits, for a client that waits for the end.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.validate_followed()?;
        within("count", self.count, limits::PING_COUNT)?;
        let sending = u64::from(self.count - 1) * u64::from(self.interval_ms);
        span(sending + u64::from(self.timeout_ms))
    }
}

impl TracerouteQuery {
    /// To a destination, with defaults for the rest.
    pub fn new(destination: IpAddr) -> Self {
        TracerouteQuery {
            destination,
            source: None,
            table: 0,
            most_hops: defaults::most_hops(),
            probes: defaults::probes(),
            timeout_ms: defaults::timeout_ms(),
        }
    }

    /// Whether it is within its limits.
    pub fn validate(&self) -> Result<(), ModelError> {
        ends(self.destination, self.source)?;
        within("most-hops", self.most_hops, limits::TRACE_HOPS)?;
        within("probes", self.probes, limits::TRACE_PROBES)?;
        within("timeout", self.timeout_ms, limits::PING_MS)?;
        span(u64::from(self.most_hops) * u64::from(self.timeout_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limits_is_refused() {
        let ping = PingQuery::new("192.0.2.1".parse().unwrap());
        assert!(ping.validate().is_ok());
        let long = PingQuery {
            count: 100,
            interval_ms: 10_000,
            ..ping.clone()
        };
        assert!(long.validate().unwrap_err().to_string().contains("60 s"));
        for bad in [
            PingQuery {
                count: 0,
                ..ping.clone()
            },
            PingQuery {
                hops: 255,
                ..ping.clone()
            },
            PingQuery {
                size: 1401,
                ..ping.clone()
            },
            PingQuery {
                source: Some("::1".parse().unwrap()),
                ..ping.clone()
            },
            PingQuery::new("224.0.0.1".parse().unwrap()),
            PingQuery::new("::".parse().unwrap()),
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
        let arping = ArpingQuery::new("lan0", "192.0.2.1".parse().unwrap());
        assert!(arping.validate().is_ok());
        let endless = ArpingQuery { count: 0, ..arping };
        assert!(endless.validate().is_err() && endless.validate_followed().is_ok());
        let group = ArpingQuery::new("lan0", "ff02::1".parse().unwrap());
        assert!(group.validate_followed().is_err());
        let trace = TracerouteQuery::new("2001:db8::1".parse().unwrap());
        assert!(trace.validate().is_ok());
        let long = TracerouteQuery {
            timeout_ms: 3000,
            ..trace
        };
        assert!(long.validate().is_err());
    }
}
