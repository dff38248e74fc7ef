//! IP in IP in six stages: the plugin of the tutorial `docs/tutorial/ip-in-ip`.
//!
//! A frame with an IPv4 packet gets a second IPv4 header (RFC 2003), whose addresses are those of the pair that the table has for the
//! packet's destination, and leaves by the interface that received it. A packet without a pair is dropped. Each stage is a node,
//! and all have the same output.
#![forbid(unsafe_code)]

mod common;
mod header;
mod model;
mod node;
mod pairs;
mod rows;
mod scenarios;
#[cfg(test)]
mod tests;

use model::Writer;
use node::ip_in_ip_columns::Columns;
use node::ip_in_ip_one::One;
use node::ip_in_ip_prefetch::Prefetch;
use node::ip_in_ip_split::Split;
use node::ip_in_ip_unroll::Unroll;
use node::ip_in_ip_vector::Whole;
use volley_sdk::prelude::*;

volley_sdk::plugin!(register);

/// The arc of received packets.
const ARC: &str = "device-input";

// ANCHOR: register
fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
    let (host, mut writer) = (plugin.host().clone(), Writer::new(&plugin.host().domain));
    let (pairs, size) = (writer.snap(), host.vector_size);
    let of = || pairs.clone();
    let (a, b, c, d, e, f) = (of(), of(), of(), of(), of(), of());
    plugin.feature(ARC, move |_worker| One::new(a.clone()));
    plugin.feature(ARC, move |_worker| Whole::new(b.clone()));
    plugin.feature(ARC, move |_worker| Prefetch::new(c.clone(), size));
    plugin.feature(ARC, move |_worker| Unroll::new(d.clone(), size));
    plugin.feature(ARC, move |_worker| Split::new(e.clone(), size));
    plugin.feature(ARC, move |_worker| Columns::new(f.clone(), size));
    plugin.object(move |key, now| writer.apply(key, now))?;
    scenarios::all().for_each(|scenario| _ = plugin.scenario(scenario));
    Ok(())
}
// ANCHOR_END: register
