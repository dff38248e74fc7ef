//! Description of routes: sources, targets of the paths, and resolution down to the adjacency.

use volley_model::Mac;

use super::buckets;
use super::fib::Fib;
use super::path::{Path, Via};
use super::tables::Side;
use crate::dataplane::{Dpo, DpoKind, DropWhy, RouteCount};
use crate::family::{Af, Prefix};
use crate::source::Source;

/// Depth to which a recursion is described.
const DEEPEST: usize = 8;

/// A path and its current target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The path.
    pub path: Path,
    /// The current target of the path, or why the path is unusable.
    pub share: Result<Dpo, DropWhy>,
}

/// One bucket of a load balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Target of the bucket.
    pub dpo: Dpo,
    /// Text of the resolution.
    pub text: String,
}

/// A route with its current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown<F: Side> {
    /// Prefix of the route.
    pub prefix: Prefix<F>,
    /// Sources of the prefix, the active one first.
    pub sources: Vec<Source>,
    /// Paths of the active source.
    pub paths: Vec<PathState>,
    /// Leaf of the route.
    pub load_balance: u32,
    /// Packets that followed the route, and routes that are counted together; none while no route is counted.
    pub count: Option<(RouteCount, u32)>,
    /// Buckets of the load balance.
    pub buckets: Vec<Bucket>,
}

impl Fib {
    /// The route of this exact prefix in the table with this index.
    pub fn show<F: Side>(&self, index: u32, prefix: Prefix<F>) -> Option<Shown<F>> {
        let (res, tables) = F::side(self);
        let sources = tables.get(index)?.sources(prefix, |l| res.source_of(l));
        let (_, list) = *sources.first()?;
        let entry = res.list(list)?;
        let state = |(path, share): (&Path, &Result<Dpo, DropWhy>)| PathState {
            path: *path,
            share: *share,
        };
        Some(Shown {
            prefix,
            sources: sources.iter().map(|s| s.0).collect(),
            paths: entry
                .key
                .paths
                .iter()
                .zip(&entry.shares)
                .map(state)
                .collect(),
            load_balance: list,
            count: self.route_count(list),
            buckets: self.show_buckets::<F>(list, 0),
        })
    }

    /// The route that forwards an address.
    pub fn show_match<F: Side>(&self, index: u32, addr: F::Addr) -> Option<Shown<F>> {
        let (prefix, _) = self.table::<F>(index)?.routes.cover(addr, F::BITS + 1)?;
        self.show(index, prefix)
    }

    /// All prefixes of a table in order of address and length.
    pub fn prefixes<F: Side>(&self, index: u32) -> Vec<Prefix<F>> {
        let table = self.table::<F>(index);
        table
            .map(|t| t.routes.sorted().into_iter().map(|r| r.0).collect())
            .unwrap_or_default()
    }

    fn show_buckets<F: Side>(&self, list: u32, depth: usize) -> Vec<Bucket> {
        let Some(entry) = self.res.list(list) else {
            return Vec::new();
        };
        let usable = || {
            entry
                .key
                .paths
                .iter()
                .zip(&entry.shares)
                .filter(|(_, s)| s.is_ok())
        };
        let best = usable().map(|(p, _)| p.preference).min();
        let chosen: Vec<&Path> = usable()
            .map(|(p, _)| p)
            .filter(|p| Some(p.preference) == best)
            .collect();
        let weights: Vec<u8> = chosen.iter().map(|p| p.weight).collect();
        let layout = if weights.len() > 1 {
            buckets::layout(&weights)
        } else {
            vec![0]
        };
        let dpos = self.res.buckets(list);
        let way = |(i, dpo): (usize, Dpo)| {
            let path = layout.get(i).and_then(|at| chosen.get(*at));
            Bucket {
                dpo,
                text: self.way::<F>(path.copied(), dpo, depth),
            }
        };
        // A single recursive path shows the buckets of the route that resolves it.
        dpos.into_iter()
            .enumerate()
            .map(|(i, d)| way((if weights.len() > 1 { i } else { 0 }, d)))
            .collect()
    }

