//! Folders of the daemon: which files its threads may use (`[process] landlock`).
//!
//! - The limit is set after configuration and commits were read, and before the first thread is started: all threads inherit it.
//!   The kernel cannot take it back, so what an operator names later must be in these folders.
//! - Writing: the state directory, the folders of sockets, log and captures, folders for temporary files, and those that the
//!   configuration names. Sockets also everywhere in `/run`.
//! - Reading: all but home directories, `/boot` and devices; the working directory of the start; what may be written.
//! - Devices: those of the drivers. Programs: none. TCP: no connection, and only the ports of `[api]`.

use crate::settings::{Landlock, Settings};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags,
};
use std::collections::BTreeSet;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use volley_click::ClickGraph;
use volley_file::Folders;
use volley_memif::model::MemifSocket;
use volley_model::{Request, runtime_folder};
use volley_object::Object;
use volley_pcap::PcapTraceOn;
use volley_pcap::model::PcapInterface;
use volley_pg::PgCapture;
use volley_vhost::model::{VhostUser, VirtioUser};

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
#[error(
    "files cannot be limited to the daemon's folders: {0}; set landlock = \"auto\" in [process]"
)]
pub struct FoldersError(String);

/// The newest version whose rights are used; an older kernel enforces a part of them.
const NEWEST: ABI = ABI::V5;
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
const SOCKETS: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeSock | RemoveFile});
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | MakeSock | RemoveFile | RemoveDir
});
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev});

/// Folders of `/` whose files the daemon has no reason to read, and that of devices.
const HIDDEN: [&str; 5] = ["boot", "dev", "home", "lost+found", "root"];
/// Folders that the daemon writes, as far as they exist.
const USUAL: [&str; 4] = ["/tmp", "/var/lib/volley", "/var/log/volley", "/run/volley"];
/// Where programs create the sockets of memif and vhost-user.
const RUN: &str = "/run";
/// Devices of drivers, and those without effects.
const DEVICES: [&str; 6] = [
    "/dev/net",
    "/dev/vhost-net",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];
/// Devices and files of the libraries of DPDK.
const DPDK_DEVICES: [&str; 2] = ["/dev", "/sys"];
/// Folders of the libraries of DPDK.
const DPDK_FOLDERS: [&str; 3] = ["/dev/hugepages", "/dev/shm", "/run/dpdk"];

/// What a daemon starts with.
pub struct Start<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The configuration file.
    pub config: Option<&'a Path>,
    /// The state directory.
    pub state: Option<&'a Path>,
    /// Requests of the configuration file, of the commits and of the graph of the command line.
    pub requests: Vec<&'a Request>,
}

/// The limits that are set.
#[derive(Default)]
struct Limits {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
    sockets: BTreeSet<PathBuf>,
    devices: BTreeSet<PathBuf>,
    ports: BTreeSet<u16>,
    /// Whether the configuration names a namespace by a process, which Landlock protects.
    by_process: bool,
}

/// The folder of a file.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) => ".".into(),
        None => file.to_owned(),
    }
}

/// Folders of `/` that may be read.
fn readable() -> impl Iterator<Item = PathBuf> {
    let all = std::fs::read_dir("/").into_iter().flatten().flatten();
    let visible = all.filter(|it| !HIDDEN.iter().any(|hidden| it.file_name() == *hidden));
    visible.map(|it| it.path()).filter(|it| it.is_dir())
}

impl Limits {
    fn of(start: &Start<'_>) -> Limits {
        let mut limits = Limits::default();
        let settings = start.settings;
        limits.read.extend(readable());
        // An operator names files as they are seen from there, such as a plugin that was just built.
        let started_in = std::env::current_dir().ok();
        limits
            .read
            .extend(started_in.filter(|folder| folder.parent().is_some()));
        limits.write.extend(USUAL.map(PathBuf::from));
        limits
            .write
            .extend([std::env::temp_dir(), runtime_folder()]);
        limits.sockets.insert(RUN.into());
        limits.devices.extend(DEVICES.map(PathBuf::from));
        if cfg!(feature = "dpdk") {
            limits.devices.extend(DPDK_DEVICES.map(PathBuf::from));
            limits.write.extend(DPDK_FOLDERS.map(PathBuf::from));
        }
        limits.write.extend(start.state.map(Path::to_owned));
        limits
            .write
            .extend(settings.log.file.as_deref().map(folder_of));
        limits.run_folder(&settings.engine.socket());
        limits.run_folder(&settings.http_socket());
        let api = &settings.api;
        let files = [&api.certificate, &api.key, &api.token_file];
        let files = files.iter().filter_map(|file| file.as_deref());
        limits.read.extend(files.chain(start.config).map(folder_of));
        let program = std::env::current_exe().ok();
        limits.read.extend(program.as_deref().map(folder_of));
        limits.ports.extend(
            [api.listen, api.metrics_listen]
                .iter()
                .flatten()
                .map(|it| it.port()),
        );
        limits
            .read
            .extend(settings.process.read_folders.iter().cloned());
        limits
            .write
            .extend(settings.process.write_folders.iter().cloned());
        for request in &start.requests {
            limits.add_request(request);
        }
        limits
    }

    /// The folder of a socket of the daemon, where captures can be as well, if it is not one that many programs share.
    fn run_folder(&mut self, socket: &Path) {
        let folder = folder_of(socket);
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        match whole.components().count() > 2 {
            true => self.write.insert(folder),
            false => self.sockets.insert(folder),
        };
    }

