//! Daemons with traffic for several workers, which `contended` steps.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::home::Home;
use xtask::run::Program;

/// A daemon's configuration, and commands to run before the examination.
pub struct Scenario {
    pub name: &'static str,
    pub what: &'static str,
    config: &'static str,
    commands: &'static [&'static str],
}

/// Streams from two workers into the same interfaces and out of the same one.
const ROUTER: &str = r#"
[engine]
workers = WORKERS
vector_size = 32
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:00"
addresses = ["198.18.0.1/24", "2001:2::1/64"]
[[interface]]
name = "pg1"
kind = "pg"
addresses = ["198.18.1.1/24", "2001:2:1::1/64"]
[[neighbor]]
interface = "pg1"
address = "198.18.1.10"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "2001:2:1::10"
mac = "02:aa:00:00:00:0a"
[[route]]
prefix = "10.0.0.0/8"
via = "198.18.1.10"
interface = "pg1"
[[route]]
prefix = "2001:db8::/32"
via = "2001:2:1::10"
interface = "pg1"
"#;

const BRIDGE: &str = r#"
[engine]
workers = WORKERS
vector_size = 32
[[interface]]
name = "pg0"
kind = "pg"
[[interface]]
name = "pg1"
kind = "pg"
[[bridge_domain]]
id = 10
[[bridge_port]]
interface = "pg0"
domain = 10
[[bridge_port]]
interface = "pg1"
domain = 10
"#;

macro_rules! ip4 {
    ($name:literal, $worker:literal) => {
        concat!(
            "packet-generator new name ", $name, " interface pg0 worker ", $worker,
            " template { eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.2 dst 10.1.2.3 ttl 64 / udp / payload 20 }",
            " edit udp.sport random 1024 60000"
        )
    };
}

pub const SCENARIOS: [Scenario; 6] = [
    Scenario {
        name: "ip4",
        what: "IPv4 routing, a stream on each of 2 workers, one way in and one out",
        config: ROUTER,
        commands: &[ip4!("a", "0"), ip4!("b", "1")],
    },
    Scenario {
        name: "drops",
        what: "the same with packets that are dropped and answered: no route, expired, faulty",
        config: ROUTER,
        commands: &[
            "packet-generator new name a interface pg0 worker 0 template { eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.2 dst 11.1.2.3 ttl 64 / udp / payload 20 }",
            "packet-generator new name b interface pg0 worker 1 template { eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.3 dst 11.1.2.3 ttl 64 / udp / payload 20 }",
            "packet-generator new name c interface pg0 worker 0 template { eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.2 dst 10.1.2.3 ttl 1 / udp / payload 20 }",
            "packet-generator new name d interface pg0 worker 1 template { eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.3 dst 10.1.2.3 ttl 1 / udp / payload 20 }",
            "packet-generator new name e interface pg0 worker 0 template { eth dst 02:fe:00:00:00:00 / ip6 src 2001:2::2 dst 2001:db8::1 / udp / payload 20 }",
            "packet-generator new name f interface pg0 worker 1 template { eth dst 02:fe:00:00:00:00 / ip6 src 2001:2::3 dst 2001:db8::1 / udp / payload 20 }",
        ],
    },
    Scenario {
        name: "bridge",
        what: "a bridge domain of two ports, a stream on each of 2 workers, both ways",
        config: BRIDGE,
        commands: &[
            "packet-generator new name a interface pg0 worker 0 template { eth src 02:00:00:00:00:01 dst 02:00:00:00:00:02 / payload 50 }",
            "packet-generator new name b interface pg1 worker 1 template { eth src 02:00:00:00:00:02 dst 02:00:00:00:00:01 / payload 50 }",
        ],
    },
    Scenario {
        name: "rss",
        what: "IPv4 routing, one stream spread over 3 workers by software RSS",
        config: ROUTER,
        commands: &["set interface rss pg0 on", ip4!("a", "0")],
    },
    Scenario {
        name: "pipeline",
        what: "IPv4 routing, streams on both workers, the lookup on worker 1, output on worker 0",
        config: ROUTER,
        commands: &[
            "set node worker ip4-lookup 1",
            "set node worker interface-output 0",
            ip4!("a", "0"),
            ip4!("b", "1"),
        ],
    },
    Scenario {
        name: "rss-bridge",
        what: "a bridge domain, one stream of many stations spread over 2 workers, the path batcher before it",
        config: BRIDGE,
        commands: &[
            "set interface rss pg0 on",
            "set interface path-batcher on pg0",
            "packet-generator new name a interface pg0 worker 0 template { eth src 02:00:00:00:00:01 dst 02:00:00:00:00:02 / ip4 dst 10.0.0.1 / udp / payload 20 } edit udp.sport random 1024 60000 edit eth.src random 02:00:00:00:01:00 02:00:00:00:04:ff",
        ],
    },
];

impl Scenario {
    fn workers(&self) -> &'static str {
        if self.name == "rss" { "3" } else { "2" }
    }
}

/// Time limit for the daemon's start and end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running daemon, killed when dropped.
pub struct Daemon {
    child: Child,
    folder: PathBuf,
    binary: PathBuf,
    home: Home,
}

impl Daemon {
    /// Starts a daemon with the traffic of a scenario.
    pub fn start(home: &Home, binary: &Path, scenario: &Scenario) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("volley-contended-{}", std::process::id()));
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let config = scenario.config.replace("WORKERS", scenario.workers());
        std::fs::write(folder.join("volley.toml"), config).map_err(failed)?;
        let log = std::fs::File::create(folder.join("log")).map_err(failed)?;
        let child = Command::new(binary)
            .arg("run")
            .arg("-c")
            .arg(folder.join("volley.toml"))
            .arg("--socket")
            .arg(folder.join("s"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
        let mut daemon = Daemon {
            child,
            folder,
            binary: binary.to_owned(),
            home: home.clone(),
        };
        daemon.wait_until_ready()?;
        for command in scenario.commands {
            daemon.ctl(&[], command)?;
        }
        daemon.ctl(&[], "packet-generator enable")?;
        Ok(daemon)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("ready") {
                return Ok(());
            }
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || start.elapsed() > PATIENCE {
                return Err(format!("the daemon does not become ready: {log}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn ctl(&self, more: &[&str], line: &str) -> Result<String, String> {
        let run = Program::new(&self.home, &self.binary)
            .args(["ctl", "--socket"])
            .arg(self.folder.join("s"))
            .args(more)
            .args(line.split(' '))
            .limit_seconds(30)
            .require()?;
        Ok(run.stdout)
    }

    /// Packets that all workers have received so far.
    pub fn packets(&self) -> Result<u64, String> {
        let text = self.ctl(&["--json"], "show workers")?;
        let shown: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let rows = shown["workers"].as_array().into_iter().flatten();
        Ok(rows.filter_map(|row| row["rx_packets"].as_u64()).sum())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A failure means that the daemon has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
