//! `show path-batcher`: the query, its reply, its text, and its figures on the page of metrics.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use volley_object::Query;
use volley_show::{COUNTER, GAUGE, Page, table};

/// The path batcher: interfaces, queues, rules, what it learned, how long packets wait.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "path-batcher",
    show = "show path-batcher",
    example = "show path-batcher"
)]
#[query(reply = PathBatcherReply, text = text, figures = figures)]
pub struct ShowPathBatcher;

/// State of the path batcher.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathBatcherReply {
    /// Interfaces with the path batcher enabled.
    pub interfaces: Vec<String>,
    /// Interfaces that were disabled and whose last packets still wait.
    pub draining: Vec<String>,
    /// Packets of a full batch, unless the queue has its own value.
    pub batch: u32,
    /// The longest wait in microseconds, unless the queue has its own value.
    pub timeout_us: u32,
    /// Full batches that wait for each other, unless the queue has its own value.
    pub gather: u32,
    /// All queues together.
    pub totals: PathBatcherTotals,
    /// Queues by number, the default queue first.
    pub queues: Vec<PathQueueRow>,
    /// Rules by priority.
    pub rules: Vec<PathRuleRow>,
    /// Headers that the operator defined.
    pub headers: Vec<PathHeaderRow>,
    /// Whether learning is enabled.
    pub learning: bool,
    /// Learned paths with a queue.
    pub learned: Vec<PathLearnedRow>,
}

/// Totals of all queues.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathBatcherTotals {
    /// Packets that came in.
    pub packets: u64,
    /// Packets that wait now.
    pub held: u64,
    /// Packets that were sent on early, because the rules changed or an interface was switched off.
    pub flushed: u64,
    /// Batches by number of packets: 1, 2..3, 4..7 and so on.
    pub sizes: Vec<u64>,
    /// Packets by time waited: below 1 us, 1..2 us, 2..4 us and so on.
    pub delays: Vec<u64>,
    /// Half of the packets waited at most so many microseconds (upper end of the histogram's step).
    pub delay_p50_us: f64,
    /// 99 of 100 packets waited at most so many microseconds.
    pub delay_p99_us: f64,
    /// The longest wait in microseconds.
    pub delay_max_us: f64,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathQueueRow {
    /// Number of the queue; 0 is the default queue.
    pub id: u32,
    /// Packets of a full batch; none = the batcher's default.
    pub batch: Option<u32>,
    /// The longest wait in microseconds; none = the batcher's default.
    pub timeout_us: Option<u32>,
    /// Full batches that wait for each other; none = the batcher's default.
    pub gather: Option<u32>,
    /// Batches in one turn of the queue.
    pub weight: Option<u32>,
    /// Strict priority; none = the queue takes turns.
    pub strict: Option<u32>,
    /// Whether the queue belongs to a learned path.
    pub learned: bool,
    /// Packets that came in.
    pub packets: u64,
    /// Packets that wait now.
    pub held: u64,
    /// The largest number of packets that ever waited.
    pub most_held: u64,
    /// Batches that were full.
    pub full: u64,
    /// Batches whose time was up.
    pub timeouts: u64,
    /// Packets that waited longer than their limit.
    pub late: u64,
    /// Packets that waited too long because the worker did not poll for half of the limit; included in `late`.
    pub held_up: u64,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathRuleRow {
    /// Name of the rule.
    pub name: String,
    /// Queue of the rule.
    pub queue: u32,
    /// Priority of the rule.
    pub priority: u32,
    /// Tests of the rule.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Packets that matched.
    pub packets: u64,
}

/// A header that the operator defined.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathHeaderRow {
    /// Name of the header.
    pub name: String,
    /// Bytes of the header besides the variable part.
    pub length: u32,
    /// Linked headers that do not exist: those links have no effect.
    pub missing: Vec<String>,
}

/// A path that was learned.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PathLearnedRow {
    /// Headers of the path, and the fields that distinguish it.
    pub path: String,
    /// Queue of the path.
    pub queue: u32,
    /// Share of the path in the latest sampled packets, in percent.
    pub percent: f64,
}

