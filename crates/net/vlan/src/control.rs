//! Requests about sub-interfaces; they are added and removed during traffic.

use crate::model::SubInterface;
use crate::table::TagTable;
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{Engine, NodeId};
use volley_iface::driver::{Port, PortRefusal, to_model_error};
use volley_iface::{
    Change, Flag, IfIdx, Interfaces, NewInterface, Registry, Sub, TagKind, Tags, is_consumed,
};
use volley_iface::{RxMode, Switch};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, ObjectKind, Request};

/// Name of the interface type.
const KIND: &str = "sub-interface";

/// The port of a sub-interface: driver settings belong to the parent.
struct SubPort {
    parent: String,
}

impl SubPort {
    fn refuse(&self, what: &str) -> Result<(), PortRefusal> {
        let parent = &self.parent;
        Err(PortRefusal::new(format!(
            "a sub-interface has the {what} of its parent: set that of {parent}"
        )))
    }
}

impl Port for SubPort {
    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), PortRefusal> {
        self.refuse("MAC address")
    }

    fn set_promiscuous(&mut self, _on: Switch) -> Result<(), PortRefusal> {
        self.refuse("promiscuous mode")
    }

    fn set_rx_mode(&mut self, _mode: RxMode) -> Result<(), PortRefusal> {
        self.refuse("receive queues")
    }
}

/// Carries out requests about sub-interfaces.
pub(crate) struct VlanHandler {
    interfaces: Rc<RefCell<Interfaces>>,
    engine: Rc<RefCell<Engine>>,
    tags: Rc<RefCell<TagTable>>,
    output: NodeId,
}

/// The tags in a request.
fn tags(it: &SubInterface) -> Tags {
    let (kind, vlan) = match (it.dot1ad, it.dot1q) {
        (Some(vlan), _) => (TagKind::Dot1ad, vlan),
        (None, vlan) => (TagKind::Dot1q, vlan.unwrap_or_default()),
    };
    let inner = it.inner_dot1q;
    Tags { kind, vlan, inner }
}

impl VlanHandler {
    pub(crate) fn new(registry: &Registry, tags: TagTable, output: NodeId) -> Self {
        let interfaces = registry.interfaces.clone();
        let tags = Rc::new(RefCell::new(tags));
        let ours = tags.clone();
        interfaces.borrow_mut().listen(move |change| {
            if let Change::Deleted(gone) = change
                && let Some(sub) = gone.sub
            {
                ours.borrow_mut().remove(sub);
            }
        });
        VlanHandler {
            interfaces,
            engine: registry.engine.clone(),
            tags,
            output,
        }
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let all = self.interfaces.borrow();
        all.index(name).map_err(|e| to_model_error(&all, e))
    }

    /// Checks whether an interface can have sub-interfaces.
    fn check_parent(&self, index: IfIdx, name: &str) -> Result<(), ModelError> {
        let all = self.interfaces.borrow();
        let refuse = |why: &str| Err(ModelError::invalid(format!("sub-interface of {name}"), why));
        if all.get(index).is_some_and(|i| i.sub.is_some()) {
            return refuse("that is a sub-interface itself: name two tags of its parent instead");
        }
        // An LCP tap is consumed too, but the Linux control plane creates sub-interfaces of it for packets to the kernel.
        let is_tap = all.table().has(index.0, Flag::IsLcpTap);
        if is_consumed(&self.engine.borrow(), index) && !is_tap {
            return refuse(
                "it is bridged, patched or cross-connected, and hands over whole frames: put it back in L3 mode first",
            );
        }
        Ok(())
    }

    fn create(&self, spec: &InterfaceSpec, it: &SubInterface) -> Result<Applied, ModelError> {
        let parent = self.index(&it.parent)?;
        self.check_parent(parent, &it.parent)?;
        let tags = tags(it);
        let sub = Sub { parent, tags };
        if let Some(other) = self.tags.borrow().get(sub) {
            let other = self.interfaces.borrow().name(other.0);
            return Err(ModelError::in_use(
                ObjectKind::Interface,
                format!("{} {tags}", it.parent),
                format!("sub-interface {other}"),
            ));
        }
        let new = NewInterface {
            details: vec![format!(
                "sub-interface of {}: {tags}, exact match",
                it.parent
            )],
            rx_queues: Vec::new(),
            tx_queues: 0,
            port: Box::new(SubPort {
                parent: it.parent.clone(),
            }),
            ..NewInterface::new(&spec.name, KIND)
        };
        let made = self
            .interfaces
            .borrow_mut()
            .create_sub(new, spec.mtu, sub, self.output);
        let index = made.map_err(|e| to_model_error(&self.interfaces.borrow(), e))?;
        // The tags are inserted last: a worker that finds the sub-interface finds it complete.
        self.tags.borrow_mut().insert(sub, index);
        Ok(Applied::one())
    }

    /// Deletes a sub-interface; refuses to delete a parent that has any. None for other interfaces.
    fn delete(&self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.interfaces.borrow().index(name).ok()?;
        let is_sub = self.interfaces.borrow().get(index)?.sub.is_some();
        if !is_sub {
            let refused = self.interfaces.borrow().refuse_sub_interfaces(index);
            return refused.err().map(Err);
        }
        let gone = self.interfaces.borrow_mut().delete(name);
        let gone = gone.map_err(|e| to_model_error(&self.interfaces.borrow(), e));
        Some(gone.map(|_| Applied::one()))
    }
}

impl Handler for VlanHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => Some(self.create(spec, &spec.kind_as()?)),
            Request::InterfaceDelete { name } => self.delete(name),
            _ => None,
        }
    }
}
