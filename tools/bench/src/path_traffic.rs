//! Packets of several paths in a pattern, and a router for them.

use super::BenchError;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use volley_daemon::stack::{Stack, StackError};
use volley_daemon::{EngineSettings, IsaChoice};
use volley_graph::{Clock, Worker};
use volley_model::{ModelError, Request};
use volley_pcap::{FileFormat, Packet, Writer, WriterOptions};
use volley_pg::{Preload, StreamSpec};
use volley_wire::MacAddr;
use volley_wire::build::Packet as Build;

/// Number of packets after which a pattern repeats.
const PERIOD: usize = 4096;
/// Number of paths: IPv4, IPv6, and each through a group of next hops.
pub const PATHS: usize = 4;

/// The patterns of the experiment.
pub const PATTERNS: [&str; 7] = [
    "alternating-2",
    "alternating-3",
    "alternating-4",
    "random-2",
    "random-4",
    "bursty-4",
    "single",
];

const ROUTER: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:00:00:00:00:01"
[[interface]]
name = "pg1"
kind = "pg"
mac = "02:00:00:00:00:02"
addresses = ["198.18.1.1/24", "2001:2::1/64"]
[[neighbor]]
interface = "pg1"
address = "198.18.1.10"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "198.18.1.11"
mac = "02:aa:00:00:00:0b"
[[neighbor]]
interface = "pg1"
address = "2001:2::a"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "2001:2::b"
mac = "02:aa:00:00:00:0b"
[[route]]
prefix = "20.0.0.0/8"
via = "198.18.1.10"
interface = "pg1"
[[route]]
prefix = "21.0.0.0/8"
paths = [{ via = "198.18.1.10", interface = "pg1" }, { via = "198.18.1.11", interface = "pg1" }]
[[route]]
prefix = "2001:db8::/32"
via = "2001:2::a"
interface = "pg1"
[[route]]
prefix = "2001:db9::/32"
paths = [{ via = "2001:2::a", interface = "pg1" }, { via = "2001:2::b", interface = "pg1" }]
"#;

/// Rate of a stream.
#[derive(Clone, Copy)]
pub enum Pace {
    /// As fast as possible, with each lap created before it is sent: only the work after the source is measured.
    Ahead,
    /// As fast as packets are created, without waiting for complete laps.
    Full,
    /// Packets per second.
    Rate(u64),
}

/// A router for the experiment; the benchmark steps its worker.
pub struct Rig {
    /// The control plane.
    pub stack: Stack,
    /// The worker.
    pub worker: Worker,
}

impl Rig {
    /// A router for vectors of up to `size` packets.
    pub fn new(size: u32, isa: &str) -> Result<Rig, BenchError> {
        let isa: IsaChoice = isa.parse().map_err(StackError::from)?;
        let settings = EngineSettings {
            vector_size: size.max(4),
            buffers: 16_384,
            isa,
            ..EngineSettings::default()
        };
        let (stack, mut workers) = Stack::new(&settings, Clock::system())?;
        let worker = workers
            .pop()
            .ok_or_else(|| BenchError::Args("no worker".into()))?;
        let mut rig = Rig { stack, worker };
        rig.configure(ROUTER)?;
        Ok(rig)
    }

    /// Apply a configuration.
    pub fn configure(&mut self, text: &str) -> Result<(), BenchError> {
        let config = volley_config::parse(text).map_err(|e| BenchError::Args(e.to_string()))?;
        config.requests.into_iter().try_for_each(|r| self.apply(r))
    }

    /// Apply a change and wait until the worker uses it.
    pub fn apply(&mut self, request: Request) -> Result<(), BenchError> {
        self.stack.apply(&request)?;
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        while !self.stack.settled() {
            self.worker.step();
        }
    }

    /// Create rules for the first `paths` paths, a queue each, and enable the batcher.
    pub fn batch(
        &mut self,
        paths: usize,
        batch: u32,
        timeout_us: u32,
        gather: u32,
    ) -> Result<(), BenchError> {
        let rules = [
            "match = [\"ip4\"]",
            "match = [\"ip6\"]",
            "priority = 1\nmatch = [\"ip4.dst=21.0.0.0/8\"]",
            "priority = 1\nmatch = [\"ip6.dst=2001:db9::/32\"]",
        ];
        let mut text =
            format!("[path_batcher]\nbatch = {batch}\ntimeout = {timeout_us}\ngather = {gather}\n");
        for (at, rule) in rules.iter().enumerate().take(paths) {
            let id = at + 1;
            text += &format!(
                "[[path_queue]]\nid = {id}\n[[path_rule]]\nname = \"p{id}\"\nqueue = {id}\n{rule}\n"
            );
        }
        self.configure(&text)?;
        let on = volley_batcher::InterfaceBatcher {
            interface: "pg0".into(),
            enabled: true,
        };
        let on = Request::set(&on).map_err(|e| BenchError::Args(e.to_string()))?;
        self.apply(on)
    }

