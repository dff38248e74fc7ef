//! The real peer: DPDK's test program with its memif driver.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// One testpmd at a time, since it polls on its own core.
static ONE: Mutex<()> = Mutex::new(());
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running testpmd. Dropping it kills it.
pub struct Testpmd {
    child: Child,
    stdin: ChildStdin,
    message: Arc<Mutex<String>>,
    _one: Option<MutexGuard<'static, ()>>,
}

/// Counters of one port between `start` and `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    pub rx: u64,
    pub tx: u64,
}

/// Whether the program is installed; prints a note if it is not.
pub fn is_there() -> bool {
    let there = Command::new("sh")
        .args(["-c", "command -v dpdk-testpmd"])
        .output();
    let there = there.is_ok_and(|out| out.status.success());
    if !there {
        eprintln!("SKIP: dpdk-testpmd is not installed (Debian: dpdk)");
    }
    there
}

/// The core to forward on.
pub fn last_core() -> usize {
    static LAST: OnceLock<usize> = OnceLock::new();
    *LAST.get_or_init(|| std::thread::available_parallelism().map_or(0, |n| n.get() - 1))
}

/// The argument of a memif port.
pub fn port(number: u32, role: &str, id: u32, socket: &Path, more: &str) -> String {
    let socket = socket.display();
    format!("--vdev=net_memif{number},role={role},id={id},socket={socket},socket-abstract=no{more}")
}

impl Testpmd {
    /// Run with these ports and arguments, forwarding on the last core. Waits for the prompt and calls `meanwhile`
    /// repeatedly, because testpmd connects while it starts.
    pub fn start(ports: &[String], args: &[&str], meanwhile: impl FnMut()) -> Testpmd {
        let one = ONE.lock().unwrap_or_else(|e| e.into_inner());
        let mut pmd = Testpmd::start_beside(ports, args, meanwhile);
        pmd._one = Some(one);
        pmd
    }

    /// Like `start`, while another one may run.
    pub fn start_beside(ports: &[String], args: &[&str], meanwhile: impl FnMut()) -> Testpmd {
        let prefix = format!(
            "--file-prefix=volley{}x{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let last = last_core();
        let cores = format!("0@0,1@{last}");
        // `timeout` ends it if the test is killed.
        let mut child = Command::new("timeout")
            .args([
                "--foreground",
                "-s",
                "KILL",
                "120",
                "stdbuf",
                "-oL",
                "dpdk-testpmd",
            ])
            .args([
                "--no-huge",
                "-m",
                "512",
                "--no-pci",
                "--no-shconf",
                "--no-telemetry",
            ])
            .args([&prefix, "--lcores", &cores])
            .args(ports)
            .args([
                "--",
                "-i",
                "--total-num-mbufs=16384",
                "--disable-link-check",
                "--no-flush-rx",
            ])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if std::env::var_os("TESTPMD_SHOW").is_some() {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let message = Arc::new(Mutex::new(String::new()));
        let into = message.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(stdout);
            let mut line = Vec::new();
            // The prompt ends with a blank, not with a newline.
            while from.read_until(b' ', &mut line).is_ok_and(|n| n > 0) {
                into.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        let mut pmd = Testpmd {
            child,
            stdin,
            message,
            _one: None,
        };
        pmd.wait("testpmd> ", meanwhile);
        pmd
    }

    /// Type a command.
    pub fn say(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").unwrap();
    }

    /// Wait for a text; returns the output before it.
    pub fn wait(&mut self, text: &str, mut meanwhile: impl FnMut()) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            {
                let mut message = self.message.lock().unwrap();
                if let Some(at) = message.find(text) {
                    let before: String = message.drain(..at + text.len()).collect();
                    return before;
                }
                assert!(
                    Instant::now() < end,
                    "testpmd does not say {text:?}: {message}"
                );
            }
            meanwhile();
        }
    }

    /// Start forwarding, and wait until it runs: a client posts its buffers with its first poll.
    pub fn forward(&mut self, mut meanwhile: impl FnMut()) {
        self.say("start");
        self.wait("nb forwarding cores", &mut meanwhile);
        let end = Instant::now() + Duration::from_millis(100);
        while Instant::now() < end {
            meanwhile();
        }
    }

    /// Stop forwarding; returns the counters of each port.
    pub fn stop(&mut self, meanwhile: impl FnMut()) -> Vec<Stats> {
        self.say("stop");
        let text = self.wait("Done.", meanwhile);
        if std::env::var_os("TESTPMD_SHOW").is_some() {
            eprintln!("{text}");
        }
        let number = |line: &str, word: &str| {
            let (_, rest) = line.split_once(word)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let mut stats: Vec<Stats> = Vec::new();
        // Blocks of streams come first, then those of ports, then the sum over all ports.
        let at = text.find("Forward statistics for port").unwrap_or_default();
        for line in text[at..].lines() {
            if let Some(rx) = number(line, "RX-packets:") {
                stats.push(Stats { rx, tx: 0 });
            }
            if let (Some(tx), Some(last)) = (number(line, "TX-packets:"), stats.last_mut()) {
                last.tx = tx;
            }
        }
        stats.pop();
        stats
    }

    /// Send SIGKILL, like a crash.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // `timeout` passes the signal on to its only child before it dies.
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let pids = std::fs::read_to_string(children).unwrap_or_default();
        for pid in pids.split_whitespace() {
            let _ = Command::new("kill").args(["-KILL", pid]).status();
        }
        let _ = self.child.wait();
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        self.end();
    }
}
