//! Requests and questions about neighbours: the FIB answers first, what was learned is added here.

use crate::control::Control;
use crate::entry::SECOND;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use volley_model::reply::{NeighborRow, NeighborsReply};
use volley_model::{Applied, Family, Handler, Mac, ModelError, ObjectKind, Query, Reply, Request};

pub(crate) struct NeighborHandler(pub Rc<RefCell<Control>>);

impl Handler for NeighborHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::NeighborClear { family, interface } => {
                Some(self.clear(*family, interface.as_deref()))
            }
            _ => None,
        }
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }

    fn amend(&mut self, query: &Query, reply: &mut Reply) {
        if let (Query::Neighbors { family, interface }, Reply::Neighbors(rows)) = (query, reply) {
            self.0.borrow().amend(*family, interface.as_deref(), rows);
        }
    }
}

impl NeighborHandler {
    fn clear(&self, family: Family, interface: Option<&str>) -> Result<Applied, ModelError> {
        let mut control = self.0.borrow_mut();
        let only =
            match interface {
                None => None,
                Some(name) => {
                    let interfaces = control.interfaces.borrow();
                    let known = || {
                        interfaces
                            .iter()
                            .map(|i| i.name.clone())
                            .collect::<Vec<_>>()
                    };
                    let index = interfaces.by_name(name).map(|i| i.index.0);
                    Some(index.ok_or_else(|| {
                        ModelError::not_found(ObjectKind::Interface, name, known())
                    })?)
                }
            };
        let cleared = control.table.forget_all(|(iface, addr)| {
            only.is_none_or(|o| o == iface) && Family::of(addr) == family
        });
        control.carry_out();
        Ok(Applied::changed(cleared as u64))
    }
}

impl Control {
    /// Age and state of learned neighbours, and those that are only sought.
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
