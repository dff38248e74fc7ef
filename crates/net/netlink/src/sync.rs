//! The task that synchronises Volley and the kernel: reads notifications, dumps everything when needed, and updates both sides.

use crate::audit::{self, Findings};
use crate::error::LcpSyncError;
use crate::kernel_write::{self, KernelWriter};
use crate::links::{KernelState, SyncPlan};
use crate::message::{Item, KernelMessage, Route};
use crate::own;
use crate::routes::{Routes, kernel_table};
use crate::socket::{Kernel, SocketRead};
use crate::{Backend, Batch};
use hashbrown::{HashMap, HashSet};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use volley_fib::RouteBatch;
use volley_fib::path::RouteSource;
use volley_lcp::{LcpAuditReply, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
use volley_model::{Applied, Family, ModelError};

/// Longest time that the task occupies the control thread without a pause.
const SLICE: Duration = Duration::from_millis(3);
/// Prefixes in one batch for the forwarding table.
const BATCH: usize = 4096;
/// Interval between checks of Volley's side.
const TICK: Duration = Duration::from_millis(20);
/// Interval between checks while there is no LCP tap, or no socket to the kernel.
const IDLE: Duration = Duration::from_millis(500);
/// Delay before a refused change is tried again.
pub(crate) const RETRY: Duration = Duration::from_secs(5);
/// Pause between two slices.
const BREATH: Duration = Duration::from_millis(1);
/// Interval between reads while notifications keep arriving: a wake-up for each of a routing daemon's million messages would
/// take the processor from that daemon as often.
const GATHER: Duration = Duration::from_millis(2);
/// Time without notifications after which the task waits for a wake-up.
const CALM: Duration = Duration::from_millis(50);
/// Interval between updates of the route counts.
const COUNT: Duration = Duration::from_millis(500);
/// Longest time that an audit or repair waits until no work is pending.
const REST: Duration = Duration::from_secs(30);

/// Attempts at a dump of links, addresses or neighbours that is interrupted by changes.
const GOES: u32 = 5;

enum Command {
    Resync(oneshot::Sender<Result<Applied, ModelError>>),
    Audit(oneshot::Sender<Result<LcpAuditReply, ModelError>>),
    End(oneshot::Sender<Result<(), ModelError>>),
}

/// Handle of the synchronisation with the kernel: requests and status.
#[derive(Default)]
pub struct LcpSync {
    commands: RefCell<VecDeque<Command>>,
    wake: Notify,
    status: RefCell<LcpSyncStatus>,
    tables: RefCell<Vec<LcpTableRow>>,
    indexes: RefCell<BTreeMap<String, u32>>,
    counted: Cell<Option<Instant>>,
    /// Volley's side has changed.
    poked: Cell<bool>,
    /// Volley is exiting: nothing more is written to the kernel.
    ended: Cell<bool>,
}

/// State that exists while there are LCP taps.
pub(crate) struct Session {
    pub(crate) kernel: Kernel,
    /// Wakes the task when a notification is pending; none while notifications keep arriving.
    watch: Option<Box<dyn Any>>,
    /// Number of messages read, and when the last of them was read.
    heard: (u64, Instant),
    namespace: Option<String>,
    routes: Routes,
    pub(crate) telling: KernelWriter,
    taps: KernelState,
    pairs: Vec<LcpRow>,
    version: Option<u64>,
    /// A notification of a link, an address or a neighbour was read.
    touched: bool,
    /// Everything must be read again.
    lost: bool,
    refused: HashMap<String, Instant>,
    /// Next-hop objects of the current dump.
    reported: HashSet<u32>,
}

fn gone() -> ModelError {
    ModelError::invalid("the Linux control plane", "it is ending")
}

impl LcpSync {
    /// Notifies the task that Volley's side has changed.
    pub fn poke(&self) {
        self.poked.set(true);
        self.wake.notify_one();
    }

    /// Notifies the task that the kernel has sent a notification.
    pub fn stir(&self) {
        self.wake.notify_one();
    }

    async fn command<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, ModelError>>) -> Command,
    ) -> Result<T, ModelError> {
        let (say, hear) = oneshot::channel();
        self.commands.borrow_mut().push_back(make(say));
        self.wake.notify_one();
        hear.await.map_err(|_| gone())?
    }

    /// Reads everything from the kernel again; completes when the forwarding table has it.
    pub async fn resync(&self) -> Result<Applied, ModelError> {
        self.command(Command::Resync).await
    }

    /// Lists every difference between the two sides.
    pub async fn audit(&self) -> Result<LcpAuditReply, ModelError> {
        self.command(Command::Audit).await
    }

    /// Removes, when Volley exits, the routes that the kernel would keep; gives up after `kernel_write::PATIENCE`.
    pub async fn end(&self) {
        let gone = self.command(Command::End);
        _ = tokio::time::timeout(kernel_write::PATIENCE, gone).await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Adds the state of the synchronisation to `show lcp`.
    pub fn amend(&self, reply: &mut LcpReply) {
        if reply.pairs.is_empty() {
            return;
        }
        for pair in &mut reply.pairs {
            let index = self.indexes.borrow().get(&pair.host).copied();
            pair.host_index = index.unwrap_or(0);
        }
        reply.tables = self.tables.borrow().clone();
        reply.mirror = Some(self.status.borrow().clone());
    }

    /// Synchronises until the backend is dropped.
    pub async fn run(self: Rc<Self>, backend: Weak<dyn Backend>) {
        let mut session: Option<Session> = None;
        while let Some(volley) = backend.upgrade() {
            let pairs = volley.pairs();
            let space = pairs.first().map(|p| p.namespace.clone());
            if session.as_ref().map(|s| s.namespace.clone()) != space {
                if let Some(old) = session.take() {
                    self.withdraw(old).await;
                    self.clear(&*volley).await;
                }
                if let Some(namespace) = space {
                    session = self.begin(namespace, &*volley);
                }
            }
            let Some(now) = &mut session else {
                self.excuse(pairs.is_empty());
                drop(volley);
                self.idle(IDLE).await;
                continue;
            };
            now.pairs = pairs;
            let busy = self.turn(now, &*volley).await;
            self.obey(now, &*volley).await;
            let messages = self.status.borrow().messages;
            let talking = now.is_talked_to(messages, &*volley);
            drop(volley);
            match busy {
                true => breathe().await,
                false => self.idle(if talking { GATHER } else { TICK }).await,
            }
        }
    }

    async fn idle(&self, span: Duration) {
        tokio::select! {
            () = self.wake.notified() => {}
            () = sleep(span) => {}
        }
    }

    fn begin(&self, namespace: Option<String>, volley: &dyn Backend) -> Option<Session> {
        match Kernel::open(namespace.as_deref()) {
            Ok(kernel) => Some(Session {
                watch: kernel.events().and_then(|fd| volley.watch(fd)),
                heard: (0, Instant::now()),
                kernel,
                namespace,
                routes: Routes::default(),
                telling: KernelWriter::default(),
                taps: KernelState::default(),
                pairs: Vec::new(),
                version: None,
                touched: true,
                lost: true,
                refused: HashMap::new(),
                reported: HashSet::new(),
            }),
            Err(error) => {
                self.status.borrow_mut().state = format!("stopped: {error}");
                None
            }
        }
    }

    /// Answers pending commands while there is no session.
    fn excuse(&self, nothing: bool) {
        let why = self.status.borrow().state.clone();
        let refuse = || ModelError::invalid("the Linux control plane", &why);
        for command in std::mem::take(&mut *self.commands.borrow_mut()) {
            // The requester may have gone.
            match (command, nothing) {
                (Command::Resync(say), true) => _ = say.send(Ok(Applied::nothing())),
                (Command::Audit(say), true) => _ = say.send(Ok(LcpAuditReply::default())),
                (Command::End(say), _) => _ = say.send(Ok(())),
                (Command::Resync(say), false) => _ = say.send(Err(refuse())),
                (Command::Audit(say), false) => _ = say.send(Err(refuse())),
            }
        }
    }

    /// Removes the kernel's routes from the forwarding table after the last LCP tap was deleted.
    async fn clear(&self, volley: &dyn Backend) {
        *self.status.borrow_mut() = LcpSyncStatus::default();
        self.tables.borrow_mut().clear();
        for (family, table) in volley.tables() {
            let all = volley.route_set(family, table).unwrap_or_default();
            for part in all.routes.chunks(BATCH) {
                let mut batch = Batch::new(family, table);
                batch.gone = part.iter().map(|r| r.0).collect();
                let _ = volley.routes(&filled(batch, |_| Vec::new()));
                breathe().await;
            }
        }
    }

    /// One pass over all work; true if more work is pending.
    async fn turn(&self, now: &mut Session, volley: &dyn Backend) -> bool {
        volley.follow();
        if now.lost {
            self.read_all(now, volley).await;
        }
        let heard = self.hear(now);
        if now.lost {
            // State from an incomplete read must not be used: an object that is missing in it still exists.
            return true;
        }
        let version = volley.version();
        now.touched |= self.poked.take() || now.is_due();
        if now.touched || now.version != Some(version) {
            now.touched = false;
            now.version = Some(version);
            self.agree(now, volley).await;
        }
        let waiting = now.routes.waiting();
        if waiting > 0 && (heard != SocketRead::Some || waiting >= BATCH) {
            self.hand_over(now, volley);
        }
        self.status.borrow_mut().waiting = now.routes.waiting() as u64;
        let telling = heard != SocketRead::Some && self.tell(now, volley);
        if self.counted.get().is_none_or(|last| last.elapsed() > COUNT) {
            self.count(now);
        }
        heard == SocketRead::Some || now.routes.waiting() > 0 || telling
    }

    /// Reads notifications for one slice.
    fn hear(&self, now: &mut Session) -> SocketRead {
        let until = Instant::now() + SLICE;
        loop {
            let (mut messages, mut output) = (0, Vec::new());
            let heard = now.kernel.hear(|one| {
                messages += 1;
                output.push(one);
            });
            output.into_iter().for_each(|one| now.take(one));
            let mut status = self.status.borrow_mut();
            status.messages += messages;
            if heard == SocketRead::Overrun {
                status.overruns += 1;
                now.lost = true;
            }
            if heard != SocketRead::Some || Instant::now() > until {
                return heard;
            }
        }
    }

    /// Passes one batch of routes to the forwarding table.
    fn hand_over(&self, now: &mut Session, volley: &dyn Backend) {
        for batch in now.routes.batches(BATCH) {
            let batch = filled(batch, |set| now.routes.paths(set).unwrap_or_default());
            let Err(error) = volley.routes(&batch) else {
                continue;
            };
            // Retries each set of paths alone: a refused set must not prevent the others.
            self.refuse(&error);
            for (at, set) in batch.sets.iter().enumerate() {
                let mine = batch.put.iter().filter(|p| p.1 as usize == at);
                let one = RouteBatch {
                    sets: vec![set.clone()],
                    put: mine.map(|p| (p.0, 0)).collect(),
                    ..batch.clone()
                };
                if let Err(error) = volley.routes(&one) {
                    self.refuse(&error);
                }
            }
        }
    }

    pub(crate) fn refuse(&self, why: &dyn std::fmt::Display) {
        let mut status = self.status.borrow_mut();
        status.refused += 1;
        status.last_refused = Some(why.to_string());
    }

    /// Reads everything from the kernel again.
    async fn read_all(&self, now: &mut Session, volley: &dyn Backend) {
        let start = Instant::now();
        self.status.borrow_mut().state = "resynchronising".into();
        now.lost = false;
        now.taps.forget();
        now.routes.begin();
        now.telling.own.there().begin();
        let read = now.read().await;
        if let Err(error) = read {
            self.refuse(&LcpSyncError::Kernel("to tell its state", error));
            now.lost = true;
            return sleep(IDLE).await;
        }
        now.routes.swept();
        now.telling.own.there().swept();
        self.agree(now, volley).await;
        while now.routes.waiting() > 0 {
            self.hand_over(now, volley);
            self.status.borrow_mut().waiting = now.routes.waiting() as u64;
            breathe().await;
        }
        let mut status = self.status.borrow_mut();
        status.state = "following".into();
        status.resyncs += 1;
        status.resync_ms = start.elapsed().as_millis() as u64;
        drop(status);
        self.count(now);
    }

    /// Makes links, addresses and neighbours equal on both sides.
    async fn agree(&self, now: &mut Session, volley: &dyn Backend) {
        let links = now.pairs.iter();
        let links = links.filter_map(|p| Some((now.taps.index(&p.host)?, p.interface.clone())));
        let links: HashMap<u32, String> = links.collect();
        let hosts = now.pairs.iter();
        let hosts = hosts.filter_map(|p| Some((p.host.clone(), now.taps.index(&p.host)?)));
        *self.indexes.borrow_mut() = hosts.collect();
        now.routes.set_links(links);
        let known: HashSet<(Family, u32)> = volley.tables().into_iter().collect();
        now.telling.stale |= now.routes.tables().collect::<HashSet<_>>() != known;
        now.routes.set_tables(known.clone());
        let ways = own::ways(&now.taps, &now.pairs);
        now.telling.stale |= now.telling.own.set_ways(ways);
        let (rows, neighbors) = (volley.interfaces(), volley.neighbors());
        let mut todo = now.taps.plan(&now.pairs, &rows, &neighbors);
        now.taps.plan_devices(&now.pairs, &rows, &known, &mut todo);
        let SyncPlan {
            requests,
            orders,
            mut together,
            automatic,
            again,
        } = todo;
        now.touched |= again;
        together.extend(requests.into_iter().map(|one| vec![one]));
        for (index, order) in orders {
            let what = format!("{index} {order:?}");
            if now.may_try(&what) {
                match now.kernel.carry_out(index, &order) {
                    Ok(()) => {
                        now.refused.remove(&what);
                        now.taps.done(index, &order);
                    }
                    Err(error) => {
                        self.refuse(&LcpSyncError::Kernel("a change of an LCP tap", error));
                    }
                }
            }
        }
        for (interface, address, there) in automatic {
            let what = format!("{interface} {address} {there}");
            if now.may_try(&what) {
                match volley.automatic(&interface, address, there) {
                    Ok(()) => _ = now.refused.remove(&what),
                    Err(error) => self.refuse(&error),
                }
            }
        }
        for requests in together {
            let words: Vec<String> = requests.iter().map(ToString::to_string).collect();
            let what = words.join("; ");
            if now.may_try(&what) {
                match volley.change(requests).await {
                    Ok(_) => _ = now.refused.remove(&what),
                    Err(error) => self.refuse(&error),
                }
            }
        }
    }

    /// Updates the table rows of `show lcp`.
    fn count(&self, now: &Session) {
        self.counted.set(Some(Instant::now()));
        let mut rows: BTreeMap<u32, LcpTableRow> = BTreeMap::new();
        for ((family, table), n) in now.routes.counts() {
            let row = rows.entry(table).or_default();
            (row.table, row.kernel_table) = (table, kernel_table(table));
            match family {
                Family::V4 => row.ip4 = n,
                Family::V6 => row.ip6 = n,
            }
        }
        for ((family, table), n) in now.telling.own.counts() {
            let row = rows.entry(table).or_default();
            (row.table, row.kernel_table) = (table, kernel_table(table));
            match family {
                Family::V4 => row.reported_ip4 = n,
                Family::V6 => row.reported_ip6 = n,
            }
        }
        *self.tables.borrow_mut() = rows.into_values().collect();
    }

    /// Carries out pending commands.
    async fn obey(&self, now: &mut Session, volley: &dyn Backend) {
        loop {
            let next = self.commands.borrow_mut().pop_front();
            // The requester may have gone.
            match next {
                None => return,
                Some(Command::Audit(say)) => {
                    let found = self.examine(now, volley).await;
                    _ = say.send(found.map(Findings::reply));
                }
                Some(Command::Resync(say)) => _ = say.send(self.repair(now, volley).await),
                Some(Command::End(say)) => {
                    self.ended.set(true);
                    self.leave(now);
                    _ = say.send(Ok(()));
                }
            }
        }
    }

    /// Works until nothing is pending, but at most for `REST`, because notifications may never stop.
    async fn rest(&self, now: &mut Session, volley: &dyn Backend) {
        let until = Instant::now() + REST;
        while (self.turn(now, volley).await || now.telling.is_behind(volley))
            && Instant::now() < until
        {
            breathe().await;
        }
    }

    /// Waits until no work is pending, then compares both sides after a new dump.
    async fn examine(
        &self,
        now: &mut Session,
        volley: &dyn Backend,
    ) -> Result<Findings, ModelError> {
        self.rest(now, volley).await;
        now.taps.forget();
        now.routes.begin();
        now.telling.own.there().begin();
        let read = now.read().await;
        if let Err(error) = read {
            now.lost = true;
            let why = LcpSyncError::Kernel("to tell its state", error);
            return Err(ModelError::invalid("lcp audit", why));
        }
        now.routes.swept();
        now.telling.own.there().swept();
        let mut found = Findings::default();
        let (rows, neighbors) = (volley.interfaces(), volley.neighbors());
        let (compared, others) = now.taps.differences(&now.pairs, &rows, &neighbors);
        found.other(compared, others);
        audit::routes(volley, &now.routes, &mut found).await?;
        audit::own(&now.telling.own, &now.routes, &mut found);
        self.count(now);
        Ok(found)
    }

    /// Reads everything again, and corrects the differences.
    async fn repair(&self, now: &mut Session, volley: &dyn Backend) -> Result<Applied, ModelError> {
        let start = Instant::now();
        now.refused.clear();
        now.lost = true;
        self.turn(now, volley).await;
        let found = self.examine(now, volley).await?;
        let wrong = found.routes.len() as u64 + found.own;
        for (family, table, prefix) in &found.routes {
            now.routes.doubt(*family, *table, *prefix);
        }
        now.telling.afresh();
        now.touched = true;
        self.rest(now, volley).await;
        let known: u64 = now.routes.counts().values().sum();
        let secs = start.elapsed().as_secs_f64();
        let note = format!("read {known} routes in {secs:.2} s, {wrong} of them were wrong");
        Ok(Applied::changed(wrong).note(note))
    }
}

