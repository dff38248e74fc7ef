//! Latency: one way, from the time at which a packet is due until the sink has it, at parts of the largest rate.

use super::lab_points::{Point, TESTPMD, hindrance, point};
use super::{Item, Sitting, Work, at_most, item};
use xtask::report::{Outcome, Skip};

/// Parts of the largest rate; the first one is judged.
const LOADS: [&str; 3] = ["0.1", "0.5", "0.99"];
/// Most that vectors, the receive mode and sleeping may add at low load, in microseconds.
const ADDED_US: f64 = 1.0;
/// Packets per second with which an adaptive worker never sleeps, and with which it sleeps before each packet.
const AWAKE: &str = "10000";
const ASLEEP: &str = "1000";

pub const ITEMS: &[Item] = &[
    item(
        "latency-xc",
        "patch in memory: median at a tenth of the largest rate; p50, p99, p99.9 at 0.1, 0.5, 0.99",
        Work::Call(|sitting| in_memory(sitting, "xc")),
    ),
    item(
        "latency-ip4",
        "IPv4 in memory: the same",
        Work::Call(|sitting| in_memory(sitting, "ip4")),
    ),
    item(
        "latency-mix",
        "mix in memory: the same",
        Work::Call(|sitting| in_memory(sitting, "mix")),
    ),
    item(
        "latency-memif-xc",
        "patch between memifs: the median at a tenth of the largest rate beside testpmd's at the same rate",
        Work::Call(|sitting| over_memif(sitting, "--peer volley")),
    ),
    item(
        "latency-memif-ip4",
        "IPv4 between memifs: the same",
        Work::Call(|sitting| over_memif(sitting, "--peer volley-router")),
    ),
    item(
        "latency-memif-mix",
        "mix between memifs: the same",
        Work::Call(|sitting| over_memif(sitting, "--peer volley-router --traffic mix")),
    ),
    item(
        "latency-adaptive",
        "adaptive receive mode between memifs, 10,000 packets per second: what it adds to polling",
        Work::Call(adaptive),
    ),
    item(
        "latency-sleep",
        "a worker that sleeps before each packet: what it adds to polling and the kernel's wake-up",
        Work::Call(sleep),
    ),
];

/// `p50 / p99 / p99.9` in microseconds.
fn described(point: &Point) -> Result<String, String> {
    Ok(format!(
        "{:.2} / {:.2} / {:.2} us",
        point.median("median")?,
        point.median("p99")?,
        point.median("p99.9")?
    ))
}

/// The points of all loads, and their text.
fn at_loads(
    sitting: &Sitting<'_>,
    args: impl Fn(&str) -> String,
) -> Result<(Point, String), String> {
    let (mut first, mut text) = (None, Vec::new());
    for load in LOADS {
        let point = point(sitting, &args(load))?;
        text.push(format!("{load}: {}", described(&point)?));
        first.get_or_insert(point);
    }
    let first = first.ok_or("no load was measured")?;
    let most = first.median("capacity")?;
    Ok((first, format!("{} of {most:.2} Mpps", text.join("; "))))
}

fn judged(added: f64, what: &str, more: &str) -> Result<String, String> {
    let add = |text: String| format!("{text} ({what}; {more})");
    at_most(added, ADDED_US, "us").map(add).map_err(add)
}

fn in_memory(sitting: &Sitting<'_>, scenario: &str) -> Outcome {
    let args = |load: &str| format!("latency {load} --scenario {scenario} --buffers 4096");
    let points = at_loads(sitting, args);
    Outcome::of(
        points.and_then(|(low, text)| judged(low.median("median")?, "p50 / p99 / p99.9", &text)),
    )
}

const MEMIF: &str = "switch p2p --cores two-cores";

fn over_memif(sitting: &Sitting<'_>, args: &str) -> Outcome {
    if let Some(why) = hindrance(TESTPMD) {
        return Skip(why);
    }
    let points = at_loads(sitting, |load| format!("{MEMIF} {args} --load {load}"));
    Outcome::of(points.and_then(|(low, text)| {
        let pps = low.median("capacity")? * 1e5;
        let theirs = point(sitting, &format!("{MEMIF} --peer testpmd --pps {pps:.0}"))?;
        let added = low.median("median")? - theirs.median("median")?;
        let theirs = described(&theirs)?;
        judged(
            added,
            &text,
            &format!("testpmd in io mode at {pps:.0} per second: {theirs}"),
        )
    }))
}

fn in_mode(sitting: &Sitting<'_>, mode: &str, pps: &str) -> Result<Point, String> {
    point(sitting, &format!("{MEMIF} --rx-mode {mode} --pps {pps}"))
}

/// What the adaptive mode adds to the median of the polling mode, and the text of both.
fn added(sitting: &Sitting<'_>, pps: &str) -> Result<(f64, String), String> {
    let polling = in_mode(sitting, "polling", pps)?;
    let adaptive = in_mode(sitting, "adaptive", pps)?;
    let more = format!(
        "polling {}, adaptive {}",
        described(&polling)?,
        described(&adaptive)?
    );
    Ok((adaptive.median("median")? - polling.median("median")?, more))
}

fn adaptive(sitting: &Sitting<'_>) -> Outcome {
    let judge = |(added, more): (f64, String)| judged(added, "p50 / p99 / p99.9", &more);
    Outcome::of(added(sitting, AWAKE).and_then(judge))
}

fn sleep(sitting: &Sitting<'_>) -> Outcome {
    Outcome::of(added(sitting, ASLEEP).and_then(|(added, more)| {
        let wake = point(sitting, &format!("wake {ASLEEP}"))?.spread("median")?;
        let what = format!(
            "sleeping adds {added:.2} us, of which the kernel takes {:.2} ({:.2} to {:.2}) to wake any thread",
            wake.median, wake.min, wake.max
        );
        judged(added - wake.median, &what, &more)
    }))
}
