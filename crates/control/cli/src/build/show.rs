//! `show ...`

use super::Action;
use super::args::Args;
use super::ping;
use crate::grammar::Id;
use crate::render::View;
use volley_model::{Query, SyntaxError};

pub(super) fn query(id: Id, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    let plain = |query| (query, View::Table);
    let (query, view) = match id {
        Id::ShowVersion => plain(Query::Version),
        Id::ShowInterfaces => interfaces(args),
        Id::ShowAddresses => (
            Query::Interfaces {
                name: args.maybe_text(),
            },
            View::Named("address"),
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
        Id::ShowGraph if args.has("dot") => (Query::Graph, View::Named("dot")),
        Id::ShowGraph => plain(Query::Graph),
        Id::ShowWorkers => plain(Query::Workers),
        Id::ShowLoad => (Query::Workers, View::Named("load")),
        Id::ShowPauses => plain(Query::Pauses),
        Id::ShowProcess => plain(Query::Process),
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
