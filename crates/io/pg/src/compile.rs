//! Compiles a stream's specification to the data for its worker, and reports all errors in it.

use crate::make::bits::Place;
use crate::make::pick::Pick;
use crate::make::program::Program;
use crate::make::template::{Built, build};
use crate::make::unroll::unroll;
use crate::make::values::Values;
use crate::spec::{Edit, EditTarget, Sizes, Source, StreamSpec, Template};
use crate::stream::{Parts, Preload};
use std::path::Path;
use volley_graph::NodeId;
use volley_graph::buf::DATA;
use volley_model::ModelError;
use volley_pcap::interface::{file_error, frame_fault};

/// The values behind the names in a specification, and defaults.
pub(crate) struct Setting {
    /// Interface that packets count as received on.
    pub(crate) rx: Option<u32>,
    /// First node of the packets; none = the interface's.
    pub(crate) node: Option<NodeId>,
    /// Seed of streams without one.
    pub(crate) seed: u64,
    /// Packets per vector.
    pub(crate) vector_size: usize,
}

/// Compile a stream.
pub(crate) fn compile(spec: &StreamSpec, at: &Setting) -> Result<Parts, ModelError> {
    let source = spec.source()?;
    let (programs, pick) = match source {
        Source::Template(template) => from_template(spec, template)?,
        Source::File(path) => from_file(spec, path)?,
    };
    let values = spec.all_edits().map(Values::of);
    let values = values.collect::<Result<Box<[_]>, _>>()?;
    let packets = matches!(source, Source::File(_)).then_some(programs.len() as u64);
    let max_frame = spec.max_frame.map_or(at.vector_size, |n| n as usize);
    Ok(Parts {
        round: unroll(&programs, &pick, &values),
        pick,
        values,
        seed: spec.seed.unwrap_or_else(|| seed_of(at.seed, &spec.name)),
        rate_pps: spec.rate,
        limit: Some(spec.limit).filter(|n| *n > 0).or(packets),
        max_frame: max_frame.min(at.vector_size),
        rx: at.rx,
        node: at.node,
        programs,
    })
}

