//! The path batcher.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{
    HeaderField, HeaderLink, PathBatcher, PathHeader, PathQueue, PathRule, Request, Switch,
    SyntaxError,
};

/// Whether a command is the path batcher's.
pub(super) fn is_one(id: Id) -> bool {
    matches!(
        id,
        Id::SetPathBatcher
            | Id::SetPathQueue
            | Id::SetPathHeader
            | Id::SetPathRule
            | Id::DeletePathHeader
            | Id::DeletePathQueue
            | Id::DeletePathRule
            | Id::SetInterfacePathBatcher
    )
}

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::SetPathBatcher => Request::PathBatcherSet(defaults(args)?),
        Id::SetPathQueue => Request::PathQueueSet(queue(args)?),
        Id::SetPathHeader => Request::PathHeaderSet(header(args)?),
        Id::SetPathRule => Request::PathRuleSet(rule(args)?),
        Id::DeletePathHeader => Request::PathHeaderDel { name: args.text()? },
        Id::DeletePathQueue => Request::PathQueueDel {
            id: args.number32()?,
        },
        Id::DeletePathRule => Request::PathRuleDel { name: args.text()? },
        _ => {
            let switch = if args.has("off") {
                Switch::Off
            } else {
                Switch::On
            };
            let name = args.text()?;
            Request::InterfacePathBatcher { name, switch }
        }
    })
}

fn defaults(args: &mut Args<'_>) -> Result<PathBatcher, SyntaxError> {
    for word in ["set", "path-batcher", "defaults"] {
        args.take(word);
    }
    let (mut it, mut learn, mut asked) = (
        PathBatcher::default(),
        volley_model::PathLearning::default(),
        None,
    );
    let mut first = 1;
    while let Some((word, column)) = args.option()? {
        match word {
            "batch" => it.batch = args.number32()?,
            "timeout" => it.timeout_us = args.number32()?,
            "gather" => it.gather = args.number32()?,
            "learn" => {
                learn.queues = args.number32()?;
                asked = Some(());
            }
            other => {
                first = column;
                match other {
                    "learn-sample" => learn.sample = args.number32()?,
                    "learn-interval" => learn.interval_ms = args.number32()?,
                    "learn-margin" => learn.margin_percent = args.number32()?,
                    "learn-field" => learn.fields.push(args.text()?),
                    _ => stray(word, column)?,
                }
            }
        }
    }
    if asked.is_none() && learn != volley_model::PathLearning::default() {
        return Err(SyntaxError::new(
            first,
            "say how many queues to learn for: learn N",
        ));
    }
    it.learn = asked.map(|()| learn);
    Ok(it)
}

fn queue(args: &mut Args<'_>) -> Result<PathQueue, SyntaxError> {
    let mut it = PathQueue {
        id: args.number32()?,
        ..PathQueue::default()
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "batch" => it.batch = Some(args.number32()?),
            "timeout" => it.timeout_us = Some(args.number32()?),
            "gather" => it.gather = Some(args.number32()?),
            "weight" => it.weight = Some(args.number32()?),
            "strict" => it.strict = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(it)
}

fn link(args: &mut Args<'_>) -> Result<HeaderLink, SyntaxError> {
    let (value, header) = (args.token()?, args.text()?);
    let inner = if args.take("inner") { " inner" } else { "" };
    format!("{} {header}{inner}", value.text)
        .parse()
        .map_err(|e: String| SyntaxError::new(value.column, e))
}

fn field(args: &mut Args<'_>) -> Result<HeaderField, SyntaxError> {
    let name = args.token()?;
    let (bit, bits) = (args.number32()?, args.number32()?);
    format!("{} {bit} {bits}", name.text)
        .parse()
        .map_err(|e: String| SyntaxError::new(name.column, e))
}

fn header(args: &mut Args<'_>) -> Result<PathHeader, SyntaxError> {
    let mut it = PathHeader {
        name: args.text()?,
        length: args.number32()?,
        ..PathHeader::default()
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "length-at" => it.length_at = Some(args.number32()?),
            "length-mask" => it.length_mask = Some(args.number32()?),
            "length-scale" => it.length_scale = Some(args.number32()?),
            "next-at" => it.next_at = Some(args.number32()?),
            "next-bytes" => it.next_bytes = Some(args.number32()?),
            "next" => it.next.push(link(args)?),
            "after" => it.after.push(link(args)?),
            "field" => it.fields.push(field(args)?),
            _ => stray(word, column)?,
        }
    }
    Ok(it)
}

fn rule(args: &mut Args<'_>) -> Result<PathRule, SyntaxError> {
    let mut it = PathRule {
        name: args.text()?,
        queue: args.number32()?,
        ..PathRule::default()
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "priority" => it.priority = args.number32()?,
            "match" => it.matches.push(args.read()?),
            _ => stray(word, column)?,
        }
    }
    Ok(it)
}
