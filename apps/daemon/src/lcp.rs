//! The parts of LCP taps that need several crates: a tap is a separate interface, with routes in the FIB.

use crate::stack::Stack;
use volley_fib::path::RouteSource;
use volley_iface::AdminState;
use volley_iface::SubInterfaceRow;
use volley_iface::{Admin, Interface};
use volley_lcp::LcpTap;
use volley_model::{Applied, InterfaceSpec, Mac, ModelError, ObjectKind, Request};
use volley_object::{FieldError, Object};
use volley_tap::model::TapInterface;
use volley_vlan::model::SubInterface;

/// An error of an object that was checked before.
fn invalid(error: FieldError) -> ModelError {
    ModelError::invalid(LcpTap::CLASS, error)
}

impl Stack {
    /// Carries out a request about an LCP tap; none if the request is about something else.
    pub(crate) fn lcp_step(&self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::Set(object) => LcpTap::of(object).map(|tap| self.lcp_create(&tap)),
            Request::Unset(key) if key.class().name() == LcpTap::CLASS => {
                Some(self.lcp_delete(key.owner().unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// Creates the LCP tap with the interface's MAC address and MTU, then its assignment; both or neither.
    fn lcp_create(&self, pair: &LcpTap) -> Result<Applied, ModelError> {
        let there = self.lcp.of(&self.interfaces.borrow(), &pair.interface);
        if there.as_ref() == Some(pair) {
            return Ok(Applied::nothing());
        }
        if let Some(other) = self.lcp.namespace().filter(|n| *n != pair.netns) {
            let place = other.map_or("Volley's own".to_owned(), |name| {
                format!("namespace {name}")
            });
            let why =
                format!("all LCP taps are in one network namespace, and the others are in {place}");
            return Err(ModelError::invalid(
                format!("lcp of {}", pair.interface),
                why,
            ));
        }
        let end = match pair.parent_tap() {
            Some(parent) => self.lcp_sub(pair, parent)?,
            None => self.lcp_tap(pair)?,
        };
        let assign = Request::set(pair).map_err(invalid)?;
        self.carry_out(&Request::InterfaceCreate(end))?;
        let done = self.carry_out(&assign);
        if done.is_err() {
            let _ = self.carry_out(&Request::InterfaceDelete { name: pair.tap() });
        } else {
            self.lcp_follow();
        }
        done
    }

    /// The interface specification of an LCP tap that is a tap in the kernel.
    fn lcp_tap(&self, pair: &LcpTap) -> Result<InterfaceSpec, ModelError> {
        let (mac, mtu) = self.lcp_hardware(&pair.interface)?;
        let tap = TapInterface {
            name: pair.tap(),
            host: Some(pair.host_if.clone()),
            namespace: pair.netns.clone(),
            host_mac: Some(mac),
            ..TapInterface::default()
        };
        Ok(InterfaceSpec {
            mtu: Some(mtu),
            ..InterfaceSpec::of(&tap).map_err(invalid)?
        })
    }

    /// Volley's end of an LCP tap that is an 802.1Q device: packets to it get the tags of the sub-interface again and leave on
    /// the LCP tap of the parent. LCP sync creates the device if it does not exist.
    fn lcp_sub(&self, pair: &LcpTap, parent: &str) -> Result<InterfaceSpec, ModelError> {
        let (_, mtu) = self.lcp_hardware(&pair.interface)?;
        let refuse = |why: String| ModelError::invalid(format!("lcp of {}", pair.interface), why);
        let Some(trunk) = self.lcp_tap_name(parent) else {
            let why = "an LCP tap with `vlan` is a device on the LCP tap of the parent interface, which has none: `lcp create";
            return Err(refuse(format!("{why} {parent} host-if ...` first")));
        };
        let sub = {
            let all = self.interfaces.borrow();
            let found = all.by_name(&pair.interface);
            found.and_then(|it| volley_iface::sub_interface_row(&all, it))
        };
        let Some(sub) = sub else {
            return Err(refuse("it is no sub-interface: leave `vlan` out".into()));
        };
        let sub = SubInterface::from(SubInterfaceRow {
            parent: trunk,
            ..sub
        });
        Ok(InterfaceSpec {
            mtu: Some(mtu),
            ..InterfaceSpec::of(&sub).map_err(invalid)?
        })
    }

    fn lcp_tap_name(&self, interface: &str) -> Option<String> {
        self.lcp.tap_of(&self.interfaces.borrow(), interface)
    }

    fn lcp_hardware(&self, name: &str) -> Result<(Mac, u32), ModelError> {
        let all = self.interfaces.borrow();
        let found = all.by_name(name).map(|i| (Mac(i.mac), i.mtu));
        let known = || all.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        found.ok_or_else(|| ModelError::not_found(ObjectKind::Interface, name, known()))
    }

    /// Deletes an LCP tap and the routes that the kernel had through it.
    fn lcp_delete(&self, interface: &str) -> Result<Applied, ModelError> {
        let tap = self.lcp_tap_name(interface);
        let request = Request::unset_key(LcpTap::CLASS, [interface.into()]).map_err(invalid)?;
        let done = self.carry_out(&request)?;
        let index = self.interfaces.borrow().index(interface);
        if let Ok(index) = index {
            let mut fib = self.fib.borrow_mut();
            fib.forget_via(index.0, RouteSource::LcpRt);
        }
        let Some(name) = tap else { return Ok(done) };
        let gone = self.carry_out(&Request::InterfaceDelete { name });
        gone.map(|_| done)
    }

    /// Sets the carrier of each LCP tap: on while its interface can pass packets.
    pub(crate) fn lcp_follow(&self) {
        let wanted: Vec<(String, AdminState)> = {
            let all = self.interfaces.borrow();
            let state = |i: &Interface| {
                let tap = self.lcp.tap_of(&all, &i.name)?;
                let state = match i.is_up() {
                    true => AdminState::Up,
                    false => AdminState::Down,
                };
                (all.by_name(&tap)?.state != state).then_some((tap, state))
            };
            all.iter().filter_map(state).collect()
        };
        for (name, state) in wanted {
            // A tap accepts every state.
            let set = Admin::request(name, state).map_err(invalid);
            let _ = set.and_then(|request| self.carry_out(&request));
        }
    }
}
