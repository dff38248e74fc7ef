//! The way from a handler, which axum wants to be able to send between threads, to the control thread's state, which
//! stays where it is: work is handed over and runs to its end, whoever waits for it.

use crate::error::Problem;
use crate::metrics::Latencies;
use schemars::JsonSchema;
use serde::Serialize;
use std::pin::Pin;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use volley_cli::server::Backend;
use volley_control::Reader;
use volley_control::TransactionError;
use volley_model::{Applied, Client, ModelError, Request, Role};
use volley_object::{Instance, ObjectKey};

/// What a request or transaction did.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Change {
    /// Objects made, changed or removed (those of a bulk request count one each); 0 = it was so already.
    pub changed: u64,
    /// Name of the object made, when there is one.
    pub name: Option<String>,
    /// Sentences for the operator, normally none.
    pub notes: Vec<String>,
    /// Number of the transaction, in the order in which they were carried out; none when it was an observation.
    pub transaction: Option<u64>,
}

impl Change {
    /// What was applied, under the transaction's number.
    pub fn new(applied: Applied, transaction: Option<u64>) -> Change {
        Change {
            changed: applied.changed,
            name: applied.name,
            notes: applied.notes,
            transaction,
        }
    }
}

/// The desired state that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningState {
    /// Transactions carried out since the daemon started.
    pub transactions: u64,
    /// Number of the next event: events from this one on are not in this state.
    pub next_event: u64,
    /// Requests that lead to it from nothing, in order of dependence.
    pub requests: Vec<Request>,
}

/// What a reader of the log's records gets.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordRead {
    /// The next record.
    Record(serde_json::Value),
    /// The reader was too slow: so many records are lost to it.
    Lost(u64),
    /// There will be no more.
    Ended,
}

/// A reader of the log's records.
pub trait Records: Send {
    /// Waits for the next record.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = RecordRead> + Send + '_>>;
}

/// What a stream of events reads from.
pub struct Events {
    /// Changes.
    pub changes: Reader,
    /// Number of the first change.
    pub next: u64,
    /// Records of the log.
    pub log: Box<dyn Records>,
}

/// What comes later, on the control thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What the daemon gives the HTTP interface beyond what it gives the command line.
pub trait Api: Backend {
    /// Checks that the client has a role.
    fn allow(&self, needed: Role) -> Result<(), ModelError>;

    /// Carries out changes, all of them or none.
    fn change(&self, requests: Vec<Request>) -> Later<'_, Result<Change, TransactionError>>;

    /// Readers of events and of the log's records from now on.
    fn events(&self) -> Result<Events, ModelError>;

    /// The same for one client, in whose name changes are made; none: clients are not told apart.
    fn api_for(&self, _client: &Client) -> Option<Rc<dyn Api>> {
        None
    }

    /// The desired state that runs, between two transactions.
    fn state(&self) -> Later<'_, Result<RunningState, ModelError>>;

    /// The objects of a registered class, between two transactions.
    fn objects(&self, class: String) -> Later<'_, Result<Vec<Instance>, ModelError>>;

    /// The object of a key, when it is configured.
    fn object(&self, key: ObjectKey) -> Later<'_, Result<Option<Instance>, ModelError>>;

    /// How long answers took.
    fn latencies(&self) -> &Latencies;
}

type Work = Box<dyn FnOnce(Rc<dyn Api>) -> Later<'static, ()> + Send>;

/// Hands work to the control thread's state.
#[derive(Clone)]
pub struct Control(mpsc::UnboundedSender<Work>);

impl Control {
    /// Starts the task that takes the work. Must be called inside a `LocalSet`.
    pub fn start(api: Rc<dyn Api>) -> Control {
        // Each connection has at most one piece of work in it, and connections are bounded.
        let (sender, mut receiver) = mpsc::unbounded_channel::<Work>();
        tokio::task::spawn_local(async move {
            while let Some(work) = receiver.recv().await {
                tokio::task::spawn_local(work(Rc::clone(&api)));
            }
        });
        Control(sender)
    }

    /// Has work done in a client's name.
    pub async fn ask_for<T: Send + 'static>(
        &self,
        client: Client,
        work: impl FnOnce(Rc<dyn Api>) -> Later<'static, T> + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask(move |api| work(api.api_for(&client).unwrap_or(api)))
            .await
    }

    /// Has work done; when the caller goes away, the work is done all the same.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(Rc<dyn Api>) -> Later<'static, T> + Send + 'static,
    ) -> Result<T, Problem> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |api| {
            let done = work(api);
            Box::pin(async move {
                let _ = answer.send(done.await);
            })
        });
        self.0.send(work).map_err(|_| Problem::ending())?;
        answered.await.map_err(|_| Problem::ending())
    }
}
