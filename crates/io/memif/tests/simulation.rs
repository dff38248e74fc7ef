//! A simulation of memif peers over system calls that fail or have nothing yet, from a seed: no real time, no other process.
//!
//! Volley has a master and a slave, each with a peer that comes, stalls, and dies. After each operation each interface is up,
//! or down with a reason. When the calls are sound again, each interface that is set up has its peer, and gets every packet
//! back that the peer sends. Every buffer and every file is free again at the end.
//! `crates/io/shm/tests/support/simulation.rs` has the calls and the seeds.

#[path = "../../shm/tests/support/simulation.rs"]
mod simulation;
mod support;

use simulation::{Simulation, Stage, simulate};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::process::resources;
use support::{Peer, Router, master, offer, packet, slave};
use volley_iface::AdminState;
use volley_memif::session::{Joined, Joining, Served, Serving, hello};
use volley_memif::socket::{Address, Channel, Listener};
use volley_memif::wire::{Message, Text};
use volley_shm::Account;
use volley_shm::calls::Call;

/// Virtual time of a round.
const ROUND: Duration = Duration::from_millis(25);
/// Rounds until everything is up: more than a handshake and a slave's pause may last.
const PATIENCE: usize = 600;
/// Most rounds of an operation: a second.
const ROUNDS: usize = 40;
/// Most attempts of a slave to connect within them, at intervals of 20, 40, 80 ... ms, with some that begin again.
const ATTEMPTS: u64 = 14;
const NAMES: [&str; 2] = ["memif0/0", "memif1/0"];

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
struct Routers {
    router: Router,
    stage: Stage,
    socket: PathBuf,
    evil: PathBuf,
    /// The peer of the master, then that of the slave.
    peers: [Side; 2],
    listener: Option<Listener>,
    /// Whether each interface exists, and is set up.
    exists: [bool; 2],
    wanted: [bool; 2],
    number: u32,
}

impl Routers {
    /// One round of Volley and its peers; a peer stalls in some.
    fn round(&mut self, stall: usize) {
        self.stage.calls.pass(ROUND);
        self.router.memif.turn();
        self.router.work();
        self.router.engine.borrow().settled();
        if let (Side::Gone, Some(listener)) = (&self.peers[1], &self.listener)
            && let Some(channel) = listener.accept()
            && channel.send(&hello(), None).is_ok()
        {
            self.peers[1] = Side::Talking(channel, Session::Server(Serving::default()));
        }
        for peer in &mut self.peers {
            if !self.stage.random.percent(stall) {
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
            assert!(self.stage.calls.percent() > 0, "{error}");
            return;
        }
        self.router.patch(NAMES[at], NAMES[at]);
        (self.exists[at], self.wanted[at]) = (true, false);
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
    fn check_pauses(&self, before: [u64; 2]) {
        let after = self.attempts();
        let [connects, accepts] = [after[0] - before[0], after[1] - before[1]];
        let calls = &self.stage.calls;
        assert!(
            calls.percent() < 100 || connects <= ATTEMPTS,
            "{connects} attempts to connect"
        );
        assert!(
            !calls.never(Call::Accept) || accepts <= 4,
            "{accepts} attempts to accept"
        );
    }

    /// How often Volley has tried to connect and to accept.
    fn attempts(&self) -> [u64; 2] {
        [Call::Connect, Call::Accept].map(|call| self.stage.calls.made(call))
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
}

impl Simulation for Routers {
    fn new(stage: Stage) -> Routers {
        let [socket, evil] = ["m", "e"].map(|name| stage.folder.path().join(name));
        let mut router = Router::with(&socket, 1, stage.calls.clone());
        router.socket(1, evil.clone()).unwrap();
        Routers {
            router,
            stage,
            socket,
            evil,
            peers: [Side::Gone, Side::Gone],
            listener: None,
            exists: [false; 2],
            wanted: [false; 2],
            number: 0,
        }
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }

    fn operate(&mut self) {
        let random = &self.stage.random;
        let (at, what) = (random.below(2), random.below(12));
        self.stage.say(format!("{what} for {}", NAMES[at]));
        let before = self.attempts();
        match what {
            0 | 1 => self.connect(),
            2 => self.peers[at] = Side::Gone,
            3 => self.listen(),
            4 => self.listener = None,
            5 | 6 if self.exists[at] => {
                self.wanted[at] = !self.stage.random.percent(30);
                let state = [AdminState::Down, AdminState::Up][usize::from(self.wanted[at])];
                self.router.state(NAMES[at], state);
            }
            7 if self.exists[at] => {
                self.router.delete(NAMES[at]).unwrap();
                self.exists[at] = false;
            }
            5..=7 => self.create(at),
            8 | 9 => self.packets(at),
            10 => {
                let pause = Duration::from_millis(self.stage.random.below(12_000) as u64);
                self.stage.calls.pass(pause);
            }
            _ => {}
        }
        let stall = self.stage.random.pick(&[0, 0, 50, 100]);
        for _ in 0..self.stage.random.below(ROUNDS) {
            if self.stage.random.percent(30) {
                self.connect();
            }
            if self.stage.random.percent(10) {
                self.peers[self.stage.random.below(2)] = Side::Gone;
            }
            self.round(stall);
        }
        self.check_pauses(before);
        self.stage.calls.heal();
        self.check();
    }

    fn settle(&mut self) -> bool {
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
        rounds > 0
    }
}

#[test]
fn a_memif_interface_is_up_or_says_why_not_whatever_fails() {
    simulate::<Routers>(resources);
}
