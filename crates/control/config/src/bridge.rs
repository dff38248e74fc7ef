//! Bridge domains of the file.

use crate::field::{Field, Referred, Section};
use crate::read::Plan;
use volley_model::{BridgePort, ObjectKind, Request};

/// A bridge domain that the file must declare.
fn domain_ref(section: &Section<'_>) -> Option<u32> {
    let field = section.required("domain")?;
    let id = field.uint32(0..=u32::MAX)?;
    field.refers_to(Referred::Class("bridge_domain"), id.to_string());
    Some(id)
}

fn interface_ref(field: &Field<'_>) -> Option<String> {
    field.refers(ObjectKind::Interface)
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
