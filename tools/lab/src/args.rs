//! The command line of `volley-lab`.

use crate::level::Level;
use crate::switch::RouterArgs;
use crate::traffic::{GenerateArgs, SinkArgs};
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;
use volley_bench::Prefixes;

/// Reproduce the experiments of papers, and compare runs.
#[derive(Clone, Debug, ClapArgs)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Extent {
    /// Fewer points and shorter repetitions.
    #[arg(long)]
    quick: bool,
    /// One or two short points of each figure, to see that each can be measured.
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
}

impl Extent {
    /// The level of these options.
    pub fn level(self) -> Level {
        match (self.smoke, self.quick) {
            (true, _) => Level::Smoke,
            (_, true) => Level::Quick,
            _ => Level::Full,
        }
    }
}

/// One point.
#[derive(Clone, Debug, ClapArgs)]
pub struct PointArgs {
    /// Seconds of a repetition.
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    pub seconds: f64,
    /// Number of repetitions.
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    pub repetitions: usize,
    /// What is measured: arguments of `volley bench`, or `latency LOAD`, `wake PPS`, `switch` and their arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub args: Vec<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|e| format!("{e}"))?;
    match (0.001..=3_600.0).contains(&number) {
        true => Ok(number),
        false => Err("choose 0.001 to 3600".to_owned()),
    }
}

fn repetitions(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|e| format!("{e}"))?;
    match (1..=1_000).contains(&number) {
        true => Ok(number),
        false => Err("choose 1 to 1000".to_owned()),
    }
}

/// Commands of the lab.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// List the figures.
    List,
    /// Measure figures, and write a report; `all` is another name.
    #[command(alias = "all")]
    Run {
        /// Names of figures (default: all).
        figures: Vec<String>,
        /// Extent of the run.
        #[command(flatten)]
        extent: Extent,
        /// Library of the tutorial's plugin (default: libip_in_ip.so beside this program).
        #[arg(long)]
        plugin: Option<PathBuf>,
        /// Measure each repetition of the benchmark in another process: the comparison of two runs then covers what differs from
        /// process to process, such as the places of tables and packets in memory.
        #[arg(long)]
        fresh: bool,
        /// Percent of time that nodes take in addition where the benchmark is measured, to check `compare`.
        #[arg(long, hide = true)]
        burn: Option<f64>,
        /// Folder of the run; it must not have a run yet.
        #[arg(long, default_value = "lab-run")]
        out: PathBuf,
    },
    /// Print the number of points of each figure, and how long they take.
    Plan {
        /// Names of figures (default: all).
        figures: Vec<String>,
        /// Extent of the run.
        #[command(flatten)]
        extent: Extent,
    },
    /// Measure the points that an interrupted run has left, and write its report.
    Resume {
        /// Folder of the run.
        dir: PathBuf,
    },
    /// Write the report of a run again.
    Report {
        /// Folder of the run.
        dir: PathBuf,
        /// Write Markdown with a plot of each figure into this folder instead.
        #[arg(long)]
        markdown: Option<PathBuf>,
    },
    /// Send packets at a rate, with sequence numbers and time stamps, and receive what comes back.
    Generate(Box<GenerateArgs>),
    /// Receive the packets of `generate` on another port of this machine.
    Sink(SinkArgs),
    /// Check the rate and the time stamps of `generate` in memory; exit status 2 if they are not exact.
    SelfTest {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure one point, and print its samples by metric as JSON.
    Point(PointArgs),
    /// Write synthetic routing tables, for measurements of whole daemons.
    #[command(hide = true)]
    Tables {
        /// File of the IPv4 table.
        ip4: PathBuf,
        /// Number of its prefixes; `full` for as many as a real table has.
        ip4_prefixes: Prefixes,
        /// File of the IPv6 table.
        ip6: PathBuf,
        /// Number of its prefixes; `full` for as many as a real table has.
        ip6_prefixes: Prefixes,
    },
    /// The benchmark, for processes that the lab starts.
    #[command(hide = true)]
    Bench(Box<volley_bench::Args>),
    /// A router, for measurements that the lab makes.
    #[command(hide = true)]
    Router(RouterArgs),
    /// Compare the cycles of two runs point by point; exit status 3 if the second run is slower.
    Compare {
        /// Folder of the first run.
        first: PathBuf,
        /// Folder of the second run.
        second: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: super::Args,
    }

    /// Words of a line; quotation marks keep several together, as in a shell.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let of = |(at, part): (usize, &str)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        };
        parts.flat_map(of).collect::<Vec<String>>()
    }

    #[test]
    fn every_command_of_the_pages_is_accepted() {
        let pages = [
            include_str!("../../../docs/lab.md"),
            include_str!("../README.md"),
        ];
        for page in pages {
            let lines = page.lines().filter(|line| line.starts_with("volley-lab "));
            let mut count = 0;
            for line in lines {
                let parsed = Line::try_parse_from(words(line));
                let error = parsed.map(|line| line.args).err();
                assert!(error.is_none(), "{line}: {error:?}");
                count += 1;
            }
            assert!(count >= 2, "{count}");
        }
    }
}
