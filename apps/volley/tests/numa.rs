//! Two NUMA nodes: buffers are on both, and each worker uses those of its node. Runs in a QEMU guest with a stock Debian
//! kernel, because the build machines have one node.

#[path = "../../../crates/io/vhost/tests/support/guest.rs"]
mod guest;
mod support;

use guest::{FILE, FOLDER, PROGRAM, QEMU, archive, fetch, listen, plain};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;

/// Buffers on each node, in pages of 4 KiB: 8192 slots of 2368 bytes.
const PAGES: u64 = 8192 * 2368 / 4096;
const CONFIG: &str = r#"
[engine]
workers = 2
worker_cores = [0, 1]
buffers = 8192

[[interface]]
name = "pg0"
kind = "pg"
state = "up"
"#;
/// The script of the guest; the kernel reports how the daemon's memory is distributed.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ip link set lo up
volley run -c /volley.toml --socket /tmp/s 2> /tmp/log &
P=$!
for n in 0 1 2 3 4 5 6 7 8 9; do grep -q ready /tmp/log && break; sleep 2; done
cat /tmp/log
ctl() { volley ctl --socket /tmp/s "$@"; }
ctl packet-generator new name far interface pg0 worker 1 rate 1000 template { eth / ip4 dst 10.0.0.1 / udp / payload 20 }
ctl packet-generator enable
sleep 3
echo "GUEST buffers"
ctl --json show buffers
echo "GUEST workers"
ctl --json show workers
echo "GUEST maps"
grep 'N1=[0-9][0-9][0-9][0-9]' /proc/$P/numa_maps
echo "GUEST done"
poweroff -f
"#;

/// The program and its shared libraries.
fn volley(dir: &Folder) -> Vec<(String, u32, Vec<u8>)> {
    let built = env!("CARGO_BIN_EXE_volley");
    let small = dir.file("volley");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&small).arg(built);
    let stripped = strip.status().is_ok_and(|s| s.success());
    let binary = std::fs::read(if stripped { small } else { built.into() }).unwrap();
    let mut files = vec![("bin/volley".into(), PROGRAM, binary)];
    let linked = Command::new("ldd").arg(built).output().unwrap();
    let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
    let mut folders = Vec::new();
    for path in linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let name = path.trim_start_matches('/');
        for (at, _) in name.match_indices('/') {
            if !folders.contains(&&name[..at]) {
                folders.push(&name[..at]);
                files.push((name[..at].into(), FOLDER, Vec::new()));
            }
        }
        files.push((name.into(), PROGRAM, std::fs::read(path).unwrap()));
    }
    files.push(("volley.toml".into(), FILE, CONFIG.into()));
    files
}

/// The guest's output at its end.
fn boot(kernel: &Path, initrd: &Path) -> String {
    let node = |n: u32| {
        [
            "-object".to_owned(),
            format!("memory-backend-ram,id=m{n},size=512M"),
            "-numa".to_owned(),
            format!("node,nodeid={n},cpus={n},memdev=m{n}"),
        ]
    };
    let mut qemu = Command::new("timeout");
    qemu.args(["240", QEMU, "-cpu", "max", "-accel", "tcg", "-m", "1024"])
        .args(["-smp", "2", "-nographic", "-no-reboot"])
        .args(node(0))
        .args(node(1))
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initrd)
        .args([
            "-append",
            "console=ttyS0 no_timer_check panic=-1 loglevel=4",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut guest = qemu.spawn().expect("qemu starts");
    let (console, start) = (listen(&mut guest), Instant::now());
    while guest.try_wait().unwrap().is_none() {
        assert!(
            start.elapsed() < Duration::from_secs(250),
            "it does not end"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    // The last output may still be in the pipe.
    std::thread::sleep(Duration::from_millis(300));
    console.lock().unwrap().replace('\r', "")
}

/// The text between two marks, parsed as JSON.
fn json(text: &str, from: &str, to: &str) -> serde_json::Value {
    let part = text
        .split(from)
        .nth(1)
        .and_then(|rest| rest.split(to).next());
    let part = part.unwrap_or_else(|| panic!("no {from}: {text}"));
    serde_json::from_str(part.trim()).unwrap_or_else(|e| panic!("{e}: {part}\n{text}"))
}

#[test]
#[ignore = "boots an emulated machine: half a minute"]
fn each_worker_has_buffers_of_its_own_node() {
    if Command::new(QEMU).arg("--version").output().is_err() {
        return println!("SKIP: {QEMU} is not installed (Debian: qemu-system-x86)");
    }
    let Some((kernel, tree)) = fetch() else {
        return;
    };
    let dir = Folder::new();
    let initrd = dir.file("initrd");
    let mut files = plain(&tree, INIT);
    files.extend(volley(&dir));
    std::fs::write(&initrd, archive(&files)).unwrap();
    let text = boot(&kernel, &initrd);
    assert!(text.contains("GUEST done"), "{text}");
    let arenas = json(&text, "GUEST buffers", "GUEST workers");
    let arenas = arenas["arenas"].as_array().unwrap();
    let column =
        |name: &str| -> Vec<u64> { arenas.iter().map(|a| a[name].as_u64().unwrap()).collect() };
    assert_eq!(
        (column("numa"), column("total")),
        (vec![0, 1], vec![8192, 8192])
    );
    assert_eq!(column("failures"), [0, 0]);
    let (used, cached) = (column("used"), column("cached"));
    assert_eq!(used[0], 0, "nothing flows on worker 0: {text}");
    assert!(
        used[1] + cached[1] > 0,
        "worker 1 has those of node 1: {text}"
    );
    let workers = json(&text, "GUEST workers", "GUEST maps");
    let near = |w: usize| workers["workers"][w]["numa"].as_u64();
    assert_eq!((near(0), near(1)), (Some(0), Some(1)));
    let maps = text.split("GUEST maps").nth(1).unwrap_or_default();
    let pages = |line: &str, node: &str| -> u64 {
        let word = line.split(' ').find_map(|w| w.strip_prefix(node));
        word.and_then(|w| w.parse().ok()).unwrap_or(0)
    };
    let of = |line: &str| (pages(line, "N0="), pages(line, "N1="));
    let most = maps
        .lines()
        .map(of)
        .max_by_key(|p| p.0.min(p.1))
        .unwrap_or_default();
    println!(
        "arena: {} pages on node 0, {} on node 1 of {PAGES} each; {cached:?} cached",
        most.0, most.1
    );
    // A huge page is on one node, even where the arenas of two nodes meet.
    let about = |n: u64| n.abs_diff(PAGES) <= 512;
    assert!(
        about(most.0) && about(most.1),
        "{most:?} of {PAGES}: {maps}"
    );
}