/// Seeds by default differ between streams, but not between runs (FNV-1a).
fn seed_of(seed: u64, name: &str) -> u64 {
    name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn from_template(
    spec: &StreamSpec,
    template: &Template,
) -> Result<(Box<[Program]>, Pick), ModelError> {
    let one = |size: Option<u32>, any_length: bool, shortest: u32| {
        let built = build(template, size.map(|n| n as usize))?;
        let least = if any_length {
            built.headers.max(shortest as usize)
        } else {
            built.bytes.len()
        };
        let places = places(spec, &built, least)?;
        Ok::<Program, ModelError>(Program::of(&built, &places, any_length))
    };
    let only = |program| Ok((Box::from([program]), Pick::Only));
    match &spec.size {
        None => only(one(None, false, 0)?),
        Some(Sizes::Fixed(size)) => only(one(Some(*size), false, 0)?),
        Some(Sizes::Imix(parts)) => {
            let programs = parts.iter().map(|p| one(Some(p.size), false, 0));
            Ok((programs.collect::<Result<_, _>>()?, Pick::mix(parts)))
        }
        Some(sizes @ (Sizes::Increment { min, max } | Sizes::Random { min, max })) => {
            let program = one(Some(*max), true, *min)?;
            let (min, max) = (*min as usize, *max as usize);
            let pick = match sizes {
                Sizes::Random { .. } => Pick::Random { min, max },
                _ => Pick::Step {
                    min,
                    max,
                    next: min,
                },
            };
            Ok((Box::from([program]), pick))
        }
    }
}

/// The positions of the edits of a template stream; all of them are inside `least` bytes.
fn places(spec: &StreamSpec, built: &Built, least: usize) -> Result<Vec<Place>, ModelError> {
    let place = |edit: &Edit| {
        let place = match &edit.target {
            EditTarget::Field(path) => built.place(path).ok_or_else(|| {
                ModelError::invalid(format!("edit of {path}"), "the template has no such layer")
            })?,
            EditTarget::Bytes { .. } => raw(edit).unwrap_or(Place { at_bit: 0, bits: 8 }),
        };
        if place.bytes().end > least {
            let what = format!("edit of {}", edit.target);
            let why = format!(
                "it ends at byte {}, the packet has {least}",
                place.bytes().end
            );
            return Err(ModelError::invalid(what, why));
        }
        Ok(place)
    };
    spec.all_edits().map(place).collect()
}

fn raw(edit: &Edit) -> Option<Place> {
    let EditTarget::Bytes { offset, size } = edit.target else {
        return None;
    };
    Some(Place {
        at_bit: usize::from(offset) * 8,
        bits: usize::from(size) * 8,
    })
}

fn from_file(spec: &StreamSpec, path: &Path) -> Result<(Box<[Program]>, Pick), ModelError> {
    if spec.size.is_some() {
        let instead = "leave the size out: packets of a file have their own";
        return Err(ModelError::unsupported(
            "a size for packets of a file",
            instead,
        ));
    }
    let place = |edit: &Edit| {
        raw(edit).ok_or_else(|| {
            let what = format!("edit of {} in packets of a file", edit.target);
            ModelError::unsupported(what, "give the place as offset N size M")
        })
    };
    let places = spec.all_edits().map(place);
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let capture = volley_pcap::read_packets(path).map_err(|e| file_error(path, &e))?;
    if capture.packets.is_empty() {
        return Err(ModelError::file(path, "it has no packets"));
    }
    let program = |(number, packet): (usize, volley_pcap::Packet)| match frame_fault(&packet) {
        None => Ok(Program::plain(&packet.data, &places)),
        Some(why) => Err(ModelError::File {
            path: path.display().to_string(),
            place: Some(format!("packet {}", number + 1)),
            why,
        }),
    };
    let packets = capture.packets.into_iter().enumerate();
    let programs: Box<[Program]> = packets.map(program).collect::<Result<_, _>>()?;
    let count = programs.len();
    Ok((programs, Pick::InTurn { count, at: 0 }))
}

/// Check that a stream can be preloaded.
pub(crate) fn check_preload(
    spec: &StreamSpec,
    parts: &Parts,
    preload: Preload,
) -> Result<(), ModelError> {
    let what = || format!("preload of stream {}", spec.name);
    let longest = parts.programs.iter().map(Program::len).max().unwrap_or(0);
    if longest > DATA {
        let why = format!("its packets have up to {longest} bytes, one buffer holds {DATA}");
        return Err(ModelError::invalid(what(), why));
    }
    if spec.rate.is_some() {
        return Err(ModelError::invalid(
            what(),
            "it has a rate: leave the rate out",
        ));
    }
    let limit = 1 << 24;
    if preload.packets == 0 || preload.packets > limit {
        return Err(ModelError::limit(
            what(),
            preload.packets as u64,
            limit as u64,
        ));
    }
    Ok(())
}

/// The description of a stream's packets.
pub(crate) fn describe(spec: &StreamSpec) -> String {
    let mut text = match spec.source() {
        Ok(Source::Template(template)) => format!("template {template}"),
        Ok(Source::File(path)) => format!("pcap {}", path.display()),
        Err(_) => String::new(),
    };
    text += &match &spec.size {
        None => String::new(),
        Some(Sizes::Fixed(size)) => format!(", {size} bytes"),
        Some(Sizes::Increment { min, max }) => format!(", {min} to {max} bytes in turn"),
        Some(Sizes::Random { min, max }) => format!(", {min} to {max} bytes at random"),
        Some(mix) => format!(", {mix}"),
    };
    for edit in spec.all_edits() {
        let edit = edit.to_string();
        let cut: String = edit.chars().take(120).collect();
        let more = if cut.len() < edit.len() { " ..." } else { "" };
        text += &format!(", {cut}{more}");
    }
    text
}