    /// The folders of the files that a request of the configuration names.
    fn add_request(&mut self, request: &Request) {
        let object = match request {
            Request::InterfaceCreate(spec) => &spec.kind,
            Request::Set(object) | Request::Add(object) if !object.class().def().bulk => object,
            request => {
                let trace = request.verb::<PcapTraceOn>().map(|it| it.file);
                let capture = request.verb::<PgCapture>().and_then(|it| it.file);
                let files = trace.into_iter().chain(capture);
                self.write.extend(files.map(|file| folder_of(&file)));
                return;
            }
        };
        let socket = MemifSocket::of(object).map(|it| it.filename);
        let socket = socket.or_else(|| VhostUser::of(object).map(|it| it.socket));
        let socket = socket.or_else(|| VirtioUser::of(object).map(|it| it.socket));
        if let Some(socket) = socket {
            // An abstract socket has no folder; its name begins with `@` and is not absolute.
            self.sockets.insert(folder_of(&socket));
        } else if let Some(click) = ClickGraph::of(object) {
            // Paths in the graph are relative to this folder.
            let folder = folder_of(&click.graph);
            self.read.insert(folder.clone());
            self.write.insert(folder);
        } else if let Some(capture) = PcapInterface::of(object) {
            self.read.extend(capture.rx.as_deref().map(folder_of));
            self.write.extend(capture.tx.as_deref().map(folder_of));
        } else {
            let texts = object.slots().iter().flatten();
            for text in texts.filter_map(|value| value.as_text()) {
                self.by_process |= text.starts_with("pid:");
                let path = Path::new(text);
                self.read
                    .extend(path.is_absolute().then(|| folder_of(path)));
            }
        }
    }

    /// The folders by their paths without symbolic links, for errors.
    fn folders(&self, partly: bool) -> Folders {
        let real =
            |paths: &BTreeSet<PathBuf>| paths.iter().flat_map(|it| it.canonicalize()).collect();
        Folders {
            read: real(&self.read),
            write: real(&self.write),
            sockets: real(&self.sockets),
            partly,
        }
    }

    fn set(&self) -> Result<RulesetStatus, RulesetError> {
        let all = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
        let mut set = all.handle_access(AccessNet::from_all(NEWEST))?.create()?;
        for (paths, rights) in [
            (&self.read, READ),
            (&self.write, WRITE),
            (&self.sockets, SOCKETS),
            (&self.devices, DEVICE),
        ] {
            set = paths
                .iter()
                .try_fold(set, |set, path| allow(set, path, rights))?;
        }
        for port in &self.ports {
            set = set.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
        }
        Ok(set.restrict_self()?.ruleset)
    }
}

/// Adds a folder or file. A missing one is left out: using it fails in any case.
fn allow(
    set: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(file) = PathFd::new(path) else {
        return Ok(set);
    };
    let rights = match path.is_dir() {
        true => rights,
        false => rights & AccessFs::from_file(NEWEST),
    };
    set.add_rule(PathBeneath::new(file, rights))
}

/// Creates the default folder of sockets if a socket is in it: the limit is for folders that exist. If that fails, the step
/// that creates the socket reports the error.
fn make_runtime_folder(settings: &Settings) {
    let sockets = [settings.engine.socket(), settings.http_socket()];
    let usual = runtime_folder();
    for folder in sockets
        .iter()
        .filter(|it| it.starts_with(&usual))
        .map(|it| folder_of(it))
    {
        let mut builder = std::fs::DirBuilder::new();
        if builder.mode(0o700).create(&folder).is_ok() {
            // The mode of each socket in the folder decides who may open it.
            let mode = std::fs::Permissions::from_mode(0o755);
            let _ = std::fs::set_permissions(&folder, mode);
        }
    }
}

/// Limits the files of the calling thread, and of those that it starts. Returns sentences for the log; if the kernel has no
/// Landlock this is an error only if the configuration requires it.
pub fn start(start: &Start<'_>) -> Result<Vec<String>, FoldersError> {
    make_runtime_folder(start.settings);
    let process = &start.settings.process;
    if process.landlock == Landlock::Off {
        return Ok(Vec::new());
    }
    let named = process.read_folders.iter().chain(&process.write_folders);
    let missing = named.filter(|folder| !folder.is_dir()).map(|folder| {
        let folder = folder.display();
        format!("{folder} of [process] is no folder: the daemon can use it only if it exists when the daemon starts")
    });
    let mut notes: Vec<String> = missing.collect();
    let limits = Limits::of(start);
    if limits.by_process && process.landlock == Landlock::Auto {
        let note = "files are not limited to the daemon's folders, because the configuration names a network namespace by its \
                    process (pid:N), and Landlock protects other processes: give the path of the namespace";
        notes.push(note.into());
        return Ok(notes);
    }
    let why = match limits.set() {
        Ok(RulesetStatus::NotEnforced) => {
            "the kernel has no Landlock, or it is not switched on (lsm=)".to_owned()
        }
        Ok(status) => {
            volley_file::limited_to(limits.folders(status == RulesetStatus::PartiallyEnforced));
            return Ok(notes);
        }
        Err(error) => error.to_string(),
    };
    match process.landlock {
        Landlock::Enforce => Err(FoldersError(why)),
        _ => {
            notes.push(format!(
                "files are not limited to the daemon's folders: {why}"
            ));
            Ok(notes)
        }
    }
}
