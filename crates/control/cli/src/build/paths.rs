//! Protocols of the path batcher.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{HeaderField, HeaderLink, PathHeader, Request, SyntaxError};

/// Whether a command is one of these.
pub(super) fn is_one(id: Id) -> bool {
    matches!(id, Id::SetPathHeader | Id::DeletePathHeader)
}

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::SetPathHeader => Request::PathHeaderSet(header(args)?),
        _ => Request::PathHeaderDel { name: args.text()? },
    })
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
