//! `[[mroute]]`.

use crate::field::{Field, Section};
use crate::read::{Plan, table_ref};
use std::net::IpAddr;
use volley_model::{Mroute, ObjectKind, Prefix, Request};

/// A group by itself, or many by their prefix.
fn group(field: &Field<'_>) -> Option<Prefix> {
    let text: String = field.read()?;
    if text.contains('/') {
        return field.read();
    }
    field.read::<IpAddr>().map(Prefix::host)
}

fn interfaces(field: &Field<'_>) -> Option<Vec<String>> {
    let fields = field.list();
    // All of them are read, so that all errors are found.
    let names: Vec<_> = fields
        .iter()
        .map(|f| f.refers(ObjectKind::Interface))
        .collect();
    names.into_iter().collect()
}

pub(crate) fn mroute(section: Section<'_>, plan: &mut Plan) {
    let group = section.required("group").and_then(|f| group(&f));
    let source = section.get("source").map(|f| f.read::<IpAddr>());
    let family = group.map(Prefix::family);
    let table = section
        .get("table")
        .map_or(Some(0), |f| table_ref(&f, family?));
    let accept = section.required("accept").and_then(|f| interfaces(&f));
    let forward = section
        .get("forward")
        .map_or(Some(Vec::new()), |f| interfaces(&f));
    let (Some(group), Some(table), Some(accept), Some(forward)) = (group, table, accept, forward)
    else {
        return;
    };
    let source = match source {
        None => None,
        Some(None) => return,
        Some(source) => source,
    };
    let it = Mroute {
        group,
        source,
        table,
        accept,
        forward,
    };
    plan.object(&section, Request::MrouteSet(it));
}
