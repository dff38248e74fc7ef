//! Instruction-cache misses of the path batcher's experiment, simulated by callgrind, and the page's curves.
//!
//! As with budgets, the difference of two runs with different packet counts is taken. Counted are the dispatcher and all
//! nodes after the source, including the batcher; the source's code runs in between and uses its share of the cache.

use std::fmt::Write;
use xtask::budget::column;
use xtask::chart::{Series, Titles, svg};
use xtask::error::Error;
use xtask::home::Home;
use xtask::report::{Fail, Outcome, Pass, Skip};
use xtask::run::{Program, exists};

/// The graph, and the batcher's return of a vector.
const COUNTED: [&str; 2] = [
    "volley_graph::worker::round::Worker::run_pending",
    "volley_graph::worker::round::Worker::release_one",
];
/// Multiples of eight rounds of the largest batch.
const PACKETS: (u64, u64) = (20_480, 61_440);
const PAGE: &str = "docs/path-batcher.md";
const PICTURE: &str = "docs/path-batcher.svg";
const BEGIN: &str = "<!-- xtask path-curves: begin -->";
const END: &str = "<!-- xtask path-curves: end -->";
/// Batch sizes of the curves.
const BATCHES: [u32; 6] = [4, 16, 32, 64, 128, 256];
/// Numbers of full batches that are gathered: one, as in the paper, and several.
pub const GATHERS: [u32; 2] = [1, 4];
/// Sizes of the first-level instruction cache, in bytes.
pub const CACHES: [u32; 4] = [32_768, 16_384, 8_192, 4_096];

/// One point of the experiment.
#[derive(Clone, Copy)]
pub struct Point<'a> {
    /// Order of the paths in the traffic.
    pub pattern: &'a str,
    /// Packets in a full batch.
    pub batch: u32,
    /// Whether the path batcher is on.
    pub batcher: bool,
    /// Number of full batches that are gathered.
    pub gather: u32,
    /// Packets that the source sends at once; `None`: one batch.
    pub burst: Option<u32>,
    /// Size of the instruction cache in bytes; 8 ways, 64-byte lines.
    pub cache: u32,
}

/// Instructions and misses per packet.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Instructions per packet.
    pub instructions: f64,
    /// Misses of the instruction cache per packet.
    pub misses: f64,
}

/// Checks whether the measurement is possible here.
pub fn possible(home: &Home) -> Result<(), Outcome> {
    if !exists("valgrind") {
        return Err(Skip("valgrind is not installed".into()));
    }
    if !home.volley().is_file() {
        return Err(Skip("volley is not built (cargo build --release)".into()));
    }
    Ok(())
}

/// Counts one point.
pub fn count(home: &Home, point: Point<'_>) -> Result<Cost, String> {
    let few = events(home, point, PACKETS.0)?;
    let many = events(home, point, PACKETS.1)?;
    let packets = (PACKETS.1 - PACKETS.0) as f64;
    let per = |few: u64, many: u64| many.saturating_sub(few) as f64 / packets;
    let cost = Cost {
        instructions: per(few.0, many.0),
        misses: per(few.1, many.1),
    };
    if cost.instructions < 1.0 {
        return Err(format!(
            "{} instructions a packet: that cannot be",
            cost.instructions
        ));
    }
    Ok(cost)
}

fn events(home: &Home, point: Point<'_>, packets: u64) -> Result<(u64, u64), String> {
    let file = home
        .target
        .join(format!("callgrind.path-batcher.{packets}"));
    let ways = 8.min(point.cache / 64 / 2);
    let mut program = Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet", "--cache-sim=yes"])
        .arg(format!("--I1={},{ways},64", point.cache))
        .args(["--D1=32768,8,64", "--LL=1048576,16,64"])
        .arg(format!("--callgrind-out-file={}", file.display()));
    for name in COUNTED {
        program = program.arg(format!("--toggle-collect={name}"));
    }
    let switch = if point.batcher { "on" } else { "off" };
    program = program
        .arg(home.volley())
        .args(["bench", "path-batcher", "--isa", "x86-64-v3"])
        .args(["--patterns", point.pattern, "--batcher", switch])
        .args(["--batches", &point.batch.to_string()])
        .args(["--gather", &point.gather.to_string()])
        // The clock also advances during callgrind's overhead, so no batch may time out.
        .args(["--timeout-us", "1000000"])
        .args(["--packets", &packets.to_string()]);
    if let Some(burst) = point.burst {
        program = program.args(["--burst", &burst.to_string()]);
    }
    program.limit_seconds(300).require()?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let event = |name| {
        column(&text, name).ok_or_else(|| format!("{}: no total of {name} in it", file.display()))
    };
    Ok((event("Ir")?, event("I1mr")?))
}

