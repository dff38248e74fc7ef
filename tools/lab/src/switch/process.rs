//! Processes that the lab starts. None is left behind: each ends when its standard input is closed, and is killed otherwise.

use super::lines::{Lines, NoLine};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Longest time until a process is ready, or answers.
const READY: Duration = Duration::from_secs(30);
/// Time in which a process ends by itself.
const END: Duration = Duration::from_secs(3);
/// Longest time until the last line of a process that has ended is read.
const LAST: Duration = Duration::from_secs(1);

/// Script of a shell that runs a program until the standard input is closed. The shell waits for the program and ends with it. The part
/// that reads the input keeps no output open: the end of the output shows that the program has ended. It kills a program that ignores
/// SIGTERM. The shell ends it with the program, because another process may get the number of the program.
pub const KEEPER: &str = r#"exec 3<&0
"$@" 3<&- & kept=$!
(cat <&3; kill $kept; sleep 2; kill -9 $kept) >/dev/null 2>&1 & reader=$!
wait $kept; ended=$?
kill $reader 2>/dev/null
exit $ended"#;

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
    lines: Arc<Lines>,
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
        let end = Instant::now() + most;
        let mut last = String::new();
        loop {
            match self.lines.next(end) {
                Ok(line) if line.contains(text) => return Ok(line),
                // A process that prints without end does not prolong the time.
                Ok(_) if Instant::now() >= end => return Err(Silence::Late),
                Ok(line) => last = line,
                Err(NoLine::Late) => return Err(Silence::Late),
                Err(NoLine::Closed) => return Err(Silence::Ended(last)),
            }
        }
    }

    /// Write a line to its standard input, and wait for a line of output that contains a text.
    ///
    /// # Errors
    /// A sentence, if it has ended or does not answer.
    pub fn ask(&mut self, line: &str, answer: &str) -> Result<String, String> {
        // Lines of earlier output are no answer.
        self.lines.clear();
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
                let last = process.lines.last(LAST);
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
        let process = Process {
            child,
            what: what.to_owned(),
            lines: Arc::default(),
        };
        let stdout = stdout.ok_or_else(|| format!("{what}: no standard output"))?;
        // An error is the last line of a process that ends at its start.
        if let Some(stderr) = stderr {
            process.lines.read(stderr);
        }
        process.lines.read(stdout);
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

    /// Close its standard input, and kill it if it has not ended after this time.
    fn end_within(&mut self, limit: Duration) -> std::io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        let start = Instant::now();
        while start.elapsed() < limit && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // With the programs that it has started, which may run when it has ended. Where none is left, nothing can be killed.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }
}

fn late(what: &str, limit: Duration) -> String {
    format!("{what} was not ready after {} s", limit.as_secs_f64())
}

impl Drop for Process {
    fn drop(&mut self) {
        // No caller reads the exit status.
        let _ = self.end_within(END);
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

/// Whether this process may make network namespaces; tried once.
pub fn can_make_namespaces() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    let test = || {
        let mut test = Command::new("unshare");
        test.args(["--net", "true"]);
        test.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        test.status().is_ok_and(|status| status.success())
    };
    *CAN.get_or_init(|| is_installed("unshare") && test())
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
        // A loaded machine may take long; one that was killed has no success.
        assert!(polite.end_within(READY).unwrap().success());
        let rude = Process::start("sleep", shell("echo ready; exec sleep 100"), "ready").unwrap();
        let id = rude.child.id();
        drop(rude);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    /// Whether a process exists that has not ended.
    fn is_running(id: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next());
        !matches!(state, None | Some("Z" | "X"))
    }

    /// Wait until a closure is true.
    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < READY, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_a_process_has_started_is_killed_with_it() {
        // It does not end with its input.
        let script = "sleep 100 & echo ready; while true; do read line && echo \"child $!\"; sleep 0.1; done";
        let mut process = Process::start("sh", shell(script), "ready").unwrap();
        let answer = process.ask("which", "child").unwrap();
        let id = answer.split(' ').next_back().unwrap();
        assert!(is_running(id), "{answer}");
        drop(process);
        until("the child runs", || !is_running(id));
    }

    #[test]
    fn what_a_process_that_has_ended_leaves_behind_is_killed() {
        let script = "sleep 100 & echo \"ready $!\"; exec cat";
        let process = Process::spawn("sh", shell(script)).unwrap();
        let Ok(line) = process.line_with("ready", READY) else {
            panic!("no line")
        };
        let id = line.split(' ').next_back().unwrap();
        assert!(is_running(id), "{line}");
        drop(process);
        until("the child runs", || !is_running(id));
    }

    #[test]
    fn a_keeper_ends_its_program_with_the_input_and_itself_with_the_program() {
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", KEEPER, "sh", "sh", "-c", script]);
            Process::start("a guest", command, "ready")
        };
        let mut guest = start("echo ready $$; sleep 1; echo later $$; exec sleep 100").unwrap();
        let later = guest.line_with("later", READY);
        let Ok(later) = later else {
            panic!("no second line")
        };
        let id = later.split(' ').next_back().unwrap();
        let ended = guest.end_within(READY).unwrap();
        // The status that a shell gives for SIGTERM: neither the program nor the keeper was killed.
        assert_eq!(ended.code(), Some(128 + 15), "{later}");
        assert!(!is_running(id), "{later}");
        let mut guest = start("echo ready; exit 7").unwrap();
        until("the shell runs", || guest.check().is_err());
        assert!(guest.check().unwrap_err().contains('7'));
        let error = start("echo no memory; exit 7").err().unwrap();
        assert_eq!(error, "a guest ended at its start: no memory");
    }

    #[test]
    fn a_process_that_prints_without_end_does_not_wait_for_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("done");
        // More than a pipe and the lines that are kept.
        let flood = format!(
            "yes 'a line of many that are not read' | head -n 200000; touch '{}'; exec cat",
            done.display()
        );
        let process = Process::start_until("sh", shell(&flood), &[&done]);
        drop(process.unwrap());
        let limit = Duration::from_millis(500);
        let late = Process::start_within("yes", shell("exec yes no"), "ready", limit);
        assert_eq!(late.err().unwrap(), "yes was not ready after 0.5 s");
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
        until("the shell runs", || dead.check().is_err());
        assert!(dead.check().unwrap_err().starts_with("sh ended: "));
        assert!(Process::start("x", Command::new("no-such-program"), "").is_err());
    }
}
