//! A router that only generates and receives: its ports are made by the commands of `volley ctl`, so every driver can be one.

use super::frame::Frame;
use super::instruments::{Instruments, Offer, SinkAt};
use super::outcome::Outcome;
use crate::error::LabError;
use crate::search::{Device, Refusal, Trial};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use volley_cli::Action;
use volley_daemon::EngineSettings;
use volley_daemon::stack::Stack;
use volley_graph::{Clock, Worker, WorkerThreads};
use volley_iface::{Admin, AdminState, IfIdx, Link};

/// Interface whose packets are those of the generator.
const GENERATOR: &str = "lab-generator";
/// The same for the second port.
const SECOND: &str = "lab-generator-2";
/// The last packets of a trial have arrived when none came for this time.
const QUIET: Duration = Duration::from_millis(20);
/// Longest time to wait for them.
const LATEST: Duration = Duration::from_secs(1);
/// Pause of the control thread.
const TURN: Duration = Duration::from_micros(500);
/// Part of the packets that the generator may miss in a trial of a search.
const MISSED: f64 = 0.001;
/// Attempts at a trial in which another program delayed the generator.
const TRIES: usize = 4;

/// The ports of a rig.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// Commands before the ports are made.
    pub before: Vec<String>,
    /// Command that makes the port that sends; none for a port in memory.
    pub send: Option<String>,
    /// Command that makes the port that receives; none for the same port.
    pub receive: Option<String>,
    /// Send on both ports, in turn, and receive on both.
    pub both: bool,
    /// Longest time to wait for the links.
    pub wait: Duration,
    /// Delay line of the port in memory.
    pub delay: Option<Duration>,
    /// Processor core of the worker.
    pub core: Option<usize>,
}

/// The router with its worker.
pub struct Rig {
    instruments: Instruments,
    stack: Stack,
    /// Stops the worker when it is dropped.
    running: WorkerThreads,
    /// Ports whose links are up during a trial.
    ports: Vec<IfIdx>,
}

