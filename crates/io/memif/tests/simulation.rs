//! A simulation of memif peers over system calls that fail or have nothing yet, from a seed: no real time, no other process.
//!
//! Volley has a master and a slave, each with a peer that comes, stalls, and dies. After each operation each interface is up,
//! or down with a reason. When the calls are sound again, each interface that is set up has its peer, and gets every packet
//! back that the peer sends. Every buffer and every file is free again at the end.
//!
//! `VOLLEY_SEEDS=N` runs so many seeds. A failure prints its seed and the operations; `VOLLEY_SEED=SEED` repeats it.

mod support;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Peer, Router, master, offer, packet, slave};
use volley_iface::AdminState;
use volley_memif::calls::{Calls, Kernel};
use volley_memif::region::Map;
use volley_memif::session::{Joined, Joining, Served, Serving, hello};
use volley_memif::socket::{Address, Channel, ChannelError, Listener};
use volley_memif::wire::{Message, Text};
use volley_shm::{Account, Event, MapError};

/// Seeds of a usual run.
const SEEDS: u64 = 300;
/// Operations of a seed.
const OPERATIONS: usize = 40;
/// Virtual time of a round.
const ROUND: Duration = Duration::from_millis(25);
/// Rounds until everything is up: more than a handshake and a slave's pause may last.
const PATIENCE: usize = 600;
/// Most rounds of an operation: a second.
const ROUNDS: usize = 40;
/// Most attempts of a slave to connect within them, at intervals of 20, 40, 80 ... ms, with some that begin again.
const ATTEMPTS: u64 = 14;
const NAMES: [&str; 2] = ["memif0/0", "memif1/0"];

/// Numbers from a seed (splitmix64).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, end: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let a = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((b ^ (b >> 31)) % end.max(1) as u64) as usize
    }

    fn percent(&self, of: usize) -> bool {
        self.below(100) < of
    }
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Connect,
    Accept,
    Send,
    Receive,
    Watch,
    PeerMemory,
    OwnMemory,
    PeerEvent,
    OwnEvent,
}

const CALLS: [Call; 9] = [
    Call::Connect,
    Call::Accept,
    Call::Send,
    Call::Receive,
    Call::Watch,
    Call::PeerMemory,
    Call::OwnMemory,
    Call::PeerEvent,
    Call::OwnEvent,
];

/// System calls that fail by seed.
struct Faulty {
    random: Random,
    /// So many of a hundred calls fail.
    percent: Cell<usize>,
    /// Only this call fails; none = all do.
    only: Cell<Option<Call>>,
    /// How often each call was made, and how many of all calls failed.
    made: RefCell<[u64; CALLS.len()]>,
    failed: Cell<u64>,
}

impl Faulty {
    /// One of these errors, if the call fails.
    fn fault(&self, call: Call, errors: &[Errno]) -> Result<(), Errno> {
        self.made.borrow_mut()[call as usize] += 1;
        let may_fail = self.only.get().is_none_or(|only| only == call);
        if !may_fail || !self.random.percent(self.percent.get()) {
            return Ok(());
        }
        self.failed.set(self.failed.get() + 1);
        Err(errors[self.random.below(errors.len())])
    }

    fn made(&self, call: Call) -> u64 {
        self.made.borrow()[call as usize]
    }
}

impl Calls for Faulty {
    fn connect(&self, address: &Address) -> Result<Channel, Errno> {
        self.fault(Call::Connect, &[Errno::MFILE, Errno::AGAIN, Errno::NOMEM])?;
        Kernel.connect(address)
    }

