//! Requests that every interface takes, and what is shown of interfaces.

use crate::{IfError, Interface, Interfaces, Link};
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{ArcReport, Engine};
use volley_model::reply::{
    ArcRow, Counter, FeatureRow, FeaturesReply, HardwareReply, HardwareRow, InterfaceRow,
    InterfacesReply,
};
use volley_model::{
    AdminState, Applied, Clear, Handler, Mac, ModelError, Query, Reply, Request, Switch,
};

/// Carries out interface requests.
pub struct InterfaceHandler {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
}

impl InterfaceHandler {
    /// A handler over the daemon's engine and interfaces.
    pub fn new(engine: Rc<RefCell<Engine>>, interfaces: Rc<RefCell<Interfaces>>) -> Self {
        InterfaceHandler { engine, interfaces }
    }

    fn update(
        &self,
        name: &str,
        change: impl FnOnce(&mut Interface),
    ) -> Option<Result<Applied, ModelError>> {
        let done = self.interfaces.borrow_mut().update(name, change);
        Some(done.map(|()| Applied::one()).map_err(|e| self.explain(e)))
    }

    fn explain(&self, error: IfError) -> ModelError {
        crate::driver::explain(&self.interfaces.borrow(), error)
    }

    fn feature(&self, wanted: &volley_model::Feature) -> Result<Applied, ModelError> {
        let index = self
            .interfaces
            .borrow()
            .index(&wanted.interface)
            .map_err(|e| self.explain(e))?;
        let on = wanted.switch == Switch::On;
        let done = self
            .engine
            .borrow_mut()
            .set_feature(&wanted.arc, &wanted.feature, index.0, on);
        done.map(|()| Applied::one()).map_err(|e| {
            ModelError::invalid(
                format!("feature {} on {}", wanted.feature, wanted.interface),
                e,
            )
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
            mac: Some(Mac(i.mac)),
            mtu: i.mtu,
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

    fn features(&self, wanted: &Option<String>) -> Result<FeaturesReply, ModelError> {
        let all = self.interfaces.borrow();
        let only = wanted
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

fn link_state(i: &Interface) -> AdminState {
    match i.link {
        Link::Up => AdminState::Up,
        Link::Down(_) => AdminState::Down,
    }
}

fn hardware(all: &Interfaces, i: &Interface) -> HardwareRow {
    let said = all.port(i.index).map(|port| port.borrow().details());
    let details = i.details.iter().cloned();
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
        details: details.chain(said.unwrap_or_default()).collect(),
    }
}

impl Handler for InterfaceHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceState { name, state } => self.update(name, |i| i.state = *state),
            Request::InterfaceMtu { name, mtu } => self.update(name, |i| i.mtu = *mtu),
            Request::InterfaceMac { name, mac } => self.update(name, |i| i.mac = mac.0),
            Request::Feature(wanted) => Some(self.feature(wanted)),
            Request::Clear(Clear::Interfaces) => {
                self.interfaces.borrow_mut().clear();
                Some(Ok(Applied::one()))
            }
            _ => None,
        }
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        match query {
            Query::Interfaces { name } => {
                let rows = self.selected(name, |all, i| self.row(all, i));
                Some(rows.map(|interfaces| Reply::Interfaces(InterfacesReply { interfaces })))
            }
            Query::Hardware { name } => {
                let rows = self.selected(name, hardware);
                Some(rows.map(|hardware| Reply::Hardware(HardwareReply { hardware })))
            }
            Query::Features { interface } => Some(self.features(interface).map(Reply::Features)),
            _ => None,
        }
    }
}
