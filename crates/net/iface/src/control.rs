//! Requests for all interfaces, and the replies to their queries.

use crate::driver::{Port, PortRefusal, tx_name};
use crate::registry::{InterfaceNotes, Registry};
use crate::show::{Counter, InterfaceRow, InterfacesReply, NamedValue, ShowInterfaces};
use crate::show_queues::{
    ArcRow, FeatureRow, FeaturesReply, HardwareReply, HardwareRow, QueueRow, RxPlacementReply,
    RxPlacementRow, ShowFeatures, ShowHardware, ShowRxPlacement,
};
use crate::states::AdminState;
use crate::sub_interface_row::{SubInterfaceRow, VlanTag};
use crate::{Direction, IfError, IfIdx, Interface, Interfaces, Link, MAX_QUEUES, TagKind};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use volley_graph::{ArcReport, Engine};
use volley_model::{Applied, Handler, Mac, ModelError, Request};

/// Handles interface requests.
#[derive(Clone)]
pub struct InterfaceHandler {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    notes: InterfaceNotes,
}

impl InterfaceHandler {
    /// A handler over the daemon's engine and interfaces.
    pub fn new(registry: &Registry) -> Self {
        InterfaceHandler {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            notes: registry.interface_notes.clone(),
        }
    }

    /// Passes a change to the driver, then applies it; after a refusal nothing is changed.
    pub(crate) fn update(
        &self,
        name: &str,
        ask: impl FnOnce(&mut dyn Port) -> Result<(), PortRefusal>,
        change: impl FnOnce(&mut Interface),
    ) -> Result<Applied, ModelError> {
        let index = self.index(name)?;
        let port = self.interfaces.borrow().port(index);
        if let Some(port) = port {
            ask(port.borrow_mut().as_mut())
                .map_err(|why| ModelError::invalid(format!("change of interface {name}"), why))?;
        }
        let done = self.interfaces.borrow_mut().update(name, change);
        done.map(|()| Applied::one()).map_err(|e| self.explain(e))
    }

    pub(crate) fn set_mtu(&self, name: &str, mtu: Option<u32>) -> Result<Applied, ModelError> {
        if let Some(mtu) = mtu {
            return self.update(name, |p| p.set_mtu(mtu), |i| i.set_mtu(mtu));
        }
        let index = self.index(name)?;
        let default = self
            .interfaces
            .borrow()
            .get(index)
            .map(Interface::default_mtu);
        let holds = Cell::new(default.unwrap_or_default());
        let ask = |p: &mut dyn Port| p.unset_mtu(holds.get()).map(|mtu| holds.set(mtu));
        self.update(name, ask, |i| i.unset_mtu(holds.get()))
    }

    pub(crate) fn set_mac(&self, name: &str, mac: Option<Mac>) -> Result<Applied, ModelError> {
        if let Some(mac) = mac {
            return self.update(name, |p| p.set_mac(mac.0), |i| i.mac = mac.0);
        }
        let holds = Cell::new(self.interfaces.borrow().made_up_mac(name));
        let ask = |p: &mut dyn Port| p.unset_mac(holds.get()).map(|mac| holds.set(mac));
        self.update(name, ask, |i| i.mac = holds.get())
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let found = self.interfaces.borrow().index(name);
        found.map_err(|e| self.explain(e))
    }

    /// Renames the interface and its transmit node.
    fn rename(&self, name: &str, new_name: &str) -> Result<Applied, ModelError> {
        let index = self.index(name)?;
        if name == new_name {
            return Ok(Applied::nothing());
        }
        if self.interfaces.borrow().by_name(new_name).is_some() {
            return Err(self.explain(IfError::Exists(new_name.to_owned())));
        }
        self.refuse_name(index)?;
        let (from, to) = (tx_name(name), tx_name(new_name));
        let node = self.engine.borrow_mut().rename(&from, &to);
        node.map_err(|e| ModelError::invalid(format!("name {new_name}"), e))?;
        let done = self.interfaces.borrow_mut().rename(index, new_name);
        done.map(|()| Applied::one()).map_err(|e| self.explain(e))
    }

    /// Refuses to rename a sub-interface or an interface that has some: the name of a sub-interface derives from its parent's.
    fn refuse_name(&self, index: IfIdx) -> Result<(), ModelError> {
        let all = self.interfaces.borrow();
        let is_sub = all.get(index).is_some_and(|i| i.sub.is_some());
        let why = match (is_sub, all.subs_of(index).first()) {
            (true, _) => "a sub-interface is called after its parent and its number".to_owned(),
            (false, None) => return Ok(()),
            (false, Some(sub)) => {
                let sub = all.name(sub.0);
                format!("its sub-interfaces, such as {sub}, are called after it: delete them first")
            }
        };
        Err(ModelError::invalid(
            format!("another name for {}", all.name(index.0)),
            why,
        ))
    }

