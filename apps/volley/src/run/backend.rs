//! The stack as the command line sees it: changes that are confirmed when the worker uses them, answers, names.

use crate::stack::Stack;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use volley_cli::server::{Backend, Pending};
use volley_cli::{NameKind, Names};
use volley_model::{Applied, ModelError, Query, Reply, Request};

/// How long a worker may take to use a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to look whether it does.
const LOOK: Duration = Duration::from_millis(1);

/// The daemon's state, on the control thread.
pub struct Daemon {
    /// Everything.
    pub stack: Stack,
    /// Something was changed: a capture may have begun.
    pub changed: Rc<Notify>,
}

impl Daemon {
    /// Around a stack.
    pub fn new(stack: Stack) -> Self {
        Daemon {
            stack,
            changed: Rc::default(),
        }
    }

    /// Carry out a change and wait until the worker uses it.
    pub async fn change(&self, request: &Request) -> Result<Applied, ModelError> {
        let applied = self.stack.apply(request)?;
        self.changed.notify_one();
        let until = Instant::now() + PATIENCE;
        while !self.stack.settled() {
            if Instant::now() > until {
                let why = format!(
                    "it is made, but the worker has not taken it up within {} s",
                    PATIENCE.as_secs()
                );
                return Err(ModelError::invalid(format!("`{request}`"), why));
            }
            sleep(LOOK).await;
        }
        Ok(applied)
    }

    fn streams(&self) -> Vec<String> {
        match self.stack.query(&Query::PacketGenerator) {
            Ok(Reply::PacketGenerator(pg)) => pg.streams.into_iter().map(|s| s.name).collect(),
            _ => Vec::new(),
        }
    }

    fn tables(&self) -> Vec<String> {
        match self.stack.query(&Query::Tables { family: None }) {
            Ok(Reply::Tables(reply)) => reply.tables.iter().map(|t| t.table.to_string()).collect(),
            _ => Vec::new(),
        }
    }

    fn features(&self) -> Vec<String> {
        let arcs = self.stack.engine.borrow().arcs();
        arcs.into_iter()
            .flat_map(|arc| arc.features)
            .map(|(name, _)| name.to_owned())
            .collect()
    }
}

impl Names for Daemon {
    fn names(&self, kind: NameKind) -> Vec<String> {
        let stack = &self.stack;
        let mut names = match kind {
            NameKind::Interface => {
                return stack
                    .interfaces
                    .borrow()
                    .iter()
                    .map(|i| i.name.clone())
                    .collect();
            }
            NameKind::Node => stack
                .engine
                .borrow()
                .edges()
                .map(|(name, _)| name.to_owned())
                .collect(),
            NameKind::Stream => return self.streams(),
            NameKind::Feature => self.features(),
            NameKind::Arc => stack
                .engine
                .borrow()
                .arcs()
                .iter()
                .map(|arc| arc.name.to_owned())
                .collect(),
            NameKind::Table => self.tables(),
        };
        names.sort();
        names.dedup();
        names
    }
}

impl Backend for Daemon {
    fn apply(&self, request: Request) -> Pending<'_, Applied> {
        Box::pin(async move { self.change(&request).await })
    }

    fn query(&self, query: Query) -> Pending<'_, Reply> {
        Box::pin(async move { self.stack.query(&query) })
    }
}
