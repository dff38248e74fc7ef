//! `ping`, `traceroute` and `arping`.

use super::args::Args;
use super::interface::stray;
use std::net::IpAddr;
use volley_model::{ArpingQuery, PingQuery, Query, SyntaxError, TracerouteQuery};

fn address(args: &mut Args<'_>) -> Result<IpAddr, SyntaxError> {
    let token = args.token()?;
    let text = format!("'{}' is not an IP address", token.text);
    let read = token.text.parse();
    read.map_err(|_| SyntaxError::new(token.column, text))
}

pub(super) fn ping(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let mut ping = PingQuery::new(address(args)?);
    while let Some((word, column)) = args.option()? {
        match word {
            "source" => ping.source = Some(address(args)?),
            "table" => ping.table = args.number32()?,
            "repeat" | "count" => ping.count = args.number32()?,
            "interval" => ping.interval_ms = args.number32()?,
            "size" => ping.size = args.number32()?,
            "hops" | "ttl" => ping.hops = args.number32()?,
            "timeout" => ping.timeout_ms = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Query::Ping(ping))
}

pub(super) fn traceroute(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let mut trace = TracerouteQuery::new(address(args)?);
    while let Some((word, column)) = args.option()? {
        match word {
            "source" => trace.source = Some(address(args)?),
            "table" => trace.table = args.number32()?,
            "most-hops" => trace.most_hops = args.number32()?,
            "probes" => trace.probes = args.number32()?,
            "timeout" => trace.timeout_ms = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Query::Traceroute(trace))
}

pub(super) fn arping(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let interface = args.text()?;
    let mut arping = ArpingQuery::new(interface, address(args)?);
    while let Some((word, column)) = args.option()? {
        match word {
            "repeat" | "count" => arping.count = args.number32()?,
            "interval" => arping.interval_ms = args.number32()?,
            "timeout" => arping.timeout_ms = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Query::Arping(arping))
}
