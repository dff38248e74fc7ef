//! `show log` and `set log level`.

use super::Action;
use super::args::Args;
use super::interface::stray;
use crate::grammar::{Id, Piece};
use crate::render::View;
use volley_model::{LogLevel, Query, Request, SyntaxError};

pub(super) fn action(id: Id, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    Ok(match id {
        Id::ShowLog => Action::Query(query(args)?, View::Table),
        _ => Action::Request(Box::new(request(args)?)),
    })
}

fn query(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let (mut max, mut level, mut module) = (None, None, None);
    // The words of the command itself.
    while args.take("show") || args.take("log") {}
    while args.peek().is_some() {
        if matches!(args.peek(), Some(Piece::Slot("n", _))) {
            max = Some(args.number(u64::MAX)?);
            continue;
        }
        match args.option()? {
            Some(("level", _)) => level = Some(args.read()?),
            Some(("module", _)) => module = Some(args.text()?),
            Some((word, column)) => stray(word, column)?,
            // Not by this pattern.
            None => _ = args.slot(),
        }
    }
    Ok(Query::Log {
        max,
        level,
        module,
        after: None,
    })
}

fn request(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let level: Option<LogLevel> = match args.has("default") {
        true => None,
        false => Some(args.read()?),
    };
    let module = args.has("module").then(|| args.text()).transpose()?;
    Ok(Request::LogLevel { module, level })
}
