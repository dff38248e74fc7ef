//! `workers add | del`, `set interface rx-placement`, `set vector-size`.

use super::args::Args;
use super::interface::stray;
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
        Id::SetVectorSize => Request::VectorSize {
            packets: args.number32()?,
        },
        _ => rx_placement(args)?,
    })
}

fn rx_placement(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let (mut queue, mut worker) = (0, None);
    while let Some((word, column)) = args.option()? {
        match word {
            "queue" => queue = args.number32()?,
            "worker" => worker = Some(args.number32()?),
            "auto" => {}
            _ => stray(word, column)?,
        }
    }
    Ok(Request::InterfaceRxPlacement {
        name,
        queue,
        worker,
    })
}
