//! The daemon as one client sees it: changes and commits are made, and logged, in the client's name.

use super::backend::Daemon;
use std::pin::Pin;
use std::rc::Rc;
use tracing::debug;
use volley_cli::server::{AnswerStream, Backend, Follow, Misplaced, Pending};
use volley_cli::{NameKind, Names};
use volley_control::{Reader, TransactionError};
use volley_http::metrics::Latencies;
use volley_http::{Api, Change, Later, RunningState};
use volley_model::{
    Applied, Client, ConfigAction, ConfigReply, ModelError, Query, Reply, Request, Via,
};
use volley_object::Instance;

/// The daemon and a client.
pub struct Session {
    daemon: Rc<Daemon>,
    client: Client,
}

impl Session {
    /// For the servers, which give each client its own by [`Backend::for_client`] and [`Api::api_for`].
    pub fn of(daemon: &Rc<Daemon>) -> Rc<Session> {
        Session::new(daemon.clone(), Client::internal(Via::Daemon))
    }

    fn new(daemon: Rc<Daemon>, client: Client) -> Rc<Session> {
        Rc::new(Session { daemon, client })
    }
}

impl Names for Session {
    fn names(&self, kind: NameKind) -> Vec<String> {
        self.daemon.names(kind)
    }
}

impl Backend for Session {
    fn apply(&self, request: Request) -> Pending<'_, Applied> {
        self.transact(vec![request])
    }

    fn query(&self, query: Query) -> Pending<'_, Reply> {
        self.daemon.answer(query)
    }

    fn transact(&self, requests: Vec<Request>) -> Pending<'_, Applied> {
        Box::pin(async move {
            let done = self.daemon.timed(requests, &self.client).await;
            done.map(|(applied, _)| applied)
                .map_err(TransactionError::into_model)
        })
    }

    fn transact_placed(
        &self,
        requests: Vec<Request>,
    ) -> Pin<Box<dyn Future<Output = Result<Applied, Misplaced>> + '_>> {
        Box::pin(async move {
            let done = self.daemon.timed(requests, &self.client).await;
            done.map(|(applied, _)| applied)
                .map_err(|error| (error.index, error.into_model()))
        })
    }

    fn follow(&self, what: Follow) -> Result<Box<dyn AnswerStream>, ModelError> {
        let Client { user, from, .. } = &self.client;
        let begun = super::follow::begin(&self.daemon, &what)?;
        debug!(target: "client", %user, %from, "follows {what:?}");
        Ok(begun)
    }

    fn config(&self, action: ConfigAction) -> Pending<'_, ConfigReply> {
        let done = self.daemon.configuration(action, &self.client);
        Box::pin(self.daemon.latencies.config.time(done))
    }

    fn for_client(&self, client: &Client) -> Option<Rc<dyn Backend>> {
        Some(Session::new(self.daemon.clone(), client.clone()))
    }
}

impl Api for Session {
    fn change(&self, requests: Vec<Request>) -> Later<'_, Result<Change, TransactionError>> {
        Box::pin(async move {
            let (applied, number) = self.daemon.timed(requests, &self.client).await?;
            Ok(Change::new(applied, number))
        })
    }

    fn events(&self) -> (Reader, u64) {
        let core = self.daemon.core.borrow();
        (core.events(), core.next_event())
    }

    fn log(&self) -> volley_log::Reader {
        volley_log::Log::of_process().reader()
    }

    fn api_for(&self, client: &Client) -> Option<Rc<dyn Api>> {
        Some(Session::new(self.daemon.clone(), client.clone()))
    }

    fn state(&self) -> Later<'_, RunningState> {
        Box::pin(self.daemon.running_state())
    }

    fn objects(&self, class: String) -> Later<'_, Vec<Instance>> {
        Box::pin(async move {
            let _turn = self.daemon.turn.lock().await;
            let core = self.daemon.core.borrow();
            core.state().objects_of(&class).cloned().collect()
        })
    }

    fn latencies(&self) -> &Latencies {
        &self.daemon.latencies
    }
}
