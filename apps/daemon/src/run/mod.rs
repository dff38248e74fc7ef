//! `volley run`: the daemon.
//!
//! - True on entry: a configuration file, or a state directory with a commit.
//! - True on exit: everything in the commit, else in the file, is applied and the socket answers, or there is one error and no
//!   socket. SIGINT and SIGTERM end the daemon cleanly: workers stopped between two rounds, captures written out, the socket
//!   removed.
//! - One control thread runs everything but the workers: requests, queries, process nodes. Nothing on it waits for long.

mod audit;
mod backend;
pub mod commits;
mod control;
mod error;
mod folders;
mod follow;
mod identity;
mod large;
pub mod logging;
mod mirror;
mod notify;
pub mod privileges;
mod processes;
mod restore;
mod seccomp;
mod session;

pub use control::{Control, ControlError};
pub use error::RunError;
pub use seccomp::OfWorkers;

use crate::limits::Admission;
use crate::settings::{Capabilities, EngineSettings, IsaChoice, Settings};
use crate::stack::{Stack, StackError};
use backend::Daemon;
use commits::Commits;
use notify::Manager;
use restore::Found;
use rustix::fs::Mode;
use session::Session;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};
use volley_cli::server::{Limits, Server, ServerError};
use volley_graph::{Clock, Worker, WorkerThreads};
use volley_http::{Handshakes, HttpServer};
use volley_log::{LogLevels, Select};
use volley_model::{ModelError, Request};
use volley_pcap::PcapTraceOff;

/// `volley run ...`
#[derive(clap::Args, Default)]
pub struct Args {
    /// The configuration file, used as long as no commit exists.
    #[arg(short, long = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A graph in Click's language to run, in addition to the configuration; no configuration is needed then.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,
    /// Where commits are kept ($STATE_DIRECTORY; without it nothing can be committed). The last commit takes precedence over
    /// FILE.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Apply an earlier commit when the last one cannot be applied.
    #[arg(long)]
    pub fallback: bool,
    /// Unix socket of `volley ctl`, instead of the file's.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// Packets per vector, 1 to 1024, instead of the file's.
    #[arg(long)]
    pub vector_size: Option<u32>,
    /// Workers to begin with, 1 to 64, instead of the file's.
    #[arg(long)]
    pub workers: Option<u32>,
    /// auto, scalar, x86-64-v3, x86-64-v4 or neon, instead of the file's.
    #[arg(long)]
    pub isa: Option<IsaChoice>,
    /// What is logged, instead of the levels of the file's table `log`: a level, and modules with another one, such as
    /// info,memif=debug.
    #[arg(long, value_name = "LEVELS")]
    pub log: Option<LogLevels>,
    /// Where the log goes, instead of the file's: auto, journald, stderr, none or file:PATH.
    #[arg(long, value_name = "DESTINATION")]
    pub log_to: Option<logging::LogTo>,
}

impl Args {
    /// Settings of the engine on the command line take precedence over all others.
    fn settle(&self, settings: &mut Settings) {
        let engine = &mut settings.engine;
        engine.socket = self.socket.clone().or_else(|| engine.socket.take());
        engine.vector_size = self.vector_size.unwrap_or(engine.vector_size);
        engine.workers = self.workers.unwrap_or(engine.workers);
        engine.isa = self.isa.unwrap_or(engine.isa);
        if let Some(levels) = &self.log {
            settings.log.set_levels(levels);
        }
        if let Some(to) = &self.log_to {
            to.settle(&mut settings.log);
        }
    }
}

/// The longest time that the end of the daemon waits for the last messages to hosts.
const FAREWELL: Duration = Duration::from_millis(100);

/// Runs until a signal.
pub fn main(args: Args) -> Result<(), RunError> {
    main_with(args, None)
}

/// The same, for a program that adds classes: the daemon sends its handle when it is ready.
pub fn main_with(args: Args, to: Option<Sender<Control>>) -> Result<(), RunError> {
    // Commits and captures contain secrets: only this process's user may read the files that it creates.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // The classes read files and commits.
    crate::objects::register().map_err(StackError::from)?;
    let mut found = Found::look(&args)?;
    // Before the first thread, so that every thread inherits the limits. The filter refuses the calls of Landlock.
    let unlimited = limit_folders(&args, &found)?;
    found.notes.extend(unlimited);
    let (of_workers, unfiltered) = seccomp::start(found.settings.process.seccomp)?;
    found.notes.extend(unfiltered);
    logging::start(&found.settings.log)?;
    let to_stderr = volley_log::Log::of_process()
        .show(Select::default())
        .destination
        == "stderr";
    begun(&args, &found);
    let done = run(&args, found, of_workers, to);
    match &done {
        Ok(()) => info!(target: "daemon", "ended"),
        // The program reports its error on standard error itself.
        Err(_) if to_stderr => {}
        Err(error) => error!(target: "daemon", "ended: {error}"),
    }
    logging::end();
    done
}

