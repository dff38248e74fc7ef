//! Nodes that lead to each other and elsewhere than they say, and an arc whose end moves. A test makes other versions of the file as in
//! `objects.rs`:
//!
//! - 1: `wired` leads to `wired-gate` by a redirection, which sends packets along `wired-arc` to `wired-loop`. `wired-loop` and
//!   `wired-back` lead to each other: packets pass `wired-back` once.
//! - 2: the arc ends at `wired-end`, which version 1 does not have.
//! - 3: as 2, but it is refused when its nodes are there: it receives a protocol.
//! - 4: as 2, but it is refused at once: it redirects an edge that its node does not have.
//!
//! As `wired-over`, a node in the place of `end` leads to a node of the plugin, where packets end:
//!
//! - 1: to `wired-sink`.
//! - 2: to `wired-ground`; it has no `wired-sink`.
//! - 3: as 1, but without `wired-sink`.
//! - 4: as 2, with the node `wired-lead`, which leads to `wired-sink`.
//!
//! As `wired-other`, it has `wired-lead` only.

use crate::counting::{Passed, counting};
use crate::objects::version;
use volley_sdk::prelude::*;

nexts! { pub enum ToDrop { Drop => "error-drop" } }
nexts! { pub enum ToLoop { Loop => "wired-loop" } }
nexts! { pub enum FromLoop { Back => "wired-back", End => "end" } }
nexts! { pub enum ToEnd { End => "end" } }

/// The feature: its only edge leads to the drop node, but is redirected.
struct Wired;
counting!(Wired, "wired", ToDrop, |self, v| v.send_all(ToDrop::Drop));

/// The start of the arc.
struct Gate(ArcId);
counting!(Gate, "wired-gate", ToLoop, |self, v| {
    v.send_arc(self.0, Col::RX, ToLoop::Loop)
});

/// A feature of the arc.
struct Mark;
counting!(Mark, "wired-mark", NoNext, |self, v| v.next_feature());

/// Sends packets to `wired-back` once.
struct Loop;
counting!(Loop, "wired-loop", FromLoop, |self, v| {
    v.each(|packet| match packet.bytes_mut().first_mut() {
        Some(first) if *first == 64 => {
            *first = 0;
            FromLoop::Back
        }
        _ => FromLoop::End,
    })
});

/// Sends packets back.
struct Back;
counting!(Back, "wired-back", ToLoop, |self, v| v
    .send_all(ToLoop::Loop));

/// The end of the arc in later versions.
struct End;
counting!(End, "wired-end", ToEnd, |self, v| v.send_all(ToEnd::End));

nexts! { pub enum ToSink { Sink => "wired-sink" } }
nexts! { pub enum ToGround { Ground => "wired-ground" } }

/// In the place of the end.
struct OverSink;
counting!(OverSink, "end", ToSink, |self, v| v.send_all(ToSink::Sink));

/// In the place of the end.
struct OverGround;
counting!(OverGround, "end", ToGround, |self, v| v
    .send_all(ToGround::Ground));

/// Leads to a node that other versions, or another plugin, have.
struct Lead;
counting!(Lead, "wired-lead", ToSink, |self, v| v
    .send_all(ToSink::Sink));

/// Packets end here.
struct Sink;
counting!(Sink, "wired-sink", NoNext, |self, v| v.free());

/// Packets end here.
struct Ground;
counting!(Ground, "wired-ground", NoNext, |self, v| v.free());

fn register_over(plugin: &mut Plugin) {
    let version = version();
    match version {
        b'1' | b'3' => plugin.override_node(|_| OverSink),
        _ => plugin.override_node(|_| OverGround),
    };
    match version {
        b'1' => plugin.node(|_| Sink),
        _ => plugin.node(|_| Ground),
    };
    if version == b'4' {
        plugin.node(|_| Lead);
    }
}

pub(crate) fn register(plugin: &mut Plugin) {
    match plugin.host().name.as_str() {
        "wired-over" => return register_over(plugin),
        "wired-other" => {
            plugin.node(|_| Lead);
            return;
        }
        _ => {}
    }
    let version = version();
    let end = match version {
        b'1' => "wired-loop",
        _ => "wired-end",
    };
    let arc = plugin.arc("wired-arc", "wired-gate", end);
    // Each leads to one that comes later.
    plugin
        .feature("test-arc", |_| Wired)
        .edge("wired", "error-drop", "wired-gate")
        .node(move |_| Gate(arc.id()))
        .feature("wired-arc", |_| Mark)
        .node(|_| Loop)
        .node(|_| Back);
    if version > b'1' {
        plugin.node(|_| End);
    }
    match version {
        b'3' => _ = plugin.listen(PluginProtocol::EtherType(0x88b5), "wired-end"),
        b'4' => _ = plugin.edge("wired", "wired-mark", "wired-end"),
        _ => {}
    }
}
