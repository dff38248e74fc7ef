//! `show drops`: which packets were dropped, why, where they came from, and the last one of each kind.
//!
//! The counters of the nodes say how many; the drop node's table says from which interface. Drops that are in the counters but
//! not in the table (packets that were never created, or are in flight) are a row without an interface.

use crate::show::{DropRow, DropsReply};
use std::collections::BTreeMap;
use volley_graph::{DropReport, DropSample, Engine, Severity};
use volley_iface::{Change, Interfaces, Registry};
use volley_wire::dissect;

/// Forgets the drops of deleted interfaces, because their indices are used again.
pub fn follow(registry: &Registry) {
    let engine = registry.engine.clone();
    registry.interfaces.borrow_mut().listen(move |change| {
        if let Change::Deleted(gone) = change
            && let Ok(mut engine) = engine.try_borrow_mut()
        {
            engine.forget_drops(gone.index.0);
        }
    });
}

/// The reply, largest count first.
pub fn report(engine: &Engine, interfaces: &Interfaces) -> DropsReply {
    // A node counts before the packet reaches the drop node. Reading in this order keeps the sum of the table at or below the
    // counter.
    let mut kinds: BTreeMap<(u16, usize), Vec<DropReport>> = BTreeMap::new();
    for drop in engine.drops() {
        let of = kinds.entry((drop.node.0, drop.counter)).or_default();
        of.push(drop);
    }
    let mut drops = Vec::new();
    for c in engine.counters() {
        let node = engine.node(&c.node).map_or(u16::MAX, |id| id.0);
        let counter = |n: &(u16, usize)| {
            let info = engine.counter_info(volley_graph::NodeId(n.0), n.1);
            n.0 == node && info.is_some_and(|info| info.name == c.info.name)
        };
        let key = kinds.keys().copied().find(counter);
        let seen = key.and_then(|key| kinds.remove(&key)).unwrap_or_default();
        if seen.is_empty() && c.info.severity != Severity::Error {
            continue;
        }
        let mut row = |count, interface, sample| {
            drops.push(DropRow {
                count,
                node: c.node.clone(),
                reason: c.info.name.to_owned(),
                text: c.info.text.to_owned(),
                interface,
                sample,
            });
        };
        let mut left = c.count.saturating_sub(seen.iter().map(|d| d.count).sum());
        for drop in seen {
            let sample = drop.sample.as_ref().map(decoded);
            row(drop.count, Some(interfaces.name(drop.rx)), sample);
        }
        if c.info.name == "kernel-drops" {
            // These packets had no buffer: the receiving interface has counted them.
            for i in interfaces.iter().filter(|i| i.rx_node == c.node) {
                let missed = interfaces.counts(i).missed.min(left);
                left -= missed;
                if missed > 0 {
                    row(missed, Some(i.name.clone()), None);
                }
            }
        }
        if left > 0 {
            row(left, None, None);
        }
    }
    let key = |d: &DropRow| (d.node.clone(), d.reason.clone(), d.interface.clone());
    drops.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| key(a).cmp(&key(b))));
    DropsReply {
        total: drops.iter().map(|d| d.count).sum(),
        drops,
    }
}

fn decoded(sample: &DropSample) -> String {
    let packet = dissect::frame(&sample.bytes)
        .of(sample.len)
        .offloaded(sample.unfinished_checksum);
    format!("{} bytes: {packet}", sample.len)
}
