//! A daemon for each test: its folder, its socket, and functions for `volley ctl`. Everything ends in bounded time.
// Each test file uses only a part of this module.
#![allow(dead_code)]

pub mod bed;
pub mod cgroup;
pub mod fragments;
pub mod http;
pub mod kept;
// tidy: allow(target_arch) registers depend on the processor
#[cfg(target_arch = "x86_64")]
pub mod made;
pub mod mirror;
pub mod oracle;
pub mod peers;
pub mod pinging;
pub mod replay;
pub mod router;
pub mod routing;
pub mod traffic;
pub mod users;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time limit of every action.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder that is removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "volley-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the kernel knows a PMU of the processor, by the list of its devices.
pub fn has_pmu() -> bool {
    let devices = std::fs::read_dir("/sys/bus/event_source/devices").unwrap();
    let mut names = devices.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.any(|name| name.starts_with("cpu") || name.starts_with("armv8"))
}

/// Runs the program to its end; after the time limit it is killed, and the test fails.
pub fn volley(args: &[&str]) -> Output {
    volley_by(&[], args)
}

/// The same by another command, to which the program and its arguments are appended.
pub fn volley_by(words: &[String], args: &[&str]) -> Output {
    let program = [env!("CARGO_BIN_EXE_volley").to_owned()];
    let mut words = words.iter().chain(&program);
    let mut command = Command::new(words.next().map_or("volley", String::as_str));
    command
        .args(words)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    let (done, ended) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    let output = ended.recv_timeout(LIMIT).unwrap_or_else(|_| {
        signal(id, "KILL");
        panic!("`volley {}` took too long", args.join(" "));
    });
    thread.join().unwrap().unwrap();
    output
}

pub fn signal(id: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &id.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Denies other users access to a file.
pub fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// Writes a file that only its owner can read.
pub fn secret(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    private(path);
}

/// The text of an output.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running daemon; killed on drop.
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    pub folder: Folder,
    /// A command before the client's program, which runs it as another user; empty by default.
    pub client: Vec<String>,
}

impl Daemon {
    /// Starts a daemon with this configuration, in which `@` is replaced by the folder; returns when it is ready.
    pub fn start(config: &str, more: &[&str]) -> Self {
        Daemon::start_with(config, more, &[])
    }

    /// The same with more environment variables.
    pub fn start_with(config: &str, more: &[&str], environment: &[(&str, &str)]) -> Self {
        Daemon::start_by(&[env!("CARGO_BIN_EXE_volley")], config, more, environment)
    }

    /// The same in the cgroup with this list of processes.
    pub fn start_in(procs: &str, config: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_volley");
        let enter = "echo $$ > $0 && exec \"$@\"";
        Daemon::start_by(&["sh", "-c", enter, procs, program], config, &[], &[])
    }

    /// The same by a command to which the daemon's arguments are appended; the command must become the daemon by `exec`.
    pub fn start_by(
        program: &[&str],
        config: &str,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = Folder::new();
        let (file, socket) = (folder.file("volley.toml"), folder.file("s"));
        std::fs::write(&file, config.replace('@', &folder.0.display().to_string())).unwrap();
        let log = std::fs::File::create(folder.file("log")).unwrap();
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .arg("run")
            .arg("-c")
            .arg(&file)
            .arg("--socket")
            .arg(&socket)
            .args(more)
            .envs(environment.iter().copied());
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let mut daemon = Daemon {
            child,
            socket,
            folder,
            client: Vec::new(),
        };
        daemon.wait_for("the socket", |d| {
            assert!(
                d.child.try_wait().unwrap().is_none(),
                "it ended: {}",
                d.log()
            );
            d.log().contains("ready")
        });
        daemon
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }

    pub fn wait_for(&mut self, what: &str, mut ready: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !ready(self) {
            assert!(
                start.elapsed() < LIMIT,
                "waiting for {what}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ctl(&self, more: &[&str], line: &str) -> Output {
        let socket = self.socket.display().to_string();
        let mut args = vec!["ctl", "--socket", &socket];
        args.extend(more);
        args.extend(line.split(' '));
        volley_by(&self.client, &args)
    }

    /// The reply to a line that must succeed.
    pub fn ok(&self, line: &str) -> String {
        let output = self.ctl(&[], line);
        assert!(
            output.status.success(),
            "`{line}`: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// The reply as JSON.
    pub fn json(&self, line: &str) -> serde_json::Value {
        let output = self.ctl(&["--json"], line);
        assert!(
            output.status.success(),
            "`{line}`: {}",
            text(&output.stderr)
        );
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("`{line}`: {e}: {}", text(&output.stdout)))
    }

    /// The one sentence of the refusal of a line.
    pub fn refused(&self, line: &str) -> String {
        let output = self.ctl(&[], line);
        assert_eq!(
            output.status.code(),
            Some(1),
            "`{line}` is taken: {}",
            text(&output.stdout)
        );
        assert!(output.stdout.is_empty());
        let error = text(&output.stderr);
        assert_eq!(error.trim_end().lines().count(), 1, "`{line}`: {error}");
        error
    }

    /// Waits until the reply to a line contains a text; a refusal is no reply.
    pub fn wait_for_answer(&mut self, line: &str, part: &str) {
        self.wait_for(part, |d| text(&d.ctl(&[], line).stdout).contains(part));
    }

    /// Ends the daemon with a signal; its socket must be removed.
    pub fn stop(&mut self, name: &str) {
        signal(self.child.id(), name);
        self.wait_for("its end", |d| d.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.log());
        assert!(!self.socket.exists());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The frames of a capture file.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    volley_pcap::read_packets(path)
        .unwrap()
        .packets
        .into_iter()
        .map(|p| p.data)
        .collect()
}