    /// Create a stream that repeats the packets.
    pub fn stream(
        &mut self,
        packets: &[Vec<u8>],
        burst: u32,
        pace: Pace,
    ) -> Result<(), BenchError> {
        let folder = std::env::temp_dir().join(format!("volley-bench-{}", std::process::id()));
        let io = |e: std::io::Error| BenchError::File {
            path: folder.display().to_string(),
            why: e.to_string(),
        };
        std::fs::create_dir_all(&folder).map_err(io)?;
        let file = folder.join("pattern.pcap");
        let done =
            write(&file, packets).and_then(|()| self.start(&file, packets.len(), burst, pace));
        let _ = std::fs::remove_dir_all(&folder);
        done
    }

    fn start(
        &mut self,
        file: &Path,
        packets: usize,
        burst: u32,
        pace: Pace,
    ) -> Result<(), BenchError> {
        let spec = StreamSpec {
            rate: match pace {
                Pace::Rate(pps) => Some(pps),
                Pace::Ahead | Pace::Full => None,
            },
            limit: u64::MAX,
            max_frame: Some(burst),
            seed: Some(1),
            ..StreamSpec::of_file("pattern", "pg0", file)
        };
        let refused = |error| ModelError::invalid("stream", error);
        match pace {
            Pace::Ahead => self.stack.pg.preloaded(&spec, Preload { packets })?,
            Pace::Full | Pace::Rate(_) => {
                self.stack.apply(&Request::set(&spec).map_err(refused)?)?
            }
        };
        self.stack.pg.switch(None, true)?;
        self.settle();
        Ok(())
    }
}

fn write(file: &Path, packets: &[Vec<u8>]) -> Result<(), BenchError> {
    let mut writer = Writer::create(file, WriterOptions::new(FileFormat::PcapUs))?;
    for data in packets {
        let packet = Packet::ethernet(0, data.clone());
        writer.write(packet.as_ref())?;
    }
    writer.finish()?;
    Ok(())
}

/// A packet of a path; `flow` varies its destination.
pub fn packet(path: usize, flow: u32) -> Vec<u8> {
    let eth = Build::eth(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 0x99]));
    let four = |net: u32| {
        let dst = Ipv4Addr::from_bits(net << 24 | (flow & 0xffff));
        eth.clone().ip4(Ipv4Addr::new(198, 19, 0, 1), dst)
    };
    let six = |net: u128| {
        let dst = Ipv6Addr::from_bits(net << 96 | u128::from(flow & 0xffff));
        eth.clone()
            .ip6(Ipv6Addr::from_bits(0x2001_0002_0001 << 80 | 1), dst)
    };
    let ip = match path {
        0 => four(20),
        1 => six(0x2001_0db8),
        2 => four(21),
        _ => six(0x2001_0db9),
    };
    ip.udp(1234, 80).payload([0; 18]).build()
}

/// Pseudo-random numbers, equal on all machines (xorshift).
pub fn rng(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// The paths of a pattern: their number, and the path of each packet.
pub fn pattern(name: &str) -> Option<(usize, Vec<usize>)> {
    let (kind, paths) = match name.rsplit_once('-') {
        Some((kind, paths)) => (
            kind,
            paths.parse().ok().filter(|p| (1..=PATHS).contains(p))?,
        ),
        None => (name, 1),
    };
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut last = 0;
    let step = |at: usize| match kind {
        "alternating" => Some(at % paths),
        "random" => Some(rng(&mut state) as usize % paths),
        // Bursts of 8 packets on average.
        "bursty" => {
            if rng(&mut state).is_multiple_of(8) {
                last = rng(&mut state) as usize % paths;
            }
            Some(last)
        }
        "single" => Some(0),
        _ => None,
    };
    // A multiple of the number of alternating paths.
    let period = PERIOD - PERIOD % paths;
    let all: Option<Vec<usize>> = (0..period).map(step).collect();
    Some((paths, all?))
}
