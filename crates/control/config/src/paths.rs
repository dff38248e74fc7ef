//! The path batcher of the file.

use crate::field::Section;
use crate::read::Plan;
use std::fmt::Display;
use std::str::FromStr;
use volley_model::{PathBatcher, PathHeader, PathLearning, PathQueue, PathRule, Request};

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

/// `[path_batcher]`
pub(crate) fn defaults(section: Section<'_>, plan: &mut Plan) {
    let (usual, learn) = (PathBatcher::default(), PathLearning::default());
    let of = |key, usual| number(&section, key).unwrap_or(usual);
    let learn = number(&section, "learn").map(|queues| PathLearning {
        queues,
        sample: of("learn_sample", learn.sample),
        interval_ms: of("learn_interval_ms", learn.interval_ms),
        margin_percent: of("learn_margin_percent", learn.margin_percent),
        fields: list(&section, "learn_fields"),
    });
    let it = PathBatcher {
        batch: of("batch", usual.batch),
        timeout_us: of("timeout_us", usual.timeout_us),
        gather: of("gather", usual.gather),
        learn,
    };
    plan.before(&section, Request::PathBatcherSet(it));
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

/// `[[path_queue]]`
pub(crate) fn queue(section: Section<'_>, plan: &mut Plan) {
    let id = section.required("id").and_then(|f| f.uint32(0..=u32::MAX));
    let Some(id) = id else {
        return;
    };
    let it = PathQueue {
        id,
        batch: number(&section, "batch"),
        timeout_us: number(&section, "timeout_us"),
        gather: number(&section, "gather"),
        weight: number(&section, "weight"),
        strict: number(&section, "strict"),
    };
    plan.before(&section, Request::PathQueueSet(it));
}

/// `[[path_rule]]`
pub(crate) fn rule(section: Section<'_>, plan: &mut Plan) {
    let name = section.required("name").and_then(|f| f.text());
    let queue = section
        .required("queue")
        .and_then(|f| f.uint32(0..=u32::MAX));
    let (Some(name), Some(queue)) = (name, queue) else {
        return;
    };
    let it = PathRule {
        name: name.to_owned(),
        queue,
        priority: number(&section, "priority").unwrap_or(0),
        matches: list(&section, "match"),
    };
    plan.before(&section, Request::PathRuleSet(it));
}
