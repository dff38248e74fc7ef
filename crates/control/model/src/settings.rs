//! What is chosen once, at start: sizes of the engine and where it runs.

use crate::error::ModelError;
use crate::limits;
use crate::log::LogSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which instruction-set level the data path uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IsaChoice {
    /// The best that this processor has.
    #[default]
    Auto,
    /// Portable code only.
    Scalar,
    /// x86-64-v3 (AVX2).
    #[serde(rename = "x86-64-v3")]
    V3,
    /// x86-64-v4 (AVX-512).
    #[serde(rename = "x86-64-v4")]
    V4,
}

impl IsaChoice {
    /// Every choice with its name.
    pub const ALL: [(&'static str, IsaChoice); 4] = [
        ("auto", IsaChoice::Auto),
        ("scalar", IsaChoice::Scalar),
        ("x86-64-v3", IsaChoice::V3),
        ("x86-64-v4", IsaChoice::V4),
    ];
}

impl fmt::Display for IsaChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = IsaChoice::ALL.iter().find(|(_, isa)| isa == self);
        f.write_str(name.map_or("auto", |(name, _)| name))
    }
}

impl FromStr for IsaChoice {
    type Err = ModelError;

    /// Reads the names of [`IsaChoice::ALL`]; `v3` and `v4` are short for the x86 ones.
    fn from_str(text: &str) -> Result<Self, ModelError> {
        let full = match text {
            "v3" => "x86-64-v3",
            "v4" => "x86-64-v4",
            other => other,
        };
        let found = IsaChoice::ALL.iter().find(|(name, _)| *name == full);
        let why = "choose auto, scalar, x86-64-v3 or x86-64-v4";
        let bad = || ModelError::invalid(format!("isa '{text}'"), why);
        found.map(|(_, isa)| *isa).ok_or_else(bad)
    }
}

/// What becomes of the daemon's capabilities once its configuration is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capabilities {
    /// The control thread keeps them: interfaces of the kernel can be made while it runs.
    #[default]
    Keep,
    /// All are given up.
    Drop,
}

impl Capabilities {
    /// Every choice with its name.
    pub const ALL: [(&'static str, Capabilities); 2] =
        [("keep", Capabilities::Keep), ("drop", Capabilities::Drop)];
}

/// Which system calls the daemon's threads may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// Those that the daemon needs, where the kernel has filters.
    #[default]
    Auto,
    /// Those that the daemon needs; without filters it does not start.
    Enforce,
    /// All; those that the daemon does not need are in the kernel's audit log.
    Log,
    /// All.
    Off,
}

impl Seccomp {
    /// Every choice with its name.
    pub const ALL: [(&'static str, Seccomp); 4] = [
        ("auto", Seccomp::Auto),
        ("enforce", Seccomp::Enforce),
        ("log", Seccomp::Log),
        ("off", Seccomp::Off),
    ];
}

/// The folder of sockets and captures that no setting places: one that no other user can write, unlike `/tmp`. It is
/// `/run/volley` for root and where `$XDG_RUNTIME_DIR` is not set, else that folder.
pub fn runtime_folder() -> PathBuf {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_user = named.filter(|folder| folder.is_absolute() && !is_root);
    of_user.unwrap_or_else(|| "/run/volley".into())
}

/// The engine's settings. They hold from start to stop; changing them means a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Most packets per vector to begin with, 1..=1024.
    pub vector_size: u32,
    /// What vectors have room for, 1..=1024; none = 1024.
    pub max_vector_size: Option<u32>,
    /// Buffers on each memory node of the machine.
    pub buffers: u32,
    /// Instruction-set level.
    pub isa: IsaChoice,
    /// Workers to begin with.
    pub workers: u32,
    /// The most workers that there may be at a time; none = 8, or as many as there are to begin with.
    pub max_workers: Option<u32>,
    /// Processor core to pin the first worker to; none = wherever the system puts it.
    pub worker_core: Option<u32>,
    /// Processor cores to pin workers to, in order; those beyond are wherever the system puts them.
    pub worker_cores: Vec<u32>,
    /// Most megabytes of memory that one memif, vhost-user or virtio-user peer may share, and all together twice as many;
    /// none = as many as the machine has.
    pub peer_memory_mb: Option<u32>,
    /// Most megabytes that pages which peers share, but never wrote, may cost the process, and those of one interface half
    /// as many; none = half of what the process may have (its cgroup's limit, or the machine's memory).
    pub peer_charge_mb: Option<u32>,
    /// Unix socket of `volley ctl`.
    pub socket: PathBuf,
    /// Seed of everything random (stream edits without a seed of their own, MAC addresses); none = 1 for streams, and MAC
    /// addresses that no other machine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What becomes of the daemon's capabilities.
    pub capabilities: Capabilities,
    /// Which system calls the daemon's threads may make.
    pub seccomp: Seccomp,
    /// The HTTP interface.
    pub api: ApiSettings,
    /// The log.
    pub log: LogSettings,
}

/// Where the HTTP interface is served.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiSettings {
    /// Its unix socket; none = beside that of `volley ctl`, with the ending `.http.sock`.
    pub socket: Option<PathBuf>,
    /// TCP address and port, too; needs the three files that follow.
    pub listen: Option<SocketAddr>,
    /// Certificate chain in PEM form.
    pub certificate: Option<PathBuf>,
    /// Private key in PEM form.
    pub key: Option<PathBuf>,
    /// File with the tokens of which clients over TCP must show one, 16 bytes or more each.
    pub token_file: Option<PathBuf>,
    /// TCP address and port of metrics, without TLS and token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<SocketAddr>,
}

