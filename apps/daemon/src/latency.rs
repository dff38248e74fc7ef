//! Time that the control plane needs for answers: histograms, `show control latency`, and figures on the page of metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use volley_iface::Registry;
use volley_object::Query;
use volley_show::{Page, or_dash, table};

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// Control latency: how long the control plane took to answer; changes until the workers use them.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "control-latency", show = "show control latency")]
#[query(example = "show control latency", reply = ControlLatency)]
#[query(text = text, figures = figures)]
pub struct ShowControlLatency;

/// How long the control plane took to answer.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ControlLatency {
    /// One per kind of operation.
    pub operations: Vec<OperationLatency>,
}

/// How long operations of one kind took.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OperationLatency {
    /// `query`, `change`, or `config`: an action on the configuration as a whole.
    pub operation: String,
    /// Number of operations.
    pub count: u64,
    /// Sum of their durations.
    pub sum_s: f64,
    /// Numbers of operations up to each duration.
    pub buckets: Vec<LatencyBucket>,
}

/// Operations up to a duration.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBucket {
    /// The duration.
    pub le_s: f64,
    /// Number of operations that took no longer.
    pub count: u64,
}

/// One histogram.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Cell<u64>; BOUNDS.len()],
    count: Cell<u64>,
    sum: Cell<Duration>,
}

impl Histogram {
    /// Records one duration.
    fn record(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at].set(self.buckets[at].get() + 1);
        }
        self.count.set(self.count.get() + 1);
        self.sum.set(self.sum.get() + took);
    }

    /// Awaits work, and records its duration.
    pub(crate) async fn time<T>(&self, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = work.await;
        self.record(start.elapsed());
        done
    }

    fn report(&self, operation: &str) -> OperationLatency {
        let mut count = 0;
        let bucket = |(bound, bucket): (&f64, &Cell<u64>)| {
            count += bucket.get();
            LatencyBucket {
                le_s: *bound,
                count,
            }
        };
        OperationLatency {
            operation: operation.to_owned(),
            buckets: BOUNDS.iter().zip(&self.buckets).map(bucket).collect(),
            count: self.count.get(),
            sum_s: self.sum.get().as_secs_f64(),
        }
    }
}

/// One histogram for each kind of operation.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    /// Queries.
    pub(crate) query: Histogram,
    /// Requests and transactions, until the workers use the result.
    pub(crate) change: Histogram,
    /// Actions on the configuration as a whole.
    pub(crate) config: Histogram,
}

/// Creates the histograms, and answers the query about them.
pub(crate) fn register(registry: &mut Registry) -> Rc<Latencies> {
    let latencies = Rc::new(Latencies::default());
    let shared = latencies.clone();
    registry.answer(move |_: ShowControlLatency| {
        let all = [
            ("query", &shared.query),
            ("change", &shared.change),
            ("config", &shared.config),
        ];
        let operations = all.map(|(operation, histogram)| histogram.report(operation));
        let operations = operations.into();
        Ok(ControlLatency { operations })
    });
    latencies
}

impl OperationLatency {
    /// The least bound within which so many percent of the operations were answered.
    fn within(&self, percent: u64) -> Option<f64> {
        let enough = |bucket: &&LatencyBucket| bucket.count * 100 >= self.count * percent;
        let bucket = self.buckets.iter().find(enough);
        bucket.filter(|_| self.count > 0).map(|it| it.le_s)
    }
}

fn text(reply: &ControlLatency) -> String {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let row = |it: &OperationLatency| {
        let mean = (it.count > 0).then(|| ms(it.sum_s / it.count as f64));
        vec![
            it.operation.clone(),
            it.count.to_string(),
            or_dash(mean),
            or_dash(it.within(50).map(ms)),
            or_dash(it.within(99).map(ms)),
        ]
    };
    let rows: Vec<Vec<String>> = reply.operations.iter().map(row).collect();
    let heads = [
        "operation",
        ">count",
        ">mean ms",
        ">50% within ms",
        ">99% within ms",
    ];
    table(&heads, &rows)
}

fn figures(reply: &ControlLatency, page: &mut Page) {
    let name = "volley_control_latency_seconds";
    let help = "How long the control plane took to answer; changes until the workers use them.";
    page.family(name, "histogram", help);
    for it in &reply.operations {
        let labels = [("operation", &it.operation[..])];
        let of_bound = |bound: &str, count: u64, page: &mut Page| {
            let labels = [labels[0], ("le", bound)];
            page.sample(&format!("{name}_bucket"), &labels, count);
        };
        for bucket in &it.buckets {
            of_bound(&bucket.le_s.to_string(), bucket.count, page);
        }
        of_bound("+Inf", it.count, page);
        page.sample(&format!("{name}_sum"), &labels, it.sum_s);
        page.sample(&format!("{name}_count"), &labels, it.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_all_longer_buckets() {
        let histogram = Histogram::default();
        for ms in [1, 2, 2, 900, 60_000] {
            histogram.record(Duration::from_millis(ms));
        }
        let it = histogram.report("query");
        let count = |le_s| it.buckets.iter().find(|b| b.le_s == le_s).map(|b| b.count);
        assert_eq!(
            [0.000_5, 0.001, 0.002_5, 1.0, 5.0].map(count),
            [0, 1, 3, 4, 4].map(Some)
        );
        assert_eq!(
            (it.count, it.within(50), it.within(99)),
            (5, Some(0.002_5), None)
        );
        let reply = ControlLatency {
            operations: vec![it],
        };
        let shown = text(&reply);
        let cells: Vec<&str> = shown.split_whitespace().rev().take(5).collect();
        assert_eq!(cells, ["-", "2.500", "12181.000", "5", "query"], "{shown}");
        let mut page = Page::default();
        figures(&reply, &mut page);
        let page = page.text();
        for line in [
            "_bucket{operation=\"query\",le=\"0.0025\"} 3\n",
            "_bucket{operation=\"query\",le=\"+Inf\"} 5\n",
            "_count{operation=\"query\"} 5\n",
        ] {
            assert!(page.contains(line), "{page}");
        }
        let none = Histogram::default().report("config");
        assert_eq!(none.within(50), None);
    }
}
