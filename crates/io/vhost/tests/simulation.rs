//! A simulation of vhost-user and virtio-user peers over system calls that fail or have nothing yet, from a seed: no real time,
//! no other process.
//!
//! Volley has two back ends and two front ends, which are each other's peers; a stranger connects now and then, says nothing
//! or nonsense, and goes. After each operation each interface is up, or down with a reason. When the calls are sound again, all
//! interfaces come up, and each gets every frame that its peer sends. Every buffer, file and map is free again at the end.
//! `crates/io/shm/tests/support/simulation.rs` has the calls and the seeds.

#[path = "../../shm/tests/support/simulation.rs"]
mod simulation;
mod support;

use simulation::{Simulation, Stage, simulate};
use std::path::PathBuf;
use std::time::Duration;
use support::process::resources;
use support::{Bench, back_end, frame, front_end, spec};
use volley_graph::Level;
use volley_iface::AdminState;
use volley_vhost::model::{SocketRole, VirtioUser};
use volley_vhost::protocol::{Link, connect};

/// Virtual time of a round.
const ROUND: Duration = Duration::from_millis(25);
/// Most rounds of an operation.
const ROUNDS: usize = 30;
/// Rounds until everything is up.
const PATIENCE: usize = 400;
/// The interfaces: each back end is followed by its front end. The first back end listens, the second one connects.
const NAMES: [&str; 4] = ["dev0", "drv0", "dev1", "drv1"];

/// What one seed does.
struct Routers {
    bench: Bench,
    stage: Stage,
    options: VirtioUser,
    sockets: [PathBuf; 2],
    exists: [bool; NAMES.len()],
    stranger: Option<Link>,
    number: u32,
}

impl Routers {
    fn round(&mut self) {
        self.stage.calls.pass(ROUND);
        self.bench.step();
    }

    fn create(&mut self, at: usize) {
        let listens = matches!(at, 0 | 3);
        let kind = VirtioUser {
            socket: self.sockets[at / 2].clone(),
            role: match listens {
                true => SocketRole::Server,
                false => SocketRole::Client,
            },
            ..self.options.clone()
        };
        let kind = match at % 2 {
            0 => back_end(kind),
            _ => front_end(kind),
        };
        self.bench.create(NAMES[at], kind).unwrap();
        self.exists[at] = true;
    }

    /// What must hold at any time.
    fn check(&mut self) {
        for _ in 0..4 {
            self.bench.step_worker();
        }
        self.bench.got();
        let held = self.bench.pool.report().in_use();
        assert_eq!(held, 0, "buffers that did not come back");
        for at in (0..NAMES.len()).filter(|at| self.exists[*at]) {
            let (row, reason) = (self.bench.show(NAMES[at]), self.bench.reason(NAMES[at]));
            let is_ready = row.state.ends_with("queue pairs");
            assert_eq!(
                is_ready,
                reason.is_empty(),
                "{}: {row:?} {reason}",
                NAMES[at]
            );
        }
    }
}

impl Simulation for Routers {
    fn new(stage: Stage) -> Routers {
        let option = || stage.random.percent(50);
        let options = VirtioUser {
            packed: option(),
            event_idx: option(),
            gso: option(),
            ring: 64,
            ..spec(stage.folder.path(), SocketRole::Client)
        };
        Routers {
            bench: Bench::with_calls(Level::detect(), 64, stage.calls.clone()),
            options,
            sockets: ["a", "b"].map(|name| stage.folder.path().join(name)),
            exists: [false; NAMES.len()],
            stranger: None,
            number: 0,
            stage,
        }
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }

    fn operate(&mut self) {
        let random = &self.stage.random;
        let (at, what) = (random.below(NAMES.len()), random.below(10));
        self.stage.say(format!("{what} for {}", NAMES[at]));
        match what {
            0 | 1 if self.exists[at] => {
                self.bench.delete(NAMES[at]);
                self.exists[at] = false;
            }
            0 | 1 => self.create(at),
            2 | 3 if self.exists[at] => {
                let is_up = self.stage.random.percent(70);
                let state = [AdminState::Down, AdminState::Up][usize::from(is_up)];
                self.bench.up(NAMES[at], state);
            }
            4 | 5 if self.exists[at] => {
                let frames = (0..20).map(|n| frame(60 + n as usize * 60, n));
                self.bench.send(NAMES[at], frames);
            }
            6 => self.stranger = connect(&self.sockets[at / 2]).ok(),
            7 => self.stranger = None,
            8 => {
                let pause = Duration::from_millis(self.stage.random.below(5000) as u64);
                self.stage.calls.pass(pause);
            }
            _ => {}
        }
        for _ in 0..self.stage.random.below(ROUNDS) {
            if let Some(stranger) = &self.stranger
                && self.stage.random.percent(20)
            {
                let nonsense: Vec<u8> = (0..24).map(|_| self.stage.random.below(8) as u8).collect();
                let _ = stranger.send(&nonsense, &[]);
            }
            self.round();
        }
        self.stage.calls.heal();
        self.check();
    }

    fn settle(&mut self) -> bool {
        self.stranger = None;
        for at in (0..NAMES.len())
            .filter(|at| !self.exists[*at])
            .collect::<Vec<_>>()
        {
            self.create(at);
        }
        for name in NAMES {
            self.bench.up(name, AdminState::Up);
        }
        let mut rounds = 0;
        while !NAMES.iter().all(|name| self.bench.is_up(name)) {
            let reasons = NAMES.map(|name| self.bench.reason(name));
            assert!(rounds < PATIENCE, "not up again: {reasons:?}");
            rounds += 1;
            self.round();
        }
        for _ in 0..4 {
            self.round();
        }
        self.bench.got();
        for at in 0..NAMES.len() {
            self.number += 1;
            let wanted = frame(60 + self.number as usize % 1400, self.number);
            let peer = self.bench.index(NAMES[at ^ 1]);
            self.bench.send(NAMES[at], [wanted.clone()]);
            for _ in 0..6 {
                self.round();
            }
            let got = self.bench.got();
            assert!(
                got == [(peer, wanted)],
                "{}: {} frames",
                NAMES[at],
                got.len()
            );
        }
        self.check();
        rounds > 0
    }
}

#[test]
fn a_vhost_interface_is_up_or_says_why_not_whatever_fails() {
    simulate::<Routers>(resources);
}
