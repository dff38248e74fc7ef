//! The command line of `volley bench`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Patch: from the driver straight to the other interface.
    Xc,
    /// Cross-connect through ethernet-input.
    L2xc,
    /// IPv4 routing.
    Ip4,
    /// IPv6 routing.
    Ip6,
    /// A bridge domain of two ports: source and destination are looked up.
    Bridge,
    /// A third each of L2 cross-connect, IPv4 and IPv6, packet by packet.
    Mix,
}

impl Scenario {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Xc => "xc",
            Scenario::L2xc => "l2xc",
            Scenario::Ip4 => "ip4",
            Scenario::Ip6 => "ip6",
            Scenario::Bridge => "bridge",
            Scenario::Mix => "mix",
        }
    }

    /// Whether a share of the packets is IPv4.
    pub fn has_ip4(self) -> bool {
        matches!(self, Scenario::Ip4 | Scenario::Mix)
    }

    /// Whether a share of the packets is IPv6.
    pub fn has_ip6(self) -> bool {
        matches!(self, Scenario::Ip6 | Scenario::Mix)
    }
}

/// Which destinations the packets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Destinations {
    /// One address.
    Static,
    /// The table's prefixes one after the other, one address in each.
    RoundRobin,
    /// Random, inside the table's prefixes.
    Uniform,
    /// Random over the whole address space.
    Any,
}

impl Destinations {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Destinations::Static => "static",
            Destinations::RoundRobin => "round-robin",
            Destinations::Uniform => "uniform",
            Destinations::Any => "any",
        }
    }
}

/// Which stations the packets of a bridge are from and for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MacPattern {
    /// One is the source, one the destination.
    One,
    /// One source, many destinations.
    Dst,
    /// Many sources, many destinations.
    SrcDst,
}

/// How the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// Vectors through the graph.
    Graph,
    /// One packet at a time through the whole path: the classic baseline.
    Rtc,
}

impl Style {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Style::Graph => "graph",
            Style::Rtc => "rtc",
        }
    }
}

/// Measure forwarding.
#[derive(Clone, Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Measure something smaller than forwarding.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What is forwarded.
    #[arg(long, value_enum, default_value = "ip4")]
    pub scenario: Scenario,
    /// Which destinations the packets have.
    #[arg(long, value_enum, default_value = "static")]
    pub destinations: Destinations,
    /// Different destinations.
    #[arg(long, default_value_t = 65_536)]
    pub distinct: usize,
    /// Which stations the packets of a bridge are from and for.
    #[arg(long, value_enum, default_value = "one")]
    pub stations: MacPattern,
    /// How many are many; there are at least as many buffers.
    #[arg(long, default_value_t = 10_000)]
    pub macs: u32,
    /// IPv4 routes, `PREFIX NEXTHOP` a line or MRT, plain or compressed.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// IPv6 routes.
    #[arg(long)]
    pub table6: Option<PathBuf>,
    /// A made-up table of so many prefixes where no file is given.
    #[arg(long)]
    pub prefixes: Option<usize>,
    /// Bytes of a packet without frame check sequence.
    #[arg(long, default_value_t = 64)]
    pub size: u32,
    /// Most packets per vector, 1 to 1024.
    #[arg(long, default_value_t = 256)]
    pub vector_size: u32,
    /// Packets that the source sends at once (default: the vector size).
    #[arg(long)]
    pub maxframe: Option<u32>,
    /// Buffers in circulation: 512 stay in the cache, 65536 do not.
    #[arg(long, default_value_t = 512)]
    pub buffers: usize,
    /// Vectors through the graph, or one packet at a time.
    #[arg(long, value_enum, default_value = "graph")]
    pub style: Style,
    /// Instruction-set level: auto, scalar, x86-64-v3, x86-64-v4.
    #[arg(long, default_value = "auto")]
    pub isa: String,
    /// Seconds of each repetition.
    #[arg(long, default_value_t = 0.5)]
    pub seconds: f64,
    /// How often it is measured.
    #[arg(long, default_value_t = 9)]
    pub repetitions: usize,
    /// Stop after so many packets instead (one repetition).
    #[arg(long)]
    pub packets: Option<u64>,
    /// A short run for callgrind: with --packets, nothing is warmed up or verified.
    #[arg(long, requires = "packets")]
    pub callgrind: bool,
    /// Processor core to run on (default: the last; several workers have one each, from the first on).
    #[arg(long)]
    pub core: Option<usize>,
    /// So many workers at a time, against each of them alone.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Different sources and destinations of frames through a bridge.
    pub fn macs(&self) -> (u32, u32) {
        match self.stations {
            MacPattern::One => (1, 1),
            MacPattern::Dst => (1, self.macs),
            MacPattern::SrcDst => (self.macs, self.macs),
        }
    }

    /// Number of buffers in circulation: each packet of a bridge's stream has its own buffer.
    pub fn in_circulation(&self) -> usize {
        match self.scenario {
            Scenario::Bridge => self.buffers.max(self.macs().1 as usize),
            _ => self.buffers,
        }
    }
}

