//! Settings that are read at start: the tables `[engine]` and `[process]`, and with them those of limits, log and HTTP.

use crate::limits::LimitSettings;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use volley_http::ApiSettings;
use volley_log::LogSettings;
use volley_model::{limits, runtime_folder};
use volley_object::{Choice, DefinitionError, FieldError, Object, Startup, choice_named, refuse};

/// Numbers of workers.
const WORKERS: RangeInclusive<u32> = 1..=64;
/// The most workers at a time, without a setting.
const USUAL_MAX_WORKERS: u32 = 8;
/// The capacity of vectors, without a setting.
const USUAL_MAX_VECTOR_SIZE: u32 = 1024;
/// Buffers on each NUMA node.
const BUFFERS: RangeInclusive<u32> = 256..=16_777_216;
/// Megabytes of memory that peers share, or cost.
const PEER_MB: RangeInclusive<u32> = 1..=1 << 26;

/// Instruction-set level of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum IsaChoice {
    /// The best that this processor has.
    #[default]
    Auto,
    /// Portable code only.
    Scalar,
    /// x86-64-v3 (AVX2).
    #[object(name = "x86-64-v3")]
    V3,
    /// x86-64-v4 (AVX-512).
    #[object(name = "x86-64-v4")]
    V4,
    /// AArch64 (Advanced SIMD).
    Neon,
}

impl FromStr for IsaChoice {
    type Err = FieldError;

    /// Reads the names of the choices; `v3` and `v4` are short for the x86 ones.
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let full = match text {
            "v3" => "x86-64-v3",
            "v4" => "x86-64-v4",
            other => other,
        };
        choice_named(full).or_else(|why| refuse("isa", format!("'{text}' is not valid: {why}")))
    }
}

/// What happens to the daemon's capabilities once its configuration is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum Capabilities {
    /// The control thread keeps them: interfaces of the kernel can be created while it runs.
    #[default]
    Keep,
    /// The control thread drops all of them.
    Drop,
}

/// Which system calls the daemon's threads may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum Seccomp {
    /// Those that the daemon needs, if the kernel has filters.
    #[default]
    Auto,
    /// Those that the daemon needs; without filters it does not start.
    Enforce,
    /// All; the kernel's audit log records those that the daemon does not need.
    Log,
    /// All.
    Off,
}

/// Which files the daemon's threads may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum Landlock {
    /// Those in the folders of the daemon, if the kernel has Landlock.
    #[default]
    Auto,
    /// Those in the folders of the daemon; without Landlock it does not start.
    Enforce,
    /// All.
    Off,
}

/// The engine: its sizes, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "engine", file = "[engine]", startup, check = EngineSettings::check)]
pub struct EngineSettings {
    /// Most packets per vector at start.
    #[object(default = 256, range = limits::VECTOR_SIZE)]
    pub vector_size: u32,
    /// Capacity of vectors in packets; 1024 if it is not set.
    #[object(range = limits::VECTOR_SIZE)]
    pub max_vector_size: Option<u32>,
    /// Packet buffers on each NUMA node of the machine.
    #[object(default = 16_384, range = BUFFERS)]
    pub buffers: u32,
    /// Instruction-set level; auto is the best that the processor has.
    #[object(default = IsaChoice::Auto)]
    pub isa: IsaChoice,
    /// Workers at start.
    #[object(default = 1, range = WORKERS)]
    pub workers: u32,
    /// Most workers at a time; if it is not set 8, or the number of workers at start if that is larger.
    #[object(range = WORKERS)]
    pub max_workers: Option<u32>,
    /// Processor core of the first worker; without it the worker is not pinned.
    #[object(range = limits::CORE)]
    pub worker_core: Option<u32>,
    /// Processor cores of the workers, in order, such as [1, 2, 3]; further workers are not pinned.
    #[object(range = limits::CORE)]
    pub worker_cores: Vec<u32>,
    /// Most memory that one memif, vhost-user or virtio-user peer may share, and all together twice as much; the machine's
    /// memory if it is not set.
    #[object(range = PEER_MB, unit = "megabytes")]
    pub peer_memory_mb: Option<u32>,
    /// Most memory that the process may be charged for pages that peers share but have not written, and half of it for those of
    /// one interface; half of the limit of the cgroup or of the machine's memory if it is not set.
    #[object(range = PEER_MB, unit = "megabytes")]
    pub peer_charge_mb: Option<u32>,
    /// Unix socket of `volley ctl`; without it `volley.sock` in /run/volley for root, else in $XDG_RUNTIME_DIR.
    #[object(example = "/run/volley/volley.sock")]
    pub socket: Option<PathBuf>,
    /// Seed of all random values; without it 1 for streams that have no seed, and MAC addresses that derive from the machine's
    /// identity.
    pub seed: Option<u64>,
}