    pub(crate) fn shown(&self, asked: &ShowInterfaces) -> Result<InterfacesReply, ModelError> {
        let rows = self.selected(&asked.name, |all, i| self.row(all, i))?;
        let mut reply = self.with_speeds(rows);
        self.notes.add(&mut reply.interfaces);
        Ok(reply)
    }

    /// Rows of `show hardware`, with the details of the drivers, which are queried while nothing is borrowed.
    pub(crate) fn hardware(&self, asked: &ShowHardware) -> Result<HardwareReply, ModelError> {
        let mut hardware = self.selected(&asked.name, hardware)?;
        for row in &mut hardware {
            let port = self.interfaces.borrow().port(IfIdx(row.index));
            row.details
                .extend(port.into_iter().flat_map(|port| port.borrow().details()));
        }
        Ok(HardwareReply { hardware })
    }

    /// Adds the link speeds, for which the drivers are queried while nothing is borrowed. A sub-interface has its parent's.
    fn with_speeds(&self, mut interfaces: Vec<InterfaceRow>) -> InterfacesReply {
        for row in &mut interfaces {
            let port = {
                let all = self.interfaces.borrow();
                let parent = all
                    .get(IfIdx(row.index))
                    .and_then(|i| Some(i.sub.as_ref()?.parent));
                all.port(parent.unwrap_or(IfIdx(row.index)))
            };
            row.speed_bps = port.and_then(|port| port.borrow().speed_bps());
        }
        InterfacesReply { interfaces }
    }

    pub(crate) fn placement(
        &self,
        asked: &ShowRxPlacement,
    ) -> Result<RxPlacementReply, ModelError> {
        let of = |i: &Interface| {
            let row = |(queue, worker): (usize, &usize)| RxPlacementRow {
                worker: *worker as u32,
                node: i.rx_node.to_owned(),
                interface: i.name.clone(),
                queue: queue as u32,
                mode: i.rx_mode,
            };
            i.rx_queues.iter().enumerate().map(row).collect::<Vec<_>>()
        };
        let rows = self.selected(&asked.interface, |_, i| of(i))?;
        let mut placement = rows.concat();
        placement.sort_by(|a, b| {
            let key = |r: &RxPlacementRow| (r.worker, r.node.clone(), r.interface.clone(), r.queue);
            key(a).cmp(&key(b))
        });
        Ok(RxPlacementReply { placement })
    }

    /// Assigns a receive queue to a worker, or returns it to the automatic assignment.
    pub(crate) fn place(
        &self,
        index: IfIdx,
        queue: u32,
        worker: Option<u32>,
    ) -> Result<Applied, ModelError> {
        let places = self.engine.borrow().settings().workers as u32;
        if let Some(worker) = worker.filter(|w| *w >= places) {
            let why = format!("there may be {places} at a time: they are numbered from 0");
            return Err(ModelError::invalid(format!("worker {worker}"), why));
        }
        let (queue, worker) = (queue as usize, worker.map(|w| w as usize));
        let moves = self.interfaces.borrow_mut().pin(index, queue, worker);
        moves.make();
        Ok(Applied::one())
    }

    fn explain(&self, error: IfError) -> ModelError {
        crate::driver::to_model_error(&self.interfaces.borrow(), error)
    }

    /// Enables or disables a feature of an arc on an interface.
    pub(crate) fn feature(
        &self,
        index: IfIdx,
        arc: &str,
        feature: &str,
        on: bool,
    ) -> Result<Applied, ModelError> {
        let mut engine = self.engine.borrow_mut();
        let done = engine.set_feature(arc, feature, index.0, on);
        done.map(|()| Applied::one()).map_err(|e| {
            let name = self.interfaces.borrow().name(index.0);
            ModelError::invalid(format!("feature {feature} on {name}"), e)
        })
    }

    fn row(&self, all: &Interfaces, i: &Interface) -> InterfaceRow {
        let counts = all.counts(i);
        InterfaceRow {
            name: i.name.clone(),
            index: i.index.0,
            kind: i.kind.to_owned(),
            state: i.state,
            link: link_state(i),
            link_reason: i.link.reason().map(str::to_owned),
            rx_mode: i.rx_mode,
            mac: Some(Mac(i.mac)),
            mtu: i.mtu,
            configured_mtu: i.configured_mtu().filter(|_| i.device_mtu().is_some()),
            device_mtu: i.device_mtu(),
            speed_bps: None,
            waiting: matches!(i.link, Link::Waiting(_)),
            rx: Counter {
                packets: counts.rx_packets,
                bytes: counts.rx_bytes,
            },
            tx: Counter {
                packets: counts.tx_packets,
                bytes: counts.tx_bytes,
            },
            drops: counts.drops,
            rx_errors: counts.rx_errors,
            tx_errors: counts.tx_errors,
            more: missed(counts.missed).into_iter().collect(),
            rates: all.rates.of(i.index),
            description: all.descriptions.get(&i.index).cloned(),
            sub_interface: sub_interface_row(all, i),
            ..InterfaceRow::default()
        }
    }

