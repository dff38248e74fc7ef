//! Synchronises 802.1Q devices on LCP taps with sub-interfaces, and the VRF of an LCP tap with the table of its interface.

use crate::InterfaceState;
use crate::links::{KernelState, Order, SyncPlan};
use crate::message::{Device, Link};
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use volley_iface::{SubInterfaceRow, VlanTag};
use volley_lcp::LcpRow;
use volley_model::{Family, InterfaceSpec, Request};
use volley_object::{FieldType, Instance, Value};

/// The kernel's main table.
const MAIN: u32 = 254;

/// State at the last synchronisation.
#[derive(Default)]
pub struct Devices {
    /// Name of the sub-interface of each 802.1Q device, by ifindex.
    vlans: BTreeMap<u32, String>,
    /// Volley's table of each interface whose LCP tap was in a VRF.
    vrfs: BTreeMap<String, u32>,
}

/// Tags of an 802.1Q device on an LCP tap, and the interface of this tap.
#[derive(Debug, PartialEq, Eq)]
struct Tagged<'a> {
    parent: &'a LcpRow,
    tag: VlanTag,
    vlan: u16,
    inner: Option<u16>,
}

impl Tagged<'_> {
    /// Whether a sub-interface has the same parent and tags.
    fn is(&self, sub: &SubInterfaceRow) -> bool {
        let tags = (self.tag, self.vlan, self.inner);
        sub.parent == self.parent.interface && (sub.tag, sub.vlan, sub.inner) == tags
    }

    /// The sub-interface for these tags. Its number is the VLAN; with two tags, the outer VLAN followed by four digits for the
    /// inner.
    fn row(&self) -> SubInterfaceRow {
        let vlan = u32::from(self.vlan);
        SubInterfaceRow {
            parent: self.parent.interface.clone(),
            id: self
                .inner
                .map_or(vlan, |inner| vlan * 10_000 + u32::from(inner)),
            tag: self.tag,
            vlan: self.vlan,
            inner: self.inner,
        }
    }
}

impl Display for Tagged<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sub = self.row();
        write!(
            f,
            "{} {} {} {}",
            sub.parent,
            sub.id,
            word(self.tag),
            self.vlan
        )?;
        match self.inner {
            Some(inner) => write!(f, " inner-dot1q {inner}"),
            None => Ok(()),
        }
    }
}

/// Name of the tag type as a field of `sub_interface`.
fn word(tag: VlanTag) -> &'static str {
    match tag {
        VlanTag::Dot1q => "dot1q",
        VlanTag::Dot1ad => "dot1ad",
    }
}

impl KernelState {
    /// Plans the changes that make devices equal to sub-interfaces, and VRFs to tables.
    pub fn plan_devices(
        &mut self,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        tables: &HashSet<(Family, u32)>,
        todo: &mut SyncPlan,
    ) {
        let mut known = std::mem::take(&mut self.devices);
        self.kernels(&mut known, pairs, rows, todo);
        self.volleys(&known, pairs, rows, todo);
        let is_paired = |name: &String| pairs.iter().any(|p| p.vlan && p.interface == *name);
        (known.vlans).retain(|index, name| self.links.contains_key(index) || is_paired(name));
        self.vrfs(&mut known.vrfs, pairs, rows, tables, todo);
        self.devices = known;
    }

    /// Plans for devices in the kernel: a new device becomes a sub-interface with an LCP tap; a known device without a pair is
    /// deleted.
    fn kernels(
        &self,
        known: &mut Devices,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        todo: &mut SyncPlan,
    ) {
        for link in self.links.values() {
            let Some(tagged) = self.tagged(link, pairs) else {
                continue;
            };
            if let Some(pair) = pairs.iter().find(|p| p.vlan && p.host == link.name) {
                known.vlans.insert(link.index, pair.interface.clone());
            } else if known.vlans.contains_key(&link.index) {
                todo.orders.push((link.index, Order::Gone));
            } else {
                todo.together.push(adopt(link, &tagged, rows));
            }
        }
    }

