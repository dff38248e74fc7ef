//! `volley config check`: finds what a start with the file would refuse, without a daemon.
//!
//! - A separate stack carries out the file's requests, with workers that are stepped manually. Nothing outside this process
//!   changes: interfaces of the kernel, of files and of other programs are packet generators here.
//! - Readable files that the table `api` names are checked. With [`Scope::Here`] files, devices, cores and addresses must also
//!   be usable on this machine. A missing kernel device is a warning, because an interface waits for its device.

use crate::run::commits::parted;
use crate::settings::{EngineSettings, IsaChoice, Settings};
use crate::stack::Stack;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use volley_config::Config;
use volley_control::{Core, Executor, Probe, TransactionError};
use volley_dpdk::model::DpdkInterface;
use volley_fib::RouteFile;
use volley_graph::{Clock, Worker};
use volley_http::ApiSettings;
use volley_model::{Applied, InterfaceSpec, ModelError, Request};
use volley_object::{Instance, Object};
use volley_pcap::PcapTraceOn;
use volley_pcap::model::PcapInterface;
use volley_pg::model::PgInterface;
use volley_pg::{PgCapture, StreamSpec};
use volley_vlan::model::SubInterface;

/// The scope of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The file alone, for any machine.
    File,
    /// The file, on this machine.
    Here,
}

/// The results of a check.
#[derive(Debug, Default)]
pub struct Findings {
    /// Why a start would fail.
    pub errors: Vec<String>,
    /// What an operator should know although a start would succeed.
    pub warnings: Vec<String>,
}

/// Checks a configuration that was read from a file.
pub fn check(config: &Config, scope: Scope) -> Findings {
    let mut found = Findings::default();
    let settings = Settings::of(&config.startup);
    if let Err(error) = carry_out(config, &settings.engine, scope, &mut found) {
        found.errors.push(error);
    }
    api_files(&settings.api, scope, &mut found);
    if scope == Scope::Here {
        machine(&settings, &mut found);
        config.requests.iter().for_each(|r| files(r, &mut found));
    }
    found
}

/// The engine of a check: the configured one with [`Scope::Here`], else a small one.
fn engine(settings: &EngineSettings, scope: Scope) -> EngineSettings {
    match scope {
        Scope::Here => settings.clone(),
        Scope::File => EngineSettings {
            buffers: (2 * settings.vector_size).max(512),
            isa: IsaChoice::Auto,
            ..settings.clone()
        },
    }
}

/// Carries the requests out in the order of a start.
fn carry_out(
    config: &Config,
    settings: &EngineSettings,
    scope: Scope,
    found: &mut Findings,
) -> Result<(), String> {
    let clock = Clock::manual();
    let (stack, workers) =
        Stack::new(&engine(settings, scope), clock).map_err(|e| e.to_string())?;
    let dry = Dry {
        stack,
        workers: RefCell::new(workers),
        scope,
    };
    let (requests, observations) = parted(config.requests.clone());
    if scope == Scope::Here {
        let missing = requests.iter().filter_map(|r| dry.stack.ready(r).err());
        found.warnings.extend(missing.map(|e| e.to_string()));
    }
    let (last, first): (Vec<_>, Vec<_>) = requests.into_iter().partition(Request::is_of_last);
    let mut core = Core::default();
    let observations = observations.into_iter().map(|request| vec![request]);
    let groups = [first].into_iter().chain(observations).chain([last]);
    for group in groups {
        let done = match &group[..] {
            [request] if !request.is_configuration() => dry.apply(request).map_err(Into::into),
            _ => core.run(&group, &dry),
        };
        // Skipped requests cannot be rolled back, which does not matter here.
        let applied = done.map_err(|error| {
            let left = Vec::new();
            TransactionError { left, ..error }.to_string()
        })?;
        let warnings = applied
            .notes
            .iter()
            .filter_map(|n| n.strip_prefix("warning: "));
        found.warnings.extend(warnings.map(str::to_owned));
    }
    Ok(())
}

/// A stack that is not connected to anything.
struct Dry {
    stack: Stack,
    workers: RefCell<Vec<Worker>>,
    scope: Scope,
}

impl Probe for Dry {
    fn by_first_name(&self, interface: &str) -> Vec<Instance> {
        self.stack.by_first_name(interface)
    }

    fn explain(&self, request: &Request, error: ModelError) -> ModelError {
        self.stack.explain(request, error)
    }
}

impl Executor for Dry {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let Some(request) = stand_in(request, self.scope) else {
            return Ok(Applied::nothing());
        };
        let done = self.stack.apply(&request);
        let mut workers = self.workers.borrow_mut();
        workers.iter_mut().for_each(|worker| _ = worker.step());
        self.stack.settled();
        done
    }
}

