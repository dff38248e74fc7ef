//! The command line of `volley bench`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use volley_fib::load::{V4_PREFIXES, V6_PREFIXES};

/// Numbers of prefixes of synthetic tables: `N` for each family, or `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// Of the IPv4 table.
    pub v4: usize,
    /// Of the IPv6 table.
    pub v6: usize,
}

impl Prefixes {
    /// As many as the real tables have that the synthetic ones imitate.
    pub const FULL: Prefixes = Prefixes {
        v4: V4_PREFIXES,
        v6: V6_PREFIXES,
    };
    /// Name of [`Prefixes::FULL`] on the command line.
    const NAME: &'static str = "full";

    /// The same number for both families.
    pub fn both(count: usize) -> Prefixes {
        Prefixes {
            v4: count,
            v6: count,
        }
    }
}

impl FromStr for Prefixes {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefixes, String> {
        match text {
            Prefixes::NAME => Ok(Prefixes::FULL),
            number => number.parse().map(Prefixes::both).map_err(|_| {
                format!("'{number}' is no number of prefixes: write a number, or `full`")
            }),
        }
    }
}

impl std::fmt::Display for Prefixes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self == Prefixes::FULL {
            true => f.write_str(Prefixes::NAME),
            false => self.v4.fmt(f),
        }
    }
}

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

/// Source and destination MAC addresses of the packets of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MacPattern {
    /// One source, one destination.
    One,
    /// One source, many destinations.
    Dst,
    /// Many sources, many destinations.
    SrcDst,
}

/// Method of processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// Vectors through the graph.
    Graph,
    /// One packet at a time through the whole path: the classic baseline.
    Rtc,
}

impl MacPattern {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MacPattern::One => "one",
            MacPattern::Dst => "dst",
            MacPattern::SrcDst => "src-dst",
        }
    }
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

/// The instruction-set level of a benchmark.
#[derive(clap::Args, Clone, Debug)]
pub struct LevelArg {
    /// Instruction-set level: auto, scalar, x86-64-v3, x86-64-v4, neon.
    #[arg(long, default_value = "auto", overrides_with = "isa")]
    pub isa: String,
}

/// Measure forwarding.
#[derive(Clone, Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Measure something other than forwarding.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Forwarding scenario.
    #[arg(long, value_enum, default_value = "ip4")]
    pub scenario: Scenario,
    /// Destinations of the packets.
    #[arg(long, value_enum, default_value = "static")]
    pub destinations: Destinations,
    /// Number of different destinations.
    #[arg(long, default_value_t = 65_536)]
    pub distinct: usize,
    /// Source and destination MAC addresses of the packets of a bridge.
    #[arg(long, value_enum, default_value = "one")]
    pub stations: MacPattern,
    /// Number of MAC addresses, where there are many; at least that many buffers are used.
    #[arg(long, default_value_t = 10_000)]
    pub macs: u32,
    /// IPv4 routes, `PREFIX NEXTHOP` a line or MRT, plain or compressed.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// IPv6 routes.
    #[arg(long)]
    pub table6: Option<PathBuf>,
    /// Number of prefixes of a synthetic table, used without a file; `full` for as many as a real table has.
    #[arg(long)]
    pub prefixes: Option<Prefixes>,
    /// All prefixes of the synthetic IPv4 table have this length, instead of those of a real table.
    #[arg(long, requires = "prefixes", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub prefix_length: Option<u8>,
    /// Count packets and bytes of each route by itself.
    #[arg(long)]
    pub route_counters: bool,
    /// Bytes of a packet without frame check sequence.
    #[arg(long, default_value_t = 64)]
    pub size: u32,
    /// Maximum number of packets per vector, 1 to 1024.
    #[arg(long, default_value_t = 256)]
    pub vector_size: u32,
    /// Packets that the source sends at once (default: the vector size).
    #[arg(long)]
    pub maxframe: Option<u32>,
    /// Offered packets per second of all streams together (default: as many as the worker forwards).
    #[arg(long)]
    pub rate: Option<u64>,
    /// Buffers in circulation: 512 stay in the cache, 65536 do not.
    #[arg(long, default_value_t = 512)]
    pub buffers: usize,
    /// Vectors through the graph, or one packet at a time.
    #[arg(long, value_enum, default_value = "graph")]
    pub style: Style,
    /// Code that runs.
    #[command(flatten)]
    pub level: LevelArg,
    /// Seconds of each repetition.
    #[arg(long, default_value_t = 0.5)]
    pub seconds: f64,
    /// Number of repetitions.
    #[arg(long, default_value_t = 9)]
    pub repetitions: usize,
    /// Stop after this number of packets instead (one repetition).
    #[arg(long)]
    pub packets: Option<u64>,
    /// Count instructions, cache misses and mispredicted branches of each node, too.
    #[arg(long, conflicts_with_all = ["callgrind", "packets"])]
    pub counters: bool,
    /// A short run for callgrind: with --packets, nothing is warmed up or verified.
    #[arg(long, requires = "packets")]
    pub callgrind: bool,
    /// For a run under callgrind: nodes that are called by functions of their own, in this order.
    #[arg(long, hide = true, requires = "callgrind", value_delimiter = ',')]
    pub mark: Vec<String>,
    /// Percent of time that each node takes in addition, to check comparisons of runs.
    #[arg(long, hide = true, conflicts_with_all = ["counters", "callgrind", "workers"])]
    pub burn: Option<f64>,
    /// Processor core to run on (default: the last; several workers use the cores from the first on).
    #[arg(long)]
    pub core: Option<usize>,
    /// Number of workers, measured together and each alone.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Numbers of different sources and destinations of frames through a bridge.
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

