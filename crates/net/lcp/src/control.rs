//! Who is whose twin: `lcp create`, `lcp delete`. The tap is made before the pair and taken away after it, by whoever
//! knows drivers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use volley_graph::NodeId;
use volley_iface::{Change, Flag, IfIdx, IfTable, Interfaces};
use volley_model::reply::{LcpReply, LcpRow};
use volley_model::{Applied, Handler, LcpTap, ModelError, ObjectKind, Query, Reply, Request};

/// A pair, and Volley's end of the twin.
struct LcpTapEntry {
    tap: IfIdx,
    pair: LcpTap,
}

type LcpTapMap = BTreeMap<IfIdx, LcpTapEntry>;

/// All pairs, by the interface that has a twin. Control thread only.
#[derive(Clone, Default)]
pub struct LcpTaps(Rc<RefCell<LcpTapMap>>);

impl LcpTaps {
    pub(crate) fn new(interfaces: &Rc<RefCell<Interfaces>>) -> Self {
        let pairs = LcpTaps::default();
        let (book, table) = (pairs.0.clone(), interfaces.borrow().table().clone());
        interfaces.borrow_mut().listen(move |change| {
            if let Change::Deleted(gone) = change {
                let is_in =
                    |(phy, it): (&IfIdx, &LcpTapEntry)| *phy == gone.index || it.tap == gone.index;
                let found = book
                    .borrow()
                    .iter()
                    .find(|(k, v)| is_in((k, v)))
                    .map(|(k, _)| *k);
                if let Some(phy) = found {
                    book.borrow_mut().remove(&phy);
                    table.set_lcp_tap(phy, None);
                }
            }
        });
        pairs
    }

    /// Name of Volley's end of an interface's twin, when it has one.
    pub fn tap_of(&self, interface: &str) -> Option<String> {
        let book = self.0.borrow();
        let found = book.values().find(|it| it.pair.interface == interface)?;
        Some(found.pair.tap())
    }

    /// The network namespace of the twins, when there are any: all are in one.
    pub fn namespace(&self) -> Option<Option<String>> {
        let book = self.0.borrow();
        book.values().next().map(|it| it.pair.namespace.clone())
    }

    fn rows(&self) -> Vec<LcpRow> {
        let row = |it: &LcpTapEntry| LcpRow {
            interface: it.pair.interface.clone(),
            tap: it.pair.tap(),
            host: it.pair.host.clone(),
            namespace: it.pair.namespace.clone(),
            host_index: 0,
            vlan: it.pair.vlan,
        };
        self.0.borrow().values().map(row).collect()
    }
}

/// Carries out requests about pairs.
pub(crate) struct LcpHandler {
    interfaces: Rc<RefCell<Interfaces>>,
    pairs: LcpTaps,
    xc: NodeId,
}

impl LcpHandler {
    pub fn new(interfaces: Rc<RefCell<Interfaces>>, pairs: LcpTaps, xc: NodeId) -> Self {
        LcpHandler {
            interfaces,
            pairs,
            xc,
        }
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let all = self.interfaces.borrow();
        let known = || all.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        all.index(name)
            .map_err(|_| ModelError::not_found(ObjectKind::Interface, name, known()))
    }

    fn table(&self) -> std::sync::Arc<IfTable> {
        self.interfaces.borrow().table().clone()
    }

    fn create(&self, pair: &LcpTap) -> Result<Applied, ModelError> {
        let (phy, tap) = (self.index(&pair.interface)?, self.index(&pair.tap())?);
        let mut book = self.pairs.0.borrow_mut();
        if book.contains_key(&phy) {
            return Err(ModelError::exists(ObjectKind::Lcp, &pair.interface));
        }
        let table = self.table();
        // First the way out, then the way in: the kernel is never asked something that it could not answer.
        table.set_peer(tap, phy);
        table.set(tap, Flag::IsLcpTap, true);
        table.set_rx_node(tap, self.xc);
        table.set_lcp_tap(phy, Some(tap));
        let pair = pair.clone();
        book.insert(phy, LcpTapEntry { tap, pair });
        Ok(Applied::one())
    }

    fn delete(&self, interface: &str) -> Result<Applied, ModelError> {
        let phy = self.index(interface)?;
        let gone = self.pairs.0.borrow_mut().remove(&phy);
        let none = || ModelError::not_found(ObjectKind::Lcp, interface, [""; 0]);
        let LcpTapEntry { tap, .. } = gone.ok_or_else(none)?;
        let (table, default) = (self.table(), self.interfaces.borrow().default_rx_node());
        table.set_lcp_tap(phy, None);
        table.set(tap, Flag::IsLcpTap, false);
        table.set_rx_node(tap, default);
        Ok(Applied::one())
    }
}

impl Handler for LcpHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::LcpCreate(pair) => Some(self.create(pair)),
            Request::LcpDelete { interface } => Some(self.delete(interface)),
            _ => None,
        }
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        let Query::Lcp = query else { return None };
        Some(Ok(Reply::Lcp(LcpReply {
            pairs: self.pairs.rows(),
            ..LcpReply::default()
        })))
    }
}