    fn accept(&self, listener: &Listener) -> Result<Option<Channel>, Errno> {
        self.fault(Call::Accept, &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS])?;
        Kernel.accept(listener)
    }

    fn send(
        &self,
        channel: &Channel,
        message: &Message,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), ChannelError> {
        match self.fault(Call::Send, &[Errno::AGAIN, Errno::NOBUFS, Errno::NOMEM]) {
            Ok(()) => Kernel.send(channel, message, file),
            Err(Errno::AGAIN) => Err(ChannelError::Deaf),
            Err(error) => Err(ChannelError::System(error)),
        }
    }

    fn receive(
        &self,
        channel: &Channel,
    ) -> Result<Option<(Message, Option<OwnedFd>)>, ChannelError> {
        match self.fault(
            Call::Receive,
            &[Errno::AGAIN, Errno::AGAIN, Errno::NOMEM, Errno::MFILE],
        ) {
            Ok(()) => Kernel.receive(channel),
            // The message stays where it is.
            Err(Errno::AGAIN) => Ok(None),
            // The message arrives without its file, for which there is no descriptor.
            Err(Errno::MFILE) => Kernel.receive(channel).and(Err(ChannelError::Files)),
            Err(error) => Err(ChannelError::System(error)),
        }
    }

    fn watch(&self, events: &OwnedFd, file: BorrowedFd<'_>, number: u64) -> Result<(), Errno> {
        self.fault(Call::Watch, &[Errno::NOSPC, Errno::NOMEM])?;
        Kernel.watch(events, file, number)
    }

    fn peer_memory(
        &self,
        file: BorrowedFd<'_>,
        size: u64,
        account: &Arc<Account>,
    ) -> Result<Map, MapError> {
        self.fault(Call::PeerMemory, &[Errno::NOMEM, Errno::AGAIN])?;
        Kernel.peer_memory(file, size, account)
    }

    fn own_memory(&self, size: usize) -> Result<(OwnedFd, Map), MapError> {
        self.fault(Call::OwnMemory, &[Errno::NOMEM, Errno::MFILE, Errno::NOSPC])?;
        Kernel.own_memory(size)
    }

    fn peer_event(&self, file: OwnedFd) -> std::io::Result<Event> {
        self.fault(Call::PeerEvent, &[Errno::NOMEM, Errno::BADF])?;
        Kernel.peer_event(file)
    }

    fn own_event(&self) -> std::io::Result<Event> {
        self.fault(Call::OwnEvent, &[Errno::MFILE, Errno::NOMEM])?;
        Kernel.own_event()
    }
}

enum Session {
    Client(Joining),
    Server(Serving),
}

/// A peer, whose own calls are sound.
enum Side {
    Gone,
    Talking(Channel, Session),
    Up(Peer),
}

impl Side {
    /// Answers what Volley has sent; a peer whose connection has ended is gone.
    fn turn(&mut self) {
        *self = match std::mem::replace(self, Side::Gone) {
            Side::Gone => Side::Gone,
            Side::Talking(channel, session) => talk(channel, session),
            Side::Up(peer) => match peer.channel.receive() {
                Ok(None) => Side::Up(peer),
                _ => Side::Gone,
            },
        }
    }
}

fn up(channel: Channel, link: Arc<volley_memif::link::ConnectionRings>) -> Side {
    let scratch = Default::default();
    Side::Up(Peer {
        channel,
        link,
        scratch,
    })
}

fn talk(channel: Channel, mut session: Session) -> Side {
    loop {
        let (message, file) = match channel.receive() {
            Ok(Some(received)) => received,
            Ok(None) => return Side::Talking(channel, session),
            Err(_) => return Side::Gone,
        };
        let sent = match &mut session {
            Session::Client(joining) => match joining.receive(message, file) {
                Ok(Joined::Up(link)) => return up(channel, link),
                Ok(Joined::Next) => joining
                    .say()
                    .is_some_and(|(message, file)| channel.send(&message, file).is_ok()),
                Err(_) => false,
            },
            Session::Server(serving) => {
                match serving.receive(message, file, |_| Ok(Account::new())) {
                    Ok(Served::Ack) => channel.send(&Message::Ack, None).is_ok(),
                    Ok(Served::Up(link)) => {
                        let name = Text::new("peer");
                        if channel.send(&Message::Connected(name), None).is_ok() {
                            return up(channel, link);
                        }
                        false
                    }
                    Err(_) => false,
                }
            }
        };
        if !sent {
            return Side::Gone;
        }
    }
}

