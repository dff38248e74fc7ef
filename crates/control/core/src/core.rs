//! The control core: the desired state, serialized transactions, and events for readers.

use crate::events::{Events, Reader, Report, created};
use crate::key::{Key, Value};
use crate::plan::Probe;
use crate::secret::without_secrets;
use crate::state::{Changes, State};
use crate::transaction::{Executor, Progress, Transaction, TransactionError};
use std::sync::Arc;
use volley_model::{Applied, ObjectKind, Request};

/// The desired state and its transactions. One transaction is carried out at a time: begin, advance, end.
#[derive(Debug, Default)]
pub struct Core {
    state: State,
    events: Events,
    transactions: u64,
    /// The generation of the classes whose objects the state has.
    generation: u64,
}

impl Core {
    /// The desired state; during a transaction, the one it leads to.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns a reader of the events from now on.
    pub fn events(&self) -> Reader {
        self.events.reader()
    }

    /// Number of the next event.
    pub fn next_event(&self) -> u64 {
        self.events.next
    }

    /// Transactions carried out so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Checks requests as a whole and plans them. After an error nothing has changed; else [`Core::end`] must follow.
    pub fn begin(
        &mut self,
        requests: &[Request],
        probe: &dyn Probe,
    ) -> Result<Transaction, TransactionError> {
        let begun = self.state.begin(requests);
        begun.map_err(|error| error.explained(requests, probe))
    }

    /// Plans the difference to a whole other state. After an error nothing has changed; else [`Core::end`] must follow.
    pub fn begin_state(&mut self, wanted: &State) -> Result<Transaction, TransactionError> {
        self.state.begin_state(wanted)
    }

    /// Moves the desired state out, for work with many objects on another thread. Until [`Core::put_state`] returns it, the
    /// core has an empty state, and no transaction may begin.
    pub fn take_state(&mut self) -> State {
        std::mem::take(&mut self.state)
    }

    /// Returns the state that [`Core::take_state`] took.
    pub fn put_state(&mut self, state: State) {
        self.state = state;
    }

    /// Ends a transaction. A transaction that succeeded becomes valid, its events are sent, and its number is returned. After a
    /// failure the state is as before.
    ///
    /// `probe` returns the settings that an interface derives from its first name, such as a MAC address: the interface keeps
    /// them under a new name.
    pub fn end(
        &mut self,
        transaction: Transaction,
        applied: Option<&Applied>,
        probe: &dyn Probe,
    ) -> Option<u64> {
        let Some(applied) = applied else {
            self.state.undo(transaction.changes);
            return None;
        };
        let mut report = self.complete(transaction, applied, probe);
        report.sort();
        self.report(&mut report, usize::MAX);
        Some(report.transaction)
    }

    /// Ends a transaction that was carried out, as [`Core::end`] does; its events are sent by [`Core::report`].
    pub fn complete(
        &mut self,
        transaction: Transaction,
        applied: &Applied,
        probe: &dyn Probe,
    ) -> Report {
        let renamed: Vec<String> = transaction.new_names().cloned().collect();
        let Transaction {
            mut changes,
            unnamed,
            user,
            ..
        } = transaction;
        if let (Some(Request::InterfaceCreate(mut spec)), Some(name)) = (unnamed, &applied.name) {
            spec.name.clone_from(name);
            // The handler has created the interface under this name, so no other object has the name.
            let _ = self
                .state
                .edit(&Request::InterfaceCreate(spec), &mut changes);
        }
        for name in renamed {
            if !self.state.has(&Key::Interface(name.clone())) {
                continue;
            }
            for setting in probe.by_first_name(&name) {
                let key = Key::object(setting.key());
                if !self.state.has(&key) {
                    let value = Value::Object(Arc::new(setting));
                    self.state.put(&mut changes, key, Some(value));
                }
            }
        }
        self.renew(&changes);
        self.transactions += 1;
        Report::new(self.transactions, user, changes)
    }

    /// Gives objects the classes that are registered now, where a transaction has replaced classes or used older ones.
    fn renew(&mut self, changes: &Changes) {
        let generation = volley_object::classes().generation();
        let brought: Vec<Key> = match generation == self.generation {
            true => changes
                .before
                .keys()
                .filter(|key| key.is_brought())
                .cloned()
                .collect(),
            false => self
                .state
                .without_bulk()
                .map(|(key, _)| key)
                .filter(|key| key.is_brought())
                .cloned()
                .collect(),
        };
        self.state.renew(brought.iter());
        self.generation = generation;
    }

    /// Sends the events of the next objects of a transaction that has ended, for at most `most` objects; false when all are
    /// sent.
    pub fn report(&mut self, report: &mut Report, most: usize) -> bool {
        self.events.send(report, &self.state, most)
    }

    /// Reports a fault of an object to the readers of events.
    pub fn warn(&mut self, object: ObjectKind, name: &str, what: &str) {
        self.events.warn(object, name, what);
    }

    /// Begins, carries out and ends a transaction in one call.
    pub fn run(
        &mut self,
        requests: &[Request],
        executor: &dyn Executor,
    ) -> Result<Applied, TransactionError> {
        let transaction = self.begin(requests, executor)?;
        self.finish(transaction, executor)
    }

    /// Carries out and ends a transaction.
    pub fn finish(
        &mut self,
        mut transaction: Transaction,
        executor: &dyn Executor,
    ) -> Result<Applied, TransactionError> {
        loop {
            match transaction.advance(executor, usize::MAX) {
                Progress::Done(applied) => {
                    self.end(transaction, Some(&applied), executor);
                    return Ok(applied);
                }
                Progress::Failed(error) => {
                    self.end(transaction, None, executor);
                    return Err(error);
                }
                Progress::More => {}
            }
        }
    }

    /// The state that requests lead to from an empty state.
    pub fn state_of(requests: &[Request]) -> Result<State, TransactionError> {
        let mut state = State::default();
        state.begin(requests)?;
        Ok(state)
    }

    /// The differences between two states, as lines that begin with `-` or `+`, in order of dependence; then a line that begins
    /// with `!` for each object that is deleted and created again.
    pub fn difference(from: &State, to: &State) -> Vec<String> {
        let mut state = from.clone();
        let changes: Changes = state.become_like(to);
        let mut lines = Vec::new();
        for (key, before) in state.with_places(&changes) {
            let requests = |value: Option<&Value>| value.map_or(Vec::new(), |it| created(key, it));
            let (old, new) = (requests(before.as_ref()), requests(state.get(key)));
            let moved = changes.has_moved(key, &state);
            let mut add = |sign: &str, some: &[Request], others: &[Request]| {
                let some = some.iter().filter(|it| moved || !others.contains(it));
                lines.extend(some.map(|it| format!("{sign} {}", without_secrets(it.clone()))));
            };
            add("-", &old, &new);
            add("+", &new, &old);
        }
        let interrupted = crate::plan::interrupted(&state, &changes);
        let interrupted = crate::plan::interruptions(&interrupted);
        lines.extend(interrupted.iter().map(|line| format!("! {line}")));
        lines
    }
}
