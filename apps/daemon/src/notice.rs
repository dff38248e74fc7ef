//! Log records about interfaces: created, deleted, renamed, set up or down, and changes of link state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use tracing::{debug, info, warn};
use volley_iface::AdminState;
use volley_iface::{Change, Interface, Link, Registry};
use volley_log::Log;
use volley_model::Mac;
use volley_object::DefinitionError;

/// Registers `show log` and `set log level`, and logs changes of interfaces from now on.
pub fn register(registry: &mut Registry) -> Result<(), DefinitionError> {
    Log::of_process().own(&mut registry.owners)?;
    let known: RefCell<BTreeMap<u32, Interface>> = RefCell::default();
    registry
        .interfaces
        .borrow_mut()
        .listen(move |change| notice(&mut known.borrow_mut(), change));
    Ok(())
}

fn notice(known: &mut BTreeMap<u32, Interface>, change: &Change) {
    match change {
        Change::Created(now) => {
            let link = now.link.reason().unwrap_or("up");
            info!(target: "interface", interface = now.name, kind = now.kind, link, "created");
            known.insert(now.index.0, now.clone());
        }
        Change::Deleted(gone) => {
            info!(target: "interface", interface = gone.name, kind = gone.kind, "deleted");
            known.remove(&gone.index.0);
        }
        Change::Updated(now) => {
            if let Some(before) = known.insert(now.index.0, now.clone()) {
                compare(&before, now);
            }
        }
    }
}

fn compare(before: &Interface, now: &Interface) {
    let interface = &now.name;
    if before.name != now.name {
        info!(target: "interface", interface, "renamed from {}", before.name);
    }
    if before.state != now.state {
        info!(target: "interface", interface, "set {}", if now.state == AdminState::Up { "up" } else { "down" });
    }
    if before.mtu != now.mtu {
        debug!(target: "interface", interface, "MTU {} instead of {}", now.mtu, before.mtu);
    }
    if before.mac != now.mac {
        let (old, new) = (Mac(before.mac), Mac(now.mac));
        debug!(target: "interface", interface, "MAC address {new} instead of {old}");
    }
    if before.link == now.link {
        return;
    }
    match &now.link {
        // A sub-interface has the link state of its parent, which is logged already.
        Link::Up if now.sub.is_some() => debug!(target: "interface", interface, "link up"),
        Link::Up => info!(target: "interface", interface, "link up"),
        Link::Down(reason) if now.sub.is_some() => {
            debug!(target: "interface", interface, "link down: {reason}");
        }
        // Only an interface that is set up: its packets are lost.
        Link::Down(reason) if now.state == AdminState::Up && before.link == Link::Up => {
            warn!(target: "interface", interface, "link down: {reason}");
        }
        Link::Down(reason) => info!(target: "interface", interface, "link down: {reason}"),
        Link::Waiting(reason) => warn!(target: "interface", interface, "waiting: {reason}"),
    }
}
