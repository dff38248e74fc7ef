//! The archive that the guest boots into: busybox, the modules for access to the host's files, and the job.

use super::fetch::Kernel;
use super::job::Job;
use crate::home::Home;
use crate::run::Program;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const INIT: &str = include_str!("../../templates/guest-init.sh");
const MODPROBE: &str = include_str!("../../templates/guest-modprobe.sh");
/// Modules that are needed before the others can be read from the host.
const MODULES: [&str; 5] = [
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
];
const EMPTY: [&str; 6] = ["proc", "sys", "dev", "host", "over", "root"];

/// A folder for one run, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(home: &Home) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("guest/run-{}-{number}", std::process::id());
        let path = home.target.join(name);
        fs::create_dir_all(&path).map_err(with_path(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays under the target folder and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the archive into the folder.
pub fn pack(home: &Home, kernel: &Kernel, job: &Job, folder: &Folder) -> Result<PathBuf, String> {
    let root = folder.0.join("root");
    for place in EMPTY {
        let path = root.join(place);
        fs::create_dir_all(&path).map_err(with_path(&path))?;
    }
    let busybox = kernel.tree.join("bin/busybox");
    put(&root, "bin/busybox", &read(&busybox)?)?;
    put(&root, "init", INIT.as_bytes())?;
    put(&root, "sbin/modprobe", MODPROBE.as_bytes())?;
    put(&root, "job/words", &job.words())?;
    put(&root, "job/tree", kernel.tree.as_os_str().as_bytes())?;
    put(&root, "job/modules", MODULES.join("\n").as_bytes())?;
    let listed = kernel.tree.join(&kernel.modules).join("modules.dep");
    let listed = read(&listed)?;
    put(&root, kernel.modules.join("modules.dep"), &listed)?;
    for module in needed(&String::from_utf8_lossy(&listed), &MODULES)? {
        let place = kernel.modules.join(module);
        put(&root, &place, &read(&kernel.tree.join(&place))?)?;
    }
    let script = "find . | \"$1\" cpio -o -H newc > ../initrd";
    let archive = Program::new(home, "sh").args(["-c", script, "sh"]);
    archive
        .arg(&busybox)
        .dir(&root)
        .limit_seconds(60)
        .require()?;
    Ok(folder.0.join("initrd"))
}

/// Files of these modules and of all modules that they need, by the kernel's list.
fn needed(list: &str, names: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut files = BTreeSet::new();
    for name in names {
        let file = format!("/{name}.ko");
        let mut lines = list.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(own, _)| own.ends_with(&file));
        let (own, others) = found.ok_or(format!(
            "the guest's kernel has no module {name}; remove target/guest and try again"
        ))?;
        files.insert(own.to_owned());
        files.extend(others.split_whitespace().map(str::to_owned));
    }
    Ok(files)
}

fn put(root: &Path, place: impl AsRef<Path>, content: &[u8]) -> Result<(), String> {
    let path = root.join(place);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(with_path(folder))?;
    fs::write(&path, content).map_err(with_path(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(with_path(&path))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(with_path(path))
}

fn with_path(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_with_what_they_need() {
        let list = "fs/9p/9p.ko: net/9p/9pnet.ko fs/netfs.ko\nnet/9p/9pnet.ko:\nnet/vrf.ko:\n";
        let files = needed(list, &["9p", "9pnet"]).unwrap();
        let expected = ["fs/9p/9p.ko", "fs/netfs.ko", "net/9p/9pnet.ko"];
        assert_eq!(files.into_iter().collect::<Vec<_>>(), expected);
        assert!(needed(list, &["p"]).unwrap_err().contains("module p;"));
    }
}
