//! Routes.

use super::args::Args;
use super::interface::stray;
use crate::grammar::{Id, Piece};
use std::net::IpAddr;
use volley_model::{Path, PathTarget, Prefix, Request, Route, RouteSource, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::RouteAdd => Request::RouteAdd(route(args)?),
        Id::RouteReplace => Request::RouteReplace(route(args)?),
        _ => Request::RouteDel(route(args)?),
    })
}

/// Skips the words of the command itself.
fn skip(args: &mut Args<'_>, words: &[&str]) {
    while words.iter().any(|w| args.take(w)) {}
}

fn route(args: &mut Args<'_>) -> Result<Route, SyntaxError> {
    skip(args, &["ip", "ip6", "route", "add", "replace", "del"]);
    let (mut prefix, mut table, mut count, mut source) = (None, 0, 1, RouteSource::Static);
    let mut paths = Vec::new();
    while args.peek().is_some() {
        if let Some(token) = args.named("prefix") {
            let read: Prefix = token
                .text
                .parse()
                .map_err(|e| SyntaxError::new(token.column, e))?;
            prefix = Some(read);
            continue;
        }
        let Some((word, column)) = args.option()? else {
            break;
        };
        match word {
            "table" => table = args.number32()?,
            "count" => count = args.number(u64::MAX)?,
            "source" => source = self::source(args)?,
            word => path(word, column, args, &mut paths)?,
        }
    }
    let prefix = prefix.ok_or_else(|| SyntaxError::new(1, "the prefix is missing"))?;
    Ok(Route {
        prefix,
        table,
        source,
        paths,
        count,
    })
}

fn source(args: &mut Args<'_>) -> Result<RouteSource, SyntaxError> {
    let token = args.token()?;
    let found = RouteSource::ALL
        .iter()
        .find(|(name, _)| *name == token.text);
    let bad = || SyntaxError::new(token.column, format!("'{}' is not a source", token.text));
    found.map(|(_, source)| *source).ok_or_else(bad)
}

/// One path, or weight or preference of the last.
fn path(
    word: &'static str,
    column: usize,
    args: &mut Args<'_>,
    paths: &mut Vec<Path>,
) -> Result<(), SyntaxError> {
    let first = || {
        SyntaxError::new(
            column,
            format!("'{word}' belongs to a path: give the path first, such as 'via 192.0.2.1'"),
        )
    };
    match word {
        "weight" => paths.last_mut().ok_or_else(first)?.weight = args.number32()?,
        "preference" => paths.last_mut().ok_or_else(first)?.preference = args.number(255)? as u8,
        "onlink" => paths.last_mut().ok_or_else(first)?.onlink = true,
        "via" => {
            let target = match args.peek() {
                Some(Piece::Word(word, column)) => {
                    args.word();
                    special(word, *column, args)?
                }
                _ => via(args)?,
            };
            paths.push(Path::to(target));
        }
        other => paths.push(Path::to(special(other, column, args)?)),
    }
    Ok(())
}

fn special(word: &str, column: usize, args: &mut Args<'_>) -> Result<PathTarget, SyntaxError> {
    Ok(match word {
        "drop" => PathTarget::Drop,
        "unreachable" => PathTarget::Unreachable,
        "prohibit" => PathTarget::Prohibit,
        "local" => PathTarget::Local,
        word if word.ends_with("lookup-in-table") => PathTarget::LookupIn(args.number32()?),
        word => return stray(word, column).map(|()| PathTarget::Drop),
    })
}

fn via(args: &mut Args<'_>) -> Result<PathTarget, SyntaxError> {
    if let Some(token) = args.named("interface") {
        return Ok(PathTarget::Interface(token.text.clone()));
    }
    let addr = address(args)?;
    let interface = args.named("interface").map(|t| t.text.clone());
    let table = match args.take("next-hop-table") {
        true => Some(args.number32()?),
        false => None,
    };
    Ok(PathTarget::Via {
        addr,
        interface,
        table,
    })
}

fn address(args: &mut Args<'_>) -> Result<IpAddr, SyntaxError> {
    let token = args.token()?;
    let message = format!(
        "'{}' is not an IP address: write one such as 192.0.2.1 or 2001:db8::1",
        token.text
    );
    token
        .text
        .parse()
        .map_err(|_| SyntaxError::new(token.column, message))
}
