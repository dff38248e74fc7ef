//! The daemon as one client sees it: it refuses what the client's role does not allow, and makes and logs changes and commits
//! in the client's name.

use super::audit::Done;
use super::backend::Daemon;
use std::pin::Pin;
use std::rc::Rc;
use tracing::debug;
use volley_cli::Names;
use volley_cli::server::{AnswerStream, Backend, Misplaced, Pending};
use volley_control::{Read, State, TransactionError};
use volley_http::{Api, Change, Events, Later, Records, RunningState};
use volley_log::Heard;
use volley_model::{Applied, Client, ConfigAction, ConfigReply, ModelError, Request, Role, Via};
use volley_object::{Answer, Asked, Instance, ObjectKey};

/// The daemon and a client.
pub struct Session {
    daemon: Rc<Daemon>,
    client: Client,
}

impl Session {
    /// A session for the servers, which make one for each client by [`Backend::for_client`] and [`Api::api_for`].
    pub fn of(daemon: &Rc<Daemon>) -> Rc<Session> {
        Session::new(daemon.clone(), Client::internal(Via::Daemon))
    }

    fn new(daemon: Rc<Daemon>, client: Client) -> Rc<Session> {
        Rc::new(Session { daemon, client })
    }
}

impl Session {
    /// Checks that the client has a role.
    fn allow(&self, needed: Role) -> Result<(), ModelError> {
        self.daemon.stack.rights.allow(&self.client, needed)
    }

    /// Makes changes, if the client may make all of them.
    async fn make(&self, requests: Vec<Request>) -> Result<Done, TransactionError> {
        let needed = requests.iter().map(Request::role).max();
        self.allow(needed.unwrap_or(Role::Operate))?;
        self.daemon.timed(requests, &self.client).await
    }
}

impl Names for Session {
    fn names(&self, class: &str) -> Vec<String> {
        match self.daemon.stack.rights.role(&self.client) {
            Some(_) => self.daemon.names(class),
            None => Vec::new(),
        }
    }
}

impl Backend for Session {
    fn query(&self, asked: Asked) -> Pending<'_, Answer> {
        match self.allow(Role::from(&asked)) {
            Ok(()) => self.daemon.answer(asked),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    fn transact(&self, requests: Vec<Request>) -> Pending<'_, Applied, Misplaced> {
        Box::pin(async move {
            let done = self.make(requests).await;
            done.map(|(applied, _)| applied)
                .map_err(|error| (error.index, error.into_model()))
        })
    }

    fn follow(&self, asked: &Asked) -> Result<Box<dyn AnswerStream>, ModelError> {
        self.allow(Role::from(asked))?;
        let Client { user, from, .. } = &self.client;
        let begun = super::follow::begin(&self.daemon, asked)?;
        debug!(target: "client", %user, %from, "follows {asked:?}");
        Ok(begun)
    }

    fn config(&self, action: ConfigAction) -> Pending<'_, ConfigReply> {
        if let Err(error) = self.allow(action.role()) {
            return Box::pin(async move { Err(error) });
        }
        let done = self.daemon.configuration(action, &self.client);
        Box::pin(self.daemon.stack.latencies.config.time(done))
    }

    fn for_client(&self, client: &Client) -> Option<Rc<dyn Backend>> {
        Some(Session::new(self.daemon.clone(), client.clone()))
    }
}

/// A reader of the log, for clients of HTTP.
struct OfLog(volley_log::Reader);

impl Records for OfLog {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Read<serde_json::Value>> + Send + '_>> {
        Box::pin(async {
            match self.0.next().await {
                Heard::Ended => Read::Ended,
                Heard::Lost(lost) => Read::Lost(lost),
                // A record is plain data with text keys, so it can always be written.
                Heard::Record(it) => Read::Next(serde_json::to_value(&*it).unwrap_or_default()),
            }
        })
    }
}

impl Api for Session {
    fn allow(&self, needed: Role) -> Result<(), ModelError> {
        Session::allow(self, needed)
    }

    fn change(&self, requests: Vec<Request>) -> Later<'_, Result<Change, TransactionError>> {
        Box::pin(async move {
            let (applied, number) = self.make(requests).await?;
            Ok(Change {
                applied,
                transaction: number,
            })
        })
    }

    fn events(&self) -> Result<Events, ModelError> {
        self.allow(Role::Read)?;
        let core = self.daemon.core.borrow();
        Ok(Events {
            changes: core.events(),
            next: core.next_event(),
            log: Box::new(OfLog(volley_log::Log::of_process().reader())),
        })
    }

    fn api_for(&self, client: &Client) -> Option<Rc<dyn Api>> {
        Some(Session::new(self.daemon.clone(), client.clone()))
    }

    fn state(&self) -> Later<'_, Result<RunningState, ModelError>> {
        Box::pin(async move {
            self.allow(Role::Read)?;
            let state = self.daemon.running_state().await?;
            let requests = self.daemon.shown(state.requests, &self.client);
            Ok(RunningState { requests, ..state })
        })
    }

    fn objects(&self, class: String) -> Later<'_, Result<Vec<Instance>, ModelError>> {
        Box::pin(async move {
            self.allow(Role::Read)?;
            let all = move |state: &mut State| {
                let classes = volley_object::classes();
                let class = classes.get(&class);
                class.map_or(Vec::new(), |class| state.all_of(class))
            };
            self.daemon
                .to_its_end(|me| async move {
                    let _turn = me.turn.lock().await;
                    me.with_state(0, all).await
                })
                .await?
        })
    }

    fn object(&self, key: ObjectKey) -> Later<'_, Result<Option<Instance>, ModelError>> {
        Box::pin(async move {
            self.allow(Role::Read)?;
            let object = move |state: &mut State| state.object(&key);
            self.daemon
                .to_its_end(|me| async move {
                    let _turn = me.turn.lock().await;
                    me.with_state(0, object).await
                })
                .await?
        })
    }
}
