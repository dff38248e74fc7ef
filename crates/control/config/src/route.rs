//! `[[route]]` and `[[route_file]]`.

use crate::field::Section;
use crate::read::{FAMILIES, Plan, path, table_ref};
use crate::schema as s;
use volley_model::{
    Family, Fold, NextHops, ObjectKind, Path, PathTarget, Prefix, Request, Route, RouteFormat,
    RouteLoad, RouteSource, limits,
};

pub(crate) fn route(section: Section<'_>, plan: &mut Plan) {
    let prefix: Option<Prefix> = section.required("prefix").and_then(|f| f.read());
    let family = prefix.map(Prefix::family);
    let table = section
        .get("table")
        .map_or(Some(0), |f| table_ref(&f, family?));
    let count = section
        .get("count")
        .map_or(Some(1), |f| f.uint(limits::ROUTE_COUNT));
    let paths = paths(&section, family);
    let (Some(prefix), Some(table), Some(count), Some(paths)) = (prefix, table, count, paths)
    else {
        return;
    };
    let source = RouteSource::Static;
    plan.object(
        &section,
        Request::RouteAdd(Route {
            prefix,
            table,
            source,
            paths,
            count,
        }),
    );
}

/// `paths = [..]`, or the keys of one path in the route itself.
fn paths(section: &Section<'_>, family: Option<Family>) -> Option<Vec<Path>> {
    let Some(list) = section.get("paths") else {
        return one_path(section, family).map(|p| vec![p]);
    };
    if s::PATH.keys.iter().any(|k| section.get(k.name).is_some()) {
        list.error("give either 'paths' or the keys of one path, not both");
        return None;
    }
    let fields = list.list();
    let read = |f: &crate::field::Field<'_>| f.section(&s::PATH).and_then(|s| one_path(&s, family));
    // All of them are read, so that all errors are found; one that failed makes the whole fail.
    let paths: Vec<Option<Path>> = fields.iter().map(read).collect();
    paths.into_iter().collect()
}

fn one_path(section: &Section<'_>, family: Option<Family>) -> Option<Path> {
    let actions = [
        ("drop", PathTarget::Drop),
        ("unreachable", PathTarget::Unreachable),
        ("prohibit", PathTarget::Prohibit),
        ("local", PathTarget::Local),
    ];
    let names = actions.each_ref().map(|(name, _)| *name);
    let index: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (*name, i))
        .collect();
    let weight = section
        .get("weight")
        .map_or(Some(1), |f| f.uint32(limits::WEIGHT));
    let preference = section
        .get("preference")
        .map_or(Some(0), |f| f.uint32(0..=255));
    let interface = section
        .get("interface")
        .map(|f| f.refers(ObjectKind::Interface));
    let next_hop_table = section
        .get("next_hop_table")
        .map(|f| table_ref(&f, family?));
    let onlink = section.get("onlink").map_or(Some(false), |f| f.boolean());
    let via = section.get("via").map(|f| f.read());
    let action = section.get("action").map(|f| f.one_of(&index));
    let lookup = section.get("lookup_in").map(|f| table_ref(&f, family?));
    let target = match (via, interface, action, lookup) {
        (Some(addr), interface, None, None) => PathTarget::Via {
            addr: addr?,
            interface: flat(interface)?,
            table: flat(next_hop_table)?,
        },
        (None, Some(interface), None, None) => PathTarget::Interface(interface?),
        (None, None, Some(action), None) => actions.into_iter().nth(action?)?.1,
        (None, None, None, Some(table)) => PathTarget::LookupIn(table?),
        (None, None, None, None) => {
            section.error("leads nowhere: give one of via, interface, action, lookup_in");
            return None;
        }
        _ => {
            section.error("leads to several places: give one of via, interface, action, lookup_in (via may have an interface)");
            return None;
        }
    };
    Some(Path {
        target,
        weight: weight?,
        preference: u8::try_from(preference?).ok()?,
        onlink: onlink?,
    })
}

/// A key that is not there is fine; one that is there and wrong is not.
fn flat<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(inner) => inner.map(Some),
    }
}

pub(crate) fn route_file(section: Section<'_>, plan: &mut Plan) {
    let formats = [
        ("auto", RouteFormat::Auto),
        ("text", RouteFormat::Text),
        ("mrt", RouteFormat::Mrt),
    ];
    let file = section.required("path").and_then(|f| path(&f));
    let format = section
        .get("format")
        .map_or(Some(RouteFormat::Auto), |f| f.one_of(&formats));
    let family = flat(section.get("family").map(|f| f.one_of(&FAMILIES)));
    let table = section.get("table").map_or(Some(0), |f| {
        let both = family.flatten().is_none();
        if both {
            table_ref(&f, Family::V6)?;
        }
        table_ref(&f, family.flatten().unwrap_or_default())
    });
    let limit = flat(section.get("limit").map(|f| f.uint(1..=u64::MAX)));
    let next_hops = match section.get("next_hops") {
        Some(field) => field
            .section(&s::NEXT_HOPS)
            .and_then(|s| next_hops(&s, family.flatten())),
        None => Some(NextHops::Listed),
    };
    let parts = (file, format, table, family, next_hops, limit);
    let (Some(path), Some(format), Some(table), Some(family), Some(next_hops), Some(limit)) = parts
    else {
        return;
    };
    let load = RouteLoad {
        path,
        format,
        table,
        family,
        next_hops,
        limit,
    };
    plan.object(&section, Request::RouteLoad(load));
}

fn next_hops(section: &Section<'_>, family: Option<Family>) -> Option<NextHops> {
    let folds = [("modulo", Fold::Modulo), ("clamp", Fold::Clamp)];
    let fold = section
        .get("fold")
        .map_or(Some(Fold::Modulo), |f| f.one_of(&folds));
    if let Some(list) = section.get("paths") {
        let fields = list.list();
        let read =
            |f: &crate::field::Field<'_>| f.section(&s::PATH).and_then(|s| one_path(&s, family));
        let paths: Vec<Option<Path>> = fields.iter().map(read).collect();
        let paths = paths.into_iter().collect::<Option<Vec<_>>>()?;
        return Some(NextHops::Paths { paths, fold: fold? });
    }
    let first = section.required("first").and_then(|f| f.read());
    let count = section
        .get("count")
        .map_or(Some(1), |f| f.uint32(limits::NEXT_HOPS));
    let names = section.required("interfaces").map(|f| f.list());
    let names: Vec<_> = names?
        .iter()
        .map(|f| f.refers(ObjectKind::Interface))
        .collect();
    Some(NextHops::Range {
        first: first?,
        count: count?,
        interfaces: names.into_iter().collect::<Option<_>>()?,
        fold: fold?,
    })
}
