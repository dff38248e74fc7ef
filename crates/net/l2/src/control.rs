//! Patches and cross-connects.

use crate::bridge::Control;
use crate::model::{L2Patch, Xconnect};
use crate::show::{L2Mode, L2Reply, L2Row, ShowL2};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use volley_iface::{Change, IfIdx, Interfaces, ReceiveFeature, Registry};
use volley_model::{Applied, ModelError, ObjectKind};

/// The peer of an interface, and the type of the binding.
#[derive(Clone, Copy)]
struct Binding {
    tx: IfIdx,
    mode: L2Mode,
}

/// Features of the receive arc that bind interfaces.
#[derive(Clone)]
pub(crate) struct Features {
    pub(crate) patch: ReceiveFeature,
    pub(crate) xconnect: ReceiveFeature,
}

impl Features {
    fn of(&self, mode: L2Mode) -> &ReceiveFeature {
        match mode {
            L2Mode::Patch => &self.patch,
            L2Mode::Xconnect => &self.xconnect,
        }
    }
}

/// Carries out requests about patches and cross-connects.
#[derive(Clone)]
pub struct L2Handler {
    interfaces: Rc<RefCell<Interfaces>>,
    features: Features,
    bridges: Rc<RefCell<Control>>,
    bindings: Rc<RefCell<BTreeMap<IfIdx, Binding>>>,
}

impl L2Handler {
    /// Creates the handler; ports of `bridges` cannot be bound.
    pub(crate) fn new(
        interfaces: Rc<RefCell<Interfaces>>,
        features: Features,
        bridges: Rc<RefCell<Control>>,
    ) -> Self {
        let bindings: Rc<RefCell<BTreeMap<IfIdx, Binding>>> = Rc::default();
        let (ours, bound) = (bindings.clone(), features.clone());
        interfaces.borrow_mut().listen(move |change| {
            let Change::Deleted(gone) = change else {
                return;
            };
            // Deletion of an interface removes its bindings: its index may be reused by another interface.
            ours.borrow_mut().retain(|&rx, binding| {
                let dissolved = rx == gone.index || binding.tx == gone.index;
                if dissolved {
                    bound.of(binding.mode).clear(rx);
                }
                !dissolved
            });
        });
        L2Handler {
            interfaces,
            features,
            bridges,
            bindings,
        }
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let all = self.interfaces.borrow();
        let known = || all.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        all.index(name)
            .map_err(|_| ModelError::not_found(ObjectKind::Interface, name, known()))
    }

    /// Registers the handler as the owner of its classes.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let shared = self.clone();
        registry.own_setting(move |rx, _, now: Option<L2Patch>| match now {
            Some(it) => shared.bind(rx, &it.rx, &it.tx, L2Mode::Patch),
            None => Ok(shared.unbind(rx, L2Mode::Patch)),
        });
        let shared = self.clone();
        registry.own_setting(move |rx, _, now: Option<Xconnect>| match now {
            Some(it) => shared.bind(rx, &it.rx, &it.tx, L2Mode::Xconnect),
            None => Ok(shared.unbind(rx, L2Mode::Xconnect)),
        });
        let shared = self.clone();
        registry.answer(move |_: ShowL2| Ok(shared.reply()));
    }

    /// Refuses an interface that has another type of binding.
    fn is_free(&self, rx: IfIdx, name: &str, mode: L2Mode) -> Result<(), ModelError> {
        let bound = self
            .bindings
            .borrow()
            .get(&rx)
            .is_some_and(|it| it.mode != mode);
        let by = match self.bridges.borrow().bridge_of(rx) {
            Some(domain) => format!("bridge domain {domain}"),
            None if bound => "another patch or cross-connect".to_owned(),
            None => return Ok(()),
        };
        Err(ModelError::in_use(ObjectKind::Interface, name, by))
    }

    fn bind(&self, rx: IfIdx, name: &str, tx: &str, mode: L2Mode) -> Result<Applied, ModelError> {
        let tx = self.index(tx)?;
        self.interfaces.borrow().refuse_sub_interfaces(rx)?;
        self.is_free(rx, name, mode)?;
        let all = self.interfaces.borrow();
        all.table().set_peer(rx, tx);
        self.features.of(mode).enable(&all, rx)?;
        self.bindings.borrow_mut().insert(rx, Binding { tx, mode });
        Ok(Applied::one())
    }

    fn unbind(&self, rx: IfIdx, mode: L2Mode) -> Applied {
        let bound = self.bindings.borrow().get(&rx).copied();
        if bound.is_none_or(|it| it.mode != mode) {
            return Applied::nothing();
        }
        self.features.of(mode).clear(rx);
        self.bindings.borrow_mut().remove(&rx);
        Applied::one()
    }
    fn reply(&self) -> L2Reply {
        let all = self.interfaces.borrow();
        let row = |(rx, b): (&IfIdx, &Binding)| L2Row {
            rx: all.name(rx.0),
            tx: all.name(b.tx.0),
            mode: b.mode,
        };
        L2Reply {
            bindings: self.bindings.borrow().iter().map(row).collect(),
        }
    }
}
