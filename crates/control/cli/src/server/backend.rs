//! The daemon's interface for the command line.

use super::follow::AnswerStream;
use crate::grammar::Names;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use volley_model::{Applied, Client, ConfigAction, ConfigReply, ModelError, Request};
use volley_object::{Answer, Asked};

/// An answer that comes later (a change is confirmed when all workers use it).
pub type Pending<'a, T, E = ModelError> = Pin<Box<dyn Future<Output = Result<T, E>> + 'a>>;

/// An error and the index of the failed request, from 0.
pub type Misplaced = (Option<usize>, ModelError);

/// The daemon's interface for the command line. It runs on the control thread, so it need not be `Send`.
pub trait Backend: Names {
    /// Answers a query.
    fn query(&self, asked: Asked) -> Pending<'_, Answer>;

    /// Carries out changes: all of them or none. An error contains the index of the failed change, if one of several failed.
    fn transact(&self, requests: Vec<Request>) -> Pending<'_, Applied, Misplaced>;

    /// Starts a query whose reply comes in items.
    fn follow(&self, _asked: &Asked) -> Result<Box<dyn AnswerStream>, ModelError> {
        let instead = "ask a daemon that forwards packets";
        Err(ModelError::unsupported("an answer in parts", instead))
    }

    /// Carries out an operation on the configuration as a whole.
    fn config(&self, action: ConfigAction) -> Pending<'_, ConfigReply>;

    /// The backend for one client, which makes changes in the client's name; `None`: the backend does not distinguish clients.
    fn for_client(&self, _client: &Client) -> Option<Rc<dyn Backend>> {
        None
    }
}
