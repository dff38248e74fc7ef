//! Owners of the IP settings of interfaces: reverse-path check, redirects, virtual reassembly.

use crate::model::{Redirects, Urpf, UrpfMode, VirtualReassembly};
use crate::reassembly::Reassemble;
use crate::{IP4_UNICAST, IP6_UNICAST, Icmp, Ip};
use std::cell::RefCell;
use std::rc::Rc;
use volley_fib::{V4, V6};
use volley_graph::Engine;
use volley_iface::{IfIdx, Registry};
use volley_model::{Applied, Family, ModelError, key_value};
use volley_object::ObjectKey;

type Shared = Rc<RefCell<Engine>>;

/// Registers the owners of the classes.
pub(crate) fn own(registry: &mut Registry) {
    let engine = registry.engine.clone();
    registry.own_setting(move |index, key, now: Option<Urpf>| {
        urpf(&engine, index, key, now.map(|it| it.mode))
    });
    let engine = registry.engine.clone();
    registry.own_setting(move |index, key, now: Option<Redirects>| {
        let on = now.is_some_and(|it| it.enabled);
        both(&engine, index, key, [V4::REDIRECT, V6::REDIRECT], on)
    });
    let engine = registry.engine.clone();
    registry.own_setting(move |index, key, now: Option<VirtualReassembly>| {
        let on = now.is_some_and(|it| it.enabled);
        both(&engine, index, key, [V4::SV_FEATURE, V6::SV_FEATURE], on)
    });
}

/// Enables or disables a feature for both families; `nodes` are its nodes.
fn both(
    engine: &Shared,
    index: IfIdx,
    key: &ObjectKey,
    nodes: [&'static str; 2],
    on: bool,
) -> Result<Applied, ModelError> {
    let mut engine = engine.borrow_mut();
    for (arc, feature) in [IP4_UNICAST, IP6_UNICAST].into_iter().zip(nodes) {
        let done = engine.set_feature(arc, feature, index.0, on);
        done.map_err(|e| ModelError::invalid(key, e))?;
    }
    Ok(Applied::one())
}

fn urpf(
    engine: &Shared,
    index: IfIdx,
    key: &ObjectKey,
    mode: Option<UrpfMode>,
) -> Result<Applied, ModelError> {
    let (arc, strict, loose) = match key_value(key, 1) {
        Family::V4 => (IP4_UNICAST, V4::URPF_STRICT, V4::URPF_LOOSE),
        Family::V6 => (IP6_UNICAST, V6::URPF_STRICT, V6::URPF_LOOSE),
    };
    let mut features = [(UrpfMode::Strict, strict), (UrpfMode::Loose, loose)];
    // The new check is enabled before the other one is disabled: no packet passes unchecked.
    features.sort_by_key(|(it, _)| Some(*it) != mode);
    let mut engine = engine.borrow_mut();
    for (it, feature) in features {
        let done = engine.set_feature(arc, feature, index.0, Some(it) == mode);
        done.map_err(|e| ModelError::invalid(key, e))?;
    }
    Ok(Applied::one())
}