impl Session {
    fn take(&mut self, output: KernelMessage) {
        match output {
            KernelMessage::New(Item::Route(route)) => self.side(&route).add(route),
            KernelMessage::Gone(Item::Route(route)) => self.side(&route).remove(route),
            KernelMessage::New(Item::NextHop(id, hop)) => self.routes.next_hop(id, hop),
            KernelMessage::Gone(Item::NextHop(id, _)) => self.routes.no_next_hop(id),
            KernelMessage::New(item) => {
                self.touched = true;
                // The kernel sends no notification for IPv4 routes that are deleted with the interface.
                self.lost |= self.taps.new_item(item);
            }
            KernelMessage::Gone(item) => {
                self.touched = true;
                self.lost |= self.taps.lost_item(&item);
            }
            KernelMessage::Done
            | KernelMessage::Answer(_)
            | KernelMessage::Interrupted
            | KernelMessage::Other
            | KernelMessage::Odd => {}
        }
    }

    /// Whether notifications keep arriving: then the task polls at short intervals instead of being woken for each message.
    fn is_talked_to(&mut self, messages: u64, volley: &dyn Backend) -> bool {
        let now = Instant::now();
        if messages != self.heard.0 {
            self.heard = (messages, now);
            self.watch = None;
        } else if self.watch.is_none() && now > self.heard.1 + CALM {
            // Messages that arrived meanwhile wake the task at once.
            self.watch = self.kernel.events().and_then(|fd| volley.watch(fd));
        }
        self.watch.is_none()
    }

