//! `dpdk-testpmd` as a peer.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = "dpdk-testpmd";

/// A running testpmd. Dropping it kills it.
pub struct TestPmd {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl TestPmd {
    /// Start with these virtual devices and arguments, on any core: the machine is shared.
    pub fn start(vdevs: &[String], args: &[&str]) -> TestPmd {
        TestPmd::on("0", "0@(0-1),1@(0-1)", vdevs, args)
    }

    /// Start with a niceness relative to the test, with threads on these cores.
    pub fn on(nice: &str, lcores: &str, vdevs: &[String], args: &[&str]) -> TestPmd {
        let mut command = Command::new("nice");
        command.args([
            "-n", nice, "timeout", "-s", "KILL", "300", "stdbuf", "-oL", PROGRAM,
        ]);
        command.args([
            "--no-huge",
            "-m",
            "512",
            "--no-pci",
            "--no-shconf",
            "--no-telemetry",
        ]);
        command.args(["--lcores", lcores, "--log-level", "lib.vhost.config:5"]);
        vdevs.iter().for_each(|v| _ = command.arg("--vdev").arg(v));
        command.args([
            "--",
            "-i",
            "--auto-start",
            "--total-num-mbufs=16384",
            "--no-flush-rx",
        ]);
        command.args(args);
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().expect("testpmd starts");
        let output = Arc::new(Mutex::new(String::new()));
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (to, also) = (output.clone(), output.clone());
        let out = std::thread::spawn(move || copy(&mut out, &to));
        let err = std::thread::spawn(move || copy(&mut err, &also));
        TestPmd {
            stdin: child.stdin.take(),
            child,
            output,
            readers: vec![out, err],
        }
    }

    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        let _ = writeln!(stdin, "{line}");
        let _ = stdin.flush();
    }

    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Send SIGKILL to the program and its parent.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // `nice` became `timeout`, whose child is the program.
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        for pid in children.split_whitespace().filter_map(|p| p.parse().ok()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.readers.drain(..).for_each(|r| _ = r.join());
    }

    /// Quit; returns the output. `serve` is called meanwhile: a front end ends when its back end has answered the last messages.
    pub fn quit(mut self, mut serve: impl FnMut()) -> String {
        self.say("stop");
        self.say("show port stats all");
        self.say("quit");
        let end = Instant::now() + Duration::from_secs(20);
        while self.is_alive() && Instant::now() < end {
            serve();
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.is_alive(), "testpmd does not end: {}", self.output());
        self.end();
        self.output()
    }
}

impl Drop for TestPmd {
    fn drop(&mut self) {
        self.end();
    }
}

fn copy(from: &mut impl Read, to: &Mutex<String>) {
    let mut some = [0; 4096];
    while let Ok(n) = from.read(&mut some) {
        if n == 0 {
            return;
        }
        to.lock()
            .unwrap()
            .push_str(&String::from_utf8_lossy(&some[..n]));
    }
}

/// The number behind the first `key` in the statistics of port `port`.
pub fn stat(output: &str, port: usize, key: &str) -> Option<u64> {
    let start = output.rfind(&format!("NIC statistics for port {port}"))?;
    let rest = &output[start..];
    let at = rest.find(key)? + key.len();
    rest[at..].split_whitespace().next()?.parse().ok()
}
