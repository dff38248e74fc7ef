//! `show pcap trace`: the query, its reply, and its text.

use crate::model::PcapTraceOn;
use schemars::JsonSchema;
use serde::Serialize;
use volley_object::{Query, Verb};

/// The capture.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "pcap-trace", example = "pcap trace status")]
#[query(show = "(show pcap trace | pcap trace status)")]
#[query(reply = PcapTraceReply, text = text)]
pub struct ShowPcapTrace;

/// The capture.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PcapTraceReply {
    /// The request; none = no capture was started.
    pub spec: Option<PcapTraceOn>,
    /// Still running.
    pub active: bool,
    /// Packets written.
    pub packets: u64,
    /// Packets that are not in the file: the writer was behind, or the file could not be written.
    pub lost: u64,
    /// Why the file could not be written, where that ended the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

fn text(r: &PcapTraceReply) -> String {
    let Some(spec) = &r.spec else {
        return "no capture was started\n".to_string();
    };
    let command = spec.invocation().map(|it| it.command());
    let command = command.unwrap_or_else(|error| error.to_string());
    let ended_early = ended_early(r.fault.as_deref());
    let state = if r.active { "running" } else { "stopped" };
    format!(
        "{command}\n  {state}, {} packets written, {} lost{ended_early}\n",
        r.packets, r.lost
    )
}

/// The text about a capture that a fault ended.
pub fn ended_early(fault: Option<&str>) -> String {
    fault.map_or_else(String::new, |why| {
        format!("; the capture ended early: {why}")
    })
}
