//! Nodes that lead to each other and elsewhere than they say, and an arc whose end moves. A test makes other versions of the file as in
//! `objects.rs`:
//!
//! - 1: `wired` leads to `wired-gate` by a redirection, which sends packets along `wired-arc` to `wired-loop`. `wired-loop` and
//!   `wired-back` lead to each other: packets pass `wired-back` once.
//! - 2: the arc ends at `wired-end`, which version 1 does not have.
//! - 3: as 2, but it is refused when its nodes are there: it receives a protocol.
//! - 4: as 2, but it is refused at once: it redirects an edge that its node does not have.

use crate::objects::version;
use volley_sdk::prelude::*;

counters! {
    /// What the nodes count.
    pub enum Passed {
        /// packets that passed
        Seen = "seen" (Info),
    }
}

nexts! { pub enum ToDrop { Drop => "error-drop" } }
nexts! { pub enum ToLoop { Loop => "wired-loop" } }
nexts! { pub enum FromLoop { Back => "wired-back", End => "end" } }
nexts! { pub enum ToEnd { End => "end" } }

/// A node that counts packets, and the verb by which it sends them.
macro_rules! counting {
    ($name:ident, $node:literal, $next:ty, |$self:ident, $v:ident| $send:expr) => {
        impl Node for $name {
            const NAME: &'static str = $node;
            type Next = $next;
            type Count = Passed;
            type Trace = PacketTrace;

            #[inline(always)]
            fn run<I: Isa>(
                &mut $self,
                cx: &Cx<'_, Passed>,
                $v: Vector<'_, I, $next>,
            ) -> Consumed {
                cx.count(Passed::Seen, $v.len() as u64);
                $send
            }
        }
    };
}

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

pub(crate) fn register(plugin: &mut Plugin) {
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
