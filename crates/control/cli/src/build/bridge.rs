//! Bridge domains.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use crate::render::View;
use volley_model::{BridgeDomain, BridgePort, L2FibEntry, Query, Request, SyntaxError};

/// Whether a command is about bridge domains.
pub(super) fn is_one(id: Id) -> bool {
    matches!(
        id,
        Id::BridgeDomainAdd
            | Id::BridgeDomainDel
            | Id::SetL2Bridge
            | Id::L2FibAdd
            | Id::L2FibDel
            | Id::L2FibFlush
    )
}

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::BridgeDomainAdd => Request::BridgeDomainSet(domain(args)?),
        Id::BridgeDomainDel => Request::BridgeDomainDel {
            id: args.number32()?,
        },
        Id::SetL2Bridge => Request::BridgePortSet(BridgePort {
            interface: args.text()?,
            domain: args.number32()?,
            shg: args.maybe_number32()?.unwrap_or(0),
        }),
        Id::L2FibAdd => Request::L2FibAdd(L2FibEntry {
            mac: args.read()?,
            domain: args.number32()?,
            interface: args.maybe_text(),
        }),
        Id::L2FibDel => Request::L2FibDel {
            mac: args.read()?,
            domain: args.number32()?,
        },
        _ => flush(args)?,
    })
}

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

fn domain(args: &mut Args<'_>) -> Result<BridgeDomain, SyntaxError> {
    let mut it = BridgeDomain {
        id: args.number32()?,
        ..BridgeDomain::default()
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "learn" => it.learn = true,
            "no-learn" => it.learn = false,
            "flood" => it.flood = true,
            "no-flood" => it.flood = false,
            "uu-flood" => it.uu_flood = true,
            "no-uu-flood" => it.uu_flood = false,
            "forward" => it.forward = true,
            "no-forward" => it.forward = false,
            "mac-age" => it.mac_age_min = args.number32()?,
            "mac-limit" => it.mac_limit = args.number32()?,
            "group-fwd-mask" => it.group_fwd_mask = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(it)
}

fn flush(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
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