    /// Plans for pairs whose device is missing: a device that never existed is created; after a device was deleted, its pair
    /// and sub-interface are deleted too.
    fn volleys(
        &self,
        known: &Devices,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        todo: &mut SyncPlan,
    ) {
        for pair in pairs.iter().filter(|p| p.vlan) {
            if self.index(&pair.host).is_some() {
                continue;
            }
            let row = rows.iter().find(|r| r.name == pair.interface);
            let Some(sub) = row.and_then(|r| r.sub_interface.as_ref()) else {
                continue;
            };
            // While the LCP tap of the trunk is missing, nothing is known about its devices.
            let trunk = pairs.iter().find(|p| p.interface == sub.parent);
            let Some(trunk) = trunk.and_then(|p| self.index(&p.host)) else {
                continue;
            };
            if known.vlans.values().any(|name| *name == pair.interface) {
                let name = pair.interface.clone();
                let gone = Request::unset_key("lcp", [Value::text(&name)]).ok();
                let parts = gone.into_iter().chain([Request::InterfaceDelete { name }]);
                todo.together.push(parts.collect());
                continue;
            }
            let (on, tag, vlan) = match sub.inner {
                None => (Some(trunk), sub.tag, sub.vlan),
                Some(inner) => (self.outer(trunk, sub), VlanTag::Dot1q, inner),
            };
            if let Some(on) = on {
                let order = Order::Device(pair.host.clone(), tag, vlan);
                todo.orders.push((on, order));
            }
        }
    }

    /// Ifindex of the device with the outer tag alone, on which the device with both tags is built.
    fn outer(&self, trunk: u32, sub: &SubInterfaceRow) -> Option<u32> {
        let device = Device::Vlan {
            parent: trunk,
            tag: sub.tag,
            vlan: sub.vlan,
        };
        let found = self.links.values().find(|l| l.device == device);
        found.map(|l| l.index)
    }

    /// The tags of a device that is on an LCP tap, or on a device on an LCP tap.
    fn tagged<'a>(&self, link: &Link, pairs: &'a [LcpRow]) -> Option<Tagged<'a>> {
        let Device::Vlan { parent, tag, vlan } = link.device else {
            return None;
        };
        let below = self.links.get(&parent)?;
        let tap = |link: &Link| pairs.iter().find(|p| p.host == link.name && !p.vlan);
        if let Some(parent) = tap(below) {
            let inner = None;
            return Some(Tagged {
                parent,
                tag,
                vlan,
                inner,
            });
        }
        let Device::Vlan {
            parent: trunk,
            tag: outer_tag,
            vlan: outer,
        } = below.device
        else {
            return None;
        };
        let parent = tap(self.links.get(&trunk)?)?;
        // The inner tag is always a C-tag (IEEE 802.1Q).
        (tag == VlanTag::Dot1q).then_some(Tagged {
            parent,
            tag: outer_tag,
            vlan: outer,
            inner: Some(vlan),
        })
    }

    /// Volley's table for the VRF that an LCP tap is in.
    fn vrf(&self, host: &str) -> Option<u32> {
        let master = self.link(host)?.master?;
        match self.links.get(&master)?.device {
            Device::Vrf { table: MAIN } => Some(0),
            Device::Vrf { table } => Some(table),
            _ => None,
        }
    }

    fn vrfs(
        &self,
        known: &mut BTreeMap<String, u32>,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        tables: &HashSet<(Family, u32)>,
        todo: &mut SyncPlan,
    ) {
        known.retain(|name, _| pairs.iter().any(|p| p.interface == *name));
        for pair in pairs {
            let name = &pair.interface;
            let Some(row) = rows.iter().find(|r| r.name == *name) else {
                continue;
            };
            let is_in = |table| row.tables.ip4 == table && row.tables.ip6 == table;
            let now = self.vrf(&pair.host);
            match (now, known.contains_key(name)) {
                (Some(table), _) => _ = known.insert(name.clone(), table),
                // The LCP tap has left a VRF. The entry stays until the interface uses table 0 again.
                (None, true) if is_in(0) => _ = known.remove(name),
                (None, _) => {}
            }
            let want = now.or_else(|| known.contains_key(name).then_some(0));
            if let Some(table) = want.filter(|table| !is_in(*table)) {
                todo.together.push(bind(name, table, tables));
            }
        }
    }

    /// Number of compared devices and VRFs, and the differences: devices on LCP taps without a sub-interface, and interfaces
    /// that use a table other than that of the LCP tap's VRF.
    pub fn odd_devices(
        &self,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
    ) -> (u64, Vec<[String; 4]>) {
        let (mut compared, mut found) = (0, Vec::new());
        for link in self.links.values() {
            let Some(tagged) = self.tagged(link, pairs) else {
                continue;
            };
            compared += 1;
            if !pairs.iter().any(|p| p.vlan && p.host == link.name) {
                let kernel = tagged.to_string();
                found.push(["device".into(), link.name.clone(), kernel, String::new()]);
            }
        }
        for pair in pairs {
            let row = rows.iter().find(|r| r.name == pair.interface);
            let (Some(table), Some(row)) = (self.vrf(&pair.host), row) else {
                continue;
            };
            for (family, has) in [("IPv4", row.tables.ip4), ("IPv6", row.tables.ip6)] {
                compared += 1;
                if has != table {
                    let what = format!("{} {family}", pair.interface);
                    found.push(["table".into(), what, table.to_string(), has.to_string()]);
                }
            }
        }
        (compared, found)
    }
}

