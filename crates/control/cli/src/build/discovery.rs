//! `ip6 nd`, `ip6 nd address autoconfig`, `set interface dad`, `set interface proxy`, `set interface igmp`, `set interface mld`.

use super::args::Args;
use crate::grammar::Id;
use volley_model::{Autoconf, InterfaceProtocol, Request, SyntaxError};

/// Whether a command is one of these.
pub(super) fn is_one(id: Id) -> bool {
    matches!(
        id,
        Id::SetDad | Id::SetQuerier | Id::SetProxy | Id::SetAdvert | Id::SetAutoconf
    )
}

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    match id {
        Id::SetDad => dad(args),
        Id::SetProxy => proxy(args),
        Id::SetQuerier => querier(args),
        Id::SetAutoconf => autoconf(args),
        _ => advert(args),
    }
}

/// How many probes for an address are sent before it is used.
fn dad(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let probes = if args.take("off") {
        0
    } else {
        args.number32()?
    };
    Ok(Request::InterfaceDiscovery {
        name,
        discovery: InterfaceProtocol::Probes(probes),
    })
}

/// For whom an interface answers.
fn proxy(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let mut ranges = Vec::new();
    if !args.take("off") {
        while args.peek().is_some() {
            ranges.push(args.read()?);
        }
    }
    Ok(Request::InterfaceDiscovery {
        name,
        discovery: InterfaceProtocol::Proxy(ranges),
    })
}

/// How an interface asks for groups.
fn querier(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (six, name, column) = (args.has("mld"), args.text()?, args.column());
    let words = args.words();
    let querier = match &words[..] {
        "off" => None,
        words => Some(words.parse().map_err(|e| SyntaxError::new(column, e))?),
    };
    let discovery = match six {
        true => InterfaceProtocol::Mld(querier),
        false => InterfaceProtocol::Igmp(querier),
    };
    Ok(Request::InterfaceDiscovery { name, discovery })
}

/// What an interface takes from the routers of its link.
fn autoconf(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let off = args.take("disable");
    let default_route = args.take("default-route");
    let discovery = InterfaceProtocol::Autoconf((!off).then_some(Autoconf { default_route }));
    Ok(Request::InterfaceDiscovery { name, discovery })
}

/// What an interface advertises as a router.
fn advert(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (name, column) = (args.text()?, args.column());
    let words = args.words();
    let advert = match &words[..] {
        "ra-suppress" => None,
        words => Some(words.parse().map_err(|e| SyntaxError::new(column, e))?),
    };
    Ok(Request::InterfaceDiscovery {
        name,
        discovery: InterfaceProtocol::Advert(advert),
    })
}
