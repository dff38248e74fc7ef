//! RED: random early detection (Floyd and Jacobson, 1993), and its gentle form.

use crate::arguments::plain_words;
use crate::cells::{Cells, LENGTH};
use crate::element::{Each, Element, Made, Queues, Reason, Verdict, Watch};
use crate::handlers::text;
use crate::pace::{from_fixed, to_fixed};
use crate::spec::Need::{Keyword, Required};
use crate::spec::{Format, HandlerKind, Kind, Spec, argument, handler, reads};
use std::sync::Arc;
use volley_graph::{Guard, Packet, Rows};
use volley_tables::Publisher;
use volley_tables::qsbr::Snap;

/// Cells: the lower and the upper threshold, the probability at the upper one, marked packets, the average.
const LEAST: usize = 0;
const MOST: usize = 1;
const SHARE: usize = 2;
const DROPS: usize = 3;
const AVERAGE: usize = 4;
/// Cell: the length of the queues behind the last vector.
const QUEUED: usize = 5;

/// Without packets, empty queues count once in this time.
const REST_NS: u64 = 10_000_000;
/// A rest that has lasted this many times is as long as any other.
const LONG_REST: u64 = 1 << 16;

struct Red {
    cells: Arc<Cells>,
    queues: Snap<Queues>,
    average: f64,
    /// The weight of the newest length in the average.
    weight: f64,
    is_gentle: bool,
    /// Packets since the last one that was marked, while the average is above the lower threshold.
    since: Option<u32>,
    /// When the last vector came.
    last_ns: u64,
    random: fastrand::Rng,
}

impl Red {
    /// The probability of a mark by the average alone.
    fn share(&self) -> f64 {
        let least = self.cells.get(LEAST) as f64;
        let most = (self.cells.get(MOST) as f64).max(least);
        let share = from_fixed(self.cells.get(SHARE));
        match self.average {
            average if average <= least => 0.0,
            average if average <= most => share * (average - least) / (most - least),
            average if self.is_gentle && average < 2.0 * most => {
                share + (1.0 - share) * (average - most) / most
            }
            _ => 1.0,
        }
    }

    /// Whether the next packet is marked, which sees queues of this length. The number of packets between two marks is equally
    /// distributed.
    fn marks(&mut self, length: u64) -> bool {
        self.average += (length as f64 - self.average) * self.weight;
        let share = self.share();
        if share == 0.0 {
            self.since = None;
            return false;
        }
        let since = self.since.unwrap_or(0);
        let left = 1.0 - f64::from(since) * share;
        let is_marked = left <= share || self.random.f64() * left < share;
        self.since = Some(if is_marked {
            0
        } else {
            since.saturating_add(1)
        });
        is_marked
    }

    /// The queues were empty for some time: the average falls without packets.
    fn rest(&mut self, now_ns: u64) {
        let missed = now_ns.saturating_sub(self.last_ns) / REST_NS;
        self.average *= (1.0 - self.weight).powi(missed.min(LONG_REST) as i32);
    }
}

impl Each for Red {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::port(0)
    }

    fn run(&mut self, rows: &mut Rows<'_>, verdicts: &mut [u32], now_ns: u64, guard: Guard<'_>) {
        let queues = self.queues.read(guard);
        let length: u64 = queues.cells.iter().map(|it| it.get(LENGTH)).sum();
        let is_pull = queues.is_pull;
        if length == 0 {
            self.rest(now_ns);
        }
        self.last_ns = now_ns;
        let (all, mut passed) = (rows.len() as u64, 0);
        for (row, verdict) in (1..=all).zip(verdicts) {
            // As if the packets of the vector came one by one: those in front are in the queue, those behind are still in it.
            let beside = if is_pull { all - row } else { passed };
            *verdict = match self.marks(length + beside) {
                true => {
                    self.cells.add(DROPS, 1);
                    Verdict::port_or(1, Reason::Refused).0
                }
                false => {
                    passed += 1;
                    Verdict::port(0).0
                }
            };
        }
        self.cells.set(AVERAGE, to_fixed(self.average));
        self.cells
            .set(QUEUED, length + if is_pull { 0 } else { passed });
    }
}

