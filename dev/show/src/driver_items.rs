//! Drivers: what a packet costs from port to port, beside DPDK's testpmd with the same ports and the same generator.

use super::lab_points::{Point, TESTPMD, hindrance, point};
use super::{Item, Sitting, Work, at_least, item};
use xtask::report::{Outcome, Skip};

/// Minimum of testpmd's cycles divided by Volley's.
const PATCH: f64 = 1.0;
/// The same for IPv4 forwarding, compared with testpmd that replaces MAC addresses.
const ROUTED: f64 = 1.5;

/// Turns of both programs. Two virtual cores change between near and distant ones within minutes, so that one of two runs can have twice the
/// cycles of the other for this reason alone: the turn with the median ratio is judged.
const TURNS: usize = 3;

/// Each measures both programs in turn, with the same ports and packets. The figures are cycles of the rounds in
/// which packets came: they do not depend on whether the generator keeps the program busy all the time.
pub const ITEMS: &[Item] = &[
    item(
        "driver-memif",
        "memif to memif, master, 64 B: testpmd's cycles divided by Volley's",
        Work::Call(|sitting| patch(sitting, "p2p")),
    ),
    item(
        "driver-memif-imix",
        "memif to memif, master, IMIX",
        Work::Call(|sitting| patch(sitting, "p2p --traffic imix")),
    ),
    item(
        "driver-memif-slave",
        "memif to memif, slave, 64 B",
        Work::Call(|sitting| patch(sitting, "p2p --swap")),
    ),
    item(
        "driver-memif-slave-imix",
        "memif to memif, slave, IMIX",
        Work::Call(|sitting| patch(sitting, "p2p --swap --traffic imix")),
    ),
    item(
        "driver-vhost",
        "vhost-user to vhost-user, split rings, 64 B",
        Work::Call(|sitting| patch(sitting, "v2v")),
    ),
    item(
        "driver-vhost-imix",
        "vhost-user to vhost-user, split rings, IMIX",
        Work::Call(|sitting| patch(sitting, "v2v --traffic imix")),
    ),
    item(
        "driver-vhost-packed",
        "vhost-user to vhost-user, packed rings, 64 B",
        Work::Call(|sitting| patch(sitting, "v2v --packed")),
    ),
    item(
        "driver-virtio-user",
        "virtio-user to virtio-user, split rings, 64 B",
        Work::Call(|sitting| patch(sitting, "v2v --swap")),
    ),
    item(
        "driver-virtio-user-imix",
        "virtio-user to virtio-user, split rings, IMIX",
        Work::Call(|sitting| patch(sitting, "v2v --swap --traffic imix")),
    ),
    item(
        "driver-virtio-user-packed",
        "virtio-user to virtio-user, packed rings, 64 B",
        Work::Call(|sitting| patch(sitting, "v2v --swap --packed")),
    ),
    item(
        "driver-memif-queues",
        "memif to memif, master, 64 B, four queues",
        Work::Call(|sitting| patch(sitting, "p2p --queues 4")),
    ),
    item(
        "driver-vhost-queues",
        "vhost-user to vhost-user, split rings, 64 B, four queues",
        Work::Call(|sitting| patch(sitting, "v2v --queues 4")),
    ),
    item(
        "driver-memif-ip4",
        "IPv4 forwarding between memifs, 64 B: cycles of testpmd that replaces MAC addresses, divided by Volley's",
        Work::Call(|sitting| routed(sitting, "p2p")),
    ),
    item(
        "driver-vhost-ip4",
        "IPv4 forwarding between vhost-users, 64 B: cycles of testpmd that replaces MAC addresses, divided by Volley's",
        Work::Call(|sitting| routed(sitting, "v2v")),
    ),
];

fn patch(sitting: &Sitting<'_>, args: &str) -> Outcome {
    beside(sitting, args, ("volley", "testpmd"), PATCH)
}

fn routed(sitting: &Sitting<'_>, args: &str) -> Outcome {
    beside(sitting, args, ("volley-router", "testpmd --mac"), ROUTED)
}

fn beside(sitting: &Sitting<'_>, args: &str, (ours, theirs): (&str, &str), bar: f64) -> Outcome {
    if let Some(why) = hindrance(TESTPMD) {
        return Skip(why);
    }
    let run = |peer: &str| {
        point(
            sitting,
            &format!("switch {args} --cost --cores two-cores --peer {peer}"),
        )
    };
    let turn = |_| {
        let (ours, theirs) = (run(ours)?, run(theirs)?);
        let ratio = theirs.median("cycles")? / ours.median("cycles")?;
        Ok((ratio, ours, theirs))
    };
    let turns: Result<Vec<(f64, Point, Point)>, String> = (0..TURNS).map(turn).collect();
    Outcome::of(turns.and_then(|mut turns| {
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, most) = (turns[0].0, turns[TURNS - 1].0);
        let (ratio, ours, theirs) = &turns[TURNS / 2];
        let (a, b) = (described(ours)?, described(theirs)?);
        let nodes = ours.medians_of("node ").into_iter();
        let nodes = nodes.filter(|(name, _)| !name.starts_with("worker-"));
        let nodes: Vec<String> = nodes
            .map(|(name, cycles)| format!("{name} {cycles:.1}"))
            .collect();
        let more = format!(
            " ({least:.2} to {most:.2} in {TURNS} turns; Volley {a}: {}; testpmd {b})",
            nodes.join(", ")
        );
        let add = |text: String| text + &more;
        at_least(*ratio, bar, "times").map(add).map_err(add)
    }))
}

/// Cycles with their range, rate, and loss.
fn described(point: &Point) -> Result<String, String> {
    let cycles = point.spread("cycles")?;
    Ok(format!(
        "{:.1} cycles a packet ({:.1} to {:.1}), {:.2} Mpps, {:.0} % lost",
        cycles.median,
        cycles.min,
        cycles.max,
        point.median("mpps")?,
        point.median("loss")? * 100.0
    ))
}
