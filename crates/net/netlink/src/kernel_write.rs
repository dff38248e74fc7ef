//! Writes Volley's own routes to the kernel, a slice at a time.

use crate::Backend;
use crate::error::LcpSyncError;
use crate::own::{Own, Step};
use crate::routes::Spot;
use crate::sync::{LcpSync, RETRY, Session, breathe};
use std::time::Duration;
use tokio::time::Instant;

/// Prefixes in a slice.
const PIECE: usize = 256;
/// Reading all own routes takes at most one part in `SHARE` of the time.
const SHARE: u32 = 10;

/// Own routes for the kernel, and when they were read.
#[derive(Default)]
pub struct KernelWriter {
    /// Own routes that the kernel should have and those that it has.
    pub own: Own,
    /// Interfaces or tables have changed.
    pub stale: bool,
    version: Option<u64>,
    /// Earliest time of the next read of own routes.
    not_before: Option<Instant>,
    /// Routes that the kernel refused, and when.
    refused: Vec<(Instant, Spot)>,
}

impl KernelWriter {
    /// Reads the routes that the kernel should have, if they changed.
    fn look(&mut self, volley: &dyn Backend) {
        let version = Some(volley.own_version());
        let start = Instant::now();
        if self.version == version && !self.stale || self.not_before.is_some_and(|at| start < at) {
            return;
        }
        (self.version, self.stale) = (version, false);
        self.own.forget();
        for (family, table) in volley.tables() {
            let routes = volley.own_routes(family, table);
            self.own.want(table, &routes.unwrap_or_default());
        }
        self.own.compare();
        self.not_before = Some(Instant::now() + start.elapsed() * SHARE);
    }

    /// Whether own routes changed since they were read.
    pub fn is_behind(&self, volley: &dyn Backend) -> bool {
        self.stale || self.version != Some(volley.own_version())
    }

    fn retry(&mut self, all: bool) {
        let late = |at: Instant| all || at.elapsed() > RETRY;
        let due = self.refused.extract_if(.., |(at, _)| late(*at));
        self.own.again(due.map(|(_, spot)| spot));
    }

    /// Compares all routes again, and retries those that the kernel refused.
    pub fn afresh(&mut self) {
        self.own.compare();
        self.retry(true);
    }
}

impl LcpSync {
    /// Writes own routes to the kernel for one slice; true if more remain. The caller has read the kernel's pending messages
    /// before.
    pub(crate) fn tell(&self, now: &mut Session, volley: &dyn Backend) -> bool {
        if self.has_ended() {
            return false;
        }
        now.telling.look(volley);
        now.telling.retry(false);
        let steps = now.telling.own.steps(PIECE);
        self.carry_out(now, &steps);
        now.telling.own.waiting() > 0
    }

    fn carry_out(&self, now: &mut Session, all: &[(Spot, Vec<Step>)]) {
        for (spot, steps) in all {
            let mut each = steps.iter().map(|step| now.kernel.route(*spot, step));
            if let Some(error) = each.find_map(Result::err) {
                let what = match spot.table {
                    254 => spot.prefix.to_string(),
                    table => format!("{} table {table}", spot.prefix),
                };
                self.refuse(&LcpSyncError::Route(what, error));
                now.telling.refused.push((Instant::now(), *spot));
            }
        }
    }

    /// Removes Volley's routes from the kernel after the last LCP tap was deleted.
    pub(crate) async fn withdraw(&self, mut now: Session) {
        now.telling.own.forget();
        now.telling.own.compare();
        while now.telling.own.waiting() > 0 {
            let steps = now.telling.own.steps(PIECE);
            self.carry_out(&mut now, &steps);
            breathe().await;
        }
    }

    /// Removes, when Volley exits, the routes that the kernel would keep after the LCP taps are gone.
    pub(crate) fn leave(&self, now: &mut Session) {
        let lasting = now.telling.own.lasting();
        self.carry_out(now, &lasting);
    }
}

/// Longest delay of Volley's exit for this removal.
pub const PATIENCE: Duration = Duration::from_millis(500);
