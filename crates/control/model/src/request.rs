//! Every configuration change as one typed value.

use crate::addr::{Family, IfAddress, Mac};
use crate::dpdk::DpdkEal;
use crate::icmp::IcmpSettings;
use crate::interface::{AdminState, Feature, InterfaceSpec, Neighbor, RxMode, Switch};
use crate::memif::MemifSocket;
use crate::paths::{PathBatcher, PathHeader, PathQueue, PathRule};
use crate::route::{Route, RouteLoad};
use crate::stream::StreamSpec;
use crate::trace::{PcapTrace, TraceSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// One change. `Display` gives its command-line spelling; [`Request::validate`] checks what needs no state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Create an interface.
    InterfaceCreate(InterfaceSpec),
    /// Delete an interface with its addresses, neighbours and bindings.
    InterfaceDelete {
        /// Interface.
        name: String,
    },
    /// Set it up or down.
    InterfaceState {
        /// Interface.
        name: String,
        /// New state.
        state: AdminState,
    },
    /// Set its L3 MTU.
    InterfaceMtu {
        /// Interface.
        name: String,
        /// Bytes, 68..=65535.
        mtu: u32,
    },
    /// Set its MAC address.
    InterfaceMac {
        /// Interface.
        name: String,
        /// Unicast address.
        mac: Mac,
    },
    /// Make a socket for memif interfaces to meet at.
    MemifSocketAdd(MemifSocket),
    /// Remove a memif socket that no interface uses.
    MemifSocketDel {
        /// Its number.
        id: u32,
    },
    /// Say how DPDK is to be started. Before its first port is made.
    DpdkEal(DpdkEal),
    /// Say whether senders of dropped packets are told, and how often.
    Icmp(IcmpSettings),
    /// Give it another name.
    InterfaceRename {
        /// Interface.
        name: String,
        /// New name, which nobody has.
        new_name: String,
    },
    /// Let it take frames for any MAC address, or for its own only.
    InterfacePromiscuous {
        /// Interface.
        name: String,
        /// On or off.
        switch: Switch,
    },
    /// Say how its receive queues are watched.
    InterfaceRxMode {
        /// Interface.
        name: String,
        /// How.
        mode: RxMode,
    },
    /// Bind it to an IP table of one family. It must have no address of that family yet.
    InterfaceTable {
        /// Interface.
        name: String,
        /// IP version.
        family: Family,
        /// Table, which must exist.
        table: u32,
    },
    /// Add an address.
    AddressAdd {
        /// Interface.
        interface: String,
        /// Address and subnet length.
        address: IfAddress,
    },
    /// Remove an address.
    AddressDel {
        /// Interface.
        interface: String,
        /// Address and subnet length.
        address: IfAddress,
    },
    /// Add an IP table (VRF). Table 0 is always there.
    TableAdd {
        /// IP version.
        family: Family,
        /// Its number.
        table: u32,
    },
    /// Remove an empty IP table.
    TableDel {
        /// IP version.
        family: Family,
        /// Its number.
        table: u32,
    },
    /// Add a static neighbour, or change its MAC address.
    NeighborAdd(Neighbor),
    /// Remove a neighbour.
    NeighborDel {
        /// Interface.
        interface: String,
        /// Its address.
        address: IpAddr,
    },
    /// Forgets learned neighbours.
    NeighborClear {
        /// IP version.
        family: Family,
        /// None = of all interfaces.
        interface: Option<String>,
    },
    /// Add paths to a route, making it when it is not there.
    RouteAdd(Route),
    /// Make a route have exactly these paths.
    RouteReplace(Route),
    /// Take paths away from a route, or the whole route when no path is given.
    RouteDel(Route),
    /// Load routes from a file, as source `file`.
    RouteLoad(RouteLoad),
    /// Take away all routes of source `file` of a table, both families.
    RouteUnload {
        /// Table.
        table: u32,
    },
    /// Send what `rx` receives out of `tx`, straight from the driver, no L2 processing.
    L2PatchAdd {
        /// Receiving interface.
        rx: String,
        /// Transmitting interface.
        tx: String,
    },
    /// Undo it.
    L2PatchDel {
        /// Receiving interface.
        rx: String,
        /// Transmitting interface.
        tx: String,
    },
    /// Put `rx` in L2 mode, cross-connected to `tx` (one direction).
    XconnectSet {
        /// Receiving interface.
        rx: String,
        /// Transmitting interface.
        tx: String,
    },
    /// Put it back in L3 mode.
    XconnectUnset {
        /// Receiving interface.
        rx: String,
    },
    /// Switch a feature of an interface's arc on or off.
    Feature(Feature),
    /// Say what holds for the path batcher's queues, and whether it learns.
    PathBatcherSet(PathBatcher),
    /// Teach the path batcher a protocol, or change one.
    PathHeaderSet(PathHeader),
    /// Forget a protocol that no rule names.
    PathHeaderDel {
        /// Header.
        name: String,
    },
    /// Make or change a queue of the path batcher.
    PathQueueSet(PathQueue),
    /// Remove a queue that no rule names.
    PathQueueDel {
        /// Its number.
        id: u32,
    },
    /// Make or change a rule of the path batcher.
    PathRuleSet(PathRule),
    /// Remove a rule.
    PathRuleDel {
        /// Rule.
        name: String,
    },
    /// Let what an interface receives wait in the path batcher, or no longer.
    InterfacePathBatcher {
        /// Interface.
        name: String,
        /// On or off.
        switch: Switch,
    },
    /// Make a packet-generator stream. It does not send yet.
    StreamNew(StreamSpec),
    /// Let a stream send; none named = all.
    StreamEnable {
        /// Stream.
        name: Option<String>,
    },
    /// Stop a stream; none named = all.
    StreamDisable {
        /// Stream.
        name: Option<String>,
    },
    /// Delete a stream.
    StreamDelete {
        /// Stream.
        name: String,
    },
    /// Write what a packet-generator interface transmits into a pcap file, made with its first packet.
    PgCaptureOn {
        /// Packet-generator interface.
        interface: String,
        /// File; it must not exist.
        file: PathBuf,
        /// Stop after this many packets; none = unlimited.
        #[serde(default)]
        count: Option<u64>,
    },
    /// Stop that capture and close its file. Fine when there is none.
    PgCaptureOff {
        /// Packet-generator interface.
        interface: String,
    },
    /// Trace packets.
    TraceAdd(TraceSpec),
    /// Start a capture, or change the running one.
    PcapTraceOn(PcapTrace),
    /// Stop the capture and close its file.
    PcapTraceOff,
    /// Set counters back.
    Clear(Clear),
}

/// Which counters are set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clear {
    /// Calls, vectors and clocks of nodes.
    Runtime,
    /// Error and drop counters.
    Errors,
    /// Interface counters.
    Interfaces,
    /// Traced packets, and traces not yet full.
    Trace,
    /// Counters of the path batcher.
    PathBatcher,
}

impl Request {
    /// True when every handler is asked, not only the first that takes it.
    pub fn is_for_all(&self) -> bool {
        matches!(self, Request::Clear(_))
    }

    /// True when it changes configuration; false when it only starts, stops or clears an observation.
    pub fn is_configuration(&self) -> bool {
        !matches!(
            self,
            Request::Clear(_)
                | Request::NeighborClear { .. }
                | Request::TraceAdd(_)
                | Request::PcapTraceOn(_)
                | Request::PcapTraceOff
                | Request::PgCaptureOn { .. }
                | Request::PgCaptureOff { .. }
        )
    }
}
