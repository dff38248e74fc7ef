//! The daemon as the backend of command line and HTTP: changes that are confirmed when the workers use them, replies, names.

use super::audit::{Attempt, Done};
use super::commits::Commits;
use super::large::{self, EVENTS, FEW, Lent, names_of, on_helper};
use crate::limits::Admission;
use crate::show::ShowMemory;
use crate::stack::Stack;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};
use volley_cli::Names;
use volley_cli::server::Pending;
use volley_control::{
    Core, Executor, Probe, Progress, Report, State, Transaction, TransactionError, requests,
};
use volley_fib::{Address, Listing, ShowFib, ShowRouteCounters};
use volley_http::RunningState;
use volley_iface::MacAddress;
use volley_lcp::LcpReply;
use volley_lcp::{LcpResync, LcpTap, ShowLcp, ShowLcpAudit};
use volley_model::{Applied, Client, IfAddress, Mac, ModelError, ObjectKind, Request};
use volley_netlink::LcpSync;
use volley_object::{Answer, Asked, FieldType, Instance, Object, Query};
use volley_tap::model::TapInterface;

/// How long a worker may take to use a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to check whether workers use a change.
const LOOK: Duration = Duration::from_millis(1);
/// How long a transaction may keep the control thread to itself at a time.
const SLICE: Duration = Duration::from_millis(5);
/// Steps between two looks at the clock.
const STEPS: usize = 32;
/// Rows of a reply between two looks at the clock.
const ROWS: usize = 128;

/// The daemon's state, on the control thread.
pub struct Daemon {
    /// The assembled router.
    pub stack: Stack,
    /// Notified after a change, because a capture may have begun.
    pub changed: Rc<Notify>,
    /// The desired state, its transactions and their events.
    pub core: RefCell<Core>,
    /// LCP sync.
    pub mirror: Rc<LcpSync>,
    /// The commits.
    pub(super) commits: Commits,
    /// The limits of the configuration.
    pub(super) admission: Admission,
    /// The lock of transactions: one at a time.
    pub(super) turn: Mutex<()>,
    /// The lock of the desired state, which a helper thread may have: see [`Daemon::with_state`].
    pub(super) state_lock: Mutex<()>,
    /// The names of the objects of the desired state while a helper thread has it.
    lent: RefCell<Option<Lent>>,
    /// About how many bytes the objects of the configuration took when `show memory` last read them.
    configuration_bytes: Cell<u64>,
    me: Weak<Daemon>,
}

impl Daemon {
    /// A daemon around a stack.
    pub fn new(stack: Stack, commits: Commits, admission: Admission) -> Rc<Self> {
        Rc::new_cyclic(|me| Daemon {
            stack,
            changed: Rc::default(),
            core: RefCell::default(),
            mirror: Rc::default(),
            commits,
            admission,
            turn: Mutex::new(()),
            state_lock: Mutex::new(()),
            lent: RefCell::default(),
            configuration_bytes: Cell::default(),
            me: me.clone(),
        })
    }

