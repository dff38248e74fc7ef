//! Sets the clock of a processor through the kernel's cpufreq files, and restores it.
//!
//! Contract: while a [`Held`] lives, the lowest and the highest clock of the processor are the same. When it is dropped, and when this
//! process ends in any other way, they are what they were before: a shell restores them, which waits for the end of its input.

use crate::switch::Process;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest file that is read.
const MOST: u64 = 4096;
const LOWEST: &str = "scaling_min_freq";
const HIGHEST: &str = "scaling_max_freq";
/// The lines of the shell: it is ready; it has restored the clocks.
const READY: &str = "ready";
const RESTORED: &str = "restored";
/// Arguments: the folder, then the clocks to write into the files: lowest, highest, lowest. Its output may be closed already.
const KEEPER: &str = r#"trap '' PIPE
ok=yes
put() { echo "$2" > "$1" || ok=no; }
echo READY
read -r line
put "$1/LOWEST" "$2"
put "$1/HIGHEST" "$3"
put "$1/LOWEST" "$4"
[ $ok = no ] || echo RESTORED
"#;

/// Folder of the cpufreq files of a processor.
pub fn folder(processor: usize) -> PathBuf {
    PathBuf::from(format!("/sys/devices/system/cpu/cpu{processor}/cpufreq"))
}

/// A number of kHz in a file.
fn read(folder: &Path, name: &str) -> Option<u64> {
    let text = volley_file::read_text(&folder.join(name), MOST).ok()?;
    text.trim().parse().ok()
}

fn write(folder: &Path, name: &str, khz: u64) -> Result<(), String> {
    let path = folder.join(name);
    let written = volley_file::create(&path).and_then(|mut file| write!(file, "{khz}"));
    written.map_err(|e| format!("{}: {e}", path.display()))
}

/// Lowest and highest clock in kHz that the processor can have; none if its clock cannot be set.
pub fn range(folder: &Path) -> Option<(u64, u64)> {
    let range = (
        read(folder, "cpuinfo_min_freq")?,
        read(folder, "cpuinfo_max_freq")?,
    );
    let is_writable = |name: &str| {
        read(folder, name).is_some() && volley_file::append(&folder.join(name)).is_ok()
    };
    (range.0 < range.1 && is_writable(LOWEST) && is_writable(HIGHEST)).then_some(range)
}

/// A processor whose clock is set.
#[derive(Debug)]
pub struct Held {
    keeper: Process,
}

/// Set the clock; none if it cannot be set, or the processor cannot have this one.
///
/// # Errors
/// A sentence, if the kernel refuses it.
pub fn hold(folder: &Path, mhz: f64) -> Result<Option<Held>, String> {
    let khz = (mhz * 1000.0) as u64;
    if !range(folder).is_some_and(|(least, most)| (least..=most).contains(&khz)) {
        return Ok(None);
    }
    let before = read(folder, LOWEST).zip(read(folder, HIGHEST));
    let before = before.ok_or("the clock of this processor cannot be read")?;
    // The lowest clock must never exceed the highest one, so it is first set to the least that occurs.
    let least = before.0.min(khz);
    // The keeper comes first: nothing is set that is not restored.
    let held = Held {
        keeper: keeper(folder, [least, before.1, before.0])?,
    };
    write(folder, LOWEST, least)?;
    write(folder, HIGHEST, khz)?;
    write(folder, LOWEST, khz)?;
    Ok(Some(held))
}

/// The shell that restores the clocks.
fn keeper(folder: &Path, clocks: [u64; 3]) -> Result<Process, String> {
    let script = KEEPER
        .replace("READY", READY)
        .replace("RESTORED", RESTORED)
        .replace("LOWEST", LOWEST)
        .replace("HIGHEST", HIGHEST);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, "sh"]).arg(folder);
    command.args(clocks.map(|khz| khz.to_string()));
    Process::start("the shell that restores the clock", command, READY)
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(why) = self.keeper.ask("end", RESTORED) {
            eprintln!("volley-lab: the clock of a processor was not restored: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn fake() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, khz) in [
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "3200000"),
            (LOWEST, "800000"),
            (HIGHEST, "2600000"),
        ] {
            std::fs::write(dir.path().join(name), format!("{khz}\n")).unwrap();
        }
        dir
    }

    /// Lowest and highest clock.
    fn now(folder: &Path) -> (Option<u64>, Option<u64>) {
        (read(folder, LOWEST), read(folder, HIGHEST))
    }

    const SET: (Option<u64>, Option<u64>) = (Some(3_000_000), Some(3_000_000));
    const BEFORE: (Option<u64>, Option<u64>) = (Some(800_000), Some(2_600_000));

    /// Wait until the clocks are these.
    fn until(folder: &Path, wanted: (Option<u64>, Option<u64>)) {
        let start = Instant::now();
        while now(folder) != wanted {
            let time = start.elapsed() < Duration::from_secs(30);
            assert!(time, "{:?} instead of {wanted:?}", now(folder));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Variables of the process of the next test.
    const FOLDER: &str = "VOLLEY_TEST_CLOCK";
    const WAY: &str = "VOLLEY_TEST_WAY";

    /// Holds the clock, and ends without destructors; without the variables it does nothing.
    #[test]
    fn a_process_that_holds_the_clock() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        let held = hold(Path::new(&folder), 3000.0).unwrap();
        match std::env::var(WAY).as_deref() {
            Ok("exit") => std::process::exit(130),
            Ok("abort") => std::process::abort(),
            _ => std::thread::sleep(Duration::from_secs(100)),
        }
        drop(held);
    }

    #[test]
    fn the_clock_is_restored_however_the_process_ends() {
        for way in ["exit", "abort", "killed"] {
            let dir = fake();
            let mut process = Command::new(std::env::current_exe().unwrap());
            process.args(["--exact", "clock::tests::a_process_that_holds_the_clock"]);
            process.env(FOLDER, dir.path()).env(WAY, way);
            let output = std::process::Stdio::null;
            let mut child = process.stdout(output()).stderr(output()).spawn().unwrap();
            if way == "killed" {
                until(dir.path(), SET);
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            assert_eq!(status.code() == Some(130), way == "exit", "{status}");
            until(dir.path(), BEFORE);
        }
    }

    #[test]
    fn the_clock_is_restored_after_a_panic() {
        let dir = fake();
        let panicked = std::panic::catch_unwind(|| {
            let _held = hold(dir.path(), 3000.0).unwrap();
            assert_eq!(now(dir.path()), SET);
            panic!("of this test");
        });
        assert!(panicked.is_err());
        assert_eq!(now(dir.path()), BEFORE);
    }

    #[test]
    fn the_clock_is_set_and_restored() {
        let dir = fake();
        let held = hold(dir.path(), 3000.0).unwrap().unwrap();
        assert_eq!(now(dir.path()), SET);
        drop(held);
        assert_eq!(now(dir.path()), BEFORE);
        assert!(hold(dir.path(), 4000.0).unwrap().is_none());
        assert_eq!(now(dir.path()), BEFORE);
    }

    #[test]
    fn a_machine_without_the_files_cannot_set_its_clock() {
        let dir = tempfile::tempdir().unwrap();
        assert!(hold(dir.path(), 2000.0).unwrap().is_none());
        let fixed = fake();
        std::fs::remove_file(fixed.path().join(HIGHEST)).unwrap();
        assert_eq!(range(fixed.path()), None);
    }
}
