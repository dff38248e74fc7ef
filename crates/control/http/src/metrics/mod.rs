//! Metrics for Prometheus.

mod latency;

pub use latency::{BOUNDS, Histogram, Latencies};

use volley_cli::server::Backend;
use volley_object::Answer;
use volley_show::Page;

/// The content of the page: replies of queries with metrics.
#[derive(Debug, Default)]
pub struct Figures(Vec<Answer>);

impl Figures {
    /// Makes the queries.
    pub async fn gather(backend: &(impl Backend + ?Sized)) -> Figures {
        let mut figures = Figures::default();
        for query in volley_object::classes().queries() {
            let Some(asked) = query.for_figures() else {
                continue;
            };
            // A query that was removed meanwhile has no metrics.
            figures.0.extend(backend.query(asked).await.ok());
        }
        figures
    }
}

/// The page, in the text format 0.0.4.
pub fn text(figures: &Figures, latencies: &Latencies) -> String {
    let mut page = Page::default();
    figures
        .0
        .iter()
        .for_each(|answer| answer.figures(&mut page));
    control(&mut page, latencies);
    page.text()
}

fn control(page: &mut Page, latencies: &Latencies) {
    let name = "volley_control_latency_seconds";
    let help = "How long the control plane took to answer; changes until the workers use them.";
    page.family(name, "histogram", help);
    let all = [
        ("query", &latencies.query),
        ("change", &latencies.change),
        ("config", &latencies.config),
    ];
    for (operation, histogram) in all {
        let counts = histogram.cumulative();
        let bounds = BOUNDS.iter().map(ToString::to_string);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&counts) {
            let labels = [("operation", operation), ("le", &bound)];
            page.sample(&format!("{name}_bucket"), &labels, count);
        }
        let labels = [("operation", operation)];
        page.sample(&format!("{name}_sum"), &labels, histogram.sum());
        let count = counts.last().copied().unwrap_or_default();
        page.sample(&format!("{name}_count"), &labels, count);
    }
}
