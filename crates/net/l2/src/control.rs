//! Requests of layer 2: `test l2patch`, `set interface l2 xconnect`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use volley_graph::NodeId;
use volley_iface::{Change, Flag, IfIdx, Interfaces};
use volley_model::reply::{L2Mode, L2Reply, L2Row};
use volley_model::{Applied, Handler, ModelError, ObjectKind, Query, Reply, Request};

/// What an interface is bound to, and how.
#[derive(Clone, Copy)]
struct Binding {
    tx: IfIdx,
    mode: L2Mode,
}

/// Carries out layer-2 requests.
pub struct L2Handler {
    interfaces: Rc<RefCell<Interfaces>>,
    patch: NodeId,
    bindings: Rc<RefCell<BTreeMap<IfIdx, Binding>>>,
}

impl L2Handler {
    /// A handler; `patch` is the node of patches.
    pub fn new(interfaces: Rc<RefCell<Interfaces>>, patch: NodeId) -> Self {
        let bindings: Rc<RefCell<BTreeMap<IfIdx, Binding>>> = Rc::default();
        let (ours, table) = (bindings.clone(), interfaces.borrow().table().clone());
        let default_rx = interfaces.borrow().default_rx_node();
        interfaces.borrow_mut().listen(move |change| {
            let Change::Deleted(gone) = change else {
                return;
            };
            // A binding to or from an interface that goes is dissolved: packets never leave by a stranger.
            ours.borrow_mut().retain(|&rx, binding| {
                let dissolved = rx == gone.index || binding.tx == gone.index;
                if dissolved {
                    table.set(rx, Flag::L2, false);
                    table.set_rx_node(rx, default_rx);
                }
                !dissolved
            });
        });
        L2Handler {
            interfaces,
            patch,
            bindings,
        }
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let all = self.interfaces.borrow();
        let known = || all.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        all.index(name)
            .map_err(|_| ModelError::not_found(ObjectKind::Interface, name, known()))
    }

    fn bind(&mut self, rx: &str, tx: &str, mode: L2Mode) -> Result<Applied, ModelError> {
        let (rx_index, tx_index) = (self.index(rx)?, self.index(tx)?);
        self.interfaces.borrow().refuse_sub_interfaces(rx_index)?;
        if let Some(other) = self.bindings.borrow().get(&rx_index)
            && other.mode != mode
        {
            return Err(ModelError::in_use(
                ObjectKind::Interface,
                rx,
                "another patch or cross-connect",
            ));
        }
        let all = self.interfaces.borrow();
        let table = all.table();
        table.set_peer(rx_index, tx_index);
        match mode {
            L2Mode::Patch => table.set_rx_node(rx_index, self.patch),
            L2Mode::Xconnect => table.set(rx_index, Flag::L2, true),
        }
        self.bindings
            .borrow_mut()
            .insert(rx_index, Binding { tx: tx_index, mode });
        Ok(Applied::one())
    }

    fn unbind(&mut self, rx: &str, tx: Option<&str>, mode: L2Mode) -> Result<Applied, ModelError> {
        let rx_index = self.index(rx)?;
        let tx_index = tx.map(|tx| self.index(tx)).transpose()?;
        let bound = self.bindings.borrow().get(&rx_index).copied();
        let is_it = |b: &Binding| b.mode == mode && tx_index.is_none_or(|tx| tx == b.tx);
        if !bound.as_ref().is_some_and(is_it) {
            let what = match mode {
                L2Mode::Patch => "patch",
                L2Mode::Xconnect => "cross-connect",
            };
            return Err(ModelError::invalid(
                format!("interface {rx}"),
                format!("it has no such {what}"),
            ));
        }
        let all = self.interfaces.borrow();
        all.table().set(rx_index, Flag::L2, false);
        all.table().set_rx_node(rx_index, all.default_rx_node());
        self.bindings.borrow_mut().remove(&rx_index);
        Ok(Applied::one())
    }
}

impl Handler for L2Handler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::L2PatchAdd { rx, tx } => Some(self.bind(rx, tx, L2Mode::Patch)),
            Request::L2PatchDel { rx, tx } => Some(self.unbind(rx, Some(tx), L2Mode::Patch)),
            Request::XconnectSet { rx, tx } => Some(self.bind(rx, tx, L2Mode::Xconnect)),
            Request::XconnectUnset { rx } => Some(self.unbind(rx, None, L2Mode::Xconnect)),
            _ => None,
        }
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        let Query::L2 = query else { return None };
        let all = self.interfaces.borrow();
        let row = |(rx, b): (&IfIdx, &Binding)| L2Row {
            rx: all.name(rx.0),
            tx: all.name(b.tx.0),
            mode: b.mode,
        };
        Some(Ok(Reply::L2(L2Reply {
            bindings: self.bindings.borrow().iter().map(row).collect(),
        })))
    }
}
