//! Record of the machine and the code that a run was made with.

use crate::clock;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Largest file of /proc that is read.
const MOST: u64 = 1 << 20;

/// The machine and the code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Volley.
    pub version: String,
    /// Commit of the current folder, `-dirty` with changes; empty if that is no checkout of Volley.
    pub git: String,
    /// Whether the program was built with debug assertions, which makes it slow.
    pub debug_build: bool,
    /// Model of the processor.
    pub processor: String,
    /// Number of processors.
    pub processors: usize,
    /// Processor that the benchmark is pinned to.
    #[serde(default)]
    pub pinned: String,
    /// Frequency of the time stamp counter in GHz.
    #[serde(default)]
    pub tsc_ghz: f64,
    /// Clocks that this processor can have; empty if its clock cannot be set.
    #[serde(default)]
    pub clocks: String,
    /// Flags of the processor.
    pub flags: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Command line of the kernel: isolated processors, pages.
    pub kernel_command_line: String,
    /// Lines of /proc/meminfo about huge pages.
    pub huge_pages: Vec<String>,
    /// Load averages at the start.
    pub load: String,
}

fn read(path: &str) -> String {
    let text = volley_file::read_text(Path::new(path), MOST).unwrap_or_default();
    text.trim().to_owned()
}

/// Value of the first line `KEY : VALUE` of a file in the format of /proc/cpuinfo.
fn field(text: &str, key: &str) -> String {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(name, _)| name.trim() == key);
    found.map_or(String::new(), |(_, value)| value.trim().to_owned())
}

/// The clocks that a processor can have, if its clock can be set.
fn clocks(processor: Option<usize>) -> String {
    let folder = processor.map(clock::folder);
    match folder.and_then(|folder| clock::range(&folder)) {
        Some((least, most)) => format!("{} to {} MHz", least / 1000, most / 1000),
        None => String::new(),
    }
}

/// A file by which a checkout of Volley is recognised, from its root.
const OURS: &str = "tools/lab/Cargo.toml";

/// Output of a command of git in a folder; none if it fails.
fn git_in(folder: &Path, words: &[&str]) -> Option<String> {
    let run = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&run.stdout);
    run.status.success().then(|| text.trim().to_owned())
}

/// The commit of a folder of a checkout of Volley. Another repository says nothing about this program.
fn git(folder: &Path) -> String {
    let root = git_in(folder, &["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    let is_ours = root.is_some_and(|root| root.join(OURS).is_file());
    let describe = ["describe", "--always", "--dirty", "--abbrev=12"];
    let commit = is_ours.then(|| git_in(folder, &describe)).flatten();
    commit.unwrap_or_default()
}

impl Environment {
    /// Of this machine, now. What cannot be read is empty.
    pub fn now() -> Environment {
        let cpu = read("/proc/cpuinfo");
        let memory = read("/proc/meminfo");
        // The benchmark pins itself to the last processor that it may use.
        let pinned = volley_graph::cores().last().copied();
        let pages = memory.lines().filter(|line| line.contains("Huge"));
        Environment {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: git(Path::new(".")),
            debug_build: cfg!(debug_assertions),
            processor: field(&cpu, "model name"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            clocks: clocks(pinned),
            pinned: pinned.map_or(String::new(), |core| core.to_string()),
            tsc_ghz: (volley_simd::cycles_per_second() / 1e6).round() / 1e3,
            flags: field(&cpu, "flags"),
            kernel: read("/proc/sys/kernel/osrelease"),
            kernel_command_line: read("/proc/cmdline"),
            huge_pages: pages.map(str::to_owned).collect(),
            load: read("/proc/loadavg"),
        }
    }

    /// Whether samples of another environment belong into the same run: program and processor are the same. A commit that is not known
    /// may be any.
    pub fn has_same_origin(&self, other: &Environment) -> bool {
        let is_unknown = self.git.is_empty() || other.git.is_empty();
        (is_unknown || self.git == other.git)
            && self.version == other.version
            && self.debug_build == other.debug_build
            && self.processor == other.processor
    }

    /// Program and processor, for a sentence.
    pub fn origin(&self) -> String {
        let commit = match self.git.is_empty() {
            true => "unknown",
            false => &self.git,
        };
        let build = match self.debug_build {
            true => "debug",
            false => "release",
        };
        format!(
            "version {} (commit {commit}, {build} build) on {}",
            self.version, self.processor
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_cpuinfo() {
        let text = "processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu avx2\n";
        assert_eq!(field(text, "model name"), "A: B");
        assert_eq!(field(text, "flags"), "fpu avx2");
        assert_eq!(field(text, "none"), "");
    }

    #[test]
    fn the_commit_of_another_repository_is_not_that_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        assert_eq!(git(folder), "");
        let commit = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-qm",
            "x",
            "--allow-empty",
        ];
        let made = git_in(folder, &["init", "-q"]).and_then(|_| git_in(folder, &commit));
        if made.is_none() {
            eprintln!("skipped: no git");
            return;
        }
        assert_eq!(git(folder), "");
        let file = folder.join(OURS);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
        assert!(!git(folder).is_empty());
    }

    #[test]
    fn samples_of_another_program_or_processor_have_another_origin() {
        let one = Environment {
            version: "0.1.0".to_owned(),
            git: "abc".to_owned(),
            processor: "Xeon".to_owned(),
            load: "0.1".to_owned(),
            ..Environment::default()
        };
        assert_eq!(
            one.origin(),
            "version 0.1.0 (commit abc, release build) on Xeon"
        );
        let of = |change: &dyn Fn(&mut Environment)| {
            let mut other = one.clone();
            change(&mut other);
            one.has_same_origin(&other) && other.has_same_origin(&one)
        };
        assert!(of(&|e| e.load = "2.0".to_owned()));
        assert!(of(&|e| e.git.clear()), "a commit that is not known");
        assert!(!of(&|e| e.git = "abc-dirty".to_owned()));
        assert!(!of(&|e| e.version = "0.2.0".to_owned()));
        assert!(!of(&|e| e.processor = "EPYC".to_owned()));
        assert!(!of(&|e| e.debug_build = true));
    }

    #[test]
    fn this_machine_has_a_kernel_and_processors() {
        let now = Environment::now();
        assert!(now.processors >= 1 && !now.kernel.is_empty(), "{now:?}");
        assert!(now.tsc_ghz > 0.1 && !now.pinned.is_empty(), "{now:?}");
    }
}