/// Other measurements.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// The longest-prefix match alone: lookups, size, build time, updates while another thread looks up.
    Lpm(LpmArgs),
    /// The path batcher: patterns and batch sizes, with and without it; delays; learning.
    PathBatcher(PathArgs),
    /// The longest gap of a worker while changes of every type are made, and whether packets are lost.
    Pauses(PauseArgs),
    /// Three ways to scatter a batch, and rebatching, by share of complex packets and batch size: nodes and scripts of a plugin.
    Scatter(PluginArgs),
    /// The nodes of a plugin: clocks, instructions, cache misses and mispredicted branches per packet.
    Plugin(PluginArgs),
    /// Packets of the slow path: replies per second, and the effect of a flood of them on transit.
    SlowPath(SlowPathArgs),
    /// Updates of a routing protocol at full speed beside a stream: no packet to an unaffected prefix may be lost.
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
    /// IPv4 updates, `A|W PREFIX` a line (synthetic without a file).
    #[arg(long)]
    pub updates: Option<PathBuf>,
    /// IPv6 updates.
    #[arg(long)]
    pub updates6: Option<PathBuf>,
    /// Number of IPv4 prefixes of a synthetic table, with at most a quarter of it for IPv6, used without a file; `full` for as many
    /// as real tables have.
    #[arg(long, default_value_t = Prefixes::both(100_000))]
    pub prefixes: Prefixes,
    /// Offered load in percent of the worker's capacity.
    #[arg(long, default_value_t = 90.0)]
    pub load: f64,
    /// Seconds for measuring the worker's capacity.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measure the nodes of a plugin.
#[derive(Clone, Debug, ClapArgs)]
pub struct PluginArgs {
    /// File of the plugin, such as target/release/libstamp.so.
    pub file: PathBuf,
    /// Scenario of the plugin (default: all that it offers).
    #[arg(long)]
    pub scenario: Option<String>,
    /// Node to measure, a feature of the plugin (default: those of its scenarios, or all features).
    #[arg(long)]
    pub node: Option<String>,
    /// Maximum number of packets per vector (default: that of the scenario).
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub vector_size: Option<u16>,
    /// Code that runs.
    #[command(flatten)]
    pub level: LevelArg,
    /// Packets that the source sends at once (default: the vector size).
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub batch: Option<u16>,
    /// Shares of complex packets in percent, of `scatter`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,1,5,10,25,50,75,100",
        value_parser = clap::value_parser!(u16).range(0..=100)
    )]
    pub shares: Vec<u16>,
    /// Batch sizes of `scatter`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "4,8,16,32,64,128,256",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub batches: Vec<u16>,
    /// Edits of the packets, such as "udp.sport random 0 99" (default: those of the scenario).
    #[arg(long)]
    pub edit: Vec<String>,
    /// Seconds of each repetition.
    #[arg(long, default_value_t = 0.05)]
    pub seconds: f64,
    /// Number of repetitions.
    #[arg(long, default_value_t = 9)]
    pub repetitions: usize,
    /// Do not count instructions, cache misses and branches.
    #[arg(long)]
    pub no_counts: bool,
    /// Let this number of packets pass, measure nothing, and print their number: for counting by another program.
    #[arg(long)]
    pub packets: Option<u64>,
    /// Processor core to run on (default: the last).
    #[arg(long)]
    pub core: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measure packets of the slow path.
