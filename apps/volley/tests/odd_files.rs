//! FIFOs, devices, endless and huge files, folders and links as the paths of commands: each is refused at once with a sentence,
//! and the daemon still replies.

mod support;

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Daemon, Folder, text, volley};

const CONFIG: &str = "\
[[interface]]
name = \"pg0\"
kind = \"pg\"
addresses = [\"192.0.2.1/24\"]
";

/// The longest time for a refusal on a busy machine. Without the check, opening a FIFO blocks forever.
const SOON: Duration = Duration::from_secs(20);

/// Paths that no command can use, whether it reads or writes.
fn odd(folder: &Folder) -> Vec<PathBuf> {
    let fifo = folder.file("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let link = folder.file("link-to-zero");
    symlink("/dev/zero", &link).unwrap();
    vec![
        fifo,
        link,
        "/dev/zero".into(),
        "/dev/ptmx".into(),
        folder.0.clone(),
    ]
}

/// Commands that read a file.
const READS: [&str; 8] = [
    "config check @",
    "config diff @",
    "config commit file @",
    "create pcap interface p0 rx @",
    "ip route load @",
    "packet-generator new name s interface pg0 limit 1 pcap @",
    "packet-generator new name t interface pg0 limit 1 edit ip4.src file @ template { eth / ip4 / udp }",
    "exec @",
];

/// Commands that write a file.
const WRITES: [&str; 2] = [
    "create pcap interface p1 tx @",
    "pcap trace rx max 10 file @",
];

/// Commands whose path is a socket, a namespace, or a file that must not exist.
const OTHERS: [&str; 3] = [
    "packet-generator capture pg0 pcap @",
    "create vhost-user socket @ server name v0",
    "create tap name t0 host-ns @",
];

/// A daemon with a state directory.
fn kept(folder: &Folder) -> Daemon {
    let state = folder.file("state").display().to_string();
    Daemon::start(CONFIG, &["--state-dir", &state])
}

fn refused_soon(daemon: &Daemon, line: &str) -> String {
    let begun = Instant::now();
    let message = daemon.refused(line);
    assert!(begun.elapsed() < SOON, "`{line}`: {:?}", begun.elapsed());
    // The control thread is not blocked.
    daemon.ok("show version");
    message
}

#[test]
fn no_path_stops_the_daemon() {
    let folder = Folder::new();
    let mut daemon = kept(&folder);
    let mut refused = 0;
    for path in odd(&folder) {
        let path = path.display().to_string();
        for line in READS.iter().chain(&WRITES).chain(&OTHERS) {
            let message = refused_soon(&daemon, &line.replace('@', &path));
            assert!(!message.contains("expected"), "`{line}`: {message}");
            refused += 1;
        }
    }
    println!("{refused} commands with odd paths: {refused} are refused in time, bar all");
    daemon.stop("TERM");
}

#[test]
fn what_is_refused_is_named() {
    let folder = Folder::new();
    let daemon = kept(&folder);
    let fifo = odd(&folder).remove(0).display().to_string();
    for line in READS.iter().chain(&WRITES) {
        let message = refused_soon(&daemon, &line.replace('@', &fifo));
        assert!(
            message.contains("is a FIFO; give a regular file"),
            "`{line}`: {message}"
        );
    }
}

#[test]
fn files_are_read_up_to_a_limit() {
    let daemon = Daemon::start(CONFIG, &[]);
    let folder = Folder::new();
    let huge = folder.file("huge");
    std::fs::File::create(&huge)
        .unwrap()
        .set_len(1 << 42)
        .unwrap();
    let huge = huge.display().to_string();
    for line in [READS[0], READS[1], READS[6], READS[7]] {
        let message = refused_soon(&daemon, &line.replace('@', &huge));
        assert!(message.contains("the limit is"), "`{line}`: {message}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let peak = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kb: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kb < 2 << 20, "{peak}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let daemon = Daemon::start(CONFIG, &[]);
    let folder = Folder::new();
    let (file, link) = (folder.file("precious"), folder.file("link"));
    std::fs::write(&file, "precious").unwrap();
    symlink(&file, &link).unwrap();
    for line in WRITES {
        let message = refused_soon(&daemon, &line.replace('@', &link.display().to_string()));
        assert!(message.contains("symbolic link"), "`{line}`: {message}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_start_refuses_them_too() {
    let folder = Folder::new();
    let socket = folder.file("s").display().to_string();
    let good = folder.file("good.toml");
    std::fs::write(&good, CONFIG).unwrap();
    let good = good.display().to_string();
    for path in odd(&folder) {
        let path = path.display().to_string();
        let log = format!("file:{path}");
        for args in [vec!["-c", &path], vec!["-c", &good, "--log-to", &log]] {
            let begun = Instant::now();
            let all = [&["run", "--socket", &socket][..], &args].concat();
            let output = volley(&all);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{args:?}: {}",
                text(&output.stderr)
            );
            assert!(begun.elapsed() < SOON);
        }
    }
}