/// The request to try instead of this one; none for a request that can only be carried out on a running router.
fn stand_in(request: &Request, scope: Scope) -> Option<Request> {
    let here = scope == Scope::Here;
    match request {
        Request::InterfaceCreate(spec) => {
            let name = spec.name.clone();
            let kind = match spec.kind_as::<SubInterface>() {
                Some(_) => spec.kind.clone(),
                None => PgInterface { name }.instance().ok()?,
            };
            let spec = spec.clone();
            Some(Request::InterfaceCreate(InterfaceSpec { kind, ..spec }))
        }
        Request::Set(object) if object.class().def().machine => None,
        Request::Unset(key) if key.class().def().machine => None,
        Request::Do(it) if it.verb().class().def().machine => None,
        Request::Set(object) if RouteFile::is(object) => here.then(|| request.clone()),
        other => match stream(other) {
            // A capture file that a stream reads may be on another machine.
            Some(stream) if stream.pcap.is_some() => here.then(|| request.clone()),
            Some(stream) if !here => Request::set(&StreamSpec {
                enabled: false,
                ..stream
            })
            .ok(),
            _ => Some(other.clone()),
        },
    }
}

fn stream(request: &Request) -> Option<StreamSpec> {
    match request {
        Request::Set(object) => StreamSpec::of(object),
        _ => None,
    }
}

/// Checks certificate, key and token.
fn api_files(api: &ApiSettings, scope: Scope, found: &mut Findings) {
    let files = [&api.certificate, &api.key, &api.token_file];
    let readable = |file: &&std::path::PathBuf| volley_file::open(file).is_ok();
    let all_there = files.into_iter().flatten().all(|file| readable(&file));
    if scope == Scope::File && !all_there {
        if let Some(Err(error)) = api
            .token_file
            .as_ref()
            .filter(readable)
            .map(|f| volley_http::check_token(f))
        {
            found.errors.push(error.to_string());
        }
        return;
    }
    if let Err(error) = volley_http::check_files(api) {
        found.errors.push(error.to_string());
    }
}

/// Checks cores, sockets and addresses of this machine.
fn machine(settings: &Settings, found: &mut Findings) {
    let cores = volley_graph::cores();
    let missing = |core: &u32| !cores.is_empty() && !cores.contains(&(*core as usize));
    for core in settings.engine.cores().into_iter().filter(missing) {
        let all: Vec<String> = cores.iter().map(ToString::to_string).collect();
        found.errors.push(format!(
            "worker_cores: there is no core {core}; there are: {}",
            all.join(", ")
        ));
    }
    for socket in [settings.engine.socket(), settings.http_socket()] {
        found.errors.extend(no_folder("socket", &socket));
    }
    let api = &settings.api;
    let addresses = [
        ("listen", api.listen),
        ("metrics_listen", api.metrics_listen),
    ];
    for (setting, address) in addresses {
        if let Some(address) = address
            && let Err(error) = std::net::TcpListener::bind(address)
            // A running daemon that uses this file has the address.
            && error.kind() != std::io::ErrorKind::AddrInUse
        {
            found
                .errors
                .push(format!("api.{setting} {address}: {error}"));
        }
    }
}

/// Checks the files that a request reads or writes.
fn files(request: &Request, found: &mut Findings) {
    let mut read = |what: &str, file: &Path| {
        if let Err(error) = volley_file::open(file) {
            found
                .errors
                .push(format!("{what}: {}: {error}", file.display()));
        }
    };
    match request {
        Request::InterfaceCreate(spec) => {
            if let Some(pcap) = spec.kind_as::<PcapInterface>() {
                pcap.rx.iter().for_each(|rx| read(&spec.name, rx));
                let folder = |tx: &PathBuf| no_folder(&spec.name, tx);
                found.errors.extend(pcap.tx.iter().filter_map(folder));
            }
            if spec.kind_as::<DpdkInterface>().is_some() && !cfg!(feature = "dpdk") {
                found.errors.push(format!(
                    "{}: this volley has no DPDK: use one that was built with feature dpdk",
                    spec.name
                ));
            }
        }
        Request::Do(it) => {
            if let Some(trace) = it.get::<PcapTraceOn>() {
                found.errors.extend(no_folder("capture", &trace.file));
            }
            if let Some(capture) = it.get::<PgCapture>() {
                let folder = |file: &PathBuf| no_folder(&capture.interface, file);
                found.errors.extend(capture.file.iter().filter_map(folder));
            }
        }
        _ => {}
    }
}

/// An error if the folder of a file does not exist.
fn no_folder(what: &str, file: &Path) -> Option<String> {
    let folder = file.parent().filter(|f| !f.as_os_str().is_empty())?;
    let there = folder.is_dir();
    (!there).then(|| {
        format!(
            "{what}: {}: there is no folder {}",
            file.display(),
            folder.display()
        )
    })
}
