//! `[[route]]`.

use crate::field::Section;
use crate::object::{self, kept};
use crate::read::{Plan, table_ref};
use crate::schema::{ROUTE, Table};
use volley_model::{Family, Path, Prefix, Request, Route, RouteSource, limits};
use volley_object::FieldType;

/// The keys of a path.
fn path_rows() -> Vec<(&'static str, String)> {
    let table = Path::kind().table().map(|table| (table.fields)());
    let fields = table.into_iter().flatten();
    fields.map(|field| (field.name, field.help())).collect()
}

/// The table of a path in the list of a route.
pub(crate) fn path_table() -> &'static Table {
    kept("route.paths", true, path_rows())
}

/// `[[route]]`, which may have the keys of one path.
pub(crate) fn table() -> &'static Table {
    let own = ROUTE.keys.iter();
    let own = own.map(|key| (key.name, key.text.to_owned()));
    kept(ROUTE.name, ROUTE.repeats, own.chain(path_rows()).collect())
}

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
    let table = Path::kind().table()?;
    let version = family.map(Family::version);
    let read = |text: Option<String>| text?.parse::<Path>().ok();
    let Some(list) = section.get("paths") else {
        return read(object::text_in(table, section, version)).map(|path| vec![path]);
    };
    if (table.fields)()
        .iter()
        .any(|f| section.get(f.name).is_some())
    {
        list.error("give either 'paths' or the keys of one path, not both");
        return None;
    }
    // All of them are read, so that all errors are found; one that failed makes the whole fail.
    let fields = list.list();
    let paths = fields.iter().map(|it| object::text_of(table, it, version));
    let paths: Vec<Option<Path>> = paths.map(read).collect();
    paths.into_iter().collect()
}
