//! Commands that delete and rename interfaces.

use super::args::Args;
use crate::grammar::Id;
use volley_model::{Request, SyntaxError};

/// A word that the pattern has and the builder does not know: a fault of the table, reported.
pub(super) fn stray(word: &str, column: usize) -> Result<(), SyntaxError> {
    Err(SyntaxError::new(
        column,
        format!("'{word}' has no meaning here"),
    ))
}

pub(super) fn set(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::SetName => Request::InterfaceRename {
            name: args.text()?,
            new_name: args.text()?,
        },
        _ => Request::InterfaceDelete { name: args.text()? },
    })
}