/// Reduction of the misses by the batcher.
pub struct Reduction {
    /// Cost without the batcher.
    pub off: Cost,
    /// For each number of gathered batches: the cost with the batcher, and the reduction in percent.
    pub on: Vec<(u32, Cost, f64)>,
}

/// The misses without the batcher, and with it for some numbers of gathered batches.
pub fn reduction(home: &Home, point: Point<'_>, gathers: &[u32]) -> Result<Reduction, String> {
    let batcher = false;
    let off = count(home, Point { batcher, ..point })?;
    let on = gathers.iter().map(|&gather| {
        let batcher = true;
        let on = count(
            home,
            Point {
                batcher,
                gather,
                ..point
            },
        )?;
        Ok((gather, on, percent(off.misses, on.misses)))
    });
    let on = on.collect::<Result<Vec<_>, String>>()?;
    Ok(Reduction { off, on })
}

impl<'a> Point<'a> {
    /// Alternating IPv4 and IPv6.
    pub fn alternating(batch: u32, burst: Option<u32>, cache: u32) -> Point<'a> {
        Point {
            pattern: "alternating-2",
            batch,
            batcher: false,
            gather: 1,
            burst,
            cache,
        }
    }
}

fn percent(off: f64, on: f64) -> f64 {
    if off > 0.0 {
        (1.0 - on / off) * 100.0
    } else {
        0.0
    }
}

/// Measures the curves and writes them into the page.
pub fn curves(home: &Home) -> Outcome {
    if let Err(outcome) = possible(home) {
        return outcome;
    }
    match drawn(home) {
        Ok(()) => Pass(format!("{PAGE}, {PICTURE}")),
        Err(reason) => Fail(reason),
    }
}

fn drawn(home: &Home) -> Result<(), String> {
    let mut series = Vec::new();
    let mut rows = String::from(
        "| I1 | batch | in a row | misses off | misses on | change | instructions off | instructions on |\n|---|---|---|---|---|---|---|---|\n",
    );
    for cache in [32_768, 8_192] {
        let mut points = vec![Vec::new(); 1 + GATHERS.len()];
        for batch in BATCHES {
            let all = reduction(home, Point::alternating(batch, None, cache), &GATHERS)?;
            // The axis is logarithmic.
            let mut put = |line: usize, misses: f64| {
                points[line].push((f64::from(batch), misses.max(0.001)));
            };
            put(0, all.off.misses);
            for (line, (gather, on, less)) in all.on.iter().enumerate() {
                put(1 + line, on.misses);
                let _ = writeln!(
                    rows,
                    "| {} KiB | {batch} | {gather} | {:.3} | {:.3} | {:+.1} % | {:.1} | {:.1} |",
                    cache / 1024,
                    all.off.misses,
                    on.misses,
                    -less,
                    all.off.instructions,
                    on.instructions
                );
            }
        }
        let mut names = vec!["off".to_owned()];
        names.extend(GATHERS.map(|n| format!("{n} in a row")));
        for (name, points) in names.into_iter().zip(points) {
            let name = format!("{} KiB, {name}", cache / 1024);
            series.push(Series { name, points });
        }
    }
    let titles = Titles {
        title: "L1-I misses of a packet by batch size, IPv4 and IPv6 alternating",
        x: "packets per batch",
        y: "misses per packet",
    };
    let write = |name: &str, text: &str| -> Result<(), Error> {
        let path = home.root.join(name);
        std::fs::write(&path, text).map_err(Error::file(&path))
    };
    write(PICTURE, &svg(&titles, &series)).map_err(|e| e.to_string())?;
    let page = std::fs::read_to_string(home.root.join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let picture = format!("![L1-I misses by batch size](path-batcher.svg)\n\n{rows}");
    let text = splice(&page, (BEGIN, END), &picture)
        .ok_or_else(|| format!("{PAGE}: the marks are gone"))?;
    write(PAGE, &text).map_err(|e| e.to_string())
}

/// Replaces the text between two marks of a page.
pub fn splice(page: &str, (begin, end): (&str, &str), text: &str) -> Option<String> {
    let (head, rest) = page.split_once(begin)?;
    let (_, tail) = rest.split_once(end)?;
    Some(format!("{head}{begin}\n{text}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_and_marks() {
        assert!((percent(2.0, 0.5) - 75.0).abs() < 1e-9);
        assert!((percent(0.0, 0.5)).abs() < 1e-9);
        let page = format!("a\n{BEGIN}\nold\n{END}\nb");
        assert_eq!(
            splice(&page, (BEGIN, END), "new\n"),
            Some(format!("a\n{BEGIN}\nnew\n{END}\nb"))
        );
        assert_eq!(splice("a", (BEGIN, END), "b"), None);
    }
}