impl ApiSettings {
    /// Checks that TCP comes with TLS and a token.
    pub fn validate(&self) -> Result<(), ModelError> {
        let files = [&self.certificate, &self.key, &self.token_file];
        let given = files.iter().filter(|f| f.is_some()).count();
        match self.listen {
            Some(listen) if given < files.len() => {
                let why = "TCP is served with TLS and a token only: set certificate, key and token_file as well";
                Err(ModelError::invalid(format!("api.listen {listen}"), why))
            }
            None if given > 0 => {
                let why = "they are for TCP: set listen as well, or leave them away";
                let what = "certificate, key or token_file of api";
                Err(ModelError::invalid(what, why))
            }
            _ => Ok(()),
        }
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            vector_size: 256,
            max_vector_size: None,
            buffers: 16_384,
            isa: IsaChoice::Auto,
            workers: 1,
            max_workers: None,
            worker_core: None,
            worker_cores: Vec::new(),
            peer_memory_mb: None,
            peer_charge_mb: None,
            socket: runtime_folder().join("volley.sock"),
            seed: None,
            capabilities: Capabilities::Keep,
            seccomp: Seccomp::default(),
            api: ApiSettings::default(),
            log: LogSettings::default(),
        }
    }
}

impl EngineSettings {
    /// The unix socket of the HTTP interface.
    pub fn http_socket(&self) -> PathBuf {
        let beside = || self.socket.with_extension("http.sock");
        self.api.socket.clone().unwrap_or_else(beside)
    }

    /// How many packets a vector has room for.
    pub fn vector_room(&self) -> u32 {
        let most = self.max_vector_size;
        most.unwrap_or(limits::USUAL_MAX_VECTOR_SIZE)
    }

    /// How many workers there may be at a time.
    pub fn places(&self) -> u32 {
        let usual = self.workers.max(limits::USUAL_MAX_WORKERS);
        self.max_workers.unwrap_or(usual)
    }

    /// The core of each worker to begin with, as far as one is named.
    pub fn cores(&self) -> Vec<u32> {
        let first = self.worker_core.iter();
        first.chain(&self.worker_cores).copied().collect()
    }

    fn validate_workers(&self) -> Result<(), ModelError> {
        crate::validate::within("workers", self.workers, limits::WORKERS)?;
        crate::validate::within("max_workers", self.places(), limits::WORKERS)?;
        if self.places() < self.workers {
            let why = format!("there are {} workers to begin with", self.workers);
            let what = format!("max_workers {}", self.places());
            return Err(ModelError::invalid(what, why));
        }
        if self.worker_core.is_some() && !self.worker_cores.is_empty() {
            let why = "worker_cores names the first worker's core, too: leave worker_core away";
            return Err(ModelError::invalid("worker_core", why));
        }
        let cores = self.cores();
        for core in &cores {
            crate::validate::within("worker_core", *core, limits::CORE)?;
        }
        let twice = cores
            .iter()
            .enumerate()
            .find(|(n, core)| cores[..*n].contains(core));
        match twice {
            Some((_, core)) => {
                let why =
                    format!("core {core} is named twice: two workers would wait for each other");
                Err(ModelError::invalid("worker_cores", why))
            }
            None => Ok(()),
        }
    }

    /// Checks ranges.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.api.validate()?;
        self.log.validate()?;
        self.validate_workers()?;
        crate::validate::within("vector_size", self.vector_size, limits::VECTOR_SIZE)?;
        crate::validate::within("max_vector_size", self.vector_room(), limits::VECTOR_SIZE)?;
        if self.vector_room() < self.vector_size {
            let why = format!("vectors have {} packets to begin with", self.vector_size);
            let what = format!("max_vector_size {}", self.vector_room());
            return Err(ModelError::invalid(what, why));
        }
        let given = |mb: Option<u32>| mb.unwrap_or(*limits::PEER_MB.start());
        let (memory, charge) = (given(self.peer_memory_mb), given(self.peer_charge_mb));
        crate::validate::within("peer_memory_mb", memory, limits::PEER_MB)?;
        crate::validate::within("peer_charge_mb", charge, limits::PEER_MB)?;
        crate::validate::within("buffers", self.buffers, limits::BUFFERS)?;
        if self.buffers < 2 * self.vector_size {
            let why = format!(
                "a vector of {} needs at least twice as many",
                self.vector_size
            );
            return Err(ModelError::invalid(
                format!("buffers {}", self.buffers),
                why,
            ));
        }
        Ok(())
    }
}
