//! Requests and queries about bridge domains.

use crate::bridge::{BRIDGE_DOMAINS, Bridge, Control};
use crate::model::{BridgeDomain, BridgePort, L2FibEntry, L2FibFlush};
use crate::show::{
    BridgeDomainRow, BridgeDomainsReply, BridgePortRow, L2FibReply, L2FibRow, ShowBridgeDomains,
    ShowL2Fib,
};
use crate::stations::{FILTERED, MacEntry, mac};
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::Watch;
use volley_iface::Registry;
use volley_iface::{Change, Flag, IfIdx, Interfaces};
use volley_model::{Applied, Mac, ModelError, ObjectKind, key_value};

type Done = Result<Applied, ModelError>;

/// Carries out requests about bridge domains.
#[derive(Clone)]
pub struct BridgeHandler {
    control: Rc<RefCell<Control>>,
    interfaces: Rc<RefCell<Interfaces>>,
    _turns: Rc<Watch>,
}

impl BridgeHandler {
    /// Creates the handler, which listens to interface changes. Dropping the handler ends the process that `turns` watches.
    pub(crate) fn new(
        control: Rc<RefCell<Control>>,
        interfaces: Rc<RefCell<Interfaces>>,
        turns: Watch,
    ) -> Self {
        let ours = control.clone();
        interfaces.borrow_mut().listen(move |change| match change {
            Change::Deleted(gone) => ours.borrow_mut().forget(gone.index),
            Change::Updated(now) if !now.is_up() => ours.borrow_mut().down(now.index),
            Change::Created(_) | Change::Updated(_) => {}
        });
        BridgeHandler {
            control,
            interfaces,
            _turns: Rc::new(turns),
        }
    }

