//! Queries that are no registered ones.

use super::Action;
use super::args::Args;
use super::ping;
use crate::grammar::Id;
use crate::render::View;
use volley_model::SyntaxError;

pub(super) fn query(id: Id, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    let query = match id {
        Id::Ping => ping::ping(args)?,
        Id::Traceroute => ping::traceroute(args)?,
        Id::Arping => ping::arping(args)?,
        other => {
            let text = format!("the command {other:?} has no meaning yet");
            return Err(SyntaxError::new(1, text));
        }
    };
    Ok(Action::Query(query, View::Table))
}
