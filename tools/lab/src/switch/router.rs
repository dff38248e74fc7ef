//! `volley-lab router`: a router with the ports and the configuration of its arguments, until its standard input is closed.

use super::cost::{self, Cost};
use super::process::{Process, in_namespace};
use super::topology::{Side, Topology};
use crate::error::LabError;
use crate::traffic::{change, create, settings};
use clap::Args;
use std::io::BufRead;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;
use volley_daemon::EngineSettings;
use volley_daemon::stack::Stack;
use volley_graph::{Clock, WorkerThreads};

/// Run a router for a measurement.
#[derive(Clone, Debug, Args)]
pub struct RouterArgs {
    /// Command before the ports are made.
    #[arg(long)]
    pub before: Vec<String>,
    /// Command that makes a port.
    #[arg(long)]
    pub port: Vec<String>,
    /// Command after the ports were made.
    #[arg(long)]
    pub then: Vec<String>,
    /// Processor of a worker; once for each worker.
    #[arg(long)]
    pub core: Vec<usize>,
    /// Processor of the control thread.
    #[arg(long)]
    pub control_core: Option<usize>,
}

/// Print this line when the configuration is complete.
const READY: &str = "ready";

/// `volley-lab router`.
///
/// # Errors
/// If a command is refused, or the worker dies.
pub fn main(args: &RouterArgs) -> Result<(), LabError> {
    let failed = |what: &str, why: String| LabError::Port {
        what: what.to_owned(),
        why,
    };
    let workers = args.core.len().max(1) as u32;
    let settings = EngineSettings {
        workers,
        max_workers: Some(workers),
        ..settings()
    };
    let made = Stack::new(&settings, Clock::system());
    let (stack, mut workers) = made.map_err(|e| failed("the router", e.to_string()))?;
    let mut step = || workers.iter_mut().for_each(|worker| _ = worker.step());
    for line in &args.before {
        change(&stack, line, &mut step)?;
    }
    for line in &args.port {
        create(&stack, line, &mut step)?;
    }
    for line in &args.then {
        change(&stack, line, &mut step)?;
    }
    let running = WorkerThreads::start(workers, &args.core);
    let running = running.map_err(|e| failed("the worker", e.to_string()))?;
    if args.control_core.is_some() {
        volley_bench::pin(args.control_core);
    }
    println!("{READY}");
    let lines = input();
    loop {
        match lines.try_recv() {
            Ok(line) if line == cost::QUESTION => {
                let cost = Cost::of_engine(&stack.engine.borrow());
                let cost = serde_json::to_string(&cost).unwrap_or_default();
                println!("{} {cost}", cost::QUESTION);
            }
            Ok(_) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        stack.processes.run_manual();
        stack.settled();
        if !running.is_alive() {
            return Err(failed("the worker", "the thread has ended".to_owned()));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// The lines of the standard input; the channel is closed with the input, or on an error.
fn input() -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            // The main thread may have ended.
            let _ = send.send(line);
        }
    });
    lines
}

/// Patches of a pair of ports, in both directions.
fn both((a, b): &(String, String)) -> [String; 2] {
    [(a, b), (b, a)].map(|(rx, tx)| format!("test l2patch rx {rx} tx {tx}"))
}

/// Arguments of a router between sides.
fn arguments(command: &mut Command, sides: &[Side], then: &[String]) {
    command.arg("router");
    for line in sides.iter().filter_map(|side| side.before.as_ref()) {
        command.args(["--before", line]);
    }
    for side in sides {
        command.args(["--port", &side.port]);
    }
    for line in then {
        command.args(["--then", line]);
    }
}

/// Start a router with these commands, and its threads on the processors of the topology.
pub fn start_router(
    what: &str,
    topology: &Topology,
    program: &Path,
    sides: &[Side],
    then: &[String],
) -> Result<Process, String> {
    let mut command = Command::new(program);
    let mode = topology.spec.rx_mode.iter();
    let modes = mode.flat_map(|mode| sides.iter().map(move |side| (mode, side)));
    let modes = modes.map(|(mode, side)| format!("set interface rx-mode {} {mode}", side.name));
    let then: Vec<String> = modes.chain(then.iter().cloned()).collect();
    arguments(&mut command, sides, &then);
    if let Some(places) = &topology.places {
        for core in &places.workers {
            command.args(["--core", &core.to_string()]);
        }
        command.args(["--control-core", &places.control.to_string()]);
    }
    Process::start(what, command, READY)
}

/// Start the switch under test.
pub fn start_switch(topology: &Topology, program: &Path) -> Result<Process, String> {
    let sides: Vec<Side> = topology.links.iter().map(|link| link.switch()).collect();
    let name = |n: &usize| sides[*n].name.clone();
    let patches: Vec<_> = topology
        .patches
        .iter()
        .map(|(a, b)| (name(a), name(b)))
        .collect();
    let then: Vec<String> = patches.iter().flat_map(both).collect();
    start_router("the switch", topology, program, &sides, &then)
}

/// Start a VNF, in its own network namespace where the system allows it.
pub fn start_vnf(program: &Path, sides: &[Side; 2]) -> Result<Process, String> {
    let patches = both(&(sides[0].name.clone(), sides[1].name.clone()));
    let mut command = in_namespace(program);
    arguments(&mut command, sides, &patches);
    Process::start("a VNF", command, READY)
}