/// What one seed does.
struct Simulation {
    router: Router,
    calls: Rc<Faulty>,
    random: Random,
    now: Instant,
    socket: PathBuf,
    evil: PathBuf,
    /// The peer of the master, then that of the slave.
    peers: [Side; 2],
    listener: Option<Listener>,
    /// Whether each interface exists, and is set up.
    exists: [bool; 2],
    wanted: [bool; 2],
    number: u32,
    /// How often an interface had to come up again.
    recoveries: u64,
    log: Rc<RefCell<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Simulation {
    fn new(seed: u64, log: &Rc<RefCell<Vec<String>>>) -> Simulation {
        let folder = tempfile::tempdir().unwrap();
        let [socket, evil] = ["m", "e"].map(|name| folder.path().join(name));
        let calls = Rc::new(Faulty {
            random: Random(Cell::new(!seed)),
            percent: Cell::new(0),
            only: Cell::new(None),
            made: Default::default(),
            failed: Cell::new(0),
        });
        let mut router = Router::with(&socket, 1, calls.clone());
        router.socket(1, evil.clone()).unwrap();
        Simulation {
            router,
            calls,
            random: Random(Cell::new(seed)),
            now: Instant::now(),
            socket,
            evil,
            peers: [Side::Gone, Side::Gone],
            listener: None,
            exists: [false; 2],
            wanted: [false; 2],
            number: 0,
            recoveries: 0,
            log: log.clone(),
            _folder: folder,
        }
    }

    fn say(&self, text: String) {
        self.log.borrow_mut().push(text);
    }

    /// One round of everybody; a peer stalls in some.
    fn round(&mut self, stall: usize) {
        self.now += ROUND;
        self.router.memif.turn_at(self.now);
        self.router.work();
        self.router.engine.borrow().settled();
        if let (Side::Gone, Some(listener)) = (&self.peers[1], &self.listener)
            && let Some(channel) = listener.accept()
            && channel.send(&hello(), None).is_ok()
        {
            self.peers[1] = Side::Talking(channel, Session::Server(Serving::default()));
        }
        for peer in &mut self.peers {
            if !self.random.percent(stall) {
                peer.turn();
            }
        }
    }

    fn connect(&mut self) {
        if matches!(self.peers[0], Side::Gone)
            && let Ok(channel) = Channel::connect(&Address(self.socket.clone()))
        {
            self.peers[0] = Side::Talking(channel, Session::Client(Joining::new(offer(0))));
        }
    }

    fn listen(&mut self) {
        if self.listener.is_none() {
            self.listener = Some(Listener::bind(&Address(self.evil.clone())).unwrap());
        }
    }

    fn create(&mut self, at: usize) {
        let memif = [master(0), slave(0, 1)][at].clone();
        if let Err(error) = self.router.create(memif) {
            assert!(self.calls.percent.get() > 0, "{error}");
            return;
        }
        self.router.patch(NAMES[at], NAMES[at]);
        (self.exists[at], self.wanted[at]) = (true, false);
    }

    fn operate(&mut self) {
        let percent = [0, 10, 30, 50, 100, 100][self.random.below(6)];
        let only = self.random.percent(70);
        let only = only.then(|| CALLS[self.random.below(CALLS.len())]);
        self.calls.percent.set(percent);
        self.calls.only.set(only);
        let (at, what) = (self.random.below(2), self.random.below(12));
        self.say(format!(
            "{what} for {}, {percent} % of {only:?} fail",
            NAMES[at]
        ));
        let before = [Call::Connect, Call::Accept].map(|call| self.calls.made(call));
        match what {
            0 | 1 => self.connect(),
            2 => self.peers[at] = Side::Gone,
            3 => self.listen(),
            4 => self.listener = None,
            5 | 6 if self.exists[at] => {
                self.wanted[at] = !self.random.percent(30);
                let state = [AdminState::Down, AdminState::Up][usize::from(self.wanted[at])];
                self.router.state(NAMES[at], state);
            }
            7 if self.exists[at] => {
                self.router.delete(NAMES[at]).unwrap();
                self.exists[at] = false;
            }
            5..=7 => self.create(at),
            8 | 9 => self.packets(at),
            10 => self.now += Duration::from_millis(self.random.below(12_000) as u64),
            _ => {}
        }
        let stall = [0, 0, 50, 100][self.random.below(4)];
        for _ in 0..self.random.below(ROUNDS) {
            if self.random.percent(30) {
                self.connect();
            }
            if self.random.percent(10) {
                self.peers[self.random.below(2)] = Side::Gone;
            }
            self.round(stall);
        }
        let after = [Call::Connect, Call::Accept].map(|call| self.calls.made(call));
        if percent == 100 {
            self.check_pauses(only, [after[0] - before[0], after[1] - before[1]]);
        }
        self.calls.percent.set(0);
        self.check();
    }

    /// The peer sends packets, which come back or are lost with the connection.
    fn packets(&mut self, at: usize) {
        if let Side::Up(peer) = &mut self.peers[at] {
            let all: Vec<Vec<u8>> = (0..20).map(|n| packet(n, 60 + n as usize * 90)).collect();
            peer.send(0, &all);
        }
        self.round(0);
        if let Side::Up(peer) = &mut self.peers[at] {
            peer.receive(0);
        }
    }

    /// While a call fails, it is not made again and again: a slave and a listener pause.
    fn check_pauses(&self, only: Option<Call>, [connects, accepts]: [u64; 2]) {
        assert!(connects <= ATTEMPTS, "{connects} attempts to connect");
        let fails = only.is_none_or(|only| only == Call::Accept);
        assert!(!fails || accepts <= 4, "{accepts} attempts to accept");
    }

    /// What must hold at any time.
    fn check(&mut self) {
        for _ in 0..2 {
            self.router.work();
        }
        assert_eq!(self.router.in_use(), 0, "buffers that did not come back");
        for at in (0..2).filter(|at| self.exists[*at]) {
            let (row, link) = (
                self.router.row(NAMES[at]),
                self.router.link_reason(NAMES[at]),
            );
            match row.connected {
                true => assert_eq!(link, None, "{} is connected", NAMES[at]),
                false => assert!(
                    !row.reason.is_empty() && link.is_some_and(|it| !it.is_empty()),
                    "{} does not say why it is down",
                    NAMES[at]
                ),
            }
        }
    }

    /// The calls are sound, the peers behave: all interfaces that are set up exchange packets.
    fn settle(&mut self) {
        self.say("settle".into());
        for at in (0..2).filter(|at| !self.exists[*at]).collect::<Vec<_>>() {
            self.create(at);
        }
        for at in 0..2 {
            self.wanted[at] = true;
            self.router.state(NAMES[at], AdminState::Up);
        }
        self.listen();
        let is_up = |it: &mut Self, at: usize| {
            matches!(it.peers[at], Side::Up(_)) && it.router.row(NAMES[at]).connected
        };
        let mut rounds = 0;
        while !(is_up(self, 0) && is_up(self, 1)) {
            let rows = NAMES.map(|name| self.router.row(name).reason);
            assert!(rounds < PATIENCE, "not up again: {rows:?}");
            rounds += 1;
            if rounds == 1 {
                self.recoveries += 1;
            }
            self.connect();
            self.round(0);
        }
        for at in 0..2 {
            self.number += 1;
            let wanted = packet(self.number, 60 + self.number as usize % 1400);
            let mut got = Vec::new();
            if let Side::Up(peer) = &mut self.peers[at] {
                // What came back before.
                peer.receive(0);
                assert_eq!(peer.send(0, std::slice::from_ref(&wanted)), 1);
            }
            for _ in 0..3 {
                self.round(0);
                if let Side::Up(peer) = &mut self.peers[at] {
                    got.extend(peer.receive(0));
                }
            }
            assert!(got == [wanted], "{}: {} packets", NAMES[at], got.len());
        }
        self.check();
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs a seed; the number of calls that failed, and how often an interface came up again.
fn run(seed: u64) -> Result<[u64; 2], String> {
    let log = Rc::default();
    let work = || {
        let mut simulation = Simulation::new(seed, &log);
        simulation.settle();
        for at in 1..=OPERATIONS {
            simulation.operate();
            if at.is_multiple_of(10) {
                simulation.settle();
            }
        }
        [simulation.calls.failed.get(), simulation.recoveries]
    };
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let why = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let why = why.unwrap_or("a panic without a text");
        let operations = log.borrow().join("\n");
        format!("seed {seed} fails (VOLLEY_SEED={seed} repeats it): {why}\nafter these operations:\n{operations}")
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn an_interface_is_up_or_says_why_not_whatever_fails() {
    let small = std::env::var_os("VOLLEY_SMALL").map(|_| SEEDS / 20);
    let many = number("VOLLEY_SEEDS").or(small).unwrap_or(SEEDS);
    let seeds = match number("VOLLEY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..many,
    };
    let (mut sums, mut files) = ([0; 2], None);
    for seed in seeds {
        match run(seed) {
            Ok(more) => sums = [sums[0] + more[0], sums[1] + more[1]],
            Err(failure) => panic!("{failure}"),
        }
        // The first seed opens what the process keeps, such as completions of event counters.
        let open = open_files();
        assert_eq!(*files.get_or_insert(open), open, "files after seed {seed}");
    }
    println!(
        "{} calls failed, interfaces came up again {} times",
        sums[0], sums[1]
    );
    assert!(sums[0] > 0 && sums[1] > 0);
}
