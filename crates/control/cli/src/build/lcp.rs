//! `lcp ...`: the Linux mirror.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{LcpTap, Request, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    match id {
        Id::LcpCreate => create(args),
        Id::LcpDelete => Ok(Request::LcpDelete {
            interface: args.text()?,
        }),
        _ => Ok(Request::LcpResync),
    }
}

fn create(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (interface, host) = (args.text()?, args.text()?);
    let (mut namespace, mut vlan) = (None, false);
    while let Some((word, column)) = args.option()? {
        match word {
            "netns" => namespace = Some(args.text()?),
            "vlan" => vlan = true,
            _ => stray(word, column)?,
        }
    }
    Ok(Request::LcpCreate(LcpTap {
        interface,
        host,
        namespace,
        vlan,
    }))
}
