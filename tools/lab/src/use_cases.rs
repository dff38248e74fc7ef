//! The switches of a run by use case: a summary of the figures of the benchmark of software switches.

use crate::report::in_cell;
use crate::run::{Record, Run};
use crate::stats::{Summary, shown};
use crate::switch::{ADAPTERS, Kind, Scenario, Spec};

/// A quantity of a use case, and whether more of it is better.
struct Quantity {
    metric: &'static str,
    unit: &'static str,
    is_rate: bool,
}

const RATE: Quantity = Quantity {
    metric: "gbps",
    unit: "Gbit/s",
    is_rate: true,
};

/// Part of the largest rate at which times are compared.
const LOAD: f64 = 0.5;

/// A use case: which points it has.
struct UseCase {
    name: &'static str,
    quantity: &'static Quantity,
    has: fn(&Spec) -> bool,
}

fn is_plain(spec: &Spec) -> bool {
    spec.load.is_none() && spec.search.is_none() && !spec.both && !spec.reverse && spec.size == 64
}

/// The use cases, from the simplest to the longest path.
const USE_CASES: [UseCase; 8] = [
    UseCase {
        name: "forwarding between physical ports (p2p)",
        quantity: &RATE,
        has: |s| s.scenario == Scenario::P2p && is_plain(s),
    },
    UseCase {
        name: "packets to a virtual function (p2v)",
        quantity: &RATE,
        has: |s| s.scenario == Scenario::P2v && is_plain(s),
    },
    UseCase {
        name: "packets from a virtual function (p2v, reversed)",
        quantity: &RATE,
        has: |s| {
            let forwards = Spec {
                reverse: false,
                ..s.clone()
            };
            s.scenario == Scenario::P2v && s.reverse && is_plain(&forwards)
        },
    },
    UseCase {
        name: "between virtual network functions of a machine (v2v)",
        quantity: &RATE,
        has: |s| s.scenario == Scenario::V2v && is_plain(s),
    },
    UseCase {
        name: "a service chain of 1 function",
        quantity: &RATE,
        has: |s| s.scenario == Scenario::Loopback && s.vnfs == 1 && is_plain(s),
    },
    UseCase {
        name: "a service chain of 3 functions",
        quantity: &RATE,
        has: |s| s.scenario == Scenario::Loopback && s.vnfs == 3 && is_plain(s),
    },
    UseCase {
        name: "median time between physical ports at 0.5 R+",
        quantity: &TIMES,
        has: |s| s.scenario == Scenario::P2p && s.load == Some(LOAD),
    },
    UseCase {
        name: "median time through a chain of 1 function at 0.5 R+",
        quantity: &TIMES,
        has: |s| s.scenario == Scenario::Loopback && s.vnfs == 1 && s.load == Some(LOAD),
    },
];

const TIMES: Quantity = Quantity {
    metric: "median",
    unit: "us",
    is_rate: false,
};

/// A use case with the switches that were measured, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The use case.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Names and medians.
    pub switches: Vec<(String, f64)>,
}

impl Row {
    /// The switches in a sentence: the best first.
    pub fn text(&self) -> String {
        let of = |(name, value): &(String, f64)| format!("{name} {}", shown(*value));
        let all: Vec<String> = self.switches.iter().map(of).collect();
        all.join(", ")
    }
}

/// Name of the switch of a point, with the kind of its ports where a switch has several.
fn name(spec: &Spec) -> String {
    let adapter = ADAPTERS.into_iter().find(|a| a.name == spec.peer);
    let title = adapter.map_or(spec.peer.as_str(), |a| a.title);
    let more = match (spec.scenario, spec.physical(), spec.ports()) {
        _ if spec.guest => " (emulated virtual machine)",
        (_, Kind::AfXdp, _) => " (veth by AF_XDP)",
        (_, Kind::Veth, _) if !title.contains("veth") => " (veth)",
        (Scenario::P2p, ..) => "",
        (_, _, Kind::Memif) => " (memif)",
        _ => "",
    };
    format!("{title}{more}")
}

