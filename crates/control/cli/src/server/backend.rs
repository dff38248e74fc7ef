//! What the daemon gives the command line.

use super::follow::AnswerStream;
use crate::grammar::Names;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use volley_model::{Applied, Client, ConfigAction, ConfigReply, ModelError, Request};
use volley_object::{Answer, Asked};

/// An answer that comes later (a change is confirmed when all workers use it).
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + 'a>>;

/// An error and the place of the request at fault, from 0.
pub type Misplaced = (Option<usize>, ModelError);

/// What the daemon gives the command line. Lives on the control thread, so it need not be `Send`.
pub trait Backend: Names {
    /// Carries out a change.
    fn apply(&self, request: Request) -> Pending<'_, Applied>;

    /// Answers a question.
    fn query(&self, asked: Asked) -> Pending<'_, Answer>;

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

    /// Begins the answer to a query whose reply comes in items.
    fn follow(&self, _asked: &Asked) -> Result<Box<dyn AnswerStream>, ModelError> {
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
