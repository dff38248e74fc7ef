//! Answers that come in parts: what a client of `arping` and `monitor` gets, for as long as it wants it.

use super::backend::Daemon;
use std::time::Duration;
use tokio::time::sleep;
use volley_cli::render::{arping_failure, arping_head, arping_line, arping_summary};
use volley_cli::server::{AnswerPart, AnswerStream, Follow, Pending};
use volley_model::{ArpingQuery, ModelError, Reply};
use volley_neighbor::Arping;
use volley_pcap::MonitorSession;

/// Between two looks for answers, or for packets.
const LOOK: Duration = Duration::from_millis(5);

/// Begin what a client follows.
pub(super) fn begin(daemon: &Daemon, what: &Follow) -> Result<Box<dyn AnswerStream>, ModelError> {
    match what {
        Follow::Arping(query) => {
            query.validate_followed()?;
            let run = daemon.stack.neighbors.arping(query)?;
            Ok(Box::new(ArpingStream {
                run,
                state: State::New,
            }))
        }
        Follow::Monitor(spec) => {
            let session = daemon.stack.pcap.monitor(spec)?;
            Ok(Box::new(MonitorStream {
                session,
                begun: false,
                ended: false,
            }))
        }
    }
}

/// A whole run of arping, for a client that waits for its end.
pub(super) async fn arping(daemon: &Daemon, query: &ArpingQuery) -> Result<Reply, ModelError> {
    query.validate()?;
    let run = daemon.stack.neighbors.arping(query)?;
    let mut answers = Vec::new();
    loop {
        let (mut reply, ended) = run.take();
        answers.append(&mut reply.answers);
        if ended {
            reply.answers = answers;
            return Ok(Reply::Arping(reply));
        }
        sleep(LOOK).await;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent yet.
    New,
    /// Parts come.
    Running,
    /// The client has enough.
    Stopped,
    /// The summary was sent.
    Ended,
}

struct ArpingStream {
    run: Arping,
    state: State,
}

impl AnswerStream for ArpingStream {
    fn next(&mut self) -> Pending<'_, Option<AnswerPart>> {
        Box::pin(async move {
            loop {
                let (reply, ended) = self.run.take();
                if self.state == State::Ended {
                    return Ok(None);
                }
                let mut text = String::new();
                if self.state == State::New {
                    text = arping_head(&reply);
                    self.state = State::Running;
                }
                text.extend(reply.answers.iter().map(arping_line));
                let mut failure = None;
                if ended || self.state == State::Stopped {
                    self.state = State::Ended;
                    text += &arping_summary(&reply);
                    failure = (reply.received == 0).then(|| arping_failure(&reply));
                }
                if !text.is_empty() {
                    return Ok(Some(AnswerPart {
                        text,
                        failure,
                        ..AnswerPart::default()
                    }));
                }
                sleep(LOOK).await;
            }
        })
    }

    fn stop(&mut self) {
        if self.state != State::Ended {
            self.state = State::Stopped;
        }
    }
}

struct MonitorStream {
    session: MonitorSession,
    begun: bool,
    ended: bool,
}

impl AnswerStream for MonitorStream {
    fn next(&mut self) -> Pending<'_, Option<AnswerPart>> {
        Box::pin(async move {
            while !self.ended {
                if self.begun {
                    // Between two parts the control thread has time for others, however fast packets come.
                    sleep(LOOK).await;
                }
                self.begun = true;
                let mut part = self.session.take();
                if part.is_last {
                    self.ended = true;
                    part.text += &self.session.summary();
                }
                if !(part.text.is_empty() && part.bytes.is_empty()) {
                    return Ok(Some(AnswerPart {
                        text: part.text,
                        bytes: part.bytes,
                        failure: None,
                    }));
                }
            }
            Ok(None)
        })
    }

    fn stop(&mut self) {
        self.session.stop();
    }
}
