//! A handle on the running daemon for code outside this workspace: it adds classes of objects, queries and verbs with their
//! owners, and removes them, while the daemon runs.

use super::backend::Daemon;
use std::rc::Weak;
use tokio::sync::{mpsc, oneshot};
use volley_model::{Applied, ModelError};
use volley_object::{
    DefinitionError, Object, ObjectKey, Query, QueryDef, Run, Stream, Verb, VerbDef, undefine,
    unregister,
};

/// Most calls that wait for the control thread.
const WAITING: usize = 16;

type Answer = Result<(), ControlError>;

/// A call: the work on the control thread, and the channel for its result.
struct Call {
    work: Box<dyn FnOnce(&Daemon) -> Answer + Send>,
    answer: oneshot::Sender<Answer>,
}

/// Why classes cannot be added or removed. One sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The definition contradicts itself or another one, or there is no such class.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The class has objects.
    #[error("class {class} has objects ({count}): delete {first} and all others first")]
    Used {
        /// The class.
        class: String,
        /// The number of objects.
        count: usize,
        /// The key of one of them.
        first: String,
    },
    /// The daemon has ended.
    #[error("the daemon has ended")]
    Ended,
}

/// The handle. It may be cloned and sent to other threads.
#[derive(Clone)]
pub struct Control {
    calls: mpsc::Sender<Call>,
}

impl Control {
    /// Adds a class and makes `apply` its owner, see [`volley_model::Owners::own`]. From then on the class is in the file, the
    /// command line, HTTP and the difference of commits. The rename of an interface changes the objects that refer to it, and
    /// calls no owner: the interface is the same. Waits for the control thread, and must not be called on it.
    pub fn own<T: Object + 'static>(
        &self,
        apply: impl FnMut(&ObjectKey, Option<T>) -> Result<Applied, ModelError> + Send + 'static,
    ) -> Result<(), ControlError> {
        self.call(move |daemon| Ok(daemon.stack.own(apply)?))
    }

    /// Adds a query and makes `answer` its owner, see [`volley_model::Owners::answer`]. From then on the query is in the
    /// command line, HTTP and the reference. Waits for the control thread, and must not be called on it.
    pub fn answer<Q: Query + 'static>(
        &self,
        answer: impl FnMut(Q) -> Result<Q::Reply, ModelError> + Send + 'static,
    ) -> Result<(), ControlError> {
        self.call(move |daemon| Ok(daemon.stack.own_query(answer)?))
    }

    /// Adds a query whose reply comes in items over time and makes `begin` its owner, see [`volley_model::Owners::stream`].
    /// Waits for the control thread, and must not be called on it.
    pub fn stream<Q: Stream + 'static, R: Run<Reply = Q::Reply> + 'static>(
        &self,
        begin: impl FnMut(Q) -> Result<R, ModelError> + Send + 'static,
    ) -> Result<(), ControlError> {
        self.call(move |daemon| Ok(daemon.stack.own_stream(begin)?))
    }

    /// Removes a query and its owner. Waits for the control thread, and must not be called on it.
    pub fn withdraw(&self, query: &str) -> Result<(), ControlError> {
        let query = query.to_owned();
        self.call(move |daemon| {
            undefine::<QueryDef>(&query)?;
            daemon.stack.withdraw(&query);
            Ok(())
        })
    }

    /// Adds a verb and makes `perform` an owner of it, see [`volley_model::Owners::perform`]. From then on the verb is in the
    /// command line, the requests of HTTP and the reference. Waits for the control thread, and must not be called on it.
    pub fn perform<V: Verb + 'static>(
        &self,
        perform: impl FnMut(V) -> Result<Applied, ModelError> + Send + 'static,
    ) -> Result<(), ControlError> {
        self.call(move |daemon| Ok(daemon.stack.perform(perform)?))
    }

    /// Removes a verb and its owners. Waits for the control thread, and must not be called on it.
    pub fn retire(&self, verb: &str) -> Result<(), ControlError> {
        let verb = verb.to_owned();
        self.call(move |daemon| {
            undefine::<VerbDef>(&verb)?;
            daemon.stack.retire(&verb);
            Ok(())
        })
    }

    /// Removes a class that has no objects, and its owner. Waits for the control thread, and must not be called on it.
    pub fn disown(&self, class: &str) -> Result<(), ControlError> {
        let class = class.to_owned();
        self.call(move |daemon| disown(daemon, &class))
    }

    fn call(&self, work: impl FnOnce(&Daemon) -> Answer + Send + 'static) -> Answer {
        let (answer, answered) = oneshot::channel();
        let work = Box::new(work);
        let sent = self.calls.blocking_send(Call { work, answer });
        sent.map_err(|_| ControlError::Ended)?;
        answered.blocking_recv().unwrap_or(Err(ControlError::Ended))
    }
}

fn disown(daemon: &Daemon, class: &str) -> Answer {
    let core = daemon.core.borrow();
    let keys = core.state().keys_of(class);
    if let Some(first) = keys.first() {
        return Err(ControlError::Used {
            class: class.to_owned(),
            count: keys.len(),
            first: first.to_string(),
        });
    }
    unregister(class)?;
    daemon.stack.disown(class);
    Ok(())
}

/// The handle, and the calls that come through it.
pub(super) fn channel() -> (Control, Calls) {
    let (calls, waiting) = mpsc::channel(WAITING);
    (Control { calls }, Calls(waiting))
}

/// Calls that wait for the control thread.
pub(super) struct Calls(mpsc::Receiver<Call>);

impl Calls {
    /// Carries out calls between transactions, until the daemon or all handles are dropped.
    pub(super) async fn serve(mut self, daemon: Weak<Daemon>) {
        while let Some(call) = self.0.recv().await {
            let Some(daemon) = daemon.upgrade() else {
                return;
            };
            let _turn = daemon.turn.lock().await;
            let _state = daemon.state_lock.lock().await;
            let done = (call.work)(&daemon);
            // The caller may have gone away.
            let _ = call.answer.send(done);
        }
    }
}
