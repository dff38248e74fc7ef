//! Build times.

use super::at_most;
use std::time::Instant;
use xtask::ahead::BUILD;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

/// Maximum time of a build from scratch in seconds.
const COLD: f64 = 240.0;
/// Maximum time of a build after a change of one node file in seconds.
const WARM: f64 = 60.0;
/// Maximum time of a quick run of CI in seconds.
const QUICK: f64 = 240.0;
/// Maximum time of a whole run of CI in seconds.
const WHOLE: f64 = 1200.0;

/// The changed node file.
const NODE: &str = "crates/net/ip/src/node/ip_lookup.rs";
/// Number of builds after a change; the median is judged.
const TIMES: usize = 3;

/// A release build into an empty folder.
pub fn cold(home: &Home) -> Outcome {
    let folder = home.target.join("cold");
    let remove = || match folder.exists() {
        true => std::fs::remove_dir_all(&folder).map_err(|error| error.to_string()),
        false => Ok(()),
    };
    let build = || {
        remove()?;
        let program = Program::cargo(home).args(BUILD);
        let seconds = timed(program.env("CARGO_TARGET_DIR", &folder));
        remove()?;
        at_most(seconds?, COLD, "s")
    };
    Outcome::of(build())
}

/// Release builds, each after the modification time of a node file was set to now, which cargo treats as a change.
pub fn after_a_node(home: &Home) -> Outcome {
    let build = || timed(Program::cargo(home).args(BUILD));
    let again = || {
        let touch = Program::new(home, "touch").arg(NODE);
        touch.require()?;
        build()
    };
    let all = || {
        if !home.root.join(NODE).is_file() {
            return Err(format!("{NODE} does not exist"));
        }
        build()?;
        let mut seconds = (0..TIMES)
            .map(|_| again())
            .collect::<Result<Vec<f64>, _>>()?;
        seconds.sort_by(f64::total_cmp);
        let range = format!("{:.0} to {:.0} s", seconds[0], seconds[TIMES - 1]);
        let judged = at_most(seconds[TIMES / 2], WARM, "s");
        judged
            .map(|text| format!("{text}; {range}"))
            .map_err(|text| format!("{text}; {range}"))
    };
    Outcome::of(all())
}

/// A quick run of CI; its builds are made before.
pub fn quick(home: &Home) -> Outcome {
    warm(home, &["--quick"], QUICK)
}

/// A whole run of CI in a checkout whose builds are made.
pub fn whole(home: &Home) -> Outcome {
    warm(home, &[], WHOLE)
}

/// A run of CI takes at most so many seconds: the first one, or the second one if builds made the first one longer.
fn warm(home: &Home, options: &[&str], bar: f64) -> Outcome {
    let run = || {
        let ci = Program::cargo(home).args(["run", "--quiet", "-p", "xtask", "--", "ci"]);
        timed(ci.args(options))
    };
    let judged = run().and_then(|seconds| match seconds <= bar {
        true => Ok(seconds),
        false => run(),
    });
    Outcome::of(judged.and_then(|seconds| at_most(seconds, bar, "s")))
}

/// Seconds until a program has ended successfully.
fn timed(program: Program) -> Result<f64, String> {
    let started = Instant::now();
    program.limit_seconds(2400).require()?;
    Ok(started.elapsed().as_secs_f64())
}