fn row(case: &UseCase, points: &[(Spec, &Record)]) -> Row {
    let quantity = case.quantity;
    let value = |(spec, record): &(Spec, &Record)| {
        let summary = Summary::of(record.samples.get(quantity.metric)?)?;
        Some((name(spec), summary.median))
    };
    let of = points.iter().filter(|(spec, _)| (case.has)(spec));
    let mut switches: Vec<(String, f64)> = of.filter_map(value).collect();
    switches.sort_by(|a, b| match quantity.is_rate {
        true => b.1.total_cmp(&a.1),
        false => a.1.total_cmp(&b.1),
    });
    Row {
        name: case.name,
        unit: quantity.unit,
        switches,
    }
}

/// The use cases that the run has measured.
pub fn rows(run: &Run) -> Vec<Row> {
    let spec = |record: &Record| {
        let args = record.args.strip_prefix("switch ")?;
        // Figures that place the threads on processors have other conditions.
        Spec::of(args).ok().filter(|spec| spec.cores.is_none())
    };
    let mut points: Vec<(Spec, &Record)> = Vec::new();
    for record in &run.records {
        let Some(spec) = spec(record) else { continue };
        // Two figures may have the same point.
        if !points.iter().any(|(known, _)| *known == spec) {
            points.push((spec, record));
        }
    }
    let rows = USE_CASES.iter().map(|case| row(case, &points));
    rows.filter(|row| !row.switches.is_empty()).collect()
}

/// The table as Markdown; empty without measured switches.
pub fn markdown(run: &Run) -> String {
    let rows = rows(run);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Use cases of switches\n\n{NOTE}\n\n| use case | unit | switches, best first |\n|---|---|---|\n"
    );
    for row in rows {
        let switches = in_cell(&row.text());
        text += &format!("| {} | {} | {switches} |\n", row.name, row.unit);
    }
    text
}

/// What the table shows.
pub const NOTE: &str = "Medians with packets of 64 bytes, one way; rates are those on the wire, and R+ is the largest rate that came back. Physical ports are memif ports and those of virtual network functions vhost-user ports, where the name of the switch does not state others. A router is listed beside the switches because it forwards the same packets between the same ports.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use crate::meter::Options;
    use crate::samples::Samples;

    fn record(args: &str, metric: &str, value: f64) -> Record {
        Record {
            figure: "switch-p2p".to_owned(),
            series: args.to_owned(),
            x: 0.0,
            label: String::new(),
            args: format!("switch {args}"),
            samples: Samples::from([(metric.to_owned(), vec![value])]),
            error: None,
            seconds: 0.0,
            is_shortened: false,
        }
    }

    #[test]
    fn the_best_switch_is_first() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["switch-p2p".to_owned()];
        let mut run = Run::create(dir.path(), &names, Level::Quick, Options::default()).unwrap();
        assert_eq!(markdown(&run), "");
        run.records = vec![
            record("p2p --peer testpmd", "gbps", 3.0),
            record("p2p", "gbps", 4.0),
            record("p2p --both", "gbps", 9.0),
            record("p2p --size 256", "gbps", 9.0),
            record("p2p --physical veth", "gbps", 1.0),
            record("p2v --ports memif", "gbps", 2.0),
            record("loopback --guest", "gbps", 0.1),
            record("p2p --load 0.5 --peer testpmd", "median", 3.0),
            record("p2p --load 0.5", "median", 5.0),
        ];
        let all = rows(&run);
        let texts: Vec<String> = all.iter().map(Row::text).collect();
        assert_eq!(
            texts,
            [
                "Volley 4.00, DPDK testpmd 3.00, Volley (veth) 1.00",
                "Volley (memif) 2.00",
                "Volley (emulated virtual machine) 0.10",
                "DPDK testpmd 3.00, Volley 5.00"
            ]
        );
        assert!(markdown(&run).contains("| us | DPDK testpmd 3.00, Volley 5.00 |"));
    }
}
