//! Assigns LCP taps to interfaces. The daemon, which knows the drivers, creates the tap before and deletes it afterwards.

use crate::model::LcpTap;
use crate::reply::LcpRow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use volley_iface::{Change, Flag, IfIdx, IfTable, Interfaces, ReceiveFeature};
use volley_model::{Applied, ModelError, ObjectKind};

/// An LCP pair, and Volley's end of the tap.
struct LcpTapEntry {
    tap: IfIdx,
    pair: LcpTap,
}

type LcpTapMap = BTreeMap<IfIdx, LcpTapEntry>;

/// All LCP pairs, by the interface that has the LCP tap. Control thread only.
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

    /// Name of the LCP tap of an interface, if there is one.
    pub fn tap_of(&self, all: &Interfaces, interface: &str) -> Option<String> {
        let index = all.index(interface).ok()?;
        let tap = self.0.borrow().get(&index)?.tap;
        all.get(tap).map(|tap| tap.name.clone())
    }

    /// Configuration of the LCP tap of an interface, if there is one.
    pub fn of(&self, all: &Interfaces, interface: &str) -> Option<LcpTap> {
        let index = all.index(interface).ok()?;
        self.0.borrow().get(&index).map(|it| it.pair.clone())
    }

    /// Network namespace of the LCP taps, if there are any: all are in the same one.
    pub fn namespace(&self) -> Option<Option<String>> {
        let book = self.0.borrow();
        book.values().next().map(|it| it.pair.netns.clone())
    }

    /// All LCP pairs.
    pub fn rows(&self, all: &Interfaces) -> Vec<LcpRow> {
        let row = |(index, it): (&IfIdx, &LcpTapEntry)| LcpRow {
            interface: all.name(index.0),
            tap: all.name(it.tap.0),
            host: it.pair.host_if.clone(),
            namespace: it.pair.netns.clone(),
            host_index: 0,
            vlan: it.pair.vlan,
        };
        self.0.borrow().iter().map(row).collect()
    }
}

/// Name of an object of the class in messages.
fn called(interface: &str) -> String {
    format!("lcp {interface}")
}

/// Handles requests and queries for LCP taps.
#[derive(Clone)]
pub(crate) struct LcpHandler {
    interfaces: Rc<RefCell<Interfaces>>,
    pairs: LcpTaps,
    xc: ReceiveFeature,
}

impl LcpHandler {
    pub fn new(interfaces: Rc<RefCell<Interfaces>>, pairs: LcpTaps, xc: ReceiveFeature) -> Self {
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

    /// Assigns an LCP tap to an interface.
    pub fn create(&self, pair: LcpTap) -> Result<Applied, ModelError> {
        let (phy, tap) = (self.index(&pair.interface)?, self.index(&pair.tap())?);
        let mut book = self.pairs.0.borrow_mut();
        if book.contains_key(&phy) {
            return Err(ModelError::exists(
                ObjectKind::Object,
                called(&pair.interface),
            ));
        }
        let table = self.table();
        // Transmit before receive: the kernel never gets a request that it could not answer.
        table.set_peer(tap, phy);
        self.xc.enable(&self.interfaces.borrow(), tap)?;
        table.set(tap, Flag::IsLcpTap, true);
        table.set_lcp_tap(phy, Some(tap));
        book.insert(phy, LcpTapEntry { tap, pair });
        Ok(Applied::one())
    }

    /// Removes the LCP tap of an interface.
    pub fn delete(&self, interface: &str) -> Result<Applied, ModelError> {
        let phy = self.index(interface)?;
        let gone = self.pairs.0.borrow_mut().remove(&phy);
        let none = || ModelError::not_found(ObjectKind::Object, called(interface), [""; 0]);
        let LcpTapEntry { tap, .. } = gone.ok_or_else(none)?;
        let table = self.table();
        table.set_lcp_tap(phy, None);
        table.set(tap, Flag::IsLcpTap, false);
        self.xc.clear(tap);
        Ok(Applied::one())
    }
}
