//! Audit: compares the kernel and the forwarding table.

use crate::Backend;
use crate::own::Own;
use crate::routes::{Hops, Routes, WantedRoutes, normal, volley_table};
use hashbrown::HashMap;
use volley_fib::path::Path;
use volley_lcp::{LcpAuditReply, LcpDifference};
use volley_model::{Family, ModelError, Prefix};

/// Largest number of differences that a reply lists.
const MOST: usize = 1000;
/// Prefixes that are compared before the audit yields to other tasks of the control thread.
const PIECE: usize = 16_384;

/// Differences found so far.
#[derive(Default)]
pub struct Findings {
    reply: LcpAuditReply,
    /// Prefixes of routes that differ.
    pub routes: Vec<(Family, u32, Prefix)>,
    /// Number of Volley's own routes that are missing or different in the kernel.
    pub own: u64,
}

fn words(paths: Option<&[Path]>) -> String {
    let all = paths.unwrap_or_default().iter().map(Path::to_string);
    all.collect::<Vec<_>>().join(", ")
}

impl Findings {
    /// Adds differences of objects other than routes.
    pub fn other(&mut self, compared: u64, found: Vec<[String; 4]>) {
        self.reply.compared += compared;
        for [kind, what, kernel, volley] in found {
            self.tell(LcpDifference {
                kind,
                what,
                kernel,
                volley,
            });
        }
    }

    fn tell(&mut self, difference: LcpDifference) {
        self.reply.differing += 1;
        if self.reply.differences.len() < MOST {
            self.reply.differences.push(difference);
        }
    }

    fn route(
        &mut self,
        at: (Family, u32, Prefix),
        kernel: Option<&[Path]>,
        volley: Option<&[Path]>,
    ) {
        let (_, table, prefix) = at;
        self.routes.push(at);
        self.tell(LcpDifference {
            kind: "route".into(),
            what: place(table, prefix),
            kernel: words(kernel),
            volley: words(volley),
        });
    }

    /// The reply to `lcp audit`.
    pub fn reply(self) -> LcpAuditReply {
        self.reply
    }
}

fn place(table: u32, prefix: Prefix) -> String {
    match table {
        0 => prefix.to_string(),
        table => format!("{prefix} table {table}"),
    }
}

/// Compares Volley's own routes that the kernel has with those that it should have.
pub fn own(own: &Own, known: &Routes, found: &mut Findings) {
    let (compared, differ) = own.differences();
    found.reply.compared += compared;
    found.own = differ.len() as u64;
    let message = |hops: Option<Hops>| words(hops.and_then(|h| known.spoken(&h)).as_deref());
    for (spot, kernel, volley) in differ {
        let table = volley_table(spot.table).unwrap_or(spot.table);
        found.tell(LcpDifference {
            kind: "own-route".into(),
            what: place(table, spot.prefix),
            kernel: message(kernel),
            volley: message(volley),
        });
    }
}

/// Compares all routes of the kernel with the forwarding table.
pub async fn routes(
    backend: &dyn Backend,
    known: &Routes,
    found: &mut Findings,
) -> Result<(), ModelError> {
    let mut wanted = known.wanted();
    found.reply.compared += wanted.len() as u64;
    for (family, table) in known.tables() {
        one_table(backend, known, (family, table), &mut wanted, found).await?;
    }
    let mut rest: Vec<_> = wanted.into_iter().collect();
    rest.sort_unstable();
    for (at, set) in rest {
        found.route(at, known.paths(set).as_deref(), None);
    }
    Ok(())
}

/// Compares one table; removes the compared prefixes from `wanted`.
async fn one_table(
    backend: &dyn Backend,
    known: &Routes,
    (family, table): (Family, u32),
    wanted: &mut WantedRoutes,
    found: &mut Findings,
) -> Result<(), ModelError> {
    let mut has = backend.route_set(family, table)?;
    has.sets.iter_mut().for_each(normal);
    let mut alike: HashMap<(u32, u32), bool> = HashMap::new();
    for (at, (prefix, set)) in has.routes.iter().enumerate() {
        if at % PIECE == PIECE - 1 {
            crate::sync::breathe().await;
        }
        let at = (family, table, *prefix);
        let volley = has.sets.get(*set as usize).map(Vec::as_slice);
        let Some(want) = wanted.remove(&at) else {
            found.reply.compared += 1;
            found.route(at, None, volley);
            continue;
        };
        let same = || known.paths(want).as_deref() == volley;
        if !*alike.entry((want, *set)).or_insert_with(same) {
            found.route(at, known.paths(want).as_deref(), volley);
        }
    }
    Ok(())
}
