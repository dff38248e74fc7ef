//! Processes that the lab starts. None is left behind: each ends when its standard input is closed, and is killed otherwise.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Longest time until a process is ready.
const READY: Duration = Duration::from_secs(30);
/// Time in which a process ends by itself.
const END: Duration = Duration::from_secs(3);

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    what: String,
}

impl Process {
    /// Start a command, and wait until it prints a line that contains `ready`; an empty text means any line.
    ///
    /// # Errors
    /// A sentence, if the program cannot be started, or ends or is silent.
    pub fn start(what: &str, command: Command, ready: &str) -> Result<Process, String> {
        let (process, lines) = Process::spawn(what, command)?;
        let start = Instant::now();
        let mut last = String::new();
        loop {
            let left = READY.saturating_sub(start.elapsed());
            match lines.recv_timeout(left) {
                Ok(line) if line.contains(ready) => return Ok(process),
                Ok(line) => last = line,
                Err(mpsc::RecvTimeoutError::Timeout) => return Err(late(what)),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(format!("{what} ended at its start: {last}"));
                }
            }
        }
    }

    /// Start a command, and wait until these sockets exist.
    ///
    /// # Errors
    /// A sentence, if the program cannot be started, or ends or does not make them.
    pub fn start_until(what: &str, command: Command, sockets: &[&Path]) -> Result<Process, String> {
        let (mut process, lines) = Process::spawn(what, command)?;
        let start = Instant::now();
        while !sockets.iter().all(|socket| socket.exists()) {
            if process.check().is_err() {
                let last = lines.try_iter().last().unwrap_or_default();
                return Err(format!("{what} ended at its start: {last}"));
            }
            if start.elapsed() > READY {
                return Err(late(what));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    /// Start a command; its lines of output can be received.
    fn spawn(what: &str, mut command: Command) -> Result<(Process, Receiver<String>), String> {
        // The Ctrl-C of the terminal is for the lab alone.
        command.process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("{what}: {e}"))?;
        let stdout = child.stdout.take();
        let process = Process {
            child,
            what: what.to_owned(),
        };
        let stdout = stdout.ok_or_else(|| format!("{what}: no standard output"))?;
        let (sender, lines) = mpsc::channel();
        // Reads on until the process ends, so that it never waits for a reader.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                // After the start, the lines are read by nothing.
                let _ = sender.send(line);
            }
        });
        Ok((process, lines))
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    ///
    /// # Errors
    /// A sentence, if it has ended.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("{} ended: {status}", self.what)),
            Err(e) => Err(format!("{}: {e}", self.what)),
        }
    }
}

fn late(what: &str) -> String {
    format!("{what} was not ready after {} s", READY.as_secs())
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let start = Instant::now();
        while start.elapsed() < END {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // A process that has ended meanwhile cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program is in PATH.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// A command of a program that is killed when this one ends, and that does not get the Ctrl-C of the terminal: the
/// present point is measured to its end.
pub fn dependent(program: &str) -> Command {
    let mut command = match is_installed("setpriv") {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", program]);
            command
        }
        false => Command::new(program),
    };
    command.process_group(0);
    command
}

/// Whether this process may make network namespaces.
pub fn can_make_namespaces() -> bool {
    let test = || {
        let mut test = Command::new("unshare");
        test.args(["--net", "true"]);
        test.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        test.status().is_ok_and(|status| status.success())
    };
    is_installed("unshare") && test()
}

/// A command of a program, in its own network namespace where the system allows it.
pub fn in_namespace(program: &Path) -> Command {
    match can_make_namespaces() {
        true => {
            let mut command = Command::new("unshare");
            command.args(["--net", "--"]).arg(program);
            command
        }
        false => Command::new(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_ends_with_its_input_or_is_killed() {
        let mut polite = Process::start("cat", shell("echo ready; exec cat"), "ready").unwrap();
        polite.check().unwrap();
        let start = Instant::now();
        drop(polite);
        assert!(start.elapsed() < END);
        let rude = Process::start("sleep", shell("echo ready; exec sleep 100"), "ready").unwrap();
        let id = rude.child.id();
        drop(rude);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn sockets_say_that_a_process_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, other) = (folder.path().join("a"), folder.path().join("b"));
        let touch = format!("sleep 0.1; touch {}; exec cat", socket.display());
        assert!(Process::start_until("sh", shell(&touch), &[&socket]).is_ok());
        let error = Process::start_until("sh", shell("echo no"), &[&other]).unwrap_err();
        assert!(error.starts_with("sh ended at its start"), "{error}");
    }

    #[test]
    fn a_process_that_dies_is_reported() {
        let error = Process::start("sh", shell("echo no memory; exit 1"), "ready").unwrap_err();
        assert_eq!(error, "sh ended at its start: no memory");
        let mut dead = Process::start("sh", shell("echo ready; exit 1"), "ready").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(dead.check().unwrap_err().starts_with("sh ended: "));
        assert!(Process::start("x", Command::new("no-such-program"), "").is_err());
    }
}