#[derive(Clone, Debug, ClapArgs)]
pub struct SlowPathArgs {
    /// Rate of the flood in packets per second.
    #[arg(long, default_value_t = 1_000_000)]
    pub flood: u64,
    /// Offered load in percent of the worker's capacity without a flood.
    #[arg(long, default_value_t = 50.0)]
    pub load: f64,
    /// Seconds of each run.
    #[arg(long, default_value_t = 0.3)]
    pub seconds: f64,
    /// Number of repetitions.
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
    /// Number of changes.
    #[arg(long, default_value_t = 100_000)]
    pub changes: u64,
    /// Rate of the stream in packets per second.
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
    /// Number of prefixes of a synthetic table, used without a file; `full` for as many as a real table of the family has.
    #[arg(long, default_value_t = Prefixes::FULL)]
    pub prefixes: Prefixes,
    /// IPv6 instead of IPv4.
    #[arg(long)]
    pub v6: bool,
    /// `A|W PREFIX` lines to replay while another thread looks up.
    #[arg(long)]
    pub updates: Option<PathBuf>,
    /// Number of different destinations, random inside the table's prefixes.
    #[arg(long, default_value_t = 65_536)]
    pub distinct: usize,
    /// Code that runs.
    #[command(flatten)]
    pub level: LevelArg,
    /// Number of repetitions.
    #[arg(long, default_value_t = 15)]
    pub repetitions: usize,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Measurements of the path batcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Speed and vectors by pattern and batch size, with and without.
    Sweep,
    /// Waiting times of packets, at a low rate and at overload.
    Delay,
    /// Time until the heaviest paths are found.
    Learning,
}

/// Measure the path batcher.
#[derive(Clone, Debug, ClapArgs)]
pub struct PathArgs {
    /// Measurement.
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
    /// Maximum wait in microseconds.
    #[arg(long, default_value_t = 500)]
    pub timeout_us: u32,
    /// Number of full batches of a queue that are gathered.
    #[arg(long, default_value_t = 1)]
    pub gather: u32,
    /// Code that runs.
    #[command(flatten)]
    pub level: LevelArg,
    /// Seconds of each repetition.
    #[arg(long, default_value_t = 0.1)]
    pub seconds: f64,
    /// Number of repetitions.
    #[arg(long, default_value_t = 5)]
    pub repetitions: usize,
    /// Stop after this number of packets instead, for callgrind: without warm-up.
    #[arg(long)]
    pub packets: Option<u64>,
    /// Processor core to run on (default: the last).
    #[arg(long)]
    pub core: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn full_tables_have_the_numbers_of_real_ones() {
        let of = |words: &str| {
            let words = std::iter::once("bench").chain(words.split(' '));
            Line::try_parse_from(words).map(|line| line.args)
        };
        let full = of("--prefixes full").unwrap().prefixes;
        // The tables of RIPE RIS, 11 May 2026.
        assert_eq!(full.map(|n| (n.v4, n.v6)), Some((1_042_325, 246_175)));
        let same = of("--prefixes 16").unwrap().prefixes;
        assert_eq!(same, Some(Prefixes::both(16)));
        let error = of("--prefixes many").err().unwrap().to_string();
        assert!(error.contains("write a number, or `full`"), "{error}");
        let Some(Command::Lpm(lpm)) = of("lpm").unwrap().command else {
            panic!("`lpm` is another command");
        };
        assert_eq!(lpm.prefixes, Prefixes::FULL);
        assert_eq!(
            [Prefixes::FULL, Prefixes::both(7)].map(|n| n.to_string()),
            ["full", "7"]
        );
    }
}