/// What else can be measured.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Longest-prefix match alone: lookups, size, build time, updates while another thread looks up.
    Lpm(LpmArgs),
    /// The path batcher: patterns, batch sizes, with and without; delays; learning.
    PathBatcher(PathArgs),
    /// The longest gap of a worker while changes of every kind are made, and whether a packet is lost.
    Pauses(PauseArgs),
    /// Complex packets: how many are answered in a second, and how much a flood of them takes from transit.
    SlowPath(SlowPathArgs),
    /// Updates of a routing protocol at full speed beside a stream: no packet to a prefix that they do not touch may be lost.
    Updates(UpdateArgs),
}

/// Measure updates beside a stream.
#[derive(Clone, Debug, ClapArgs)]
pub struct UpdateArgs {
    /// IPv4 routes, `PREFIX NEXTHOP` a line or MRT, plain or compressed.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// IPv6 routes.
    #[arg(long)]
    pub table6: Option<PathBuf>,
    /// IPv4 updates, `A|W PREFIX` a line (made up where no file is given).
    #[arg(long)]
    pub updates: Option<PathBuf>,
    /// IPv6 updates.
    #[arg(long)]
    pub updates6: Option<PathBuf>,
    /// A made-up table of so many IPv4 prefixes, and a quarter of it for IPv6, where no file is given.
    #[arg(long, default_value_t = 100_000)]
    pub prefixes: usize,
    /// Of what the worker can forward, how many of 100 are offered.
    #[arg(long, default_value_t = 90.0)]
    pub load: f64,
    /// Seconds in which it is found out what the worker can forward.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measure complex packets.
#[derive(Clone, Debug, ClapArgs)]
pub struct SlowPathArgs {
    /// Packets a second of the flood.
    #[arg(long, default_value_t = 1_000_000)]
    pub flood: u64,
    /// Of what the worker can forward alone, how many of 100 are offered.
    #[arg(long, default_value_t = 50.0)]
    pub load: f64,
    /// Seconds of each run.
    #[arg(long, default_value_t = 0.3)]
    pub seconds: f64,
    /// How often each is run.
    #[arg(long, default_value_t = 9)]
    pub repetitions: usize,
    /// Processor core to run on (default: the last).
    #[arg(long)]
    pub core: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measure pauses.
#[derive(Clone, Debug, ClapArgs)]
pub struct PauseArgs {
    /// How many changes.
    #[arg(long, default_value_t = 100_000)]
    pub changes: u64,
    /// Packets a second of the stream.
    #[arg(long, default_value_t = 10_000_000)]
    pub pps: u64,
    /// Seconds of each of the two runs without changes.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measure the longest-prefix match.
#[derive(Clone, Debug, ClapArgs)]
pub struct LpmArgs {
    /// Routes, `PREFIX NEXTHOP` a line or MRT, plain or compressed.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// A made-up table of so many prefixes where no file is given.
    #[arg(long, default_value_t = 1_042_325)]
    pub prefixes: usize,
    /// IPv6 instead of IPv4.
    #[arg(long)]
    pub v6: bool,
    /// `A|W PREFIX` lines to replay while another thread looks up.
    #[arg(long)]
    pub updates: Option<PathBuf>,
    /// Different destinations, random inside the table's prefixes.
    #[arg(long, default_value_t = 65_536)]
    pub distinct: usize,
    /// Instruction-set level: auto, scalar, x86-64-v3, x86-64-v4.
    #[arg(long, default_value = "auto")]
    pub isa: String,
    /// How often it is measured.
    #[arg(long, default_value_t = 15)]
    pub repetitions: usize,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What of the path batcher is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Speed and vectors by pattern and batch size, with and without.
    Sweep,
    /// How long packets wait, at a low rate and at overload.
    Delay,
    /// How soon the heaviest paths are found.
    Learning,
}

/// Measure the path batcher.
#[derive(Clone, Debug, ClapArgs)]
pub struct PathArgs {
    /// What is measured.
    #[arg(long, value_enum, default_value = "sweep")]
    pub experiment: Experiment,
    /// Patterns: alternating-2, alternating-3, alternating-4, random-2, random-4, bursty-4, single.
    #[arg(long, value_delimiter = ',')]
    pub patterns: Vec<String>,
    /// Batch sizes, 1 to 256.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64,128,256"
    )]
    pub batches: Vec<u32>,
    /// With (on), without (off), or both.
    #[arg(long, default_value = "both")]
    pub batcher: String,
    /// Packets that the source sends at once (default: as many as a batch has).
    #[arg(long)]
    pub burst: Option<u32>,
    /// The longest wait in microseconds.
    #[arg(long, default_value_t = 500)]
    pub timeout_us: u32,
    /// Full batches of a queue that wait for each other.
    #[arg(long, default_value_t = 1)]
    pub gather: u32,
    /// Instruction-set level: auto, scalar, x86-64-v3, x86-64-v4.
    #[arg(long, default_value = "auto")]
    pub isa: String,
    /// Seconds of each repetition.
    #[arg(long, default_value_t = 0.1)]
    pub seconds: f64,
    /// How often it is measured.
    #[arg(long, default_value_t = 5)]
    pub repetitions: usize,
    /// Stop after so many packets instead, for callgrind: nothing is warmed up.
    #[arg(long)]
    pub packets: Option<u64>,
    /// Processor core to run on (default: the last).
    #[arg(long)]
    pub core: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
