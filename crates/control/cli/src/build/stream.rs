//! Streams, captures, traces.

use super::args::Args;
use super::interface::stray;
use crate::grammar::{Id, Piece};
use std::path::PathBuf;
use volley_model::{
    Directions, Edit, Enter, Monitor, Request, Sizes, StreamSource, StreamSpec, SyntaxError,
    Template, TraceSpec, parse_rate, vpp_data,
};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::StreamNew => Request::StreamNew(stream(args)?),
        Id::StreamEnable => Request::StreamEnable {
            name: args.maybe_text(),
        },
        Id::StreamDisable => Request::StreamDisable {
            name: args.maybe_text(),
        },
        _ => Request::StreamDelete { name: args.text()? },
    })
}

fn stream(args: &mut Args<'_>) -> Result<StreamSpec, SyntaxError> {
    while args.take("packet-generator") || args.take("new") {}
    let (mut name, mut source, mut enter) = (None, None, Enter::default());
    let mut spec = blank();
    while let Some((word, column)) = args.option()? {
        match word {
            "name" => name = Some(args.text()?),
            "interface" | "source" => enter.interface = Some(args.text()?),
            "node" => enter.node = Some(args.text()?),
            "limit" => spec.limit = Some(args.number(u64::MAX)?).filter(|n| *n > 0),
            "rate" => {
                let token = args.token()?;
                let rate =
                    parse_rate(&token.text).map_err(|e| SyntaxError::new(token.column, e))?;
                spec.rate_pps = Some(rate);
            }
            "size" => spec.sizes = sizes(args)?,
            "maxframe" => spec.max_frame = Some(args.number32()?),
            "seed" => spec.seed = Some(args.number(u64::MAX)?),
            "worker" => spec.worker = Some(args.number32()?),
            // Packets are always made anew here, so there is nothing to recycle.
            "no-recycle" => {}
            "edit" => spec.edits.push(edit(args)?),
            "template" | "data" | "pcap" if source.is_some() => {
                let message = "there are packets already: give one of template, data, pcap";
                return Err(SyntaxError::new(column, message));
            }
            "template" => {
                let token = args.token()?;
                let template = token
                    .text
                    .parse::<Template>()
                    .map_err(|e| e.shifted(token.column))?;
                source = Some(StreamSource::Template(template));
            }
            "data" => {
                let token = args.token()?;
                let (template, edits) =
                    vpp_data::parse(&token.text).map_err(|e| e.shifted(token.column))?;
                spec.edits.extend(edits);
                source = Some(StreamSource::Template(template));
            }
            "pcap" => source = Some(StreamSource::File(args.text()?.into())),
            _ => stray(word, column)?,
        }
    }
    let missing = |what: &str| SyntaxError::new(1, format!("the stream has no {what}"));
    spec.name = name.ok_or_else(|| missing("name: give one such as 'name s0'"))?;
    let packets = "packets: give template { ... }, data { ... } or pcap FILE";
    spec.source = source.ok_or_else(|| missing(packets))?;
    spec.enter = enter;
    Ok(spec)
}

fn blank() -> StreamSpec {
    StreamSpec {
        name: String::new(),
        enter: Enter::default(),
        source: StreamSource::File(PathBuf::new()),
        edits: Vec::new(),
        sizes: Sizes::AsBuilt,
        rate_pps: None,
        limit: None,
        max_frame: None,
        seed: None,
        worker: None,
    }
}

fn sizes(args: &mut Args<'_>) -> Result<Sizes, SyntaxError> {
    if args.take("imix") {
        let Some(token) = args.named("imix") else {
            return Ok(Sizes::simple_imix());
        };
        let text = format!("imix {}", token.text);
        return text
            .parse()
            .map_err(|e: String| SyntaxError::new(token.column, e));
    }
    let random = if args.take("random") { "random " } else { "" };
    let token = args.token()?;
    let text = format!("{random}{}", token.text);
    text.parse()
        .map_err(|e: String| SyntaxError::new(token.column, e))
}

/// The words of one edit, read by the model.
fn edit(args: &mut Args<'_>) -> Result<Edit, SyntaxError> {
    let inner = [
        "offset",
        "size",
        "fixed",
        "increment",
        "step",
        "random",
        "list",
        "file",
    ];
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut slots = 0;
    loop {
        match args.peek() {
            // `size` is an option of the stream as well: inside an edit it stands behind `offset N` only.
            Some(Piece::Word("size", _))
                if !(slots == 1 && words.len() == 2 && words[0].1 == "offset") =>
            {
                break;
            }
            Some(Piece::Word(word, column)) if inner.contains(word) => words.push((*column, word)),
            Some(Piece::Slot(_, token)) => {
                slots += 1;
                words.push((token.column, &token.text));
            }
            _ => break,
        }
        match args.word() {
            Some(_) => {}
            None => _ = args.slot(),
        }
    }
    let end = words
        .last()
        .map_or(1, |(column, word)| column + word.chars().count());
    Edit::from_words(&words, end)
}

pub(super) fn trace(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let node = args.text()?;
    let count = args.number(u64::MAX)?;
    let filter = args.take("filter").then(|| args.text()).transpose()?;
    Ok(Request::TraceAdd(TraceSpec {
        node,
        count,
        filter,
    }))
}

pub(super) fn monitor(args: &mut Args<'_>) -> Result<Monitor, SyntaxError> {
    args.take("monitor");
    let any = args.take("any");
    let mut monitor = Monitor {
        directions: Directions::default(),
        interface: (!any).then(|| args.text()).transpose()?,
        count: None,
        snap: None,
        filter: None,
        pcapng: false,
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "rx" => monitor.directions.rx = true,
            "tx" => monitor.directions.tx = true,
            "drop" => monitor.directions.drop = true,
            "count" => monitor.count = Some(args.number(u64::MAX)?),
            "max-bytes-per-packet" => monitor.snap = Some(args.number32()?),
            "filter" => monitor.filter = Some(args.text()?),
            "pcapng" => monitor.pcapng = true,
            _ => stray(word, column)?,
        }
    }
    if monitor.directions == Directions::default() {
        (monitor.directions.rx, monitor.directions.tx) = (true, true);
    }
    Ok(monitor)
}
