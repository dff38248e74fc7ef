//! Protocols of the path batcher in the file.

use crate::field::Section;
use crate::read::Plan;
use std::fmt::Display;
use std::str::FromStr;
use volley_model::{PathHeader, Request};

fn number(section: &Section<'_>, key: &'static str) -> Option<u32> {
    section.get(key).and_then(|f| f.uint32(0..=u32::MAX))
}

/// A list of texts that each mean something.
fn list<T: FromStr<Err: Display>>(section: &Section<'_>, key: &'static str) -> Vec<T> {
    let fields = section.get(key).map_or(Vec::new(), |f| f.list());
    let read = |f: &crate::field::Field<'_>| match f.text()?.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            f.error(error);
            None
        }
    };
    fields.iter().filter_map(read).collect()
}

/// `[[path_header]]`
pub(crate) fn header(section: Section<'_>, plan: &mut Plan) {
    let name = section.required("name").and_then(|f| f.text());
    let length = section
        .required("length")
        .and_then(|f| f.uint32(0..=u32::MAX));
    let (Some(name), Some(length)) = (name, length) else {
        return;
    };
    let it = PathHeader {
        name: name.to_owned(),
        length,
        length_at: number(&section, "length_at"),
        length_mask: number(&section, "length_mask"),
        length_scale: number(&section, "length_scale"),
        next_at: number(&section, "next_at"),
        next_bytes: number(&section, "next_bytes"),
        next: list(&section, "next"),
        after: list(&section, "after"),
        fields: list(&section, "fields"),
    };
    plan.before(&section, Request::PathHeaderSet(it));
}
