//! Processes that the lab starts. None is left behind: each ends when its standard input is closed, and is killed otherwise.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Longest time until a process is ready, or answers.
const READY: Duration = Duration::from_secs(30);
/// Time in which a process ends by itself.
const END: Duration = Duration::from_secs(3);

/// Why a process did not print a line.
enum Silence {
    /// The time is over.
    Late,
    /// The process has closed its output; the last line before that.
    Ended(String),
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    what: String,
    /// Lines of its output that were not read.
    lines: Receiver<String>,
}

impl Process {
    /// Start a command, and wait until it prints a line that contains `ready`; an empty text means any line.
    ///
    /// # Errors
    /// A sentence, if the program cannot be started, or ends or is silent.
    pub fn start(what: &str, command: Command, ready: &str) -> Result<Process, String> {
        Process::start_within(what, command, ready, READY)
    }

    /// As [`Process::start`], within this time.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn start_within(
        what: &str,
        command: Command,
        ready: &str,
        limit: Duration,
    ) -> Result<Process, String> {
        let process = Process::spawn(what, command)?;
        match process.line_with(ready, limit) {
            Ok(_) => Ok(process),
            Err(Silence::Late) => Err(late(what, limit)),
            Err(Silence::Ended(last)) => Err(format!("{what} ended at its start: {last}")),
        }
    }

    /// The next line of output that contains a text.
    fn line_with(&self, text: &str, most: Duration) -> Result<String, Silence> {
        let start = Instant::now();
        let mut last = String::new();
        loop {
            let left = most.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return Ok(line),
                Ok(line) => last = line,
                Err(mpsc::RecvTimeoutError::Timeout) => return Err(Silence::Late),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Silence::Ended(last)),
            }
        }
    }

    /// Write a line to its standard input, and wait for a line of output that contains a text.
    ///
    /// # Errors
    /// A sentence, if it has ended or does not answer.
    pub fn ask(&mut self, line: &str, answer: &str) -> Result<String, String> {
        // Lines of earlier output are no answer.
        self.lines.try_iter().for_each(drop);
        let what = &self.what;
        let input = self.child.stdin.as_mut();
        let input = input.ok_or_else(|| format!("{what}: no standard input"))?;
        let written = writeln!(input, "{line}").and_then(|()| input.flush());
        written.map_err(|e| format!("{what}: {e}"))?;
        self.line_with(answer, READY)
            .map_err(|silence| match silence {
                Silence::Late => format!("{what} did not answer `{line}`"),
                Silence::Ended(last) => format!("{what} ended: {last}"),
            })
    }

    /// Start a command, and wait until these sockets exist.
    ///
    /// # Errors
    /// A sentence, if the program cannot be started, or ends or does not make them.
    pub fn start_until(what: &str, command: Command, sockets: &[&Path]) -> Result<Process, String> {
        let mut process = Process::spawn(what, command)?;
        let start = Instant::now();
        while !sockets.iter().all(|socket| socket.exists()) {
            if process.check().is_err() {
                let last = process.lines.try_iter().last().unwrap_or_default();
                return Err(format!("{what} ended at its start: {last}"));
            }
            if start.elapsed() > READY {
                return Err(late(what, READY));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    /// Start a command.
    fn spawn(what: &str, mut command: Command) -> Result<Process, String> {
        // The Ctrl-C of the terminal is for the lab alone.
        command.process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{what}: {e}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, lines) = mpsc::channel();
        let process = Process {
            child,
            what: what.to_owned(),
            lines,
        };
        let stdout = stdout.ok_or_else(|| format!("{what}: no standard output"))?;
        // An error is the last line of a process that ends at its start.
        if let Some(stderr) = stderr {
            pass_on(stderr, sender.clone());
        }
        pass_on(stdout, sender);
        Ok(process)
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

/// Pass the lines on until the process ends, so that it never waits for a reader.
fn pass_on(from: impl Read + Send + 'static, to: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            // The reader is gone when the process is being ended.
            let _ = to.send(line);
        }
    });
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} was not ready after {} s", limit.as_secs())
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
    fn a_process_answers_lines() {
        let echo = "echo ready; while read line; do echo \"got $line\"; done";
        let mut process = Process::start("sh", shell(echo), "ready").unwrap();
        for line in ["one", "two"] {
            assert_eq!(process.ask(line, "got").unwrap(), format!("got {line}"));
        }
        let mut dead = Process::start("sh", shell("echo ready; exit 1"), "ready").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(dead.ask("one", "got").is_err());
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
        for to in ["", " >&2"] {
            let script = format!("echo no memory{to}; exit 1");
            let error = Process::start("sh", shell(&script), "ready").unwrap_err();
            assert_eq!(error, "sh ended at its start: no memory");
        }
        let mut dead = Process::start("sh", shell("echo ready; exit 1"), "ready").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(dead.check().unwrap_err().starts_with("sh ended: "));
        assert!(Process::start("x", Command::new("no-such-program"), "").is_err());
    }
}