impl EngineSettings {
    /// The unix socket of `volley ctl`.
    pub fn socket(&self) -> PathBuf {
        let usual = || runtime_folder().join("volley.sock");
        self.socket.clone().unwrap_or_else(usual)
    }

    /// The capacity of a vector, in packets.
    pub fn vector_room(&self) -> u32 {
        self.max_vector_size.unwrap_or(USUAL_MAX_VECTOR_SIZE)
    }

    /// The most workers at a time.
    pub fn places(&self) -> u32 {
        let usual = self.workers.max(USUAL_MAX_WORKERS);
        self.max_workers.unwrap_or(usual)
    }

    /// The cores of the workers at start, as far as they are named.
    pub fn cores(&self) -> Vec<u32> {
        let first = self.worker_core.iter();
        first.chain(&self.worker_cores).copied().collect()
    }

    /// Checks rules between the settings.
    fn check(&self) -> Result<(), FieldError> {
        if self.places() < self.workers {
            let (places, workers) = (self.places(), self.workers);
            let why = format!("{places} is too small: there are {workers} workers to begin with");
            return refuse("max_workers", why);
        }
        if self.worker_core.is_some() && !self.worker_cores.is_empty() {
            let why = "is there beside worker_cores, which names the first worker's core, too: leave worker_core away";
            return refuse("worker_core", why);
        }
        let cores = &self.worker_cores;
        let twice = |(n, core): &(usize, &u32)| cores[..*n].contains(core);
        if let Some((_, core)) = cores.iter().enumerate().find(twice) {
            let why = format!(
                "must differ: core {core} is named twice, and two workers would wait for each other"
            );
            return refuse("worker_cores", why);
        }
        let (room, size) = (self.vector_room(), self.vector_size);
        if room < size {
            let why = format!("{room} is too small: vectors have {size} packets to begin with");
            return refuse("max_vector_size", why);
        }
        if self.buffers < 2 * size {
            let buffers = self.buffers;
            let why =
                format!("{buffers} are too few: a vector of {size} needs at least twice as many");
            return refuse("buffers", why);
        }
        Ok(())
    }
}

/// Rights of the process after its configuration has been applied.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "process", file = "[process]", startup)]
pub struct ProcessSettings {
    /// Capabilities: drop removes them once the configuration has been applied; no more interfaces of the kernel can be created
    /// after that.
    #[object(default = Capabilities::Keep)]
    pub capabilities: Capabilities,
    /// Filter of system calls: auto filters if the kernel has filters, enforce does not start without them, log records calls
    /// that the filter would refuse in the kernel's audit log and refuses none.
    #[object(default = Seccomp::Auto)]
    pub seccomp: Seccomp,
    /// Limit of files to the daemon's folders: auto limits if the kernel has Landlock, enforce does not start without it.
    #[object(default = Landlock::Auto)]
    pub landlock: Landlock,
    /// Further folders in which the daemon may create, write and remove files and sockets, such as ["/srv/captures"].
    pub write_folders: Vec<PathBuf>,
    /// Further folders in which the daemon may read files, such as ["/home/ada/routes"].
    pub read_folders: Vec<PathBuf>,
}

/// All settings that are read at start.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// The engine.
    pub engine: EngineSettings,
    /// The process.
    pub process: ProcessSettings,
    /// The limits of the configuration.
    pub limits: LimitSettings,
    /// The HTTP interface.
    pub api: ApiSettings,
    /// The log.
    pub log: LogSettings,
}

impl Settings {
    /// The settings of a file or a commit.
    pub fn of(startup: &Startup) -> Settings {
        Settings {
            engine: startup.get(),
            process: startup.get(),
            limits: startup.get(),
            api: startup.get(),
            log: startup.get(),
        }
    }

    /// The unix socket of the HTTP interface.
    pub fn http_socket(&self) -> PathBuf {
        let beside = || self.engine.socket().with_extension("http.sock");
        self.api.socket.clone().unwrap_or_else(beside)
    }
}

