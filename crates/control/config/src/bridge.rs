//! Bridge domains of the file.

use crate::field::{Field, Section};
use crate::read::Plan;
use volley_model::{BridgeDomain, BridgePort, L2FibEntry, ObjectKind, Request};

/// A bridge domain that the file must declare.
fn domain_ref(section: &Section<'_>) -> Option<u32> {
    let field = section.required("domain")?;
    let id = field.uint32(0..=u32::MAX)?;
    field.refers_to(ObjectKind::BridgeDomain, id.to_string());
    Some(id)
}

fn interface_ref(field: &Field<'_>) -> Option<String> {
    field.refers(ObjectKind::Interface)
}

/// `[[bridge_domain]]`
pub(crate) fn domain(section: Section<'_>, plan: &mut Plan) {
    let Some(field) = section.required("id") else {
        return;
    };
    let Some(id) = field.uint32(0..=u32::MAX) else {
        return;
    };
    if !plan.domains.add(id.to_string()) {
        return field.error(format!("bridge domain {id} is declared twice"));
    }
    let usual = BridgeDomain::default();
    let on = |key| section.get(key).and_then(|f| f.boolean()).unwrap_or(true);
    let number = |key| section.get(key).and_then(|f| f.uint32(0..=u32::MAX));
    let it = BridgeDomain {
        id,
        learn: on("learn"),
        flood: on("flood"),
        uu_flood: on("uu_flood"),
        forward: on("forward"),
        mac_age_min: number("mac_age").unwrap_or(usual.mac_age_min),
        mac_limit: number("mac_limit").unwrap_or(usual.mac_limit),
        group_fwd_mask: number("group_fwd_mask").unwrap_or(0),
    };
    plan.before(&section, Request::BridgeDomainSet(it));
}

/// `[[bridge_port]]`
pub(crate) fn port(section: Section<'_>, plan: &mut Plan) {
    let interface = section.required("interface");
    let interface = interface.and_then(|f| interface_ref(&f));
    let shg = section.get("shg").and_then(|f| f.uint32(0..=255));
    let (Some(interface), Some(domain)) = (interface, domain_ref(&section)) else {
        return;
    };
    let shg = shg.unwrap_or(0);
    let port = BridgePort {
        interface,
        domain,
        shg,
    };
    plan.object(&section, Request::BridgePortSet(port));
}

/// `[[l2fib]]`
pub(crate) fn station(section: Section<'_>, plan: &mut Plan) {
    let mac = section.required("mac").and_then(|f| f.read());
    let interface = section.get("interface").and_then(|f| interface_ref(&f));
    let filter = section.get("filter").and_then(|f| f.boolean()) == Some(true);
    if filter == interface.is_some() {
        return section.error("give either the interface behind which it is, or filter = true");
    }
    let (Some(mac), Some(domain)) = (mac, domain_ref(&section)) else {
        return;
    };
    let entry = L2FibEntry {
        mac,
        domain,
        interface,
    };
    plan.object(&section, Request::L2FibAdd(entry));
}
