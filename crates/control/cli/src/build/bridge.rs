//! Bridge domains.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use crate::render::View;
use volley_model::{Query, Request, SyntaxError};

/// `show bridge-domain`, `show l2fib`.
pub(super) fn query(id: Id, args: &mut Args<'_>) -> Result<(Query, View), SyntaxError> {
    let detail = args.has("detail");
    let domain = args.maybe_number32()?;
    Ok(match id {
        Id::ShowL2Fib => (Query::L2Fib { domain }, View::Table),
        _ if detail => (Query::BridgeDomains { id: domain }, View::Verbose),
        _ => (Query::BridgeDomains { id: domain }, View::Table),
    })
}

pub(super) fn flush(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    for word in ["l2fib", "flush-mac"] {
        args.take(word);
    }
    let (mut interface, mut domain) = (None, None);
    while let Some((word, column)) = args.option()? {
        match word {
            "interface" => interface = Some(args.text()?),
            "bridge-domain" => domain = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::L2FibFlush { interface, domain })
}
