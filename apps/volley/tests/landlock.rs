//! The folders of the daemon: outside them every thread is refused to read and write, whatever the mode of the files; an error
//! names the setting that allows a folder.
// tidy: allow(target_arch) registers depend on the processor
#![cfg(target_arch = "x86_64")]

mod support;

use nix::libc;
use std::path::{Path, PathBuf};
use support::made::{BYTES, Call, answer, answer_with, is_worker, lasting_threads};
use support::users::is_root;
use support::{Daemon, Folder};

const CONFIG: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n";
const REFUSED: i64 = -(libc::EACCES as i64);
/// What a worker, which may open nothing at all, is refused with.
const FILTERED: i64 = -(libc::EPERM as i64);
const HERE: u64 = libc::AT_FDCWD as i64 as u64;

const fn open(flags: i32) -> [u64; 3] {
    [HERE, BYTES, flags as u64]
}

/// A folder that is none of the daemon's, although its user may write it; removed on drop.
struct Outside(PathBuf);

impl Outside {
    fn new(name: &str) -> Outside {
        let name = format!("volley-landlock-{name}-{}", std::process::id());
        // The daemon may use the system's temporary folder, in which the checkout may be.
        let (of_build, temporary) = (Path::new(env!("CARGO_TARGET_TMPDIR")), std::env::temp_dir());
        let folder = match of_build.starts_with("/tmp") || of_build.starts_with(temporary) {
            true => Path::new("/var/tmp"),
            false => of_build,
        };
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Outside(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the kernel has Landlock; if it has not, the test says so.
fn is_limited(daemon: &Daemon) -> bool {
    let landlock = daemon.json("show process")["landlock"].clone();
    let is = landlock == "on" || landlock == "partly";
    if !is {
        println!("SKIP: the kernel has no Landlock");
    }
    is
}

/// Calls that change or read what a path names.
fn attacks(outside: &Outside) -> Vec<(Call, String)> {
    let existing = outside.file("precious");
    std::fs::write(&existing, "precious").unwrap();
    let create = |path: &str| {
        let call = (
            "create",
            libc::SYS_openat,
            open(libc::O_CREAT | libc::O_WRONLY),
        );
        (call, path.to_owned())
    };
    let read = |path: &str| {
        (
            ("read", libc::SYS_openat, open(libc::O_RDONLY)),
            path.to_owned(),
        )
    };
    let mut all: Vec<_> = ["/etc", "/usr", "/var", "/run", "/root", "/"]
        .map(|folder| create(&format!("{folder}/volley-attack")))
        .into();
    all.extend([
        create(&outside.file("new")),
        (
            ("write", libc::SYS_openat, open(libc::O_WRONLY)),
            existing.clone(),
        ),
        (
            (
                "cut",
                libc::SYS_openat,
                open(libc::O_WRONLY | libc::O_TRUNC),
            ),
            existing.clone(),
        ),
        (("unlink", libc::SYS_unlink, [BYTES, 0, 0]), existing),
        (
            ("mkdir", libc::SYS_mkdir, [BYTES, 0, 0]),
            outside.file("folder"),
        ),
        (
            ("symlink", libc::SYS_symlink, [BYTES, BYTES, 0]),
            outside.file("link"),
        ),
        (
            ("symlink", libc::SYS_symlink, [BYTES, BYTES, 0]),
            "/tmp/volley-attack".into(),
        ),
        read("/root"),
        read("/boot"),
        read("/home"),
        read("/dev/kmsg"),
    ]);
    all.retain(|(call, path)| call.0 != "read" || Path::new(path).exists());
    all
}

/// Connecting to a service of this machine over TCP: family, port and address.
const SERVICE: [u8; 16] = [2, 0, 0, 9, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn no_thread_reaches_a_file_outside() {
    if !is_root() {
        println!("SKIP: it needs root, whom the modes of files do not stop");
        return;
    }
    let outside = Outside::new("attack");
    let mut daemon = Daemon::start(&format!("[engine]\nworkers = 2\n{CONFIG}"), &[]);
    if !is_limited(&daemon) {
        return;
    }
    let is_whole = daemon.json("show process")["landlock"] == "on";
    let attacks = attacks(&outside);
    let all = lasting_threads(daemon.pid());
    for (thread, status) in &all {
        let (name, wanted) = match is_worker(status) {
            true => (&status["Name"], FILTERED),
            false => (&status["Name"], REFUSED),
        };
        for (call, path) in &attacks {
            let result = answer_with(*thread, *call, path.as_bytes());
            assert_eq!(result, wanted, "{name}: {} {path}", call.0);
        }
        if is_worker(status) {
            continue;
        }
        // The same calls are made in the daemon's folders.
        let own = daemon.folder.file("own").display().to_string();
        let flags = libc::O_CREAT | libc::O_WRONLY;
        for call in [
            ("create", libc::SYS_openat, open(flags)),
            ("unlink", libc::SYS_unlink, [BYTES, 0, 0]),
        ] {
            let result = answer_with(*thread, call, own.as_bytes());
            assert!(result >= 0, "{name}: {} {own}: {result}", call.0);
        }
        if !is_whole {
            continue;
        }
        let stream = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0];
        let socket = answer(*thread, ("socket", libc::SYS_socket, stream));
        let connect = ("connect", libc::SYS_connect, [socket as u64, BYTES, 16]);
        let result = answer_with(*thread, connect, &SERVICE);
        assert_eq!(result, REFUSED, "{name}: connect");
    }
    assert_eq!(
        std::fs::read_to_string(outside.file("precious")).unwrap(),
        "precious"
    );
    println!(
        "{} accesses outside by each of {} threads: all are refused, bar all",
        attacks.len(),
        all.len()
    );
    // The daemon works as before.
    daemon.ok("set interface state pg0 up");
    daemon.stop("TERM");
}

#[test]
fn an_error_names_the_setting_and_the_setting_allows() {
    let outside = Outside::new("setting");
    let place = outside.0.display().to_string();
    let daemon = Daemon::start(CONFIG, &[]);
    if !is_limited(&daemon) {
        return;
    }
    let capture = format!("pcap trace rx tx file {}", outside.file("a.pcap"));
    let vhost = format!(
        "create vhost-user socket {} server name v0",
        outside.file("v")
    );
    let memif = "create interface memif id 0 socket-id 1 master name m0";
    daemon.ok(&format!(
        "create memif socket id 1 filename {}",
        outside.file("m")
    ));
    for line in [&capture, &vhost, memif] {
        let message = daemon.refused(line);
        let wanted =
            format!("may not write in {place}; name this folder in write_folders of [process]");
        assert!(message.contains(&wanted), "`{line}`: {message}");
    }
    let namespace = format!("create tap id 0 host-ns pid:{}", std::process::id());
    let message = daemon.refused(&namespace);
    assert!(message.contains("landlock = \"off\""), "{message}");
    for setting in [
        format!("write_folders = [\"{place}\"]"),
        "landlock = \"off\"".into(),
    ] {
        let mut daemon = Daemon::start(&format!("[process]\n{setting}\n{CONFIG}"), &[]);
        daemon.ok(&format!(
            "create memif socket id 1 filename {}",
            outside.file("m")
        ));
        for line in [&capture, &vhost, memif, "pcap trace off"] {
            daemon.ok(line);
        }
        daemon.stop("TERM");
        let left = std::fs::read_dir(&outside.0).unwrap().flatten();
        let left: Vec<_> = left.map(|it| it.file_name()).collect();
        assert_eq!(left, ["a.pcap"], "{setting}");
    }
}

#[test]
fn what_a_configuration_names_is_allowed() {
    let outside = Outside::new("named");
    let config = format!(
        "[[memif_socket]]\nid = 1\nfilename = \"{}\"\n\
         [[interface]]\nname = \"m0\"\nkind = \"memif\"\nmemif = {{ id = 0, socket = 1, role = \"master\" }}\n\
         [[interface]]\nname = \"p0\"\nkind = \"pcap\"\ntx = \"{}\"\n",
        outside.file("m"),
        outside.file("a.pcap")
    );
    let state = Folder::new();
    let place = state.0.display().to_string();
    let mut daemon = Daemon::start(&config, &["--state-dir", &place]);
    daemon.ok("config commit");
    assert!(outside.0.join("m").exists());
    daemon.stop("TERM");
    // The commit, not the file, names them now.
    let mut daemon = Daemon::start("", &["--state-dir", &place]);
    assert!(outside.0.join("m").exists());
    daemon.stop("TERM");
}

#[test]
fn a_folder_that_is_missing_is_a_warning() {
    let config = "[process]\nread_folders = [\"/missing/folder\"]\n";
    let daemon = Daemon::start(config, &[]);
    assert!(
        daemon
            .log()
            .contains("/missing/folder of [process] is no folder")
    );
}
