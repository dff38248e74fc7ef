//! Replies to `ping` and `traceroute`.

use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;

/// Result of an echo request, from its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The destination answers.
    Reply,
    /// The hop limit was exceeded.
    TimeExceeded,
    /// The network is unreachable.
    NetUnreachable,
    /// The host is unreachable.
    HostUnreachable,
    /// Communication is prohibited.
    Prohibited,
    /// The packet is too big for the next link.
    TooBig,
    /// Another error.
    Other,
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbeAnswer {
    /// Source of the answer.
    pub from: IpAddr,
    /// Microseconds from request to answer.
    pub rtt_us: u64,
    /// Result of the request.
    pub result: ProbeResult,
    /// Time to live or hop limit of the answer.
    pub hops: u8,
}

/// Result of a ping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PingReply {
    /// Destination of the requests.
    pub destination: IpAddr,
    /// Source address of the requests.
    pub source: IpAddr,
    /// Bytes behind the ICMP header.
    pub size: u32,
    /// Requests sent.
    pub sent: u32,
    /// Requests that the destination answered.
    pub received: u32,
    /// Shortest round-trip time in microseconds.
    pub min_us: Option<u64>,
    /// Mean round-trip time in microseconds.
    pub avg_us: Option<u64>,
    /// Longest round-trip time in microseconds.
    pub max_us: Option<u64>,
    /// The answer to each request, in order.
    pub answers: Vec<Option<ProbeAnswer>>,
}

/// Answers for one hop limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceHop {
    /// Hop limit of the requests.
    pub hops: u32,
    /// Answer to each request with this hop limit.
    pub answers: Vec<Option<ProbeAnswer>>,
}

/// Result of a traceroute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TracerouteReply {
    /// Destination of the requests.
    pub destination: IpAddr,
    /// Source address of the requests.
    pub source: IpAddr,
    /// Whether the destination answered.
    pub reached: bool,
    /// Answers by hop limit, from one on.
    pub hops: Vec<TraceHop>,
}
