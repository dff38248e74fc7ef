//! Connects handlers, which axum requires to be `Send`, with the state of the control thread, which is not: work is sent to the
//! control thread and runs to its end, even if the caller no longer waits for it.

use crate::error::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use std::pin::Pin;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use volley_cli::server::Backend;
use volley_control::TransactionError;
use volley_control::{Read, Reader};
use volley_model::{Applied, Client, ModelError, Request, Role};
use volley_object::{Instance, ObjectKey};

/// The result of a request or transaction.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Change {
    /// The result without the number of the transaction.
    #[serde(flatten)]
    pub applied: Applied,
    /// Number of the transaction, in the order of execution; none for an observation.
    pub transaction: Option<u64>,
}

/// The running desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningState {
    /// Transactions carried out since the daemon started.
    pub transactions: u64,
    /// Number of the next event: this state includes all events before it, and none from it on.
    pub next_event: u64,
    /// Requests that lead from an empty state to this state, in order of dependence.
    pub requests: Vec<Request>,
}

/// A reader of the log's records.
pub trait Records: Send {
    /// Waits for the next record.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Read<serde_json::Value>> + Send + '_>>;
}

/// Sources of a stream of events.
pub struct Events {
    /// Changes.
    pub changes: Reader,
    /// Number of the first change.
    pub next: u64,
    /// Records of the log.
    pub log: Box<dyn Records>,
}

/// A result of the control thread that is available later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The daemon's interface for HTTP, in addition to that for the command line.
pub trait Api: Backend {
    /// Checks that the client has a role.
    fn allow(&self, needed: Role) -> Result<(), ModelError>;

    /// Carries out changes, all of them or none.
    fn change(&self, requests: Vec<Request>) -> Later<'_, Result<Change, TransactionError>>;

    /// Readers of events and of log records, from now on.
    fn events(&self) -> Result<Events, ModelError>;

    /// The interface for one client, which makes changes in the client's name; `None`: the implementation does not distinguish
    /// clients.
    fn api_for(&self, _client: &Client) -> Option<Rc<dyn Api>> {
        None
    }

    /// The running desired state, between two transactions.
    fn state(&self) -> Later<'_, Result<RunningState, ModelError>>;

    /// The objects of a registered class, between two transactions.
    fn objects(&self, class: String) -> Later<'_, Result<Vec<Instance>, ModelError>>;

    /// The object with a key, if it is configured.
    fn object(&self, key: ObjectKey) -> Later<'_, Result<Option<Instance>, ModelError>>;
}

type Work = Box<dyn FnOnce(Rc<dyn Api>) -> Later<'static, ()> + Send>;

/// Sends work to the control thread.
#[derive(Clone)]
pub struct Control(mpsc::UnboundedSender<Work>);

impl Control {
    /// Starts the task that receives the work. Must be called inside a `LocalSet`.
    pub fn start(api: Rc<dyn Api>) -> Control {
        // Each connection queues at most one piece of work, and connections are limited, so the queue is bounded.
        let (sender, mut receiver) = mpsc::unbounded_channel::<Work>();
        tokio::task::spawn_local(async move {
            while let Some(work) = receiver.recv().await {
                tokio::task::spawn_local(work(Rc::clone(&api)));
            }
        });
        Control(sender)
    }

    /// Runs work in a client's name; if the caller is dropped, the work is done nevertheless.
    pub async fn ask_for<T: Send + 'static>(
        &self,
        client: Client,
        work: impl FnOnce(Rc<dyn Api>) -> Later<'static, T> + Send + 'static,
    ) -> Result<T, Problem> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |api| {
            let done = work(api.api_for(&client).unwrap_or(api));
            Box::pin(async move {
                let _ = answer.send(done.await);
            })
        });
        self.0.send(work).map_err(|_| Problem::ending())?;
        answered.await.map_err(|_| Problem::ending())
    }
}
