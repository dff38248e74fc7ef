//! Multicast routes.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use std::fmt::Display;
use std::net::IpAddr;
use volley_model::{Mroute, Prefix, Query, Request, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    for word in ["ip", "ip6", "mroute", "add", "set", "del", "delete"] {
        args.take(word);
    }
    let group = group(args)?;
    let (mut source, mut table) = (None, 0);
    let (mut accept, mut forward) = (Vec::new(), Vec::new());
    while let Some((word, column)) = args.option()? {
        match word {
            "table" => table = args.number32()?,
            "source" => source = Some(args.read::<IpAddr>()?),
            "accept" => accept.extend(interfaces(args)),
            "forward" => forward.extend(interfaces(args)),
            _ => stray(word, column)?,
        }
    }
    Ok(match id {
        Id::MrouteAdd => Request::MrouteSet(Mroute {
            group,
            source,
            table,
            accept,
            forward,
        }),
        _ => Request::MrouteDel {
            group,
            source,
            table,
        },
    })
}

fn group(args: &mut Args<'_>) -> Result<Prefix, SyntaxError> {
    let token = args.token()?;
    let bad = |e: &dyn Display| SyntaxError::new(token.column, e);
    if token.text.contains('/') {
        return token.text.parse().map_err(|e| bad(&e));
    }
    let address: Result<IpAddr, _> = token.text.parse();
    address.map(Prefix::host).map_err(|_| {
        bad(&format!(
            "'{}' is not a group: write one such as 239.1.1.1 or ff05::1",
            token.text
        ))
    })
}

fn interfaces(args: &mut Args<'_>) -> Vec<String> {
    std::iter::from_fn(|| args.named("interface"))
        .map(|t| t.text.clone())
        .collect()
}

/// `show ip mroute`, `show ip6 mroute`.
pub(super) fn query(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let family = args.family();
    let table = args.has("table").then(|| args.number32()).transpose()?;
    Ok(Query::Mroutes { family, table })
}
