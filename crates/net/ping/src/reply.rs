//! Replies to `ping` and `traceroute`.

use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

/// What an answer to an echo request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The destination answers.
    Reply,
    /// The hops were used up there.
    TimeExceeded,
    /// No route leads on from there.
    NetUnreachable,
    /// The host does not answer there.
    HostUnreachable,
    /// It is prohibited there.
    Prohibited,
    /// It is too big for the next link.
    TooBig,
    /// Another error.
    Other,
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbeAnswer {
    /// From whom.
    pub from: IpAddr,
    /// Microseconds from request to answer.
    pub rtt_us: u64,
    /// What it says.
    pub result: ProbeResult,
    /// Time to live or hop limit that it arrived with.
    pub hops: u8,
}

/// What came of a ping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PingReply {
    /// To whom.
    pub destination: IpAddr,
    /// From which address.
    pub source: IpAddr,
    /// Bytes behind the ICMP header.
    pub size: u32,
    /// Requests sent.
    pub sent: u32,
    /// Those that the destination answered.
    pub received: u32,
    /// The shortest time of these, in microseconds.
    pub min_us: Option<u64>,
    /// Their mean time.
    pub avg_us: Option<u64>,
    /// The longest time.
    pub max_us: Option<u64>,
    /// The answer to each request, in order.
    pub answers: Vec<Option<ProbeAnswer>>,
}

/// One number of hops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceHop {
    /// How many.
    pub hops: u32,
    /// The answer to each request with so many.
    pub answers: Vec<Option<ProbeAnswer>>,
}

/// What came of a traceroute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TracerouteReply {
    /// To whom.
    pub destination: IpAddr,
    /// From which address.
    pub source: IpAddr,
    /// Whether the destination answered.
    pub reached: bool,
    /// The hops, from one on.
    pub hops: Vec<TraceHop>,
}
