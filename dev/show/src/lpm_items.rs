//! Items measured by `volley bench lpm`, and DPDK's lookup for comparison.

use super::{Sitting, at_least, at_most, dpdk};
use xtask::measure::LpmBench;
use xtask::report::{Outcome, Skip};

/// Differences between the address families.
pub struct Family {
    pub table: &'static str,
    pub updates: &'static str,
    pub v6: bool,
    mib: f64,
}

pub const V4: Family = Family {
    table: "rib4-ris3333-20260511-nhmodel.txt.xz",
    updates: "update4-ris3333-20260511.txt.xz",
    v6: false,
    mib: 16.0,
};
pub const V6: Family = Family {
    table: "rib6-ris3333-20260511-nhmodel.txt.xz",
    updates: "update6-ris3333-20260511.txt.xz",
    v6: true,
    mib: 32.0,
};
const LOAD_SECONDS: f64 = 1.5;
const UPDATES_PER_SECOND: f64 = 500_000.0;
/// The number of destinations that dpdk-test-fib looks up.
pub const DISTINCT: u32 = 1 << 20;

fn measured(sitting: &Sitting<'_>, family: &Family) -> Result<Result<LpmBench, String>, String> {
    let table = sitting.home.data(family.table)?;
    let updates = sitting.home.data(family.updates)?;
    let v6 = if family.v6 { " --v6" } else { "" };
    Ok(sitting.lpm(&format!(
        "--table {} --updates {} --distinct {DISTINCT}{v6}",
        table.display(),
        updates.display()
    )))
}

fn judge(
    sitting: &Sitting<'_>,
    family: &Family,
    rule: impl Fn(&LpmBench) -> Result<String, String>,
) -> Outcome {
    match measured(sitting, family) {
        Err(absent) => Skip(absent),
        Ok(run) => Outcome::of(run.and_then(|run| rule(&run))),
    }
}

pub fn bytes(sitting: &Sitting<'_>, family: &Family) -> Outcome {
    judge(sitting, family, |run| {
        let more = |text: String| format!("{text} ({} prefixes)", run.prefixes);
        at_most(run.bytes as f64 / 1_048_576.0, family.mib, "MiB")
            .map(more)
            .map_err(more)
    })
}

pub fn load(sitting: &Sitting<'_>, family: &Family) -> Outcome {
    judge(sitting, family, |run| {
        at_most(run.build_seconds, LOAD_SECONDS, "s")
    })
}

pub fn updates(sitting: &Sitting<'_>, family: &Family) -> Outcome {
    judge(sitting, family, |run| {
        let rate = run
            .updates_per_second
            .ok_or("the run has no updates_per_second")?;
        at_least(rate, UPDATES_PER_SECOND, "updates per second")
    })
}

/// Cycles of one lookup, as measured: the run does not measure the speed of the core.
pub fn cycles(sitting: &Sitting<'_>, family: &Family, bar: f64) -> Outcome {
    judge(sitting, family, |run| {
        let cost = run.batched_cycles_per_lookup;
        let more = |text: String| format!("{text} ({:.1} to {:.1})", cost.min, cost.max);
        at_most(cost.median, bar, "cycles per lookup")
            .map(more)
            .map_err(more)
    })
}

/// Both measurements in one run; DPDK's figure is the lowest of all its lookup functions that run here.
pub fn against_dpdk(sitting: &Sitting<'_>, family: &Family) -> Outcome {
    let table = match sitting.home.data(family.table) {
        Ok(table) => table,
        Err(absent) => return Skip(absent),
    };
    match dpdk::best(sitting.home, &table, family.v6) {
        Err(absent) => Skip(absent),
        Ok((theirs, function)) => judge(sitting, family, |run| {
            let ours = run.batched_cycles_per_lookup.median;
            let more = |text: String| format!("{text} (dpdk-test-fib, function {function})");
            at_most(ours, theirs, "cycles per lookup")
                .map(more)
                .map_err(more)
        }),
    }
}
