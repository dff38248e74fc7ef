//! What is asked of IP on one interface: `set urpf`, `set interface ip redirects`, `set interface ip virtual-reassembly`.

use crate::reassembly::Reassemble;
use crate::{IP4_UNICAST, IP6_UNICAST, Icmp, Ip};
use std::cell::RefCell;
use std::rc::Rc;
use volley_fib::{V4, V6};
use volley_graph::Engine;
use volley_iface::{IfIdx, Interfaces, driver};
use volley_model::{
    Applied, Family, Handler, IpSwitch, ModelError, Query, Reply, Request, Switch, Urpf,
};

/// Carries out requests about IP on interfaces.
pub(crate) struct InterfaceHandler {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
}

/// The arc of a family, and the features that check sources on it.
fn urpf(family: Family) -> (&'static str, [(Urpf, &'static str); 2]) {
    let both = |strict, loose| [(Urpf::Strict, strict), (Urpf::Loose, loose)];
    match family {
        Family::V4 => (IP4_UNICAST, both(V4::URPF_STRICT, V4::URPF_LOOSE)),
        Family::V6 => (IP6_UNICAST, both(V6::URPF_STRICT, V6::URPF_LOOSE)),
    }
}

impl InterfaceHandler {
    pub fn new(engine: Rc<RefCell<Engine>>, interfaces: Rc<RefCell<Interfaces>>) -> Self {
        InterfaceHandler { engine, interfaces }
    }

    fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let interfaces = self.interfaces.borrow();
        let index = interfaces.index(name);
        index.map_err(|e| driver::explain(&interfaces, e))
    }

    /// Switch a feature of both families; `what` are its nodes.
    fn set_both(
        &self,
        name: &str,
        (switch, what): (IpSwitch, [&'static str; 2]),
        on: bool,
    ) -> Result<Applied, ModelError> {
        let index = self.index(name)?;
        let mut engine = self.engine.borrow_mut();
        for (arc, feature) in [IP4_UNICAST, IP6_UNICAST].into_iter().zip(what) {
            let done = engine.set_feature(arc, feature, index.0, on);
            done.map_err(|e| ModelError::invalid(format!("{switch} on {name}"), e))?;
        }
        Ok(Applied::one())
    }

    fn set_urpf(
        &self,
        name: &str,
        family: Family,
        mode: Option<Urpf>,
    ) -> Result<Applied, ModelError> {
        let index = self.index(name)?;
        let mut engine = self.engine.borrow_mut();
        let (arc, features) = urpf(family);
        // What is wanted comes before the other one goes: no packet passes unchecked.
        let mut in_order = features.to_vec();
        in_order.sort_by_key(|(it, _)| Some(*it) != mode);
        for (it, feature) in in_order {
            let done = engine.set_feature(arc, feature, index.0, Some(it) == mode);
            done.map_err(|e| ModelError::invalid(format!("urpf on {name}"), e))?;
        }
        Ok(Applied::one())
    }
}

impl Handler for InterfaceHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceUrpf { name, family, mode } => {
                Some(self.set_urpf(name, *family, *mode))
            }
            Request::InterfaceIpSwitch { name, what, switch } => {
                let nodes = match what {
                    IpSwitch::Redirects => [V4::REDIRECT, V6::REDIRECT],
                    IpSwitch::VirtualReassembly => [V4::SV_FEATURE, V6::SV_FEATURE],
                    IpSwitch::DirectedBroadcast => return None,
                };
                Some(self.set_both(name, (*what, nodes), *switch == Switch::On))
            }
            _ => None,
        }
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
