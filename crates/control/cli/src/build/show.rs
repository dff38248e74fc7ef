//! `show ...`

use super::Action;
use super::args::Args;
use super::ping;
use crate::grammar::Id;
use crate::render::View;
use volley_model::{FibSelect, Query, SyntaxError};

/// Routes shown when no limit is given.
const FIB_LIMIT: u64 = 1000;

pub(super) fn query(id: Id, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    let plain = |query| (query, View::Table);
    let (query, view) = match id {
        Id::ShowVersion => plain(Query::Version),
        Id::ShowInterfaces => interfaces(args),
        Id::ShowAddresses => (
            Query::Interfaces {
                name: args.maybe_text(),
            },
            View::Addresses,
        ),
        Id::ShowInterfaceFeatures | Id::ShowFeatures => plain(Query::Features {
            interface: args.maybe_text(),
        }),
        Id::ShowRxPlacement => plain(Query::RxPlacement {
            interface: args.maybe_text(),
        }),
        Id::ShowHardware => plain(Query::Hardware {
            name: args.maybe_text(),
        }),
        Id::ShowRuntime if args.has("verbose") => (Query::Runtime, View::Verbose),
        Id::ShowRuntime => plain(Query::Runtime),
        Id::ShowErrors => plain(Query::Errors),
        Id::ShowDrops => plain(Query::Drops),
        Id::ShowTrace => {
            let max = args.has("max").then(|| args.number(u64::MAX)).transpose()?;
            plain(Query::Trace { max })
        }
        Id::ShowNode => plain(Query::Node { name: args.text()? }),
        Id::ShowGraph if args.has("dot") => (Query::Graph, View::Dot),
        Id::ShowGraph => plain(Query::Graph),
        Id::ShowWorkers => plain(Query::Workers),
        Id::ShowLoad => (Query::Workers, View::Load),
        Id::ShowPauses => plain(Query::Pauses),
        Id::ShowProcess => plain(Query::Process),
        Id::ShowFib => shown_fib(args)?,
        Id::ShowNeighbors => plain(Query::Neighbors {
            family: Some(args.family()),
            interface: args.maybe_text(),
        }),
        Id::ShowTables => plain(Query::Tables {
            family: (args.has("ip") || args.has("ip6")).then(|| args.family()),
        }),
        Id::Ping => plain(ping::ping(args)?),
        Id::Traceroute => plain(ping::traceroute(args)?),
        Id::Arping => plain(ping::arping(args)?),
        Id::ShowBuffers => plain(Query::Buffers),
        other => {
            return Err(SyntaxError::new(
                1,
                format!("the command {other:?} has no meaning yet"),
            ));
        }
    };
    Ok(Action::Query(query, view))
}

/// One line for each interface, or all of what is known of one.
fn interfaces(args: &mut Args<'_>) -> (Query, View) {
    let detail = args.has("detail");
    let name = args.maybe_text();
    let view = match name.is_none() && !detail {
        true => View::Table,
        false => View::Verbose,
    };
    (Query::Interfaces { name }, view)
}

/// One line for each route, or the load balances of some.
fn shown_fib(args: &mut Args<'_>) -> Result<(Query, View), SyntaxError> {
    let detail = args.has("detail");
    let query = fib(args)?;
    let all = matches!(&query, Query::Fib { select, .. } if *select == FibSelect::All);
    let view = match all && !detail {
        true => View::Table,
        false => View::Verbose,
    };
    Ok((query, view))
}

fn fib(args: &mut Args<'_>) -> Result<Query, SyntaxError> {
    let family = args.family();
    let (mut table, mut limit, mut select) = (None, None, FibSelect::All);
    while args.peek().is_some() {
        if let Some(token) = args.named("prefix") {
            let prefix = token
                .text
                .parse()
                .map_err(|e| SyntaxError::new(token.column, e))?;
            select = FibSelect::Exact(prefix);
        } else if let Some(token) = args.named("address") {
            let text = format!("'{}' is not an IP address", token.text);
            let addr = token
                .text
                .parse()
                .map_err(|_| SyntaxError::new(token.column, text))?;
            select = FibSelect::Match(addr);
        } else {
            match args.option()?.map(|(word, _)| word) {
                Some("table") => table = Some(args.number32()?),
                Some("limit") => limit = Some(args.number(u64::MAX)?),
                Some("summary") => select = FibSelect::Summary,
                _ => {}
            }
        }
    }
    let family = match select {
        FibSelect::Exact(prefix) => prefix.family(),
        FibSelect::Match(addr) => volley_model::Family::of(addr),
        _ => family,
    };
    let limit = Some(limit.unwrap_or(FIB_LIMIT));
    Ok(Query::Fib {
        family,
        table,
        select,
        limit,
    })
}
