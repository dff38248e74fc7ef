//! A QEMU guest with a stock Debian kernel and busybox.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

pub const QEMU: &str = "qemu-system-x86_64";
/// Modes of files in an archive.
pub const FOLDER: u32 = 0o040755;
pub const FILE: u32 = 0o100644;
pub const PROGRAM: u32 = 0o100755;
const LINK: u32 = 0o120777;

/// Kernel and directory of the unpacked packages (28 MB), which are downloaded once.
pub fn fetch() -> Option<(PathBuf, PathBuf)> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    let tree = dir.join("tree");
    std::fs::create_dir_all(&tree).unwrap();
    let kernel = || {
        let mut found = std::fs::read_dir(tree.join("boot"))
            .ok()?
            .flatten()
            .map(|e| e.path());
        found.find(|p| {
            p.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("vmlinuz")
        })
    };
    if kernel().is_none() {
        let script = "set -e; k=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/{print $2; exit}'); \
                      apt-get download -q busybox-static $k; for d in *.deb; do dpkg-deb -x $d tree; done";
        let done = Command::new("sh")
            .args(["-c", script])
            .current_dir(&dir)
            .output()
            .ok()?;
        if !done.status.success() {
            println!(
                "SKIP: the guest's kernel cannot be fetched: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            return None;
        }
    }
    Some((kernel()?, tree))
}

/// An archive in the form that the kernel unpacks (cpio, newc).
pub fn archive(files: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let last = ("TRAILER!!!".to_owned(), 0, Vec::new());
    for (number, (name, mode, data)) in files.iter().chain([&last]).enumerate() {
        let fields = [
            number as u32,
            *mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        out.extend(b"070701");
        fields
            .iter()
            .for_each(|f| out.extend(format!("{f:08x}").bytes()));
        out.extend(name.bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(data);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// Files of every guest: busybox with its commands, and the init script.
pub fn plain(tree: &Path, init: &str) -> Vec<(String, u32, Vec<u8>)> {
    let mut files: Vec<(String, u32, Vec<u8>)> = ["bin", "proc", "sys", "dev", "tmp"]
        .map(|d| (d.to_owned(), FOLDER, Vec::new()))
        .into();
    files.push(("init".into(), PROGRAM, init.into()));
    let busybox = std::fs::read(tree.join("bin/busybox")).unwrap();
    files.push(("bin/busybox".into(), PROGRAM, busybox));
    let applets = "sh mount insmod unshare sleep ip nsenter ping cat dd nc cmp echo poweroff timeout mkfifo grep awk kill";
    for applet in applets.split(' ') {
        files.push((format!("bin/{applet}"), LINK, b"busybox".into()));
    }
    files
}

/// The guest's output so far.
pub fn listen(guest: &mut std::process::Child) -> Arc<Mutex<String>> {
    let console = Arc::new(Mutex::new(String::new()));
    for mut from in [
        guest
            .stdout
            .take()
            .map(|o| Box::new(o) as Box<dyn Read + Send>),
        guest.stderr.take().map(|e| Box::new(e) as _),
    ]
    .into_iter()
    .flatten()
    {
        let to = console.clone();
        std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(n @ 1..) = from.read(&mut some) {
                to.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&some[..n]));
            }
        });
    }
    console
}
