//! Replies that come in items over time: a client follows a run or waits for its end. A client that disconnects ends its run.

use super::backend::Daemon;
use std::time::Duration;
use tokio::time::sleep;
use volley_cli::server::{AnswerStream, Pending};
use volley_model::ModelError;
use volley_object::{Answer, Asked, ReplyPart, Running};

/// Pause between two checks for items.
const LOOK: Duration = Duration::from_millis(5);

/// Begins a run that a client follows.
pub(super) fn begin(daemon: &Daemon, asked: &Asked) -> Result<Box<dyn AnswerStream>, ModelError> {
    let running = daemon.stack.begin(asked)?;
    Ok(Box::new(Followed {
        running,
        begun: false,
    }))
}

/// Begins a run whose end a client waits for.
pub(super) fn begin_whole(daemon: &Daemon, asked: &Asked) -> Result<Running, ModelError> {
    let checked = asked.check_whole();
    checked.map_err(|error| ModelError::invalid(asked.name(), error))?;
    daemon.stack.begin(asked)
}

/// Waits for the end of a run.
pub(super) async fn whole(mut running: Running) -> Result<Answer, ModelError> {
    loop {
        match running.whole()? {
            Some(answer) => return Ok(answer),
            None => sleep(LOOK).await,
        }
    }
}

struct Followed {
    running: Running,
    begun: bool,
}

impl AnswerStream for Followed {
    fn next(&mut self) -> Pending<'_, ReplyPart> {
        Box::pin(async move {
            loop {
                if self.begun {
                    // The pause lets other tasks run on the control thread, however fast items come.
                    sleep(LOOK).await;
                }
                self.begun = true;
                let part = self.running.part();
                if !part.is_empty() {
                    return Ok(part);
                }
            }
        })
    }

    fn stop(&mut self) {
        self.running.stop();
    }
}