fn failed(what: &str, why: impl std::fmt::Display) -> LabError {
    LabError::Port {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

/// Apply a command, and wait until the workers use it.
///
/// # Errors
/// If it is no command that changes the configuration, or it is refused.
pub fn change(stack: &Stack, line: &str, step: &mut dyn FnMut()) -> Result<(), LabError> {
    let command = volley_cli::parse_line(line).map_err(|e| failed(line, e))?;
    let Action::Request(request) = command.action else {
        return Err(failed(line, "this command changes nothing"));
    };
    stack.apply(&request).map_err(|e| failed(line, e))?;
    while !stack.settled() {
        step();
    }
    stack.processes.run_manual();
    Ok(())
}

/// Make an interface by a command, and set it up.
///
/// # Errors
/// If the command is refused or makes no interface.
pub fn create(stack: &Stack, line: &str, step: &mut dyn FnMut()) -> Result<IfIdx, LabError> {
    let names = || -> BTreeSet<String> {
        let interfaces = stack.interfaces.borrow();
        interfaces.iter().map(|i| i.name.clone()).collect()
    };
    let before = names();
    change(stack, line, step)?;
    let now = names();
    let Some(name) = now.difference(&before).next() else {
        return Err(failed(line, "this command makes no interface"));
    };
    let up = Admin::request(name.as_str(), AdminState::Up).map_err(|e| failed(line, e))?;
    stack.apply(&up).map_err(|e| failed(line, e))?;
    while !stack.settled() {
        step();
    }
    let index = stack.interfaces.borrow().index(name);
    index.map_err(|e| failed(line, e))
}

/// Settings of a router with one worker.
pub fn settings() -> EngineSettings {
    EngineSettings {
        max_vector_size: Some(256),
        buffers: 32_768,
        max_workers: Some(1),
        ..EngineSettings::default()
    }
}

impl Rig {
    /// Make the ports, and wait for their links. The generator sends the first of `kinds`, or another one that [`Rig::choose`] names. The frames of a
    /// kind take turns. Without kinds there is only the sink.
    ///
    /// # Errors
    /// If a command is refused, or a link does not come up in time.
    pub fn new(ports: &Ports, kinds: &[Vec<Frame>]) -> Result<Rig, LabError> {
        let mut rig = Rig::unlinked(ports, kinds)?;
        rig.wait_for_links(ports.wait)?;
        Ok(rig)
    }

    /// Make the ports: their links come up later ([`Rig::wait_for_links`]).
    ///
    /// # Errors
    /// If a command is refused.
    pub fn unlinked(ports: &Ports, kinds: &[Vec<Frame>]) -> Result<Rig, LabError> {
        let made = Stack::new(&settings(), Clock::system());
        let (stack, mut workers) = made.map_err(|e| failed("the router", e))?;
        let mut step = || workers.iter_mut().for_each(|worker| _ = worker.step());
        for line in &ports.before {
            change(&stack, line, &mut step)?;
        }
        let wiring = wire(&stack, ports, !kinds.is_empty(), &mut step)?;
        let of_frame = |frame: &Frame| {
            let sources = wiring.sources.iter();
            let of_sources = sources.map(|source| (*source, frame.clone()));
            of_sources.collect::<Vec<_>>()
        };
        let kinds = kinds
            .iter()
            .map(|kind| kind.iter().flat_map(of_frame).collect());
        let kinds = kinds.collect();
        let installed = Instruments::install(&stack, kinds, &wiring.sinks, ports.delay);
        let instruments = installed.map_err(|e| failed("the graph", e))?;
        while !stack.settled() {
            step();
        }
        let running = start(workers, ports.core)?;
        Ok(Rig {
            instruments,
            stack,
            running,
            ports: wiring.ports,
        })
    }

    /// Send the frames of this kind from the next trial on.
    pub fn choose(&self, kind: u32) {
        self.instruments.choose(kind);
    }

    /// Act as the control thread once.
    pub fn turn(&self) {
        self.stack.processes.run_manual();
        self.stack.settled();
        std::thread::sleep(TURN);
    }

    /// Act as the control thread for a time, or until `until` is true.
    pub fn pass(&self, time: Duration, until: impl Fn(&Instruments) -> bool) {
        let start = Instant::now();
        while start.elapsed() < time && !until(&self.instruments) {
            self.turn();
        }
    }

    /// The first port whose link is down, and why.
    fn down(&self) -> Option<(String, String)> {
        let interfaces = self.stack.interfaces.borrow();
        let all = self.ports.iter().filter_map(|port| interfaces.get(*port));
        let mut down = all.filter_map(|i| match &i.link {
            Link::Up => None,
            Link::Down(why) | Link::Waiting(why) => Some((i.name.clone(), why.clone())),
        });
        down.next()
    }

    /// Wait until all links are up.
    ///
    /// # Errors
    /// If a link does not come up in time.
    pub fn wait_for_links(&mut self, most: Duration) -> Result<(), LabError> {
        let start = Instant::now();
        while let Some((name, why)) = self.down() {
            if start.elapsed() > most {
                let seconds = most.as_secs_f64();
                let why = format!("the link is not up after {seconds} s: {why}");
                return Err(failed(&name, why));
            }
            self.turn();
        }
        Ok(())
    }

    /// Send for a time, and wait for the last packets. `stop` ends the trial early.
    ///
    /// # Errors
    /// If a link went down, or the worker died.
    pub fn run(
        &mut self,
        offer: &Offer,
        time: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Outcome, LabError> {
        self.instruments.begin(offer);
        self.pass(LATEST, Instruments::has_obeyed);
        let over = |i: &Instruments| {
            let all = offer.packets.is_some_and(|n| i.progress().0 >= n);
            all || stop()
        };
        self.pass(time, over);
        self.instruments.end();
        self.pass(LATEST, Instruments::has_obeyed);
        self.drain();
        if !self.running.is_alive() {
            return Err(failed("the worker", "the thread has ended"));
        }
        match self.down() {
            Some((name, why)) => Err(failed(&name, format!("the link went down: {why}"))),
            None => Ok(self.instruments.outcome(offer)),
        }
    }

    /// Receive only, for a time or until `stop`.
    pub fn receive(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> Outcome {
        self.pass(time, |_| stop());
        self.instruments.outcome(&Offer::most())
    }

    /// Wait until no packet arrives any more.
    fn drain(&self) {
        let start = Instant::now();
        let (mut seen, mut since) = (self.instruments.arrivals(), Instant::now());
        while since.elapsed() < QUIET && start.elapsed() < LATEST {
            let (sent, received) = self.instruments.progress();
            if sent == received {
                return;
            }
            self.turn();
            let now = self.instruments.arrivals();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }
}

/// The interfaces of a rig.
struct Wiring {
    /// Those that the generator's packets enter at.
    sources: Vec<IfIdx>,
    sinks: Vec<SinkAt>,
    ports: Vec<IfIdx>,
}

/// An interface whose packets leave by a port.
fn source(
    stack: &Stack,
    name: &str,
    port: Option<IfIdx>,
    step: &mut dyn FnMut(),
) -> Result<IfIdx, LabError> {
    let line = format!("create packet-generator interface {name}");
    let source = create(stack, &line, step)?;
    if let Some(port) = port {
        let port = stack.interfaces.borrow().name(port.0);
        change(stack, &format!("test l2patch rx {name} tx {port}"), step)?;
    }
    Ok(source)
}

fn wire(
    stack: &Stack,
    ports: &Ports,
    sends: bool,
    step: &mut dyn FnMut(),
) -> Result<Wiring, LabError> {
    let Some(line) = &ports.send else {
        let memory = source(stack, GENERATOR, None, step)?;
        return Ok(Wiring {
            sources: vec![memory],
            sinks: vec![SinkAt::Reception(memory)],
            ports: Vec::new(),
        });
    };
    let port = create(stack, line, step)?;
    let receiver = match &ports.receive {
        Some(line) => create(stack, line, step)?,
        None => port,
    };
    let mut wiring = Wiring {
        sources: Vec::new(),
        sinks: vec![SinkAt::Reception(receiver)],
        ports: vec![port, receiver],
    };
    if sends {
        wiring
            .sources
            .push(source(stack, GENERATOR, Some(port), step)?);
    }
    if sends && ports.both && receiver != port {
        let second = source(stack, SECOND, Some(receiver), step)?;
        wiring.sources.push(second);
        wiring.sinks.push(SinkAt::Reception(port));
    }
    Ok(wiring)
}

fn start(workers: Vec<Worker>, core: Option<usize>) -> Result<WorkerThreads, LabError> {
    let cores: Vec<usize> = core.into_iter().collect();
    WorkerThreads::start(workers, &cores).map_err(|e| failed("the worker", e))
}

impl Device for Rig {
    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, Refusal> {
        let offer = Offer::of(rate);
        let time = Duration::from_secs_f64(seconds);
        let mut late = String::new();
        for _ in 0..TRIES {
            let outcome = self.run(&offer, time, &|| false);
            let outcome = outcome.map_err(|e| Refusal::Failed(e.to_string()))?;
            let wanted = outcome.sent + outcome.missed;
            if outcome.missed as f64 <= MISSED * wanted as f64 {
                return Ok(Trial {
                    sent: outcome.sent,
                    received: outcome.returned.map_or(0, |r| r.packets),
                });
            }
            late = format!(
                "the generator sent {} of {wanted} packets in time: choose a lower largest rate, or end other programs",
                outcome.sent
            );
        }
        Err(Refusal::Late(late))
    }
}
