//! `[[stream]]`.

use crate::field::{Field, Section};
use crate::read::{Plan, path};
use volley_model::{
    Edit, Enter, ObjectKind, Request, Sizes, StreamSource, StreamSpec, limits, parse_rate, vpp_data,
};

pub(crate) fn stream(section: Section<'_>, plan: &mut Plan) {
    let name = section
        .required("name")
        .and_then(|f| f.declares(ObjectKind::Stream, &mut plan.streams));
    let source = source(&section);
    let edits = section.get("edits").map_or(Vec::new(), |f| f.list());
    let edits: Vec<Option<Edit>> = edits.iter().map(Field::read).collect();
    let sizes = optional(&section, "size", |f| {
        f.text_or_number().and_then(|t| f.check(t.parse::<Sizes>()))
    });
    let rate = optional(&section, "rate", |f| {
        f.text_or_number().and_then(|t| f.check(parse_rate(&t)))
    });
    let limit = optional(&section, "limit", |f| f.uint(1..=u64::MAX));
    let frames = 1..=*limits::VECTOR_SIZE.end();
    let max_frame = optional(&section, "max_frame", |f| f.uint32(frames.clone()));
    let seed = optional(&section, "seed", |f| f.uint(0..=u64::MAX));
    let worker = optional(&section, "worker", |f| f.uint32(0..=u32::MAX));
    let enabled = optional(&section, "enabled", |f| f.boolean());
    let enter = Enter {
        interface: section
            .get("interface")
            .and_then(|f| f.refers(ObjectKind::Interface)),
        node: section
            .get("node")
            .and_then(|f| f.text().map(str::to_string)),
    };
    let spec = || {
        let (source, mut more) = source?;
        more.extend(edits.into_iter().collect::<Option<Vec<_>>>()?);
        Some(StreamSpec {
            name: name?,
            enter,
            source,
            edits: more,
            sizes: sizes?.unwrap_or_default(),
            rate_pps: rate?,
            limit: limit?,
            max_frame: max_frame?,
            seed: seed?,
            worker: worker?,
        })
    };
    let Some(spec) = spec() else {
        return;
    };
    if enabled == Some(Some(true)) {
        let name = Some(spec.name.clone());
        plan.start(Request::StreamEnable { name });
    }
    plan.object(&section, Request::StreamNew(spec));
}

/// `Some(None)` = not there, `None` = there and wrong.
fn optional<'a, T>(
    section: &Section<'a>,
    key: &'static str,
    read: impl Fn(&Field<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match section.get(key) {
        None => Some(None),
        Some(field) => read(&field).map(Some),
    }
}

fn source(section: &Section<'_>) -> Option<(StreamSource, Vec<Edit>)> {
    let (template, data, file) = (
        section.get("template"),
        section.get("data"),
        section.get("pcap"),
    );
    match (template, data, file) {
        (Some(f), None, None) => f.read().map(|t| (StreamSource::Template(t), Vec::new())),
        (None, Some(f), None) => {
            let (template, edits) = f.check(vpp_data::parse(f.text()?))?;
            Some((StreamSource::Template(template), edits))
        }
        (None, None, Some(f)) => path(&f).map(|p| (StreamSource::File(p), Vec::new())),
        _ => {
            section.error("has no packets, or too many kinds: give one of template, data, pcap");
            None
        }
    }
}