    fn selected<R>(
        &self,
        name: &Option<String>,
        row: impl Fn(&Interfaces, &Interface) -> R,
    ) -> Result<Vec<R>, ModelError> {
        let all = self.interfaces.borrow();
        match name {
            None => Ok(all.iter().map(|i| row(&all, i)).collect()),
            Some(name) => {
                let index = all.index(name).map_err(|e| self.explain(e))?;
                Ok(all.get(index).map(|i| row(&all, i)).into_iter().collect())
            }
        }
    }

    pub(crate) fn features(&self, asked: &ShowFeatures) -> Result<FeaturesReply, ModelError> {
        let all = self.interfaces.borrow();
        let only = asked
            .interface
            .as_ref()
            .map(|n| all.index(n).map_err(|e| self.explain(e)))
            .transpose()?;
        let seen = |i: &u32| only.is_none_or(|o| o.0 == *i);
        let arc = |a: ArcReport| ArcRow {
            name: a.name.to_owned(),
            start: a.start.to_owned(),
            end: a.end.to_owned(),
            features: a
                .features
                .into_iter()
                .map(|(name, on)| FeatureRow {
                    name: name.to_owned(),
                    interfaces: on
                        .iter()
                        .filter(|i| seen(i))
                        .map(|&i| all.name(i))
                        .collect(),
                })
                .collect(),
        };
        let mut arcs: Vec<ArcRow> = self.engine.borrow().arcs().into_iter().map(arc).collect();
        arcs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(FeaturesReply { arcs })
    }
}

/// Packets that the kernel had no free buffer for, as a counter of the interface.
fn missed(packets: u64) -> Option<NamedValue> {
    (packets > 0).then(|| NamedValue {
        name: "kernel-drops".to_owned(),
        value: packets,
    })
}

fn link_state(i: &Interface) -> AdminState {
    match i.link {
        Link::Up => AdminState::Up,
        Link::Down(_) | Link::Waiting(_) => AdminState::Down,
    }
}

fn hardware(all: &Interfaces, i: &Interface) -> HardwareRow {
    HardwareRow {
        name: i.name.clone(),
        index: i.index.0,
        driver: i.kind.to_owned(),
        link: link_state(i),
        link_reason: i.link.reason().map(str::to_owned),
        mac: Some(Mac(i.mac)),
        max_frame: i.mtu + 14,
        rx_queues: i.rx_queues.len() as u32,
        tx_queues: i.tx_queues,
        rx_mode: i.rx_mode,
        promiscuous: i.promiscuous,
        offloads: i.caps.names().into_iter().map(str::to_owned).collect(),
        queues: queues(all, i),
        details: i.details.clone(),
    }
}

/// Counters of queues that are not zero.
fn queues(all: &Interfaces, i: &Interface) -> Vec<QueueRow> {
    let of = |name: &'static str, direction| {
        let row = move |queue: usize| {
            let (packets, bytes) = all.queue_counts(i.index, direction, queue);
            (packets > 0).then(|| QueueRow {
                direction: name.to_owned(),
                queue: queue as u32,
                passed: Counter { packets, bytes },
            })
        };
        (0..MAX_QUEUES).filter_map(row)
    };
    of("rx", Direction::Rx)
        .chain(of("tx", Direction::Tx))
        .collect()
}

/// Parent and tags of a sub-interface; none for any other interface.
pub fn sub_interface_row(all: &Interfaces, i: &Interface) -> Option<SubInterfaceRow> {
    let sub = i.sub?;
    let tag = match sub.tags.kind {
        TagKind::Dot1q => VlanTag::Dot1q,
        TagKind::Dot1ad => VlanTag::Dot1ad,
    };
    Some(SubInterfaceRow {
        parent: all.name(sub.parent.0),
        id: i.name.rsplit_once('.')?.1.parse().ok()?,
        tag,
        vlan: sub.tags.vlan,
        inner: sub.tags.inner,
    })
}

impl InterfaceHandler {
    /// Distributes receive queues among the existing workers.
    pub(crate) fn rebalance(&self) -> Result<Applied, ModelError> {
        let moves = self.interfaces.borrow_mut().rebalance();
        moves.make();
        Ok(Applied::nothing())
    }

    pub(crate) fn clear(&self) -> Result<Applied, ModelError> {
        self.interfaces.borrow_mut().clear();
        Ok(Applied::one())
    }
}

impl Handler for InterfaceHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceRename { name, new_name } => Some(self.rename(name, new_name)),
            _ => None,
        }
    }
}
