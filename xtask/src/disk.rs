//! Disk space: a full run builds the workspace about five times, and a shared machine may have little free space.
//!
//! Between stages a full run checks the free space. If less than `RESERVE` is free, it removes what finished stages built
//! and no later stage reads. With enough space nothing is removed, so that the next build is incremental.

use crate::home::Home;
use std::path::Path;

/// Free bytes that a stage may need: the largest one (the sanitizer's build) takes about half of it.
const RESERVE: u64 = 12 << 30;

/// Folders below the target directory, and the stage after which no later stage of a full run reads them.
const FINISHED: [(&str, &str); 7] = [
    ("debug/incremental", "clippy"),
    ("doc", "rustdoc"),
    ("debug", "rustdoc"),
    ("loom", "loom"),
    ("asan", "asan"),
    ("arm", "arm"),
    ("x86-v2", "x86-v2"),
];

/// Free bytes for this user on the file system of `path`; `None` if the system does not report them.
fn free(path: &Path) -> Option<u64> {
    let stat = nix::sys::statvfs::statvfs(path).ok()?;
    Some(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

/// After the stage `done`: reports the free space, and what was removed to free some.
///
/// `stages` are the names of all stages in their order.
pub fn after(home: &Home, done: &str, stages: &[&str]) -> Option<String> {
    let left = free(&home.target)?;
    let text = format!("disk: {} free after {done}", gib(left));
    if left >= RESERVE {
        return Some(text);
    }
    let removed = remove(&home.target, done, stages);
    if removed.is_empty() {
        return Some(text);
    }
    let left = free(&home.target).unwrap_or(left);
    Some(format!(
        "{text}; removed {}: {}",
        removed.join(", "),
        gib(left)
    ))
}

/// Whether a compiler's or linker's message means that the disk is full. A linker that maps its output dies of SIGBUS
/// then.
pub fn is_full(message: &str) -> bool {
    [
        "No space left on device",
        "signal 7",
        "Bus error",
        "os error 28",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

fn remove(target: &Path, done: &str, stages: &[&str]) -> Vec<String> {
    let place = |name: &str| stages.iter().position(|stage| *stage == name);
    let mut removed = Vec::new();
    for (folder, last) in FINISHED {
        let path = target.join(folder);
        if place(last) <= place(done) && path.is_dir() && std::fs::remove_dir_all(&path).is_ok() {
            removed.push(folder.to_owned());
        }
    }
    removed
}

fn gib(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_finished_stages_built_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["debug/deps", "asan", "release"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let stages = ["clippy", "rustdoc", "loom", "asan", "fuzz"];
        assert!(remove(dir.path(), "clippy", &stages).is_empty());
        assert_eq!(remove(dir.path(), "rustdoc", &stages), ["debug"]);
        assert_eq!(remove(dir.path(), "asan", &stages), ["asan"]);
        assert!(dir.path().join("release").is_dir());
    }

    #[test]
    fn a_full_disk_is_read_from_messages() {
        assert!(is_full(
            "collect2: fatal error: ld terminated with signal 7 [Bus error]"
        ));
        assert!(is_full("error: No space left on device (os error 28)"));
        assert!(!is_full("error[E0308]: mismatched types"));
        assert_eq!(gib(3 << 29), "1.5 GiB");
    }

    #[test]
    fn a_file_system_tells_its_room() {
        assert!(free(Path::new("/")).is_some());
        assert!(free(Path::new("/no/such/folder")).is_none());
    }
}
