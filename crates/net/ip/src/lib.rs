//! IPv4 and IPv6 forwarding: validation, lookup, load balance, rewrite. One generic body serves both families where they are
//! alike.
//!
//! `docs/forwarding-rules.md`, sections 4 to 11, lists what each node drops and why.
#![forbid(unsafe_code)]

mod control;
mod cut;
mod drops;
mod extensions;
mod family;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hash;
mod icmp;
mod local;
mod model;
pub mod node;
mod options4;
mod reassembly;
#[cfg(test)]
mod testing;
mod trace;
mod valid4;

pub use family::{Ip, Step};
pub use hash::{hash4, hash6};
pub use icmp::{ErrorReason, Icmp, IcmpSwitches};
pub use model::{
    IcmpSettings, ReassemblySettings, Redirects, Urpf as UrpfSetting, UrpfMode, VirtualReassembly,
    classes,
};
pub use trace::IpTrace;

pub use reassembly::{
    ReassemblyReply, ReassemblyRow, ReassemblySwitches, ShowReassembly, ShowVirtualReassembly,
    VirtualReassemblyReply, VirtualReassemblyRow,
};

use icmp::Reasons;
use node::ip_frag::Frag;
use node::ip_full_reassembly::FullReassembly;
use node::ip_full_reassembly_handoff::Handoff;
use node::ip_icmp_echo_request::EchoRequest;
use node::ip_icmp_error::IcmpError;
use node::ip_icmp_input::IcmpInput;
use node::ip_load_balance::LoadBalance;
use node::ip_local::Local;
use node::ip_lookup::Lookup;
use node::ip_not_enabled::NotEnabled;
use node::ip_redirect::Redirect;
use node::ip_rewrite::Rewrite;
use node::ip_rx_urpf_strict::{Loose, Strict, Urpf};
use node::ip_sv_reassembly::SvReassembly;
use node::ip_sv_reassembly_feature::SvFeature;
use node::ip4_input::Ip4Input;
use node::ip4_options::Ip4Options;
use node::ip6_hop_by_hop::Ip6HopByHop;
use node::ip6_input::Ip6Input;
use reassembly::{Full, ReassemblyHandler, Virtual};
use std::collections::hash_map::RandomState;
use std::sync::Arc;
use volley_fib::dataplane::DataPlane;
use volley_fib::{V4, V6};
use volley_graph::{ArcId, ArcPosition, Engine, Feature, GraphError, Node};
use volley_iface::{IfTable, Registry};
use volley_model::Family;

/// The feature arc of received unicast IPv4 packets.
pub const IP4_UNICAST: &str = "ip4-unicast";
/// The feature arc of received unicast IPv6 packets.
pub const IP6_UNICAST: &str = "ip6-unicast";

/// Registers the IP nodes over the FIB's forwarding state.
pub fn register(
    registry: &mut Registry,
    fib4: DataPlane<V4>,
    fib6: DataPlane<V6>,
) -> Result<(), GraphError> {
    let switches = Arc::new(IcmpSwitches::default());
    icmp::own(registry, &switches);
    let new = |family| {
        let switches = ReassemblySwitches::new(family, &mut registry.engine.borrow_mut());
        switches.map(Arc::new)
    };
    let all = [new(Family::V4)?, new(Family::V6)?];
    let [reassembly4, reassembly6] = all.clone();
    let worker_set = registry.engine.borrow().worker_set().clone();
    let handler = ReassemblyHandler { all, worker_set };
    handler.own(registry);
    control::own(registry);
    let table = registry.table();
    let mut engine = registry.engine.borrow_mut();
    let size = engine.settings().vector_size;
    let arc4 = engine.arc(IP4_UNICAST, Ip4Input::NAME, Lookup::<V4>::NAME);
    let arc6 = engine.arc(IP6_UNICAST, Ip6Input::NAME, Lookup::<V6>::NAME);
    let (fib, interfaces) = (fib4.clone(), table.clone());
    engine.add(Ip4Input::NAME, move |_| {
        Ip4Input::new(fib.clone(), interfaces.clone(), arc4, size)
    })?;
    let (fib, clock) = (fib4.clone(), engine.settings().clock.clone());
    engine.add(Ip4Options::NAME, move |_| {
        Ip4Options::new(fib.clone(), arc4, clock.clone())
    })?;
    let (fib, interfaces) = (fib6.clone(), table.clone());
    engine.add(Ip6Input::NAME, move |_| {
        Ip6Input::new(fib.clone(), interfaces.clone(), arc6, size)
    })?;
    engine.add(Ip6HopByHop::NAME, move |_| Ip6HopByHop::new(arc6))?;
    family::<V4>(&mut engine, fib4.clone(), &table, IP4_UNICAST)?;
    family::<V6>(&mut engine, fib6.clone(), &table, IP6_UNICAST)?;
    fragments(&mut engine, fib4.clone(), &reassembly4, &table)?;
    fragments(&mut engine, fib6.clone(), &reassembly6, &table)?;
    let arc = (arc4, IP4_UNICAST);
    in_transit(&mut engine, arc, fib4.clone(), &reassembly4)?;
    let arc = (arc6, IP6_UNICAST);
    in_transit(&mut engine, arc, fib6.clone(), &reassembly6)?;
    redirects(&mut engine, (fib4.clone(), IP4_UNICAST), &switches, &table)?;
    redirects(&mut engine, (fib6.clone(), IP6_UNICAST), &switches, &table)?;
    errors(&mut engine, fib4, &switches)?;
    errors(&mut engine, fib6, &switches)
}