    /// Runs a future to its end even if the caller drops its own future: no change is left half made.
    pub(super) async fn to_its_end<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        work: impl FnOnce(Rc<Daemon>) -> F,
    ) -> Result<T, ModelError> {
        let gone = || ModelError::invalid("the daemon", "it is ending");
        let me = self.me.upgrade().ok_or_else(gone)?;
        let task = tokio::task::spawn_local(work(me));
        task.await.map_err(|_| gone())
    }

    /// Carries out changes, all or none, and waits until the workers use them. A request that changes no configuration
    /// (starting a trace, clearing counters) is not in the state: it is carried out alone.
    pub async fn change(
        &self,
        requests: Vec<Request>,
        client: &Client,
    ) -> Result<Done, TransactionError> {
        let attempt = Attempt::new(&requests, client);
        let done = self.make_change(requests, client).await;
        attempt.end(&done);
        done
    }

    async fn make_change(
        &self,
        requests: Vec<Request>,
        client: &Client,
    ) -> Result<Done, TransactionError> {
        if let [request] = &requests[..]
            && !request.is_configuration()
        {
            if request.verb::<LcpResync>().is_some() {
                return Ok((self.mirror.resync().await?, None));
            }
            let applied = self.stack.apply(request)?;
            self.tell_changed();
            self.settle().await?;
            return Ok((applied, None));
        }
        let user = client.user.clone();
        self.to_its_end(|me| async move {
            let _turn = me.turn.lock().await;
            me.admission.memory_for(&requests)?;
            let (count, admission) = (large::objects(&requests), me.admission.clone());
            let begin = move |state: &mut State| {
                let begun = state.begin(&requests);
                (begun.and_then(|it| admission.admit(state, it)), requests)
            };
            let (begun, requests) = me.with_state(count, begin).await?;
            let mut transaction = begun.map_err(|error| error.explained(&requests, &me.stack))?;
            transaction.user = user;
            me.carry_out(transaction).await
        })
        .await?
    }

    /// Does work with the desired state, on a helper thread when `objects` are many or the state has many. Work that changes
    /// the state needs the lock of transactions. The caller must not be cancelled: see [`Daemon::to_its_end`].
    pub(super) async fn with_state<T: Send + 'static>(
        &self,
        objects: usize,
        work: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, ModelError> {
        let _lock = self.state_lock.lock().await;
        let mut state = self.core.borrow_mut().take_state();
        let is_large = objects.max(state.len()) > FEW;
        let (names, lent) = Lent::new();
        *self.lent.borrow_mut() = is_large.then_some(lent);
        let work = move || {
            if is_large {
                let _ = names.send(names_of(&state));
            }
            // A panic must not take the state along.
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut state)));
            (state, done)
        };
        let (state, done) = match is_large {
            true => on_helper(work).await?,
            false => work(),
        };
        *self.lent.borrow_mut() = None;
        self.core.borrow_mut().put_state(state);
        Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Ends a transaction that was carried out, and sends its events; returns its number.
    async fn complete(
        &self,
        transaction: Transaction,
        applied: &Applied,
    ) -> Result<u64, ModelError> {
        let _lock = self.state_lock.lock().await;
        let report = {
            let mut core = self.core.borrow_mut();
            core.complete(transaction, applied, &self.stack)
        };
        let number = report.transaction;
        self.send_events(report).await?;
        Ok(number)
    }

    /// Sends the events of a transaction, in slices where they are many. The caller must hold the lock of the desired state.
    async fn send_events(&self, mut report: Report) -> Result<(), ModelError> {
        if report.len() <= FEW {
            report.sort();
            self.core.borrow_mut().report(&mut report, usize::MAX);
            return Ok(());
        }
        let sort = move || {
            report.sort();
            report
        };
        let mut report = on_helper(sort).await?;
        let mut since = Instant::now();
        while self.core.borrow_mut().report(&mut report, EVENTS) {
            if since.elapsed() > SLICE {
                yield_now().await;
                since = Instant::now();
            }
        }
        on_helper(move || drop(report)).await
    }

    /// Carries out a transaction in slices, between which other tasks run on the control thread. The caller must hold the lock
    /// of transactions.
    pub(super) async fn carry_out(
        &self,
        mut transaction: Transaction,
    ) -> Result<Done, TransactionError> {
        let mut since = Instant::now();
        loop {
            match transaction.advance(&self.stack, STEPS) {
                Progress::More => {}
                Progress::Done(applied) => {
                    let number = self.complete(transaction, &applied).await?;
                    self.tell_changed();
                    self.settle().await?;
                    return Ok((applied, Some(number)));
                }
                Progress::Failed(error) => {
                    let undo = move |state: &mut State| state.undo_transaction(transaction);
                    self.with_state(0, undo).await?;
                    self.tell_changed();
                    self.settle().await?;
                    return Err(error);
                }
            }
            if !self.stack.settled() {
                // The queue to a worker has space for some hundred changes of the graph; this gives the worker time to take
                // them. If it does not, the next step that needs space reports it.
                let _ = self.settle().await;
            }
            if since.elapsed() > SLICE {
                yield_now().await;
                since = Instant::now();
            }
        }
    }

    fn tell_changed(&self) {
        self.changed.notify_one();
        self.mirror.poke();
    }

    /// Logs warnings about neighbours, and sends them to readers of events.
    pub fn warn_of_neighbors(&self) {
        let me = self.me.clone();
        self.stack.neighbors.listen(move |interface, text| {
            tracing::warn!(target: "neighbor", interface, "{interface}: {text}");
            if let Some(daemon) = me.upgrade()
                && let Ok(mut core) = daemon.core.try_borrow_mut()
            {
                core.warn(ObjectKind::Interface, interface, text);
            }
        });
    }

    /// Refuses interactive requests for missing devices: only a configuration may wait for its devices.
    fn check_ready(&self, requests: &[Request]) -> Result<(), TransactionError> {
        for (index, request) in requests.iter().enumerate() {
            self.stack
                .ready(request)
                .map_err(|error| TransactionError {
                    index: (requests.len() > 1).then_some(index),
                    ..error.into()
                })?;
            let makes_devices = match request {
                Request::Set(object) => object.class().name() == LcpTap::CLASS,
                Request::InterfaceCreate(spec) => spec.kind_as::<TapInterface>().is_some(),
                _ => false,
            };
            if makes_devices {
                // Interfaces of later requests may depend on this one.
                break;
            }
        }
        Ok(())
    }

    /// A change by an interactive client, with a measurement of its duration.
    pub(super) async fn timed(
        &self,
        requests: Vec<Request>,
        client: &Client,
    ) -> Result<Done, TransactionError> {
        self.check_ready(&requests)?;
        let change = self.change(requests, client);
        self.stack.latencies.change.time(change).await
    }

    /// Answers a query.
    pub(super) fn answer(&self, asked: Asked) -> Pending<'_, Answer> {
        if asked.is_stream() {
            let begun = super::follow::begin_whole(self, &asked);
            // The duration is that of the items and says nothing about the daemon, so it is not measured.
            return Box::pin(async move { super::follow::whole(begun?).await });
        }
        if asked.is::<ShowLcpAudit>() {
            // The duration is that of reading the kernel's routes, so it is not measured.
            return Box::pin(async move {
                let found = self.mirror.audit().await?;
                Ok(Answer::new::<ShowLcpAudit>(found)?)
            });
        }
        if asked.is::<ShowMemory>() {
            let answer = async move { self.memory() };
            return Box::pin(self.stack.latencies.query.time(answer));
        }
        let answer = async move {
            if let Some(answer) = self.routes(&asked).await {
                return answer;
            }
            let answer = self.stack.query(&asked)?;
            let Some(mut lcp) = answer.get::<LcpReply>().cloned() else {
                return Ok(answer);
            };
            self.mirror.amend(&mut lcp);
            Ok(Answer::new::<ShowLcp>(lcp)?)
        };
        Box::pin(self.stack.latencies.query.time(answer))
    }

    /// The memory of the process. While a helper thread has the desired state, its size is that of the last reply: a page of metrics
    /// must not wait for a large change.
    fn memory(&self) -> Result<Answer, ModelError> {
        if let Ok(_lock) = self.state_lock.try_lock() {
            let bytes = self.core.borrow().state().bytes() as u64;
            self.configuration_bytes.set(bytes);
        }
        let memory = self.stack.memory(self.configuration_bytes.get());
        Ok(Answer::new::<ShowMemory>(memory)?)
    }

    /// The reply to a query for routes, in slices where they are many.
    async fn listed<Q: Query<Reply = L::Reply>, L: Listing>(
        &self,
        mut list: L,
    ) -> Result<Answer, ModelError> {
        let is_large = list.count() > FEW;
        let sort = move || {
            list.sort();
            list
        };
        let mut list = match is_large {
            true => on_helper(sort).await?,
            false => sort(),
        };
        let mut since = Instant::now();
        while list.read(&self.stack.fib.borrow(), ROWS) {
            if since.elapsed() > SLICE {
                yield_now().await;
                since = Instant::now();
            }
        }
        Ok(Answer::new::<Q>(list.reply())?)
    }

    /// The reply to a query for routes, if it is one.
    async fn routes(&self, asked: &Asked) -> Option<Result<Answer, ModelError>> {
        if let Some(asked) = asked.get::<ShowFib>() {
            let list = self.stack.fib.borrow().route_list(&asked);
            return Some(match list {
                Ok(list) => self.listed::<ShowFib, _>(list).await,
                Err(error) => Err(error),
            });
        }
        let asked = asked.get::<ShowRouteCounters>()?;
        let list = self.stack.fib.borrow().counter_list(&asked);
        Some(self.listed::<ShowRouteCounters, _>(list).await)
    }

    /// The desired state, between two transactions.
    pub(super) async fn running_state(&self) -> Result<RunningState, ModelError> {
        self.to_its_end(|me| async move {
            let _turn = me.turn.lock().await;
            let all = me.with_state(0, |state| requests(state)).await?;
            let core = me.core.borrow();
            Ok(RunningState {
                transactions: core.transactions(),
                next_event: core.next_event(),
                requests: all,
            })
        })
        .await?
    }

    /// Waits until every worker uses every change.
    async fn settle(&self) -> Result<(), ModelError> {
        while self.stack.count_more() {
            yield_now().await;
        }
        let until = Instant::now() + PATIENCE;
        while !self.stack.settled() {
            if Instant::now() > until {
                let why = format!(
                    "it is made, but the worker has not taken it up within {} s",
                    PATIENCE.as_secs()
                );
                return Err(ModelError::invalid("the change", why));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    fn features(&self) -> Vec<String> {
        let arcs = self.stack.engine.borrow().arcs();
        arcs.into_iter()
            .flat_map(|arc| arc.features)
            .map(|(name, _)| name.to_owned())
            .collect()
    }
}

impl Probe for Stack {
    fn by_first_name(&self, interface: &str) -> Vec<Instance> {
        let all = self.interfaces.borrow();
        let mac = all.by_name(interface).and_then(|found| {
            let (interface, mac) = (interface.to_owned(), Mac(found.mac));
            MacAddress { interface, mac }.instance().ok()
        });
        mac.into_iter().collect()
    }

    fn explain(&self, request: &Request, error: ModelError) -> ModelError {
        let removed = match request {
            Request::Unset(_) => request.object_of(Address::CLASS),
            _ => None,
        };
        let kept = removed.and_then(|key| {
            let address = key.values().get(1).and_then(IfAddress::from_value)?;
            self.fib.borrow().why_kept(key.owner()?, address)
        });
        kept.unwrap_or(error)
    }
}

impl Executor for Stack {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        self.apply_step(request)
    }

    fn finish(&self) {
        Stack::finish(self);
    }

    fn pause(&self) {
        self.publishers.publish();
    }
}

impl Names for Daemon {
    fn names(&self, class: &str) -> Vec<String> {
        let stack = &self.stack;
        let mut names = match class {
            "interface" => {
                return stack
                    .interfaces
                    .borrow()
                    .iter()
                    .map(|i| i.name.clone())
                    .collect();
            }
            "node" => stack
                .engine
                .borrow()
                .edges()
                .map(|(name, _)| name.to_owned())
                .collect(),
            "arc_feature" => self.features(),
            "arc" => stack
                .engine
                .borrow()
                .arcs()
                .iter()
                .map(|arc| arc.name.to_owned())
                .collect(),
            class => match &mut *self.lent.borrow_mut() {
                Some(lent) => lent.of(class),
                None => self.core.borrow().state().names_of(class),
            },
        };
        names.sort();
        names.dedup();
        names
    }
}
