//! Every question (`show ...`) as one typed value.

use crate::addr::{Family, Prefix};
use crate::log::LogLevel;
use crate::ping::{ArpingQuery, PingQuery, TracerouteQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One question. Each variant is answered by the [`crate::Reply`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Query {
    /// Version of the daemon and what it runs on.
    Version,
    /// Interfaces, all or one.
    Interfaces {
        /// Only this one.
        #[serde(default)]
        name: Option<String>,
    },
    /// What drivers know of interfaces, all or one.
    Hardware {
        /// Only this one.
        #[serde(default)]
        name: Option<String>,
    },
    /// Which worker watches which receive queue, and how; all interfaces or one.
    RxPlacement {
        /// Only this one.
        #[serde(default)]
        interface: Option<String>,
    },
    /// Calls, vectors and clocks of every node.
    Runtime,
    /// Counters of nodes that are not zero.
    Errors,
    /// Dropped packets by node and reason.
    Drops,
    /// Traced packets.
    Trace {
        /// At most this many packets; none = all.
        #[serde(default)]
        max: Option<u64>,
    },
    /// One node of the graph.
    Node {
        /// Its name.
        name: String,
    },
    /// All nodes and edges.
    Graph,
    /// Routes.
    Fib {
        /// IP version.
        family: Family,
        /// Only this table; none = all.
        #[serde(default)]
        table: Option<u32>,
        /// Which routes.
        #[serde(default)]
        select: FibSelect,
        /// At most this many routes in the answer; none = all.
        #[serde(default)]
        limit: Option<u64>,
    },
    /// Neighbours.
    Neighbors {
        /// Only this IP version.
        #[serde(default)]
        family: Option<Family>,
        /// Only this interface.
        #[serde(default)]
        interface: Option<String>,
    },
    /// IP tables.
    Tables {
        /// Only this IP version.
        #[serde(default)]
        family: Option<Family>,
    },
    /// Sends echo requests and waits for their answers.
    Ping(PingQuery),
    /// The same with growing hops.
    Traceroute(TracerouteQuery),
    /// Asks a link who has an address.
    Arping(ArpingQuery),
    /// Buffer arenas.
    Buffers,
    /// Streams.
    PacketGenerator,
    /// Feature arcs, and which features are on.
    Features {
        /// Only what is on for this interface.
        #[serde(default)]
        interface: Option<String>,
    },
    /// L2 patches and cross-connects.
    L2,
    /// Bridge domains, all or one.
    BridgeDomains {
        /// Only this one.
        #[serde(default)]
        id: Option<u32>,
    },
    /// Stations of bridge domains.
    L2Fib {
        /// Only of this one.
        #[serde(default)]
        domain: Option<u32>,
    },
    /// Multicast routes.
    Mroutes {
        /// IP version.
        family: Family,
        /// Only of this table.
        #[serde(default)]
        table: Option<u32>,
    },
    /// vhost-user and virtio-user interfaces, all or one.
    VhostUser {
        /// Only this one.
        #[serde(default)]
        name: Option<String>,
    },
    /// The capture.
    PcapTrace,
    /// memif interfaces and sockets.
    Memif,
    /// The Linux mirror: interfaces with a twin, mirrored routes.
    Lcp,
    /// Every difference between the kernel and the forwarding table, as the Linux mirror sees it.
    LcpAudit,
    /// The path batcher: interfaces, queues, rules, what it has learned.
    PathBatcher,
    /// Full reassembly: its limits, and what waits for fragments.
    Reassembly {
        /// IP version.
        family: Family,
    },
    /// Virtual reassembly: its limits, and what is known of fragments in transit.
    VirtualReassembly {
        /// IP version.
        family: Family,
    },
    /// How interfaces deal with their neighbours: what they advertise.
    Discovery {
        /// Only this one.
        #[serde(default)]
        interface: Option<String>,
    },
    /// Groups that hosts listen to, as queriers of IGMP and MLD heard.
    Groups {
        /// IP version: IGMP or MLD.
        family: Family,
        /// Only this one.
        #[serde(default)]
        interface: Option<String>,
    },
    /// How packets go from worker to worker: software RSS, pipelines, rings.
    Rss,
    /// Workers: cores, receive queues, load, rounds.
    Workers,
    /// The longest gaps in the rounds of workers.
    Pauses,
    /// What the kernel lets the daemon's threads do: user, capabilities, filters of system calls.
    Process,
    /// The records of the log that are in memory, the newest of them.
    Log {
        /// At most this many records; none = 100.
        #[serde(default)]
        max: Option<u64>,
        /// Only records of this level and of more serious ones.
        #[serde(default)]
        level: Option<LogLevel>,
        /// Only records of this module.
        #[serde(default)]
        module: Option<String>,
        /// Only records behind this number.
        #[serde(default)]
        after: Option<u64>,
    },
}

/// Which routes a [`Query::Fib`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FibSelect {
    /// All.
    #[default]
    All,
    /// Counts by length only: `routes` of the answer is empty.
    Summary,
    /// The route of exactly this prefix.
    Exact(Prefix),
    /// The route that forwards this address.
    Match(IpAddr),
}
