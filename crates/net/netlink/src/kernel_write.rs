//! The way of Volley's own routes to the kernel, a slice at a time.

use crate::Backend;
use crate::error::LcpSyncError;
use crate::own::{Own, Step};
use crate::routes::Spot;
use crate::sync::{LcpSync, RETRY, Session, breathe};
use std::time::Duration;
use tokio::time::Instant;

/// Prefixes in a slice.
const PIECE: usize = 256;
/// To ask for all own routes may take this part of the time.
const SHARE: u32 = 10;

/// What is known of them, and when.
#[derive(Default)]
pub struct KernelWriter {
    /// What the kernel should have and has.
    pub own: Own,
    /// Interfaces or tables have changed.
    pub stale: bool,
    version: Option<u64>,
    /// Not before this are they asked for again.
    not_before: Option<Instant>,
    /// What the kernel refused, and when.
    refused: Vec<(Instant, Spot)>,
}

impl KernelWriter {
    /// Asks what the kernel should have, when that has changed.
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

    /// Whether they are to be asked for, now or in a while.
    pub fn is_behind(&self, volley: &dyn Backend) -> bool {
        self.stale || self.version != Some(volley.own_version())
    }

    fn retry(&mut self, all: bool) {
        let late = |at: Instant| all || at.elapsed() > RETRY;
        let due = self.refused.extract_if(.., |(at, _)| late(*at));
        self.own.again(due.map(|(_, spot)| spot));
    }

    /// Everything is compared and tried once more.
    pub fn afresh(&mut self) {
        self.own.compare();
        self.retry(true);
    }
}

impl LcpSync {
    /// Tells the kernel of own routes, for a slice; whether there is more. What the kernel has said must have been heard.
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

    /// The last twin is gone, and so is what the kernel has from Volley.
    pub(crate) async fn withdraw(&self, mut now: Session) {
        now.telling.own.forget();
        now.telling.own.compare();
        while now.telling.own.waiting() > 0 {
            let steps = now.telling.own.steps(PIECE);
            self.carry_out(&mut now, &steps);
            breathe().await;
        }
    }

    /// Volley ends: what the kernel would keep without the twins is taken away.
    pub(crate) fn leave(&self, now: &mut Session) {
        let lasting = now.telling.own.lasting();
        self.carry_out(now, &lasting);
    }
}

/// How long the end of Volley waits for the mirror.
pub const PATIENCE: Duration = Duration::from_millis(500);
