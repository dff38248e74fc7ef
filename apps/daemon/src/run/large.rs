//! Work with many objects: a helper thread has the desired state meanwhile, so that the control thread answers.

use tokio::task::spawn_blocking;
use volley_model::{ModelError, Request};

/// Objects that the control thread works with itself: the work with more takes longer than a slice of its time.
pub(super) const FEW: usize = 4096;
/// Objects whose events are sent between two looks at the clock.
pub(super) const EVENTS: usize = 256;

/// Number of objects in requests.
pub(super) fn objects(requests: &[Request]) -> usize {
    let of = |request: &Request| match request {
        Request::Bulk(bulk) => bulk.len(),
        _ => 1,
    };
    requests.iter().map(of).sum()
}

/// Does work on a helper thread.
pub(super) async fn on_helper<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ModelError> {
    let lost = |error| ModelError::invalid("the helper thread", error);
    spawn_blocking(work).await.map_err(lost)
}
