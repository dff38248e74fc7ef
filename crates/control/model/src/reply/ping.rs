//! Answers to `ping`, `traceroute` and `arping`.

use crate::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What an answer to an echo request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceHop {
    /// How many.
    pub hops: u32,
    /// The answer to each request with so many.
    pub answers: Vec<Option<ProbeAnswer>>,
}

/// What came of a traceroute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// One answer to an ARP request or neighbour solicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArpingAnswer {
    /// The request that was the last one when it came, from 0.
    pub number: u32,
    /// Who has the address.
    pub mac: Mac,
    /// Microseconds from this request to the answer.
    pub rtt_us: u64,
}

/// What came of an arping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArpingReply {
    /// On which interface.
    pub interface: String,
    /// For which address.
    pub address: IpAddr,
    /// From which address.
    pub source: IpAddr,
    /// Requests sent.
    pub sent: u32,
    /// Those that at least one answer came to.
    pub received: u32,
    /// Who has the address: more than one MAC address are a conflict.
    pub macs: Vec<Mac>,
    /// The answers, as they came; 16 of each request at most.
    pub answers: Vec<ArpingAnswer>,
}