/// Limits the files of this thread, and of those that it starts, to the folders of the daemon; returns sentences for the log.
fn limit_folders(args: &Args, found: &Found) -> Result<Vec<String>, RunError> {
    let place = found.journal.as_ref().map(|journal| journal.place());
    let commits = found.commits.iter().flat_map(|commit| &commit.requests);
    let file = found.file.iter().flatten();
    let start = folders::Start {
        settings: &found.settings,
        config: args.config.as_deref(),
        state: place.as_deref(),
        requests: file.chain(commits).chain(&found.graph).collect(),
    };
    Ok(folders::start(&start)?)
}

/// Logs the start.
fn begun(args: &Args, found: &Found) {
    let path = |path: &Option<PathBuf>| {
        path.as_ref()
            .map_or_else(String::new, |p| p.display().to_string())
    };
    let (config, state_dir) = (path(&args.config), path(&args.state_dir));
    let commit = found.commits.first().map(|commit| commit.number);
    let (pid, levels) = (std::process::id(), found.settings.log.levels());
    let source = match (commit, config.is_empty()) {
        (Some(number), _) => format!("commit {number}"),
        (None, false) => config,
        (None, true) if args.graph.is_some() => path(&args.graph),
        (None, true) => "nothing: no file and no commit".to_owned(),
    };
    info!(target: "daemon", pid, state_dir, %levels, "volley {} is starting with {source}", env!("CARGO_PKG_VERSION"));
    for note in &found.notes {
        warn!(target: "config", "{note}");
    }
    if let Some((lapsed, to)) = found.lapsed {
        commits::log_lapsed(lapsed, to);
    }
}

fn run(
    args: &Args,
    found: Found,
    of_workers: OfWorkers,
    to: Option<Sender<Control>>,
) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(privileges::HELPERS)
        .build()
        .map_err(RunError::Runtime)?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(args, found, of_workers, to))
}

async fn serve(
    args: &Args,
    found: Found,
    of_workers: OfWorkers,
    to: Option<Sender<Control>>,
) -> Result<(), RunError> {
    // Before anything else, so that no signal is missed.
    let mut signals = Signals::new().map_err(RunError::Runtime)?;
    let Found {
        settings,
        read,
        carried,
        file,
        commits,
        graph,
        journal,
        mac_seed,
        ..
    } = found;
    logging::follow_hangups().map_err(RunError::Runtime)?;
    let confirm_by = journal.as_ref().and_then(|j| j.head().confirm_by);
    let (stack, workers) = Stack::new(&settings.engine, Clock::system())?;
    let (seed, warning) = mac_seed.unzip();
    if let Some(seed) = seed {
        stack.interfaces.borrow_mut().set_mac_seed(seed);
    }
    let running = start_workers(workers, &settings.engine, &of_workers)?;
    stack.worker_set.borrow_mut().run_by(&running, of_workers);
    let admission = Admission::new(settings.limits.clone());
    let daemon = Daemon::new(stack, Commits::new(journal), admission);
    daemon.commits.set_read(read);
    daemon.commits.set_startup(carried);
    daemon.warn_of_neighbors();
    let lost = processes::start(&daemon, &running);
    tokio::select! {
        done = daemon.begin(args, file, graph, (commits, confirm_by)) => done?,
        _ = signals.next() => return Ok(()),
    }
    if let Some(warning) = warning.flatten() {
        warn!(target: "daemon", "{warning}");
    }
    let (server, http) = bind(&daemon, &settings)?;
    if settings.process.capabilities == Capabilities::Drop {
        privileges::give_up().await?;
    }
    let manager = Rc::new(Manager::of_environment());
    processes::watch_for(&manager, &daemon, &running);
    manager.tell("READY=1");
    log_ready(&settings.engine, &http);
    hand_out(&daemon, to);
    let session = Session::of(&daemon);
    let mut ended = Ok(());
    let stop = async {
        tokio::select! {
            name = signals.next() => info!(target: "daemon", "ending: {name}"),
            () = processes::graph_ended(Rc::downgrade(&daemon)) => info!(target: "daemon", "ending: the graph has ended"),
            _ = lost => ended = Err(RunError::WorkerDied),
        }
    };
    tokio::select! {
        () = server.run(session.clone(), stop) => {}
        () = http.run(session) => {}
    }
    manager.tell("STOPPING=1");
    farewell(&daemon).await;
    daemon.mirror.end().await;
    drop(running);
    finish(&daemon);
    ended
}

