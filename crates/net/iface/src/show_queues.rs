//! `show hardware-interfaces`, `show interface rx-placement` and `show features`: the queries, their replies, and their text.

use crate::show::Counter;
use crate::states::{AdminState, RxMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_model::Mac;
use volley_object::Query;
use volley_show::or_dash;

/// Interfaces as their drivers see them.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "hardware",
    show = "show hardware-interfaces [<name>]",
    example = "show hardware"
)]
#[query(reply = HardwareReply, text = hardware)]
pub struct ShowHardware {
    /// Only this interface.
    #[query(needs = "interface")]
    pub name: Option<String>,
}

/// Which worker watches which receive queue, and how.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "rx-placement", example = "show interface rx-placement")]
#[query(show = "show interface~s rx-placement [<interface>]")]
#[query(reply = RxPlacementReply, text = placement)]
pub struct ShowRxPlacement {
    /// Only of this interface.
    #[query(needs = "interface")]
    pub interface: Option<String>,
}

/// Feature arcs and what is on, for all interfaces or for one.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "features", example = "show features")]
#[query(
    show = "show feature~s [<interface>]",
    show = "show interface~s feature~s <interface>"
)]
#[query(reply = FeaturesReply, text = features)]
pub struct ShowFeatures {
    /// Only what is on for this interface.
    #[query(needs = "interface")]
    pub interface: Option<String>,
}

/// Interfaces as drivers see them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareReply {
    /// Interfaces in order of index.
    pub hardware: Vec<HardwareRow>,
}

/// One interface as its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareRow {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface.
    pub index: u32,
    /// Driver.
    pub driver: String,
    /// State of the link.
    pub link: AdminState,
    /// Reason why the link is down.
    #[serde(default)]
    pub link_reason: Option<String>,
    /// MAC address.
    pub mac: Option<Mac>,
    /// Largest frame in bytes.
    pub max_frame: u32,
    /// Receive queues.
    pub rx_queues: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Mode of the receive queues.
    #[serde(default)]
    pub rx_mode: RxMode,
    /// Whether the interface receives frames for any MAC address.
    #[serde(default)]
    pub promiscuous: bool,
    /// Offloads of the transmit node: `checksum`, `tcp4`, `tcp6`, `udp`.
    #[serde(default)]
    pub offloads: Vec<String>,
    /// Counters of queues that are not zero.
    #[serde(default)]
    pub queues: Vec<QueueRow>,
    /// Details from the driver, one line each (files, modes, counters).
    pub details: Vec<String>,
}

/// Counters of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueRow {
    /// `rx` or `tx`.
    pub direction: String,
    /// Index of the queue.
    pub queue: u32,
    /// Packets and bytes that passed the queue.
    pub passed: Counter,
}

/// Assignment of receive queues to workers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RxPlacementReply {
    /// By worker, then interface, then queue.
    pub placement: Vec<RxPlacementRow>,
}

/// One receive queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RxPlacementRow {
    /// The worker.
    pub worker: u32,
    /// The node that receives.
    pub node: String,
    /// The interface.
    pub interface: String,
    /// Index of the queue.
    pub queue: u32,
    /// Mode of the queue.
    pub mode: RxMode,
}

/// Feature arcs.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FeaturesReply {
    /// Arcs in order of name.
    pub arcs: Vec<ArcRow>,
}

/// One arc.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArcRow {
    /// Name of the arc (`ip4-unicast`).
    pub name: String,
    /// Node before the arc.
    pub start: String,
    /// Node at the end of the arc.
    pub end: String,
    /// Features in the order packets pass them.
    pub features: Vec<FeatureRow>,
}

/// One feature of an arc.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FeatureRow {
    /// Name of the feature.
    pub name: String,
    /// Interfaces that have the feature enabled.
    pub interfaces: Vec<String>,
}

fn hardware(reply: &HardwareReply) -> String {
    let mut out = String::new();
    for h in &reply.hardware {
        let why = h.link_reason.as_ref().map(|why| format!(" ({why})"));
        out += &format!(
            "{} (index {}), driver {}, link {}{}\n",
            h.name,
            h.index,
            h.driver,
            h.link,
            why.unwrap_or_default()
        );
        out += &format!(
            "  MAC {}, max frame {}, {} rx queues, {} tx queues\n",
            or_dash(h.mac),
            h.max_frame,
            h.rx_queues,
            h.tx_queues
        );
        let promiscuous = if h.promiscuous { ", promiscuous" } else { "" };
        let offloads = match &h.offloads[..] {
            [] => "none".to_string(),
            some => some.join(" "),
        };
        out += &format!(
            "  rx mode {}{promiscuous}, tx offloads {offloads}\n",
            h.rx_mode
        );
        for q in &h.queues {
            let Counter { packets, bytes } = q.passed;
            let (direction, queue) = (&q.direction, q.queue);
            out += &format!("  {direction} queue {queue}: {packets} packets, {bytes} bytes\n");
        }
        for line in &h.details {
            out += &format!("  {line}\n");
        }
    }
    out
}

/// By worker and node, as operators know it.
fn placement(reply: &RxPlacementReply) -> String {
    let (mut out, mut last) = (String::new(), None);
    for row in &reply.placement {
        let place = (row.worker, &row.node);
        if last.map(|(worker, _)| worker) != Some(row.worker) {
            out += &format!("Thread worker{}:\n", row.worker);
        }
        if last != Some(place) {
            out += &format!("  node {}:\n", row.node);
        }
        last = Some(place);
        out += &format!("    {} queue {} ({})\n", row.interface, row.queue, row.mode);
    }
    if out.is_empty() {
        out += "no receive queues\n";
    }
    out
}

fn features(reply: &FeaturesReply) -> String {
    let mut out = String::new();
    for arc in &reply.arcs {
        out += &format!("{} (from {} to {}):\n", arc.name, arc.start, arc.end);
        for f in &arc.features {
            let on = if f.interfaces.is_empty() {
                String::new()
            } else {
                format!("  on: {}", f.interfaces.join(" "))
            };
            out += &format!("  {}{on}\n", f.name);
        }
    }
    out
}
