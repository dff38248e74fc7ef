//! Transactions: checked as a whole against the desired state, carried out step by step, rolled back when a step fails.

use crate::key::Key;
use crate::plan::{Plan, Probe, Step, interruptions, plan};
use crate::secret::without_secrets;
use crate::state::{Changes, State};
use std::fmt;
use volley_model::{Applied, ModelError, Request};
use volley_object::Class;

/// Carries out single requests: the handlers of the daemon.
pub trait Executor: Probe {
    /// Carries out a request completely, or changes nothing and returns an error.
    fn apply(&self, request: &Request) -> Result<Applied, ModelError>;

    /// Called when all requests of a transaction were carried out or rolled back, for work that depends on all of them.
    fn finish(&self) {}

    /// A slice of a transaction has been carried out, and other tasks run before the next one: its changes are published now.
    fn pause(&self) {}
}

/// Why a transaction was refused, or failed and was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionError {
    /// Index of the failed request, from 0, when it was one of those given.
    pub index: Option<usize>,
    /// The failed request as a command, when there were several.
    pub request: Option<String>,
    /// The error.
    pub error: Box<ModelError>,
    /// Changes that could not be rolled back, normally none.
    pub left: Vec<String>,
}

impl std::error::Error for TransactionError {}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.index {
            write!(f, "request {}: ", index + 1)?;
        }
        if let Some(request) = &self.request {
            write!(f, "`{request}`: ")?;
        }
        write!(f, "{}", self.error)?;
        if !self.left.is_empty() {
            let left = self.left.join("; ");
            write!(f, "; taking it back failed as well: {left}")?;
        }
        Ok(())
    }
}

impl From<ModelError> for TransactionError {
    fn from(error: ModelError) -> Self {
        TransactionError {
            index: None,
            request: None,
            error: Box::new(error),
            left: Vec::new(),
        }
    }
}

impl TransactionError {
    fn at(index: usize, request: &Request, error: ModelError) -> Self {
        TransactionError {
            index: Some(index),
            request: Some(shortened(request)),
            ..error.into()
        }
    }

    /// Adds what `probe` knows to the error of a request that the desired state refused; `requests` are those of the
    /// transaction.
    pub fn explained(self, requests: &[Request], probe: &dyn Probe) -> TransactionError {
        let only = (requests.len() == 1).then_some(0);
        let at = self.index.or(only).and_then(|index| requests.get(index));
        match at {
            Some(request) => TransactionError {
                error: Box::new(probe.explain(request, *self.error)),
                ..self
            },
            None => self,
        }
    }

    /// Converts to one error of the model, for interfaces that report no more.
    pub fn into_model(self) -> ModelError {
        if self.index.is_none() && self.request.is_none() && self.left.is_empty() {
            return *self.error;
        }
        let text = self.to_string();
        ModelError::invalid("the transaction", text)
    }
}

