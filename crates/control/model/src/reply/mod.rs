//! Answers to [`crate::Query`]: one plain struct each, rich enough for text tables and JSON alike.
//!
//! Units are in the field's text. Counters count since start or since the last `clear`.

mod bridge;
mod discovery;
mod fib;
mod graph;
mod groups;
mod interfaces;
mod lcp;
mod log;
mod memif;
mod mroute;
mod paths;
mod ping;
mod reassembly;
mod rss;
mod runtime;
mod system;
mod vhost;
mod workers;

pub use bridge::{
    BridgeCounts, BridgeDomainRow, BridgeDomainsReply, BridgePortRow, L2FibReply, L2FibRow,
};
pub use discovery::{
    AddressRow, AddressState, AdvertRow, AutoconfAddressRow, AutoconfRow, AutoconfState,
    InterfaceProtocolReply, InterfaceProtocolRow, OnLinkRow, RouterRow,
};
pub use fib::{
    AbsentPrefix, FibBucket, FibPath, FibReply, FibRoute, FibTable, LengthCount, NeighborEvent,
    NeighborRow, NeighborState, NeighborsReply, TableRow, TablesReply,
};
pub use graph::{ArcRow, FeatureRow, FeaturesReply, GraphNode, GraphReply, NodeEdge, NodeReply};
pub use groups::{GroupRow, GroupsReply, GroupsRow, SourceRow};
pub use interfaces::{
    Counter, HardwareReply, HardwareRow, InterfaceRate, InterfaceRow, InterfaceTables,
    InterfacesReply, L2Mode, L2Reply, L2Row, NamedValue, QueueRow, RxPlacementReply,
    RxPlacementRow,
};
pub use lcp::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
pub use log::LogReply;
pub use memif::{MemifReply, MemifRow, MemifSocketRow};
pub use mroute::{MrouteRow, MroutesReply, RouteOfGroup};
pub use paths::{
    PathBatcherReply, PathBatcherTotals, PathHeaderRow, PathLearnedRow, PathQueueRow, PathRuleRow,
};
pub use ping::{
    ArpingAnswer, ArpingReply, PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply,
};
pub use reassembly::{
    ReassemblyReply, ReassemblyRow, VirtualReassemblyReply, VirtualReassemblyRow,
};
pub use rss::{HandoffRow, NodeWorkerRow, RssReply, RssRow, RssState, RssWorkerRow};
pub use runtime::{
    DropRow, DropsReply, ErrorRow, ErrorsReply, NodeRuntime, RuntimeReply, Severity, TraceReply,
    TraceStep, TracedPacket, WorkerRuntime,
};
pub use system::{
    ArenaRow, BuffersReply, HolderRow, PacketGeneratorReply, PcapTraceReply, PgCaptureRow,
    ProcessReply, StreamRow, ThreadRow, VersionReply,
};

pub use vhost::{VhostRingRow, VhostUserReply, VhostUserRow};
pub use workers::{Pause, PausesReply, WorkerPauses, WorkerRow, WorkersReply};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`crate::Query::Version`].
    Version(VersionReply),
    /// To [`crate::Query::Interfaces`].
    Interfaces(InterfacesReply),
    /// To [`crate::Query::Hardware`].
    Hardware(HardwareReply),
    /// To [`crate::Query::RxPlacement`].
    RxPlacement(RxPlacementReply),
    /// To [`crate::Query::Runtime`].
    Runtime(RuntimeReply),
    /// To [`crate::Query::Errors`].
    Errors(ErrorsReply),
    /// To [`crate::Query::Drops`].
    Drops(DropsReply),
    /// To [`crate::Query::Trace`].
    Trace(TraceReply),
    /// To [`crate::Query::Node`].
    Node(NodeReply),
    /// To [`crate::Query::Graph`].
    Graph(GraphReply),
    /// To [`crate::Query::Fib`].
    Fib(FibReply),
    /// To [`crate::Query::Neighbors`].
    Neighbors(NeighborsReply),
    /// To [`crate::Query::Ping`].
    Ping(PingReply),
    /// To [`crate::Query::Traceroute`].
    Traceroute(TracerouteReply),
    /// To [`crate::Query::Arping`].
    Arping(ArpingReply),
    /// To [`crate::Query::Tables`].
    Tables(TablesReply),
    /// To [`crate::Query::Buffers`].
    Buffers(BuffersReply),
    /// To [`crate::Query::PacketGenerator`].
    PacketGenerator(PacketGeneratorReply),
    /// To [`crate::Query::Features`].
    Features(FeaturesReply),
    /// To [`crate::Query::L2`].
    L2(L2Reply),
    /// To [`crate::Query::BridgeDomains`].
    BridgeDomains(BridgeDomainsReply),
    /// To [`crate::Query::L2Fib`].
    L2Fib(L2FibReply),
    /// To [`crate::Query::Mroutes`].
    Mroutes(MroutesReply),
    /// To [`crate::Query::VhostUser`].
    VhostUser(VhostUserReply),
    /// To [`crate::Query::PcapTrace`].
    PcapTrace(PcapTraceReply),
    /// To [`crate::Query::Memif`].
    Memif(MemifReply),
    /// To [`crate::Query::Lcp`].
    Lcp(LcpReply),
    /// To [`crate::Query::LcpAudit`].
    LcpAudit(LcpAuditReply),
    /// To [`crate::Query::PathBatcher`].
    PathBatcher(PathBatcherReply),
    /// To [`crate::Query::Reassembly`].
    Reassembly(ReassemblyReply),
    /// To [`crate::Query::VirtualReassembly`].
    VirtualReassembly(VirtualReassemblyReply),
    /// To [`crate::Query::Discovery`].
    Discovery(InterfaceProtocolReply),
    /// To [`crate::Query::Groups`].
    Groups(GroupsReply),
    /// To [`crate::Query::Rss`].
    Rss(RssReply),
    /// To [`crate::Query::Workers`].
    Workers(WorkersReply),
    /// To [`crate::Query::Pauses`].
    Pauses(PausesReply),
    /// To [`crate::Query::Process`].
    Process(ProcessReply),
    /// To [`crate::Query::Log`].
    Log(LogReply),
}
