//! A plugin for tests: the name that it is loaded by chooses what it does.

mod counting;
mod guest;
mod objects;
mod ttl;
mod wired;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use volley_sdk::prelude::*;

volley_sdk::plugin!(register);

counters! {
    /// What `stamp` counts.
    pub enum Count {
        /// packets that passed
        Seen = "seen" (Info),
    }
}

/// A feature that counts packets.
struct Stamp {
    panics: bool,
}

impl Node for Stamp {
    const NAME: &'static str = "stamp";
    type Next = NoNext;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, NoNext>) -> Consumed {
        assert!(!self.panics, "stamp is out of ink");
        cx.count(Count::Seen, v.len() as u64);
        v.next_feature()
    }
}

fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
    if plugin.host().name == "ttl-check" {
        plugin.feature("test-arc", |_| ttl::TtlCheck);
        return Ok(());
    }
    if plugin.host().name == "guest" {
        return guest::register(plugin);
    }
    if plugin.host().name.starts_with("wired") {
        wired::register(plugin);
        return Ok(());
    }
    if plugin.host().name == "ticks" {
        let ticks = Rc::new(Cell::new(0_u32));
        let shown = ticks.clone();
        plugin
            .every(Duration::from_millis(5), move || ticks.set(ticks.get() + 1))
            .metric("ticks", "Runs of the task.", move || shown.get().into());
    }
    let panics = match plugin.host().name.as_str() {
        "panics-at-load" => panic!("no stamp today"),
        "refuses" => return Err("there is no ink".into()),
        "panics-in-node" | "ip4-panics" => true,
        _ => false,
    };
    if plugin.host().name == "ip4" {
        objects::register(plugin)?;
    }
    let arc = match plugin.host().name.as_str() {
        "unknown-arc" => "no-such-arc",
        "ip4" | "ip4-panics" => "ip4-unicast",
        _ => "test-arc",
    };
    plugin.feature(arc, move |_| Stamp { panics });
    Ok(())
}