fn text(r: &PathBatcherReply) -> String {
    let mut out = String::new();
    let on = if r.interfaces.is_empty() {
        "off on all interfaces".to_owned()
    } else {
        format!("on: {}", r.interfaces.join(", "))
    };
    let _ = writeln!(
        out,
        "Path batcher {on}; batch {}, limit {} us, {} in a row",
        r.batch, r.timeout_us, r.gather
    );
    if !r.draining.is_empty() {
        let _ = writeln!(out, "  last packets are leaving: {}", r.draining.join(", "));
    }
    totals(&r.totals, &mut out);
    queues(r, &mut out);
    rules(r, &mut out);
    for header in &r.headers {
        let _ = write!(out, "\nHeader {}, {} bytes", header.name, header.length);
        if !header.missing.is_empty() {
            let _ = write!(
                out,
                "; linked with what does not exist: {}",
                header.missing.join(", ")
            );
        }
    }
    if !r.headers.is_empty() {
        out.push('\n');
    }
    if r.learning {
        out += "\nLearned paths\n";
        for path in &r.learned {
            let _ = writeln!(
                out,
                "  queue {}: {} ({:.1} %)",
                path.queue, path.path, path.percent
            );
        }
    }
    out
}

fn totals(t: &PathBatcherTotals, out: &mut String) {
    let _ = writeln!(
        out,
        "  {} packets, {} wait now, {} sent on early",
        t.packets, t.held, t.flushed
    );
    if t.packets == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "  waited {:.1} us or less: half; {:.1} us: 99 of 100; longest {:.1} us",
        t.delay_p50_us, t.delay_p99_us, t.delay_max_us
    );
    let steps = |all: &[u64], unit: &str| {
        let some = all.iter().enumerate().filter(|(_, n)| **n > 0);
        let step = |(at, n): (usize, &u64)| format!("{}{unit} {n}", 1u64 << at);
        some.map(step).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(out, "  batches from a size on: {}", steps(&t.sizes, ""));
    let _ = writeln!(out, "  packets by wait below: {}", steps(&t.delays, " us"));
}

fn queues(r: &PathBatcherReply, out: &mut String) {
    let of = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let rows = r.queues.iter().map(|q| {
        let kind = match (q.id, q.learned) {
            (0, _) => "default",
            (_, true) => "learned",
            _ => "",
        };
        let numbers = [
            q.packets,
            q.held,
            q.most_held,
            q.full,
            q.timeouts,
            q.late,
            q.held_up,
        ];
        let own = [q.batch, q.timeout_us, q.gather, q.weight, q.strict];
        let mut row = vec![q.id.to_string(), kind.to_owned()];
        row.extend(own.map(of));
        row.extend(numbers.map(|n| n.to_string()));
        row
    });
    out.push('\n');
    let heads = [
        ">Queue",
        "",
        ">Batch",
        ">Limit",
        ">Gather",
        ">Weight",
        ">Strict",
        ">Packets",
        ">Held",
        ">Most",
        ">Full",
        ">Timeouts",
        ">Late",
        ">Held up",
    ];
    *out += &table(&heads, &rows.collect::<Vec<_>>());
}

fn rules(r: &PathBatcherReply, out: &mut String) {
    if !r.rules.is_empty() {
        let rows = r.rules.iter().map(|rule| {
            let numbers = [rule.queue.to_string(), rule.packets.to_string()];
            let mut row = vec![rule.priority.to_string(), rule.name.clone()];
            row.extend(numbers);
            row.push(rule.matches.join(" "));
            row
        });
        out.push('\n');
        let heads = [">Priority", "Rule", ">Queue", ">Packets", "Match"];
        *out += &table(&heads, &rows.collect::<Vec<_>>());
    }
}

fn figures(batcher: &PathBatcherReply, page: &mut Page) {
    type Read = fn(&PathQueueRow) -> u64;
    let figures: [(&str, &str, &str, Read); 4] = [
        (
            "packets_total",
            COUNTER,
            "Packets that came into the queue.",
            |q| q.packets,
        ),
        (
            "held_packets",
            GAUGE,
            "Packets that wait in the queue.",
            |q| q.held,
        ),
        (
            "full_batches_total",
            COUNTER,
            "Batches that were full.",
            |q| q.full,
        ),
        (
            "timeouts_total",
            COUNTER,
            "Batches whose time was up.",
            |q| q.timeouts,
        ),
    ];
    for (name, kind, help, read) in figures {
        let name = format!("volley_path_batcher_queue_{name}");
        page.rows((&name, kind, help), &batcher.queues, |put, row| {
            put(&[("queue", &row.id.to_string())], read(row) as f64);
        });
    }
    let (name, help) = (
        "volley_path_batcher_rule_packets_total",
        "Packets that matched the rule.",
    );
    page.rows((name, COUNTER, help), &batcher.rules, |put, row| {
        put(&[("rule", &row.name)], row.packets as f64);
    });
    let help = "The longest wait since the last clear.";
    page.family("volley_path_batcher_longest_wait_seconds", GAUGE, help);
    let longest = batcher.totals.delay_max_us / 1e6;
    page.sample("volley_path_batcher_longest_wait_seconds", &[], longest);
}