    /// Text of a bucket: the routes on the way, and the target.
    fn way<F: Side>(&self, path: Option<&Path>, dpo: Dpo, depth: usize) -> String {
        let Some(Via::Recursive { addr, table }) = path.map(|p| p.via) else {
            return self.dpo_text(F::AF, dpo);
        };
        let covering =
            F::number(addr).and_then(|a| self.table::<F>(table)?.routes.cover(a, F::BITS + 1));
        let Some((prefix, list)) = covering.filter(|_| depth < DEEPEST) else {
            return self.dpo_text(F::AF, dpo);
        };
        let mut below: Vec<String> = self
            .show_buckets::<F>(list, depth + 1)
            .into_iter()
            .map(|b| b.text)
            .collect();
        below.dedup();
        // If the covering route is attached, the next hop itself is the neighbour.
        let end = match below.as_slice() {
            _ if dpo.kind() != DpoKind::Multi => match below
                .iter()
                .find(|t| t.ends_with(&self.dpo_text(F::AF, dpo)))
            {
                Some(text) => text.clone(),
                None => self.dpo_text(F::AF, dpo),
            },
            texts => format!("[{}]", texts.join(" | ")),
        };
        format!("{addr} by {prefix} -> {end}")
    }

    /// Text of a data-plane object.
    pub fn dpo_text(&self, af: Af, dpo: Dpo) -> String {
        match dpo.kind() {
            DpoKind::Drop => format!("drop ({})", dpo.why().name()),
            DpoKind::Adj | DpoKind::Incomplete | DpoKind::Broadcast => self.adj_text(dpo),
            DpoKind::Glean => format!(
                "attached {}, neighbor unknown",
                self.iface_name(dpo.index())
            ),
            DpoKind::Local if dpo.index() == Dpo::NO_IFACE => "local".into(),
            DpoKind::Local => format!("local {}", self.iface_name(dpo.index())),
            DpoKind::Unreachable => "unreachable".into(),
            DpoKind::Prohibit => "prohibit".into(),
            DpoKind::Multi => format!("load balance {}", dpo.index()),
            DpoKind::LookupIn => format!("lookup in table {}", self.number_text(af, dpo.index())),
        }
    }

    fn adj_text(&self, dpo: Dpo) -> String {
        let Some(adj) = self.res.adjs.by_slot(dpo.index()) else {
            return "drop (stale)".into();
        };
        let name = self.iface_name(adj.key.iface);
        let addr = adj.key.addr;
        match self.res.macs.get(&(adj.key.iface, addr)) {
            Some(mac) => format!("via {addr} {name} {}", Mac(*mac)),
            None => format!("via {addr} {name}, MAC unknown"),
        }
    }

    /// Text of a path in the syntax of the command line.
    pub fn path_text(&self, af: Af, path: &Path) -> String {
        match path.via {
            Via::NextHop { addr, iface } => format!("via {addr} {}", self.iface_name(iface)),
            Via::Attached { iface } => format!("via {}", self.iface_name(iface)),
            Via::Broadcast { iface } => format!("broadcast on {}", self.iface_name(iface)),
            Via::Recursive { addr, table } => match self.number_text(af, table).as_str() {
                "0" => format!("via {addr}"),
                number => format!("via {addr} next-hop-table {number}"),
            },
            Via::Drop(why) => format!("drop ({})", why.name()),
            Via::Unreachable => "unreachable".into(),
            Via::Prohibit => "prohibit".into(),
            Via::LookupIn { table } => format!("lookup in table {}", self.number_text(af, table)),
            Via::Local { .. } => "local".into(),
        }
    }

    pub(crate) fn iface_name(&self, iface: u32) -> String {
        self.res
            .ifs
            .get(&iface)
            .map_or_else(|| format!("interface {iface}"), |i| i.name.clone())
    }

    fn number_text(&self, af: Af, index: u32) -> String {
        self.table_number(af, index)
            .map_or_else(|| "?".into(), |n| n.to_string())
    }
}
