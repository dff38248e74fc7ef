//! Requests and queries about neighbours: entries of the FIB and learned entries of the table.

use crate::control::Control;
use crate::entry::SECOND;
use crate::model::NeighborClear;
use crate::show::{
    InterfaceProtocolReply, InterfaceProtocolRow, NeighborEvent, NeighborRow, NeighborsReply,
    ShowNeighbors,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use volley_iface::{InterfaceRow, NamedValue};
use volley_model::{Applied, Family, Mac, ModelError, ObjectKind};
use volley_router_discovery::NeighborState;

pub(crate) struct NeighborHandler(pub Rc<RefCell<Control>>);

impl NeighborHandler {
    /// Adds to a row of `show interfaces` how many frames came with the MAC address of the interface as their source.
    pub fn note(&self, row: &mut InterfaceRow) {
        let control = self.0.borrow();
        let same = control.conflicts.same_macs(row.index);
        row.more.extend(same.map(|same| NamedValue {
            name: "own-mac".to_owned(),
            value: same,
        }));
    }

    fn index(&self, name: &str) -> Result<u32, ModelError> {
        self.0.borrow().interface_index(name)
    }

    pub fn neighbors(&self, asked: &ShowNeighbors) -> Result<NeighborsReply, ModelError> {
        let control = self.0.borrow();
        let interface = asked.interface.as_deref();
        let known = control.fib.borrow().neighbors_of(asked.family, interface)?;
        let row = |(interface, address, neighbor): (_, _, volley_fib::Neighbor)| NeighborRow {
            interface,
            address,
            mac: Some(Mac(neighbor.mac)),
            fixed: !neighbor.learned,
            state: NeighborState::Static,
            held: 0,
            age_s: 0,
        };
        let mut reply = NeighborsReply {
            neighbors: known.into_iter().map(row).collect(),
            events: Vec::new(),
        };
        control.amend(asked.family, interface, &mut reply);
        Ok(reply)
    }

    pub fn show(&self, interface: Option<&str>) -> Result<InterfaceProtocolReply, ModelError> {
        let only = interface.map(|name| self.index(name)).transpose()?;
        let control = self.0.borrow();
        let shown = control.links.keys().copied();
        let shown = shown.filter(|iface| only.is_none_or(|only| only == *iface));
        let row = |iface| InterfaceProtocolRow {
            interface: control.interfaces.borrow().name(iface),
            link_local: control.link_local(iface),
            addresses: control.address_rows(iface),
            probes: control.probes_of(iface),
            proxies: control.proxies.of(iface).to_vec(),
            groups: control.discovery.listeners.groups(iface),
            advert: control.discovery.advertisers.row(
                iface,
                control.links.get(&iface),
                control.now(),
            ),
            autoconf: control.autoconf_row(iface),
        };
        let interfaces = shown.map(row).collect();
        Ok(InterfaceProtocolReply { interfaces })
    }

    pub fn clear(&self, clear: &NeighborClear) -> Result<Applied, ModelError> {
        let interface = clear.interface.as_deref();
        let only = interface.map(|name| self.index(name)).transpose()?;
        let mut control = self.0.borrow_mut();
        let cleared = control.table.forget_all(|(iface, addr)| {
            only.is_none_or(|o| o == iface) && Family::of(addr) == clear.family
        });
        control.carry_out();
        Ok(Applied::changed(cleared as u64))
    }
}

impl Control {
    /// Index of an interface.
    pub(crate) fn interface_index(&self, name: &str) -> Result<u32, ModelError> {
        let interfaces = self.interfaces.borrow();
        let index = interfaces.by_name(name).map(|i| i.index.0);
        index.ok_or_else(|| {
            let known = interfaces.iter().map(|i| i.name.clone());
            ModelError::not_found(ObjectKind::Interface, name, known.collect::<Vec<_>>())
        })
    }

    /// Events since the start that have occurred.
    fn events(&self) -> Vec<NeighborEvent> {
        let (table, tally) = (self.table.counts, self.tally);
        let all = [
            ("failed", table.failed, "did not answer"),
            ("evicted", table.evicted, "made room for others"),
            ("refused", table.refused, "found no room"),
            (
                "hold-full",
                table.hold_full,
                "packets yielded to newer ones for the same neighbour",
            ),
            (
                "crowded",
                table.crowded,
                "packets yielded to others because too many wait",
            ),
            (
                "postponed",
                table.postponed,
                "requests had to wait because too many are sent",
            ),
            (
                "conflicts",
                tally.conflicts,
                "other hosts advertised an address of this router",
            ),
            (
                "configured",
                tally.configured,
                "words about configured neighbours, which stay as they are",
            ),
            (
                "off-link",
                tally.off_link,
                "senders were not on the interface's networks",
            ),
            (
                "duplicates",
                tally.duplicates,
                "addresses are not used, for other stations have them",
            ),
            (
                "silent-routers",
                tally.silent_routers,
                "default routers did not answer, and others take precedence over them",
            ),
            (
                "no-room",
                tally.no_room,
                "MAC addresses that the forwarding table had no room for",
            ),
            (
                "unsent",
                tally.unsent,
                "questions and announcements that a worker's queue had no room for",
            ),
        ];
        let happened = all.into_iter().filter(|(_, count, _)| *count > 0);
        let event = |(event, count, text): (&str, u64, &str)| NeighborEvent {
            event: event.to_owned(),
            count,
            text: text.to_owned(),
        };
        happened.map(event).collect()
    }

    /// Adds age and state of learned neighbours, and the INCOMPLETE entries.
    fn amend(&self, family: Option<Family>, interface: Option<&str>, reply: &mut NeighborsReply) {
        let (now, interfaces) = (self.now(), self.interfaces.borrow());
        let mut known: HashMap<_, _> = self.table.iter().map(|s| (s.key, s)).collect();
        for row in reply.neighbors.iter_mut().filter(|row| !row.fixed) {
            let Ok(index) = interfaces.index(&row.interface) else {
                continue;
            };
            if let Some(shown) = known.remove(&(index.0, row.address)) {
                row.state = shown.state;
                row.age_s = now.saturating_sub(shown.since) / SECOND;
            }
        }
        let sought = known.into_values().filter(|shown| {
            let ((iface, addr), name) = (shown.key, interface);
            shown.mac.is_none()
                && family.is_none_or(|f| f == Family::of(addr))
                && name.is_none_or(|n| interfaces.name(iface) == n)
        });
        let row = |shown: crate::table::Shown| NeighborRow {
            interface: interfaces.name(shown.key.0),
            address: shown.key.1,
            mac: shown.mac.map(Mac),
            fixed: false,
            state: shown.state,
            held: shown.held as u32,
            age_s: now.saturating_sub(shown.since) / SECOND,
        };
        reply.events = self.events();
        let before = reply.neighbors.len();
        reply.neighbors.extend(sought.map(row));
        if reply.neighbors.len() > before {
            let index = |name: &str| interfaces.index(name).map_or(u32::MAX, |i| i.0);
            reply
                .neighbors
                .sort_by_key(|row| (index(&row.interface), row.address));
        }
    }
}