/// The report of Click's handler `stats`.
fn stats(cells: &Cells) -> String {
    let average = text(cells.get(AVERAGE), Format::Fraction);
    format!(
        "{} current queue\n{average} avg queue\n{} drops\n",
        cells.get(QUEUED),
        cells.get(DROPS)
    )
}

pub(super) const SPEC: Spec = Spec {
    name: "RED",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: &[
        argument(
            Required,
            "MIN_THRESH",
            Kind::Number(0, 1 << 20),
            "average length up to which no packet is marked",
        ),
        argument(
            Required,
            "MAX_THRESH",
            Kind::Number(0, 1 << 20),
            "average length at which packets are marked with MAX_P",
        ),
        argument(
            Required,
            "MAX_P",
            Kind::Fraction,
            "probability of a mark at MAX_THRESH",
        ),
        argument(
            Keyword,
            "QUEUES",
            Kind::Text,
            "names of queues; by default the next ones behind output 0, or in front of a pull input",
        ),
        argument(
            Keyword,
            "STABILITY",
            Kind::Number(0, 30),
            "the newest length has the weight 2^-STABILITY in the average, 4 by default",
        ),
        argument(
            Keyword,
            "GENTLE",
            Kind::Bool,
            "whether the probability rises from MAX_P at MAX_THRESH to 1 at its double, true by default; without it, all packets above MAX_THRESH are marked",
        ),
    ],
    handlers: &[
        handler(
            "min_thresh",
            HandlerKind::ReadWrite(LEAST as u8, Format::Number),
            "MIN_THRESH",
        ),
        handler(
            "max_thresh",
            HandlerKind::ReadWrite(MOST as u8, Format::Number),
            "MAX_THRESH",
        ),
        handler(
            "max_p",
            HandlerKind::ReadWrite(SHARE as u8, Format::Fraction),
            "MAX_P",
        ),
        reads("drops", DROPS as u8, "packets that were marked"),
        handler(
            "avg_queue_size",
            HandlerKind::Read(AVERAGE as u8, Format::Fraction),
            "the average length",
        ),
        handler(
            "stats",
            HandlerKind::Report(QUEUED as u8 + 1, stats),
            "the length behind the last packets, the average length and the drops, one a line",
        ),
    ],
    text: "Marks packets by random early detection: the longer its queues are on average, the more. Marked packets go to output 1. The handler queues has the names of the queues.",
    make: |arguments, context| {
        let (least, most) = (
            arguments.number("MIN_THRESH").unwrap_or(0),
            arguments.number("MAX_THRESH").unwrap_or(0),
        );
        if most < least {
            return Err(format!(
                "MAX_THRESH of RED is {most}, below MIN_THRESH {least}: give a larger one"
            ));
        }
        let cells = context.cells.clone();
        cells.set(LEAST, least);
        cells.set(MOST, most);
        cells.set(SHARE, to_fixed(arguments.fraction("MAX_P").unwrap_or(0.0)));
        let stability = arguments.number("STABILITY").unwrap_or(4) as i32;
        let is_gentle = arguments.flag("GENTLE").unwrap_or(true);
        let queues = Publisher::new(context.domain, Queues::default());
        let snap = queues.snap();
        let element = move || {
            Box::new(Red {
                cells: cells.clone(),
                queues: snap.clone(),
                average: 0.0,
                weight: 0.5_f64.powi(stability),
                is_gentle,
                since: None,
                last_ns: 0,
                // A run is repeatable.
                random: fastrand::Rng::with_seed(1),
            }) as Box<dyn Each>
        };
        Ok(Made {
            watch: Some(Watch {
                queues,
                named: plain_words(arguments.text("QUEUES").unwrap_or_default()),
            }),
            ..Made::new(Element::Each(Box::new(element)))
        })
    },
};
