//! Sets the clock of a processor through the kernel's cpufreq files, and restores it.
//!
//! Contract: while a [`Held`] lives, the lowest and the highest clock of the processor are the same; when it is dropped, they are
//! what they were before.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MOST: u64 = 4096;
const LOWEST: &str = "scaling_min_freq";
const HIGHEST: &str = "scaling_max_freq";

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
    folder: PathBuf,
    before: (u64, u64),
}

/// Set the clock; none if it cannot be set.
///
/// # Errors
/// A sentence, if the processor cannot have this clock, or the kernel refuses it.
pub fn hold(folder: &Path, mhz: f64) -> Result<Option<Held>, String> {
    let Some((least, most)) = range(folder) else {
        return Ok(None);
    };
    let khz = (mhz * 1000.0) as u64;
    if !(least..=most).contains(&khz) {
        return Err(format!(
            "the clock of this processor can be {} to {} MHz",
            least / 1000,
            most / 1000
        ));
    }
    let before = read(folder, LOWEST).zip(read(folder, HIGHEST));
    let before = before.ok_or("the clock of this processor cannot be read")?;
    let held = Held {
        folder: folder.to_owned(),
        before,
    };
    held.set((khz, khz))?;
    Ok(Some(held))
}

impl Held {
    /// The lowest clock must never exceed the highest one, so it is first set to the least that occurs.
    fn set(&self, (low, high): (u64, u64)) -> Result<(), String> {
        let present = read(&self.folder, LOWEST).unwrap_or(low);
        write(&self.folder, LOWEST, present.min(low))?;
        write(&self.folder, HIGHEST, high)?;
        write(&self.folder, LOWEST, low)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(why) = self.set(self.before) {
            eprintln!("volley-lab: the clock of a processor was not restored: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_clock_is_set_and_restored() {
        let dir = fake();
        let now = || (read(dir.path(), LOWEST), read(dir.path(), HIGHEST));
        let held = hold(dir.path(), 3000.0).unwrap().unwrap();
        assert_eq!(now(), (Some(3_000_000), Some(3_000_000)));
        drop(held);
        assert_eq!(now(), (Some(800_000), Some(2_600_000)));
        let error = hold(dir.path(), 4000.0).unwrap_err();
        assert_eq!(error, "the clock of this processor can be 800 to 3200 MHz");
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
