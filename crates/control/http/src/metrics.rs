//! Metrics for Prometheus: the figures of the replies to queries.

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

    /// The page, in the text format 0.0.4.
    pub fn text(&self) -> String {
        let mut page = Page::default();
        self.0.iter().for_each(|answer| answer.figures(&mut page));
        page.text()
    }
}