/// Registers the classes.
pub fn classes() -> Result<(), DefinitionError> {
    EngineSettings::class()?;
    ProcessSettings::class()?;
    LimitSettings::class()?;
    volley_http::classes()?;
    volley_log::classes().map(|_all| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_log::{LogDestination, LogLevel};

    #[test]
    fn a_commit_of_an_earlier_version_is_read() {
        classes().unwrap();
        let earlier = r#"{"vector_size":64,"max_vector_size":null,"buffers":16384,"isa":"x86-64-v3","workers":2,"max_workers":null,
            "worker_core":null,"worker_cores":[1,2],"peer_memory_mb":null,"peer_charge_mb":null,"socket":"/run/volley/volley.sock",
            "seed":18446744073709551615,"capabilities":"drop","seccomp":"enforce","api":{"socket":null,"listen":"192.0.2.1:8443",
            "certificate":"/c","key":"/k","token_file":"/t"},"log":{"levels":{"level":"warn","modules":{"memif":"debug"}},
            "destination":"file","file":"/l","format":"json","file_size":0,"file_count":9}}"#;
        let startup: Startup = serde_json::from_str(earlier).unwrap();
        let settings = Settings::of(&startup);
        let engine = &settings.engine;
        assert_eq!((engine.vector_size, engine.isa), (64, IsaChoice::V3));
        assert_eq!((engine.cores(), engine.seed), (vec![1, 2], Some(u64::MAX)));
        assert_eq!(settings.process.capabilities, Capabilities::Drop);
        assert_eq!(settings.process.seccomp, Seccomp::Enforce);
        assert_eq!(settings.api.token_file, Some("/t".into()));
        assert_eq!(settings.api.listen, "192.0.2.1:8443".parse().ok());
        assert_eq!(
            settings.http_socket(),
            PathBuf::from("/run/volley/volley.http.sock")
        );
        assert_eq!(settings.log.levels().to_string(), "warn,memif=debug");
        assert_eq!(settings.log.destination, LogDestination::File);
        // The JSON that this version writes.
        let written = serde_json::to_string(&startup).unwrap();
        assert!(written.starts_with(r#"[{"class":"#), "{written}");
        assert_eq!(serde_json::from_str::<Startup>(&written).unwrap(), startup);
    }

    #[test]
    fn the_tables_are_read_and_their_errors_name_the_place() {
        crate::objects::register().unwrap();
        let text = "[engine]\nworkers = 2\nisa = \"scalar\"\n[process]\nseccomp = \"log\"\n[api]\nsocket = \"/s\"\n[log]\nlevel = \"off\"\n";
        let settings = Settings::of(&volley_config::parse(text).unwrap().startup);
        assert_eq!(
            (settings.engine.workers, settings.engine.isa),
            (2, IsaChoice::Scalar)
        );
        assert_eq!(settings.process.seccomp, Seccomp::Log);
        assert_eq!(settings.http_socket(), PathBuf::from("/s"));
        assert_eq!(settings.log.level, LogLevel::Off);
        let usual = Settings::of(&volley_config::parse("").unwrap().startup);
        assert_eq!(usual, Settings::default());
        for (text, message) in [
            (
                "[engine]\nworkers = 65",
                "volley.toml:2:11: engine.workers: must be a number from 1 to 64, not '65'",
            ),
            (
                "[engine]\nisa = 'avx'",
                "volley.toml:2:7: engine.isa: must be auto, scalar, x86-64-v3, x86-64-v4 or neon, not 'avx'",
            ),
            (
                "[engine]\nbuffers = 300",
                "volley.toml:1:1: engine: buffers 300 are too few: a vector of 256 needs at least twice as many",
            ),
            (
                "[engine]\nworker = 2",
                "volley.toml:2:1: unknown key 'worker' in [engine]: did you mean 'workers'?",
            ),
            (
                "[[engine]]",
                "volley.toml:1:1: engine: must be a table [engine]",
            ),
            (
                "[api]\nlisten = 'somewhere'",
                "volley.toml:2:10: api.listen: must be an address and a port, not 'somewhere': ",
            ),
            (
                "[api]\nkey = '/k'",
                "volley.toml:1:1: api: key is for TCP: set listen as well, or leave it away",
            ),
        ] {
            let error = volley_config::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
