//! The command line on a unix socket: JSON lines in, JSON lines out.
//!
//! A request is one line `{"op":"exec","line":"show version"}`, its answer one line [`Answer`]. Operations: `exec` (with
//! `"json":true` the answer's data come along), `complete` and `help` (of `line` up to the cursor, which is its end), and
//! `follow`, whose answer comes in several lines until one without `"more":true`, or until the client sends `stop`.
//!
//! Clients are not trusted: a line too long, not UTF-8 or not JSON gets a clear error; a client that sends half a line and
//! stops, or does not read its answers, is cut off; the number of clients is bounded, and what one of them holds of the
//! server's memory is one line and one answer. Nothing a client does stops the others.

mod follow;
mod listen;
mod protocol;
mod session;

pub(crate) use follow::bytes;
pub use follow::{AnswerPart, AnswerStream, Follow};
pub use listen::{Place, Server, ServerError, listen_at};
pub use protocol::{Answer, Ask, Failure, Op};
pub use session::client_of;

use crate::grammar::Names;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use volley_model::{Applied, Client, ConfigAction, ConfigReply, ModelError, Query, Reply, Request};

/// An answer that comes later (a change is confirmed when all workers use it).
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + 'a>>;

/// An error and the place of the request at fault, from 0.
pub type Misplaced = (Option<usize>, ModelError);

/// What the daemon gives the command line. Lives on the control thread, so it need not be `Send`.
pub trait Backend: Names {
    /// Carries out a change.
    fn apply(&self, request: Request) -> Pending<'_, Applied>;

    /// Answers a question.
    fn query(&self, query: Query) -> Pending<'_, Reply>;

    /// Carries out several changes: all of them or none.
    fn transact(&self, requests: Vec<Request>) -> Pending<'_, Applied>;

    /// The same, and the place among them of the one that is at fault, when it is one.
    fn transact_placed(
        &self,
        requests: Vec<Request>,
    ) -> Pin<Box<dyn Future<Output = Result<Applied, Misplaced>> + '_>> {
        let done = self.transact(requests);
        Box::pin(async move { done.await.map_err(|error| (None, error)) })
    }

    /// Begins an answer that comes in parts.
    fn follow(&self, _what: Follow) -> Result<Box<dyn AnswerStream>, ModelError> {
        let instead = "ask a daemon that forwards packets";
        Err(ModelError::unsupported("an answer in parts", instead))
    }

    /// Does something with the configuration as a whole.
    fn config(&self, action: ConfigAction) -> Pending<'_, ConfigReply>;

    /// The same for one client, in whose name changes are made; none: clients are not told apart.
    fn for_client(&self, _client: &Client) -> Option<Rc<dyn Backend>> {
        None
    }
}

/// Bounds that clients meet.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest request line in bytes.
    pub line: usize,
    /// Clients at once; further ones are told so and closed.
    pub clients: usize,
    /// Time to send the rest of a line that was begun.
    pub finish_line: Duration,
    /// Time to read an answer.
    pub read_answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // A file of commands that are one transaction comes as one line.
            line: 16 * crate::MAX_LINE,
            clients: 64,
            finish_line: Duration::from_secs(10),
            read_answer: Duration::from_secs(10),
        }
    }
}
