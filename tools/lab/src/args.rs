//! The command line of `volley-lab`.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// Reproduce the experiments of papers, and compare runs.
#[derive(Clone, Debug, ClapArgs)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the lab.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// List the figures.
    List,
    /// Measure figures, and write a report.
    Run {
        /// Names of figures (default: all).
        figures: Vec<String>,
        /// Fewer points and shorter repetitions.
        #[arg(long)]
        quick: bool,
        /// Folder of the run; it must not have a run yet.
        #[arg(long, default_value = "lab-run")]
        out: PathBuf,
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
    },
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
                let parsed = Line::try_parse_from(line.split_whitespace());
                let error = parsed.map(|line| line.args).err();
                assert!(error.is_none(), "{line}: {error:?}");
                count += 1;
            }
            assert!(count >= 2, "{count}");
        }
    }
}
