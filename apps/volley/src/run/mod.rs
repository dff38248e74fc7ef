//! `volley run`: the daemon.
//!
//! - True on entry: a configuration file.
//! - True on exit: everything in the file is in force and the socket answers, or one error and no socket. SIGINT and
//!   SIGTERM end it cleanly: workers stopped between two rounds, captures written out, the socket removed.
//! - One control thread runs everything but the worker: requests, queries, process nodes. Nothing on it waits for long.

mod backend;
mod error;
mod processes;

pub use error::RunError;

use crate::stack::Stack;
use backend::Daemon;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use volley_cli::server::Server;
use volley_config::Config;
use volley_graph::{Clock, Running};
use volley_model::{IsaChoice, ModelError, Request};

/// `volley run ...`
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file.
    #[arg(short, long = "config", value_name = "FILE")]
    config: PathBuf,
    /// Unix socket of `volley ctl`, instead of the file's.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Packets per vector, 4 to 1024, instead of the file's.
    #[arg(long)]
    vector_size: Option<u32>,
    /// auto, scalar, x86-64-v3 or x86-64-v4, instead of the file's.
    #[arg(long)]
    isa: Option<IsaChoice>,
}

impl Args {
    fn load(&self) -> Result<Config, RunError> {
        let mut config = volley_config::load(&self.config)?;
        let engine = &mut config.engine;
        engine.socket = self.socket.clone().unwrap_or_else(|| engine.socket.clone());
        engine.vector_size = self.vector_size.unwrap_or(engine.vector_size);
        engine.isa = self.isa.unwrap_or(engine.isa);
        Ok(config)
    }
}

/// Run until a signal.
pub fn main(args: Args) -> Result<(), RunError> {
    let config = args.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::Runtime)?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(&args, config))
}

async fn serve(args: &Args, config: Config) -> Result<(), RunError> {
    // From here on a signal is noticed, whatever comes first.
    let mut signals = Signals::new().map_err(RunError::Runtime)?;
    let Config { engine, requests } = config;
    let (stack, workers) = Stack::new(&engine, Clock::system())?;
    let cores: Vec<usize> = engine
        .worker_core
        .iter()
        .map(|core| *core as usize)
        .collect();
    let running =
        Rc::new(Running::start(workers, &cores).map_err(crate::stack::StackError::Graph)?);
    let daemon = Rc::new(Daemon::new(stack));
    let lost = processes::start(&daemon, &running);
    tokio::select! {
        done = configure(&daemon, args, requests) => done?,
        () = signals.next() => return Ok(()),
    }
    let server = Server::bind(&engine.socket)?;
    let _ = writeln!(
        std::io::stderr(),
        "volley: ready, control socket {}",
        engine.socket.display()
    );
    let mut ended = Ok(());
    let stop = async {
        tokio::select! {
            () = signals.next() => {}
            _ = lost => ended = Err(RunError::WorkerDied),
        }
    };
    server.run(daemon.clone(), stop).await;
    drop(running);
    finish(&daemon);
    ended
}

/// Carry out the file's requests in order; the first that is refused ends it.
async fn configure(daemon: &Daemon, args: &Args, requests: Vec<Request>) -> Result<(), RunError> {
    for request in requests {
        if let Err(error) = daemon.change(&request).await {
            let file = args.config.clone();
            return Err(RunError::Refused {
                file,
                request: Box::new(request),
                error: Box::new(error),
            });
        }
    }
    Ok(())
}

/// After the workers have stopped: write what they left, and close the capture.
fn finish(daemon: &Daemon) {
    while daemon.stack.drain() > 0 {}
    match daemon.stack.apply(&Request::PcapTraceOff) {
        Ok(_) | Err(ModelError::NotFound { .. }) => {}
        Err(error) => _ = writeln!(std::io::stderr(), "volley: {error}"),
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

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
