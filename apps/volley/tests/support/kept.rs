//! A daemon with a state directory that outlives the daemon, and a small file system for one.

use super::{Folder, text, volley};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// A configuration with one interface.
pub const BASE: &str = "\
[[interface]]
name = \"pg0\"
kind = \"pg\"
addresses = [\"192.0.2.1/24\"]
";

/// A daemon with a state directory that outlives the daemon.
pub struct Kept {
    pub folder: Folder,
    pub state: String,
    pub child: Option<Child>,
}

impl Kept {
    pub fn new() -> Kept {
        let folder = Folder::new();
        let state = folder.file("state").display().to_string();
        Kept {
            folder,
            state,
            child: None,
        }
    }

    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.file(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    pub fn socket(&self) -> String {
        self.folder.file("s").display().to_string()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }

    pub fn start(&mut self, more: &[&str]) {
        let started = self.attempt(more);
        assert!(started.is_ok(), "it ended: {}", self.log());
    }

    /// Starts a daemon that may refuse; its one sentence if it does.
    pub fn attempt(&mut self, more: &[&str]) -> Result<(), String> {
        let _ = std::fs::remove_file(self.folder.file("log"));
        let log = std::fs::File::create(self.folder.file("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_volley"));
        command.args([
            "run",
            "--socket",
            &self.socket(),
            "--state-dir",
            &self.state,
        ]);
        let child = command.args(more).stdin(Stdio::null()).stderr(log);
        let child = self.child.insert(child.spawn().unwrap());
        let (start, log) = (Instant::now(), self.folder.file("log"));
        let log = || std::fs::read_to_string(&log).unwrap_or_default();
        while !log().contains("ready") {
            if child.try_wait().unwrap().is_some() {
                self.child = None;
                return Err(log().lines().last().unwrap_or_default().to_owned());
            }
            assert!(start.elapsed() < LIMIT, "it does not start: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts a daemon that must fail; returns its one sentence.
    pub fn refused(&self, more: &[&str]) -> String {
        let socket = self.socket();
        let mut args = vec!["run", "--socket", &socket, "--state-dir", &self.state];
        args.extend(more);
        let output = volley(&args);
        assert_eq!(output.status.code(), Some(1), "it ran");
        let message = text(&output.stderr);
        message.lines().last().unwrap_or_default().to_owned()
    }

    /// Kills the daemon with SIGKILL at any time.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn config(&self, args: &[&str]) -> Result<String, String> {
        let socket = self.socket();
        let mut all = vec!["config"];
        all.extend(args);
        all.extend(["--socket", &socket]);
        let output = volley(&all);
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    pub fn ctl(&self, line: &str) -> String {
        let socket = self.socket();
        let mut args = vec!["ctl", "--socket", &socket];
        args.extend(line.split(' '));
        let output = volley(&args);
        assert!(
            output.status.success(),
            "`{line}`: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    pub fn wait_for(&self, line: &str, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let answer = self.ctl(line);
            if wanted(&answer) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "`{line}`: {answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A small file system mounted on a folder; none if this user may not mount one.
pub struct Small(PathBuf);

impl Small {
    pub fn mount(at: &Path) -> Option<Small> {
        std::fs::create_dir_all(at).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        status
            .is_ok_and(|s| s.success())
            .then(|| Small(at.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
