//! Runs the demo's programs: each has a time limit, and Ctrl-C ends all of them.

use super::error::NetError;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Interval of checking a program.
const LOOK: Duration = Duration::from_millis(10);
/// Time for a program to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// Runs programs until a signal arrives.
#[derive(Clone)]
pub struct Programs {
    stop: Arc<AtomicBool>,
}

impl Programs {
    /// From now on SIGINT, SIGTERM and SIGHUP are caught instead of ending this process.
    pub fn new() -> Result<Self, NetError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, runtime) = (stop.clone(), tokio::runtime::Builder::new_current_thread());
        let runtime = { runtime }
            .enable_all()
            .build()
            .map_err(NetError::Signals)?;
        let mut signals = {
            let _inside = runtime.enter();
            let kinds = [
                SignalKind::interrupt(),
                SignalKind::terminate(),
                SignalKind::hangup(),
            ];
            let all: Result<Vec<_>, _> = kinds.into_iter().map(signal).collect();
            all.map_err(NetError::Signals)?
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                let [a, b, c] = &mut signals[..] else { return };
                tokio::select! { _ = a.recv() => {}, _ = b.recv() => {}, _ = c.recv() => {} }
                flag.store(true, Ordering::Relaxed);
                // A second signal has no effect, because the clean-up is in progress.
                std::future::pending::<()>().await;
            });
        });
        Ok(Programs { stop })
    }

    /// An error once a signal has arrived.
    pub fn check(&self) -> Result<(), NetError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(NetError::Interrupted),
            false => Ok(()),
        }
    }

    /// Wait, unless a signal arrives.
    pub fn pause(&self, span: Duration) -> Result<(), NetError> {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.check()?;
            std::thread::sleep(LOOK.min(span));
        }
        self.check()
    }

    /// Run a program that must succeed in time; returns its output (at most the capacity of a pipe, 64 KB).
    pub fn run(&self, seconds: u64, line: &[&str]) -> Result<String, NetError> {
        self.check()?;
        let mut started = start(seconds, line)?;
        let end = Instant::now() + Duration::from_secs(seconds);
        let words = || line.join(" ");
        while started.is_running() {
            if let Err(interrupted) = self.check() {
                drop(started);
                return Err(interrupted);
            }
            if Instant::now() > end {
                let line = words();
                return Err(NetError::Late { line, seconds });
            }
            std::thread::sleep(LOOK);
        }
        let (out, err, good) = started.outputs();
        if good {
            return Ok(out);
        }
        self.check()?;
        let outputs = if err.trim().is_empty() { &out } else { &err };
        let why = outputs.trim().lines().last().unwrap_or("no message");
        let (line, why) = (words(), why.to_owned());
        Err(NetError::Failed { line, why })
    }
}

/// Start a program that ends after at most `seconds`, even if this process is killed.
pub fn start(seconds: u64, line: &[&str]) -> Result<Started, NetError> {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "2", &seconds.to_string()])
        .args(line)
        // Ctrl-C must reach only this process, which ends the others in order.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|source| NetError::Failed {
        line: line.join(" "),
        why: source.to_string(),
    })?;
    Ok(Started(child))
}

/// A running program, which ends when this is dropped.
pub struct Started(Child);

impl Started {
    /// Whether the program is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Wait for the program's end; returns both outputs and whether it succeeded.
    pub fn outputs(&mut self) -> (String, String, bool) {
        let read = |from: Option<&mut dyn Read>| {
            let mut bytes = Vec::new();
            // Unreadable output counts as empty.
            let _ = from.map(|from| from.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let out = read(self.0.stdout.as_mut().map(|o| o as &mut dyn Read));
        let err = read(self.0.stderr.as_mut().map(|e| e as &mut dyn Read));
        let good = self.0.wait().is_ok_and(|status| status.success());
        (out, err, good)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) else {
            return;
        };
        if !self.is_running() {
            return;
        }
        // `timeout` passes the signal on to the program.
        let _ = kill_process(pid, Signal::TERM);
        let end = Instant::now() + GRACE;
        while self.is_running() && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        if self.is_running() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_bounded_and_told() {
        let programs = Programs {
            stop: Arc::default(),
        };
        assert_eq!(programs.run(5, &["echo", "hello"]).unwrap(), "hello\n");
        let error = programs
            .run(5, &["sh", "-c", "echo first; echo why >&2; exit 3"])
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("failed: why"), "{error}");
        let start = Instant::now();
        assert!(programs.run(1, &["sleep", "60"]).is_err());
        assert!(start.elapsed() < Duration::from_secs(20));
        programs.stop.store(true, Ordering::Relaxed);
        let error = programs.run(5, &["echo"]).unwrap_err();
        assert!(matches!(error, NetError::Interrupted));
    }

    #[test]
    fn a_program_ends_with_its_owner() {
        let mut started = start(60, &["sleep", "50"]).unwrap();
        assert!(started.is_running());
        let begin = Instant::now();
        drop(started);
        assert!(begin.elapsed() < GRACE, "SIGTERM was enough");
    }
}