/// A command, shortened to fit a sentence.
fn shortened(request: &Request) -> String {
    let text = without_secrets(request.clone()).to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// A transaction that passed all checks and is being carried out. The state is already the new one.
#[derive(Debug)]
pub struct Transaction {
    steps: Vec<Step>,
    at: usize,
    pub(crate) changes: Changes,
    applied: Applied,
    /// The transaction is a single request: its error needs no index.
    alone: bool,
    /// A request for an object that gets its name from the handler.
    pub(crate) unnamed: Option<Request>,
    /// The error of a step that failed: the steps before it are being undone.
    failed: Option<TransactionError>,
    /// The user who makes the transaction, for its events; empty when unknown.
    pub user: String,
}

/// Progress of a transaction.
#[derive(Debug)]
pub enum Progress {
    /// More steps follow: call again.
    More,
    /// All steps were carried out.
    Done(Applied),
    /// A step failed, and the steps before it were rolled back.
    Failed(TransactionError),
}

impl State {
    /// Edits the state by requests and plans the steps. After an error the state is as it was.
    pub fn begin(&mut self, requests: &[Request]) -> Result<Transaction, TransactionError> {
        let alone = requests.len() == 1;
        if let [request @ Request::InterfaceCreate(spec)] = requests
            && spec.name.is_empty()
        {
            request.validate()?;
            return Ok(Transaction {
                alone,
                unnamed: Some(request.clone()),
                ..Transaction::new(vec![as_it_is(request)], Changes::default())
            });
        }
        // Later requests may have the new name of an interface, so each one is planned alone.
        let each = alone || requests.iter().any(is_rename);
        let (mut all, mut steps, mut interrupted) = (Changes::default(), Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            let mut own = Changes::default();
            let into = if each { &mut own } else { &mut all };
            let mut done = request.validate().and_then(|()| self.edit(request, into));
            if each {
                done = done.and_then(|()| self.check(&own));
                if done.is_ok() {
                    let plan = self.plan_of(request, &mut own, alone);
                    steps.extend(plan.steps);
                    interrupted.extend(plan.interrupted);
                }
                join(&mut all, own);
            }
            if let Err(error) = done {
                self.undo(all);
                return Err(match alone {
                    true => error.into(),
                    false => TransactionError::at(index, request, error),
                });
            }
        }
        if !each {
            return self.planned(all);
        }
        let mut transaction = Transaction::new(steps, all);
        transaction.alone = alone;
        transaction.applied.notes = interruptions(&interrupted);
        Ok(transaction)
    }

    /// Replaces the state by another one and plans the steps. After an error the state is as it was.
    pub fn begin_state(&mut self, wanted: &State) -> Result<Transaction, TransactionError> {
        let changes = self.become_like(wanted);
        self.planned(changes)
    }

    /// Restores the state before a transaction that failed.
    pub fn undo_transaction(&mut self, transaction: Transaction) {
        self.undo(transaction.changes);
    }

    /// Checks the changed state and plans the steps to it. The notes begin with the interruptions of traffic.
    fn planned(&mut self, changes: Changes) -> Result<Transaction, TransactionError> {
        if let Err(error) = self.check(&changes) {
            self.undo(changes);
            return Err(error.into());
        }
        let plan = plan(self, &changes);
        let mut transaction = Transaction::new(plan.steps, changes);
        transaction.applied.notes = interruptions(&plan.interrupted);
        Ok(transaction)
    }

    /// Plans the steps of one request.
    fn plan_of(&self, request: &Request, own: &mut Changes, alone: bool) -> Plan {
        let is_given = match request {
            Request::InterfaceRename { .. } => true,
            // A request can have more than the state keeps, such as the number in the name of a tap.
            Request::InterfaceCreate(_) => alone,
            // The handlers remove the parts of an interface with it, but no sub-interfaces and devices.
            Request::InterfaceDelete { .. } => alone && !takes_others(own),
            Request::Set(object) => {
                let (key, def) = (Key::object(object.key()), object.class().def());
                let before = own.before.get(&key).and_then(Option::as_ref);
                let differs = before.is_some_and(|before| self.get(&key) != Some(before));
                // An owner can change one object in place that no other object needs.
                let alone = alone && def.recreate && !def.together && !self.is_needed(&key);
                // The objects that are removed together with an unchanged one stay.
                alone && !(def.separate && differs) || own.again.contains(&key)
            }
            // Nothing is there to be removed: the owner restores the defaults nevertheless.
            Request::Unset(_) => alone && own.is_empty(),
            _ => false,
        };
        if is_given {
            return Plan {
                steps: vec![as_it_is(request)],
                interrupted: Vec::new(),
            };
        }
        if alone {
            own.repeat(self);
        }
        plan(self, own)
    }
}

impl Changes {
    /// Has the owners carry out unchanged settings again, if nothing else follows from that.
    fn repeat(&mut self, now: &State) {
        let classes = volley_object::classes();
        let is_plain = |class: &Class| {
            let def = class.def();
            !def.recreate && !def.interrupts_in_place() && classes.after(class).next().is_none()
        };
        let is_same = |key: &Key, before: &Option<_>| now.get(key) == before.as_ref();
        let same = self.before.iter().filter(|(key, before)| {
            key.of_class().is_some_and(|it| is_plain(it.class())) && is_same(key, before)
        });
        self.repeated.extend(same.map(|(key, _)| key.clone()));
    }
}

fn is_rename(request: &Request) -> bool {
    matches!(request, Request::InterfaceRename { .. })
}

/// The step of a request that is carried out unchanged; a transaction of several requests can undo a rename.
fn as_it_is(request: &Request) -> Step {
    let undo = match request {
        Request::InterfaceRename { name, new_name } => vec![Request::InterfaceRename {
            name: new_name.clone(),
            new_name: name.clone(),
        }],
        _ => Vec::new(),
    };
    let request = request.clone();
    Step { request, undo }
}

impl Transaction {
    fn new(steps: Vec<Step>, changes: Changes) -> Transaction {
        Transaction {
            steps,
            at: 0,
            changes,
            applied: Applied::default(),
            alone: false,
            unnamed: None,
            failed: None,
            user: String::new(),
        }
    }

    /// Number of objects that change.
    pub fn objects(&self) -> usize {
        self.changes.before.len()
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Carries out the next steps, at most `most` of them, and none after a step with many objects. After a failed step, the
    /// next calls undo what was done, at most `most` steps each.
    pub fn advance(&mut self, executor: &dyn Executor, most: usize) -> Progress {
        let mut is_bulk = false;
        for _ in 0..most {
            if is_bulk {
                break;
            }
            let next = self.at.saturating_sub(usize::from(self.failed.is_some()));
            is_bulk = self.steps.get(next).is_some_and(Step::is_bulk);
            if self.failed.is_some() {
                self.take_back(executor);
                if self.at == 0
                    && let Some(error) = self.failed.take()
                {
                    executor.finish();
                    return Progress::Failed(error);
                }
                continue;
            }
            let Some(step) = self.steps.get(self.at) else {
                executor.finish();
                return Progress::Done(std::mem::take(&mut self.applied));
            };
            match executor.apply(&step.request) {
                Ok(applied) => {
                    self.applied = std::mem::take(&mut self.applied).and(applied);
                    self.at += 1;
                }
                Err(error) => {
                    let request = Some(shortened(&step.request)).filter(|_| !self.alone);
                    let error = TransactionError {
                        request,
                        ..TransactionError::from(error)
                    };
                    if self.at == 0 {
                        return Progress::Failed(error);
                    }
                    self.failed = Some(error);
                }
            }
        }
        executor.pause();
        Progress::More
    }

    /// Undoes the last step that was carried out.
    fn take_back(&mut self, executor: &dyn Executor) {
        let Some(step) = self.at.checked_sub(1).and_then(|at| self.steps.get(at)) else {
            return;
        };
        self.at -= 1;
        for request in &step.undo {
            let done = executor.apply(request);
            if let (Err(error), Some(failed)) = (done, &mut self.failed) {
                failed
                    .left
                    .push(format!("`{}`: {error}", shortened(request)));
            }
        }
    }

    /// The new names of renamed interfaces, in order.
    pub(crate) fn new_names(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().filter_map(|step| match &step.request {
            Request::InterfaceRename { new_name, .. } => Some(new_name),
            _ => None,
        })
    }
}

/// Whether an interface with sub-interfaces or separate objects is deleted: those are removed first.
fn takes_others(changes: &Changes) -> bool {
    let others = changes.before.iter().filter(|(key, before)| match key {
        Key::Interface(_) => true,
        Key::Setting(it) => it.class().def().separate && before.is_some(),
        _ => false,
    });
    others.count() > 1
}

fn join(all: &mut Changes, own: Changes) {
    if all.is_empty() {
        *all = own;
        return;
    }
    for (key, before) in own.before {
        all.before.entry(key).or_insert(before);
    }
    all.again.extend(own.again);
    all.repeated.extend(own.repeated);
    for (key, place) in own.places {
        all.places.entry(key).or_insert(place);
    }
}