    /// Registers the handler as the owner of its classes, queries and verbs.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let shared = self.clone();
        registry.own(move |key, now: Option<BridgeDomain>| match &now {
            Some(domain) => shared.set(domain),
            None => shared.remove(key_value(key, 0)),
        });
        let shared = self.clone();
        registry.own_setting(move |index, _, now: Option<BridgePort>| match &now {
            Some(port) => shared.join(index, port),
            None => {
                shared.control.borrow_mut().leave(index);
                Ok(Applied::one())
            }
        });
        let shared = self.clone();
        registry.own(move |key, now: Option<L2FibEntry>| match &now {
            Some(entry) => shared.fix(entry),
            None => {
                let (domain, mac) = (key_value(key, 0), key_value(key, 1));
                shared.unfix(mac, domain)
            }
        });
        let shared = self.clone();
        registry.answer(move |query: ShowBridgeDomains| shared.domains(query.id));
        let shared = self.clone();
        registry.answer(move |query: ShowL2Fib| shared.stations(query.domain));
        let shared = self.clone();
        registry.perform(move |flush: L2FibFlush| shared.flush(&flush));
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let all = self.interfaces.borrow();
        let known = || all.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        all.index(name)
            .map_err(|_| ModelError::not_found(ObjectKind::Interface, name, known()))
    }

    /// Checks whether an interface can be a port. Frames of a port are bridged unchanged, including VLAN tags.
    fn can_be_port(&self, index: IfIdx) -> Result<(), ModelError> {
        let all = self.interfaces.borrow();
        if all.get(index).is_some_and(|i| i.sub.is_some()) {
            let what = format!("bridge port {}", all.name(index.0));
            let why = "a sub-interface is routed or cross-connected: bridge its parent instead";
            return Err(ModelError::invalid(what, why));
        }
        all.refuse_sub_interfaces(index)
    }

    fn exists(&self, id: u32) -> Result<(), ModelError> {
        let control = self.control.borrow();
        if control.bridges.contains_key(&id) {
            return Ok(());
        }
        let known = control.bridges.keys().map(u32::to_string);
        let what = format!("bridge domain {id}");
        Err(ModelError::not_found(ObjectKind::Object, what, known))
    }

    fn set(&self, domain: &BridgeDomain) -> Done {
        let most = BRIDGE_DOMAINS as u64;
        let done = self.control.borrow_mut().set(domain);
        done.map(|()| Applied::one())
            .map_err(|_| ModelError::limit("number of bridge domains", most + 1, most))
    }

    fn remove(&self, id: u32) -> Done {
        self.exists(id)?;
        let mut control = self.control.borrow_mut();
        let port = control.bridges[&id].ports.keys().next().copied();
        if let Some(port) = port {
            let name = self.interfaces.borrow().name(port.0);
            let what = format!("bridge domain {id}");
            return Err(ModelError::in_use(ObjectKind::Object, what, name));
        }
        control.remove(id);
        Ok(Applied::one())
    }

    fn join(&self, index: IfIdx, port: &BridgePort) -> Done {
        self.exists(port.domain)?;
        self.can_be_port(index)?;
        let mut control = self.control.borrow_mut();
        if control.bridge_of(index).is_none() && control.is_consumed(index) {
            let by = "a patch or cross-connect";
            return Err(ModelError::in_use(
                ObjectKind::Interface,
                &port.interface,
                by,
            ));
        }
        let joined = control.join(index, port.domain, port.shg);
        let what = || format!("bridge domain of {}", port.interface);
        joined.map_err(|error| ModelError::invalid(what(), error))?;
        Ok(Applied::one())
    }

    fn fix(&self, entry: &L2FibEntry) -> Done {
        self.exists(entry.domain)?;
        let name = entry.interface.as_deref();
        let behind = name.map(|name| self.index(name)).transpose()?;
        behind.map_or(Ok(()), |index| self.can_be_port(index))?;
        let done = self.control.borrow_mut().fix(entry, behind);
        done.map_err(|full| ModelError::invalid(format!("l2fib entry {}", entry.mac), full))?;
        Ok(Applied::one())
    }

    fn unfix(&self, mac: Mac, domain: u32) -> Done {
        self.exists(domain)?;
        if self.control.borrow_mut().unfix(domain, mac) {
            return Ok(Applied::one());
        }
        let what = format!("l2fib entry {domain} {mac}");
        Err(ModelError::not_found(ObjectKind::Object, what, [""; 0]))
    }

    fn flush(&self, flush: &L2FibFlush) -> Done {
        let interface = flush.interface.as_deref();
        let port = interface.map(|name| self.index(name)).transpose()?;
        flush.domain.map_or(Ok(()), |id| self.exists(id))?;
        let flushed = self.control.borrow_mut().flush(port, flush.domain);
        Ok(Applied::changed(flushed))
    }

    fn domains(&self, id: Option<u32>) -> Result<BridgeDomainsReply, ModelError> {
        id.map_or(Ok(()), |id| self.exists(id))?;
        let control = self.control.borrow();
        let all = control.bridges.values();
        let chosen = all.filter(|b| id.is_none_or(|id| id == b.spec.id));
        Ok(BridgeDomainsReply {
            domains: chosen.map(|b| self.domain_row(&control, b)).collect(),
        })
    }

    fn domain_row(&self, control: &Control, bridge: &Bridge) -> BridgeDomainRow {
        let all = self.interfaces.borrow();
        let port = |(port, shg): (&IfIdx, &u32)| BridgePortRow {
            interface: all.name(port.0),
            shg: *shg,
            up: all.table().has(port.0, Flag::Up),
        };
        let it = &bridge.spec;
        let record = control.stations.record(bridge.slot);
        BridgeDomainRow {
            id: it.id,
            learn: it.learn,
            flood: it.flood,
            uu_flood: it.uu_flood,
            forward: it.forward,
            mac_age: it.mac_age,
            mac_limit: it.mac_limit,
            group_fwd_mask: it.group_fwd_mask,
            ports: bridge.ports.iter().map(port).collect(),
            learned: record.map_or(0, |l| l.learned.into()),
            fixed: record.map_or(0, |l| l.fixed.into()),
            counts: record.map(|l| l.counts).unwrap_or_default(),
        }
    }

    fn stations(&self, domain: Option<u32>) -> Result<L2FibReply, ModelError> {
        domain.map_or(Ok(()), |id| self.exists(id))?;
        let (control, all) = (self.control.borrow(), self.interfaces.borrow());
        let now = control.now_ns();
        let row = |(key, station): (u64, &MacEntry)| {
            let of = control
                .domain_of(key)
                .filter(|id| domain.is_none_or(|d| d == *id))?;
            let ages = !station.fixed && control.bridges.get(&of)?.spec.mac_age > 0;
            let silent = now.saturating_sub(station.last_seen_ns) / 1_000_000_000;
            Some(L2FibRow {
                mac: Mac(mac(key)),
                domain: of,
                interface: (station.port != FILTERED).then(|| all.name(station.port)),
                fixed: station.fixed,
                age_s: ages.then_some(silent),
            })
        };
        let mut entries: Vec<L2FibRow> = control.stations.iter().filter_map(row).collect();
        entries.sort_by_key(|row| (row.domain, row.mac));
        Ok(L2FibReply { entries })
    }
}
