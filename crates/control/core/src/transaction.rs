//! Transactions: checked as a whole against the desired state, carried out step by step, rolled back when a step fails.

use crate::key::Key;
use crate::plan::{Probe, Step, interruptions, plan};
use crate::secret::hidden;
use crate::state::{Changes, State};
use std::fmt;
use volley_model::{Applied, ModelError, Request};
use volley_object::{Class, Instance, ObjectKey};

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
    let text = request.to_string();
    let text = hidden(&text);
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into_owned(),
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
        Transaction::of_requests(self, requests)
    }

    /// Replaces the state by another one and plans the steps. After an error the state is as it was.
    pub fn begin_state(&mut self, wanted: &State) -> Result<Transaction, TransactionError> {
        Transaction::of_state(self, wanted)
    }

    /// Restores the state before a transaction that failed.
    pub fn undo_transaction(&mut self, transaction: Transaction) {
        self.undo(transaction.changes);
    }
}

impl Transaction {
    /// Edits the state by requests, and plans. After an error the state is as it was.
    pub(crate) fn of_requests(
        state: &mut State,
        requests: &[Request],
    ) -> Result<Transaction, TransactionError> {
        if let [request] = requests {
            return Transaction::of_one(state, request);
        }
        let mut changes = Changes::default();
        let renames = requests
            .iter()
            .any(|r| matches!(r, Request::InterfaceRename { .. }));
        let mut steps = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            let mut own = Changes::default();
            let into = if renames { &mut own } else { &mut changes };
            let mut done = request.validate().and_then(|()| state.edit(request, into));
            if renames {
                done = done.and_then(|()| state.check(&own));
                match is_by_state(state, request, &own) {
                    true => steps.extend(plan(state, &own).steps),
                    false => steps.extend(in_order(state, request, &own)),
                }
                join(&mut changes, own);
            }
            if let Err(error) = done {
                state.undo(changes);
                return Err(TransactionError::at(index, request, error));
            }
        }
        if !renames {
            if let Err(error) = state.check(&changes) {
                state.undo(changes);
                return Err(error.into());
            }
            return Ok(Transaction::planned(state, changes));
        }
        Ok(Transaction::new(steps, changes))
    }

    /// A single request needs no plan: it is its own difference.
    fn of_one(state: &mut State, request: &Request) -> Result<Transaction, TransactionError> {
        request.validate()?;
        let mut changes = Changes::default();
        let step = Step {
            request: request.clone(),
            undo: Vec::new(),
        };
        let unnamed = matches!(request, Request::InterfaceCreate(spec) if spec.name.is_empty());
        if !unnamed {
            let done = state
                .edit(request, &mut changes)
                .and_then(|()| state.check(&changes));
            if let Err(error) = done {
                state.undo(changes);
                return Err(error.into());
            }
        }
        let by_state = is_by_state(state, request, &changes);
        if takes_others(request, &changes) || by_state {
            return Ok(Transaction {
                alone: by_state,
                ..Transaction::planned(state, changes)
            });
        }
        Ok(Transaction {
            alone: true,
            unnamed: unnamed.then(|| request.clone()),
            ..Transaction::new(vec![step], changes)
        })
    }

    /// Replaces the state by another one, and plans.
    pub(crate) fn of_state(
        state: &mut State,
        wanted: &State,
    ) -> Result<Transaction, TransactionError> {
        let changes = state.become_like(wanted);
        if let Err(error) = state.check(&changes) {
            state.undo(changes);
            return Err(error.into());
        }
        Ok(Transaction::planned(state, changes))
    }

    /// Plans the steps to a changed state. The notes begin with the interruptions of traffic.
    fn planned(state: &State, changes: Changes) -> Transaction {
        let plan = plan(state, &changes);
        let mut transaction = Transaction::new(plan.steps, changes);
        transaction.applied.notes = interruptions(&plan.interrupted);
        transaction
    }

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
fn takes_others(request: &Request, changes: &Changes) -> bool {
    let others = changes.before.iter().filter(|(key, before)| match key {
        Key::Interface(_) => true,
        Key::Setting(it) => it.class().def().separate && before.is_some(),
        _ => false,
    });
    matches!(request, Request::InterfaceDelete { .. }) && others.count() > 1
}

/// Whether the state decides which object a request means, which objects are created again with it, or what it interrupts:
/// handlers get requests about those objects.
fn is_by_state(state: &State, request: &Request, own: &Changes) -> bool {
    let classes = volley_object::classes();
    let reaches =
        |class: &Class| class.def().interrupts_in_place() || classes.after(class).next().is_some();
    let together = |key: ObjectKey| key.class().def().together;
    let changes = |object: &Instance| {
        let key = Key::object(object.key());
        let before = own.before.get(&key).and_then(Option::as_ref);
        before.is_some_and(|before| state.get(&key) != Some(before))
    };
    match request {
        // Many objects are many steps, between which other work runs.
        Request::Bulk(_) | Request::Add(_) | Request::Take(_) => true,
        Request::Set(object) if object.class().def().bulk => true,
        Request::Unset(key) if key.class().def().bulk => true,
        // An unchanged object is carried out again; if no object changes or is removed, others are created again.
        Request::Set(object) if together(object.key()) => changes(object),
        Request::Unset(key) if together(key.clone()) => !key.is_of_many(),
        Request::UnsetExact(_) | Request::UnsetAny(_) | Request::Change(_) => true,
        Request::Set(object) if object.class().def().recreate => {
            let separate = object.class().def().separate;
            state.is_needed(&Key::object(object.key())) || changes(object) && separate
        }
        Request::Set(object) => reaches(object.class()),
        Request::Unset(key) => reaches(key.class()),
        _ => false,
    }
}

/// A request that is carried out unchanged, and the requests that undo it.
fn in_order(after: &State, request: &Request, own: &Changes) -> Vec<Step> {
    if takes_others(request, own) {
        return plan(after, own).steps;
    }
    let undo = match request {
        Request::InterfaceRename { name, new_name } => vec![Request::InterfaceRename {
            name: new_name.clone(),
            new_name: name.clone(),
        }],
        _ => {
            let mut before = after.clone();
            before.undo(own.clone());
            let back = Changes {
                before: own
                    .before
                    .keys()
                    .map(|k| (k.clone(), after.get(k).cloned()))
                    .collect(),
                again: own.again.clone(),
                repeated: own.repeated.clone(),
                places: own
                    .places
                    .keys()
                    .map(|k| (k.clone(), after.place(k)))
                    .collect(),
            };
            let steps = plan(&before, &back).steps;
            steps.into_iter().map(|s| s.request).collect()
        }
    };
    vec![Step {
        request: request.clone(),
        undo,
    }]
}

fn join(all: &mut Changes, own: Changes) {
    for (key, before) in own.before {
        all.before.entry(key).or_insert(before);
    }
    all.again.extend(own.again);
    all.repeated.extend(own.repeated);
    for (key, place) in own.places {
        all.places.entry(key).or_insert(place);
    }
}
