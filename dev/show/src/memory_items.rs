//! Memory of a router with full tables.

use super::{Item, Sitting, Work, at_most, item, lab, lpm_items};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::report::Outcome;
use xtask::run::Program;

/// Most resident memory without packet buffers, in megabytes.
const WITHOUT_BUFFERS: f64 = 300.0;
/// Packet buffers, interfaces, next hops.
const BUFFERS: u32 = 65_536;
const INTERFACES: u32 = 8;
const HOPS: u32 = 200;
/// Longest time until the tables are loaded.
const LOADED: Duration = Duration::from_secs(120);

pub const ITEM: Item = item(
    "memory",
    "resident memory without packet buffers: full IPv4 and IPv6 tables, 64k buffers, 8 interfaces, by part",
    Work::Call(resident),
);

/// The parts of `show memory` that are used here.
#[derive(Deserialize)]
struct Memory {
    resident_bytes: u64,
    without_buffers_bytes: u64,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    name: String,
    bytes: u64,
}

#[derive(Deserialize)]
struct Tables {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    family: String,
    prefixes: u64,
}

/// A daemon in a temporary folder; both end when it is dropped.
struct Daemon {
    child: Child,
    folder: PathBuf,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended; nothing of its state is needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn configuration(v4: &Path, v6: &Path) -> String {
    let mut text = format!("[engine]\nbuffers = {BUFFERS}\n");
    for n in 0..INTERFACES {
        text += &format!(
            "[[interface]]\nname = \"pg{n}\"\nkind = \"pg\"\naddresses = [\"10.{n}.0.1/16\", \"2001:db8:{n}::1/64\"]\n"
        );
    }
    for (path, family, hop) in [(v4, "ip4", "10.0.0.2"), (v6, "ip6", "2001:db8::2")] {
        text += &format!(
            "[[route_file]]\npath = \"{}\"\nfamily = \"{family}\"\nnext_hops = \"{hop}\"\ncount = {HOPS}\ninterfaces = [\"pg0\"]\n",
            path.display()
        );
    }
    text
}

impl Daemon {
    /// Starts it, and waits until its configuration is complete.
    fn start(sitting: &Sitting<'_>, text: &str) -> Result<Daemon, String> {
        let folder = std::env::temp_dir().join(format!("volley-memory-{}", std::process::id()));
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let (file, log) = (folder.join("volley.toml"), folder.join("log"));
        std::fs::write(&file, text).map_err(failed)?;
        let out = std::fs::File::create(&log).map_err(failed)?;
        let volley = sitting.home.volley();
        let mut command = Command::new(&volley);
        command.arg("run").arg("-c").arg(&file);
        command.arg("--socket").arg(folder.join("s"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(out);
        let child = command.spawn();
        let child = child.map_err(|e| format!("{}: {e}", volley.display()))?;
        let mut daemon = Daemon { child, folder };
        let start = Instant::now();
        loop {
            let lines = std::fs::read_to_string(&log).unwrap_or_default();
            if lines.contains("ready") {
                return Ok(daemon);
            }
            let ended = !matches!(daemon.child.try_wait(), Ok(None));
            if ended || start.elapsed() > LOADED {
                let last = lines.lines().last().unwrap_or_default();
                return Err(format!("the daemon is not ready: {last}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The reply to a query.
    fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        sitting: &Sitting<'_>,
        query: &str,
    ) -> Result<T, String> {
        let run = Program::new(sitting.home, sitting.home.volley())
            .args(["ctl", "--socket"])
            .arg(self.folder.join("s"))
            .arg("--json")
            .args(query.split_whitespace())
            .limit_seconds(30);
        let text = run.require()?.stdout;
        serde_json::from_str(&text).map_err(|e| format!("`{query}`: {e}"))
    }
}

/// Files of both tables: the real ones, or synthetic ones of their size; and which they are.
fn tables(sitting: &Sitting<'_>) -> Result<([PathBuf; 2], &'static str), String> {
    let data = |family: &lpm_items::Family| sitting.home.data(family.table);
    if let (Ok(v4), Ok(v6)) = (data(&lpm_items::V4), data(&lpm_items::V6)) {
        return Ok(([v4, v6], "real tables"));
    }
    let files = ["show-rib4.txt", "show-rib6.txt"].map(|name| sitting.home.target.join(name));
    let mut run = Program::new(sitting.home, lab::program(sitting.home)?).arg("tables");
    for file in &files {
        run = run.arg(file).arg("full");
    }
    run.limit_seconds(60).require()?;
    Ok((files, "synthetic tables"))
}

fn resident(sitting: &Sitting<'_>) -> Outcome {
    Outcome::of(tables(sitting).and_then(|([v4, v6], which)| {
        let daemon = Daemon::start(sitting, &configuration(&v4, &v6))?;
        let tables: Tables = daemon.ask(sitting, "show tables")?;
        let memory: Memory = daemon.ask(sitting, "show memory")?;
        let prefixes = tables
            .tables
            .iter()
            .map(|t| format!("{} {}", t.prefixes, t.family));
        let prefixes: Vec<String> = prefixes.collect();
        let parts = memory.parts.iter();
        let parts = parts.map(|part| format!("{} {:.1}", part.name, megabytes(part.bytes)));
        let more = format!(
            " (all {:.1}: {}; {which}, {} prefixes)",
            megabytes(memory.resident_bytes),
            parts.collect::<Vec<_>>().join(", "),
            prefixes.join(", ")
        );
        let add = |text: String| text + &more;
        at_most(
            megabytes(memory.without_buffers_bytes),
            WITHOUT_BUFFERS,
            "MB",
        )
        .map(add)
        .map_err(add)
    }))
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_all_interfaces_and_both_tables() {
        let text = configuration(Path::new("/a.xz"), Path::new("/b.xz"));
        assert_eq!(text.matches("[[interface]]").count(), INTERFACES as usize);
        assert!(text.contains("path = \"/a.xz\"\nfamily = \"ip4\""));
        assert!(text.contains("path = \"/b.xz\"\nfamily = \"ip6\""));
    }
}