/// Requests that make a device the LCP tap of a sub-interface, which is created unless one with these tags exists.
fn adopt(link: &Link, tagged: &Tagged<'_>, rows: &[InterfaceState]) -> Vec<Request> {
    let same = |r: &&InterfaceState| r.sub_interface.as_ref().is_some_and(|s| tagged.is(s));
    let there = rows.iter().find(same).map(|r| r.name.clone());
    let sub = tagged.row();
    let interface = there.clone().unwrap_or_else(|| sub.name());
    let new = sub_interface(&sub);
    let mut fields = vec![
        ("interface", Value::text(interface)),
        ("host_if", Value::text(&link.name)),
        ("vlan", Value::Bool(true)),
    ];
    let namespace = tagged.parent.namespace.as_ref();
    fields.extend(namespace.map(|name| ("netns", Value::text(name))));
    let pair = Request::set_fields("lcp", &fields).ok();
    let made = new.filter(|_| there.is_none());
    made.into_iter().chain(pair).collect()
}

/// The request that creates a sub-interface.
fn sub_interface(sub: &SubInterfaceRow) -> Option<Request> {
    let mut fields = vec![
        ("name", Value::text(sub.name())),
        ("parent", Value::text(&sub.parent)),
        (word(sub.tag), sub.vlan.to_value()),
    ];
    fields.extend(sub.inner.map(|inner| ("inner_dot1q", inner.to_value())));
    let kind = Instance::of_fields("sub_interface", &fields).ok()?;
    Some(Request::InterfaceCreate(InterfaceSpec::of_object(kind)))
}

/// Requests that bind an interface to a table for both families, and create the table if it is missing.
fn bind(name: &str, table: u32, tables: &HashSet<(Family, u32)>) -> Vec<Request> {
    let families = [Family::V4, Family::V6];
    let missing = families
        .into_iter()
        .filter(|f| !tables.contains(&(*f, table)));
    let tables = missing.filter_map(|family| {
        let fields = [("id", table.to_value()), ("family", family.to_value())];
        Request::set_fields("table", &fields).ok()
    });
    let binds = families.into_iter().filter_map(|family| {
        let fields = [
            ("interface", Value::text(name)),
            ("family", family.to_value()),
            ("table", table.to_value()),
        ];
        Request::set_fields("interface_table", &fields).ok()
    });
    tables.chain(binds).collect()
}

#[cfg(test)]
mod tests;