/// Registers the nodes that share one body for both families.
fn family<F: Icmp>(
    engine: &mut Engine,
    fib: DataPlane<F>,
    table: &Arc<IfTable>,
    arc: &'static str,
) -> Result<(), GraphError> {
    let size = engine.settings().vector_size;
    let lookup = fib.clone();
    engine.add(Lookup::<F>::NAME, move |worker| {
        Lookup::new(lookup.clone(), worker, size)
    })?;
    let balance = fib.clone();
    engine.add(LoadBalance::<F>::NAME, move |_| {
        LoadBalance::new(balance.clone(), size)
    })?;
    let rewrite = fib.clone();
    engine.add(Rewrite::<F>::NAME, move |_| {
        Rewrite::new(rewrite.clone(), size)
    })?;
    let (local, icmp) = (table.clone(), table.clone());
    engine.add(Local::<F>::NAME, move |_| Local::<F>::new(local.clone()))?;
    engine.add(IcmpInput::<F>::NAME, move |_| {
        IcmpInput::<F>::new(icmp.clone())
    })?;
    engine.add(EchoRequest::<F>::NAME, |_| EchoRequest::<F>::default())?;
    engine.add(NotEnabled::<F>::NAME, |_| NotEnabled::<F>::default())?;
    engine.add_feature(arc, Feature::after(NotEnabled::<F>::NAME, &[]))?;
    let sources = fib.clone();
    engine.add(Urpf::<F, Strict>::NAME, move |_| {
        Urpf::<F, Strict>::new(sources.clone(), size)
    })?;
    engine.add(Urpf::<F, Loose>::NAME, move |_| {
        Urpf::<F, Loose>::new(fib.clone(), size)
    })?;
    for name in [F::URPF_STRICT, F::URPF_LOOSE] {
        engine.add_feature(arc, Feature::after(name, F::BEHIND_NOT_ENABLED))?;
    }
    Ok(())
}

/// Registers the nodes for fragmentation and for reassembly of packets to the router.
fn fragments<F: Icmp>(
    engine: &mut Engine,
    fib: DataPlane<F>,
    switches: &Arc<ReassemblySwitches>,
    table: &Arc<IfTable>,
) -> Result<(), GraphError> {
    let (size, hasher) = (engine.settings().vector_size, RandomState::new());
    let (mtus, numbers) = ((fib.clone(), table.clone()), hasher.clone());
    engine.add(Frag::<F>::NAME, move |worker| {
        Frag::new(mtus.clone(), numbers.clone(), worker)
    })?;
    let worker_set = engine.worker_set().clone();
    engine.add(Handoff::<Full<F>>::NAME, move |_| {
        Handoff::<Full<F>>::new(worker_set.clone(), hasher.clone(), size)
    })?;
    let switches = switches.clone();
    engine.add_stage(FullReassembly::<F>::NAME, move |worker| {
        FullReassembly::new(fib.clone(), switches.clone(), worker, size)
    })?;
    Ok(())
}

/// Registers the feature for virtual reassembly of fragments in transit.
fn in_transit<F: Icmp>(
    engine: &mut Engine,
    (arc, arc_name): (ArcId, &'static str),
    fib: DataPlane<F>,
    switches: &Arc<ReassemblySwitches>,
) -> Result<(), GraphError> {
    let (size, hasher) = (engine.settings().vector_size, RandomState::new());
    let node = engine.add(SvFeature::<F>::NAME, move |_| SvFeature::<F>::new(size))?;
    engine.add_feature(arc_name, Feature::after(F::SV_FEATURE, F::BEHIND_URPF))?;
    let worker_set = engine.worker_set().clone();
    engine.add(Handoff::<Virtual<F>>::NAME, move |_| {
        Handoff::<Virtual<F>>::new(worker_set.clone(), hasher.clone(), size)
    })?;
    let (switches, spot) = (switches.clone(), ArcPosition { arc, node });
    engine.add_stage(SvReassembly::<F>::NAME, move |worker| {
        SvReassembly::new(fib.clone(), switches.clone(), spot, (worker, size))
    })?;
    Ok(())
}

/// Registers the feature that sends redirects.
fn redirects<F: Icmp>(
    engine: &mut Engine,
    (fib, arc): (DataPlane<F>, &'static str),
    switches: &Arc<IcmpSwitches>,
    table: &Arc<IfTable>,
) -> Result<(), GraphError> {
    let (switches, table) = (switches.clone(), table.clone());
    let size = engine.settings().vector_size;
    engine.add(Redirect::<F>::NAME, move |_| {
        Redirect::new(fib.clone(), switches.clone(), table.clone(), size)
    })?;
    engine.add_feature(arc, Feature::after(F::REDIRECT, F::BEHIND_FLOWS))
}

/// Registers the node that sends ICMP errors; after all nodes whose drops it reports.
fn errors<F: Icmp>(
    engine: &mut Engine,
    fib: DataPlane<F>,
    switches: &Arc<IcmpSwitches>,
) -> Result<(), GraphError> {
    let reasons = Reasons::of::<F>(engine)?;
    let switches = switches.clone();
    engine.add(IcmpError::<F>::NAME, move |_| {
        IcmpError::new(fib.clone(), switches.clone(), reasons.clone())
    })?;
    Ok(())
}