    /// The routes that a route belongs to: the kernel also reports Volley's own routes.
    fn side(&mut self, route: &Route) -> &mut Routes {
        match own::is_own(route) {
            true => self.telling.own.there(),
            false => &mut self.routes,
        }
    }

    /// Dumps everything, a slice at a time.
    async fn read(&mut self) -> std::io::Result<()> {
        let v4 = || {
            let mut message = RouteMessage::default();
            message.header.address_family = AddressFamily::Inet;
            message
        };
        let mut v6 = v4();
        v6.header.address_family = AddressFamily::Inet6;
        let (links, addresses) = (LinkMessage::default(), AddressMessage::default());
        let neighbors = NeighbourMessage::default();
        self.all(RouteNetlinkMessage::GetLink(links)).await?;
        self.all(RouteNetlinkMessage::GetAddress(addresses)).await?;
        self.all(RouteNetlinkMessage::GetNeighbour(neighbors))
            .await?;
        self.next_hops().await;
        self.kernel.dump(RouteNetlinkMessage::GetRoute(v4()))?;
        self.dumped().await?;
        self.kernel.dump(RouteNetlinkMessage::GetRoute(v6))?;
        self.dumped().await
    }

    /// Dumps all objects of a type; repeats the dump if it was interrupted by changes.
    async fn all(&mut self, question: RouteNetlinkMessage) -> std::io::Result<()> {
        for _ in 1..GOES {
            self.kernel.dump(question.clone())?;
            match self.dumped().await {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
        self.kernel.dump(question)?;
        self.dumped().await
    }

    /// Dumps next-hop objects. A kernel without support refuses the request and has none.
    async fn next_hops(&mut self) {
        let before = self.routes.object_numbers();
        self.reported.clear();
        if self.kernel.dump_next_hops().is_ok() && self.dumped().await.is_ok() {
            let reported = std::mem::take(&mut self.reported);
            self.routes.swept_objects(before, &reported);
        }
    }

    async fn dumped(&mut self) -> std::io::Result<()> {
        let mut since = Instant::now();
        loop {
            let mut all = Vec::new();
            let more = self.kernel.dumped(|output| all.push(output))?;
            for output in all {
                match output {
                    KernelMessage::New(Item::Route(route)) => self.side(&route).add(route),
                    KernelMessage::New(Item::NextHop(id, hop)) => {
                        self.reported.insert(id);
                        self.routes.next_hop(id, hop);
                    }
                    KernelMessage::New(item) => _ = self.taps.new_item(item),
                    _ => {}
                }
            }
            if !more {
                return Ok(());
            }
            if since.elapsed() > SLICE {
                breathe().await;
                since = Instant::now();
            }
        }
    }

    /// Whether a refused change is due for another attempt.
    fn is_due(&mut self) -> bool {
        let (now, before) = (Instant::now(), self.refused.len());
        self.refused.retain(|_, last| now < *last + RETRY);
        self.refused.len() < before
    }

    /// Whether a change may be tried: it was not tried within the last `RETRY`.
    fn may_try(&mut self, what: &str) -> bool {
        let new = !self.refused.contains_key(what);
        if new {
            self.refused.insert(what.to_owned(), Instant::now());
        }
        new
    }
}

/// Lets all other tasks of the control thread run, timers and sockets too. `yield_now` would run only tasks that are already
/// ready.
pub(crate) async fn breathe() {
    sleep(BREATH).await;
}

/// The batch with the paths of its sets.
fn filled(batch: Batch, paths: impl Fn(u32) -> Vec<volley_fib::path::Path>) -> RouteBatch {
    let (mut sets, mut places) = (Vec::new(), HashMap::new());
    let put = batch.put.into_iter().map(|(prefix, set)| {
        let at = *places.entry(set).or_insert_with(|| {
            sets.push(paths(set));
            sets.len() as u32 - 1
        });
        (prefix, at)
    });
    let put = put.collect();
    RouteBatch {
        family: batch.family,
        table: batch.table,
        source: RouteSource::LcpRt,
        sets,
        put,
        gone: batch.gone,
    }
}