/// Logs the addresses of the daemon's interfaces.
fn log_ready(engine: &EngineSettings, http: &HttpServer) {
    let tcp = http
        .address()
        .map_or(String::new(), |a| format!(" and {a} (TLS)"));
    let metrics = http
        .metrics_address()
        .map_or(String::new(), |a| format!(", metrics {a}"));
    let (control, unix) = (engine.socket(), http.path().display());
    info!(target: "daemon", "ready, control socket {}, HTTP {unix}{tcp}{metrics}", control.display());
}

/// Starts the initial workers, on the cores of the settings.
fn start_workers(
    workers: Vec<Worker>,
    engine: &EngineSettings,
    filter: &OfWorkers,
) -> Result<Rc<RefCell<WorkerThreads>>, RunError> {
    let cores: Vec<usize> = engine.cores().iter().map(|core| *core as usize).collect();
    let running = privileges::start_workers(workers, cores, filter.clone())?;
    Ok(Rc::new(RefCell::new(running)))
}

/// Sends a handle on the daemon to the program that runs it.
fn hand_out(daemon: &Rc<Daemon>, to: Option<Sender<Control>>) {
    let Some(to) = to else { return };
    let (handle, calls) = control::channel();
    tokio::task::spawn_local(calls.serve(Rc::downgrade(daemon)));
    // A program that has dropped the receiver needs no handle.
    let _ = to.send(handle);
}

/// Notifies hosts that this router ends, while workers can still send the messages.
async fn farewell(daemon: &Daemon) {
    let neighbors = &daemon.stack.neighbors;
    let until = tokio::time::Instant::now() + FAREWELL;
    if neighbors.farewell() {
        while neighbors.is_sending() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Opens all sockets with their permissions.
fn bind(daemon: &Daemon, settings: &Settings) -> Result<(Server, HttpServer), RunError> {
    let control = settings.engine.socket();
    let mut limits = Limits::default();
    if let Some(sessions) = settings.limits.sessions {
        limits.clients = sessions as usize;
    }
    let server = Server::bind(&control, limits)?;
    let http = bind_http(settings)?;
    for socket in [&control, http.path()] {
        open_socket(daemon, socket)?;
    }
    Ok((server, http))
}

/// Opens a socket with its permissions.
fn open_socket(daemon: &Daemon, socket: &Path) -> Result<(), RunError> {
    let failed = |source| ServerError::Io {
        path: socket.to_owned(),
        step: "cannot set group and mode",
        source,
    };
    daemon.stack.rights.serve(socket).map_err(failed)?;
    Ok(())
}

/// Opens the sockets of HTTP, and starts the thread of TLS, which reads data of any client and has no capabilities.
fn bind_http(settings: &Settings) -> Result<HttpServer, RunError> {
    let mut http = HttpServer::bind(&settings.api, &settings.http_socket())?;
    if let Some(sessions) = settings.limits.sessions {
        http.set_limits(volley_http::Limits {
            clients: sessions as usize,
            ..Default::default()
        });
    }
    if http.has_tls() {
        let handshakes = privileges::without(Handshakes::start)?;
        http.set_handshakes(handshakes.map_err(RunError::Runtime)?);
    }
    Ok(http)
}

/// After the workers have stopped: writes their last packets, and closes the captures.
fn finish(daemon: &Daemon) {
    while daemon.stack.drain() > 0 {}
    let off = Request::of(&PcapTraceOff);
    match off.and_then(|off| daemon.stack.apply(&off)) {
        Ok(_) | Err(ModelError::NotFound { .. }) => {}
        Err(error) => error!(target: "capture", "the capture ended badly: {error}"),
    }
}

/// The signals that end the daemon.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests;
