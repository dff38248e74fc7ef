//! Work with many objects: a helper thread has the desired state meanwhile, so that the control thread answers.

use super::backend::{Daemon, SLICE};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::Instant;
use volley_control::{Report, State};
use volley_model::{ModelError, Request};

/// Objects that the control thread works with itself: the work with more takes longer than a slice of its time.
const FEW: usize = 4096;
/// Objects whose events are sent between two looks at the clock.
const EVENTS: usize = 256;

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

impl Daemon {
    /// Does work with the desired state, on a helper thread when `objects` are many or the state has many. The caller holds the
    /// turn until the work is done, and is not cancelled: see [`Daemon::to_its_end`].
    pub(super) async fn with_state<T: Send + 'static>(
        &self,
        objects: usize,
        work: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, ModelError> {
        let mut state = self.core.borrow_mut().take_state();
        let is_large = objects.max(state.len()) > FEW;
        let work = move || {
            // A panic must not take the state along.
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut state)));
            (state, done)
        };
        let (state, done) = match is_large {
            true => on_helper(work).await?,
            false => work(),
        };
        self.core.borrow_mut().put_state(state);
        Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Sends the events of a transaction, in slices where they are many. The caller holds the turn.
    pub(super) async fn send_events(&self, mut report: Report) -> Result<(), ModelError> {
        if report.len() <= FEW {
            report.sort();
            self.core.borrow_mut().report(&mut report, usize::MAX);
            return Ok(());
        }
        let sort = move || {
            report.sort();
            report
        };
        let mut report = on_helper(sort).await?;
        let mut since = Instant::now();
        while self.core.borrow_mut().report(&mut report, EVENTS) {
            if since.elapsed() > SLICE {
                yield_now().await;
                since = Instant::now();
            }
        }
        on_helper(move || drop(report)).await
    }
}
