//! `workers add | del`, `set vector-size`.

use super::args::Args;
use crate::grammar::Id;
use volley_model::{Request, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::WorkersAdd => Request::WorkerAdd {
            core: args.has("core").then(|| args.number32()).transpose()?,
        },
        Id::WorkersDel => Request::WorkerDelete {
            worker: args.number32()?,
        },
        _ => Request::VectorSize {
            packets: args.number32()?,
        },
    })
}
