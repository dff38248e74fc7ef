//! A QEMU guest (emulated processor) with a stock Debian kernel: two network cards, one in a namespace of its own, and
//! the only way between them leads through Volley. Ping in several sizes and a TCP stream, whose checksums must be right.
//!
//! `cargo test -p volley-vhost --test guest -- --ignored --nocapture`: it fetches the kernel and busybox (28 MB) once.

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use support::{Bench, has, spec};
use volley_model::{InterfaceKind, SocketRole, VhostSpec};

const QEMU: &str = "qemu-system-x86_64";
/// In the order in which they need each other.
const MODULES: [&str; 8] = [
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "drivers/net/virtio_net",
];

/// What the guest does. `unshare` becomes the program it starts, so that `$!` is the namespace's process.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for m in /modules/*.ko; do insmod $m || echo "GUEST insmod $m failed"; done
unshare -n sleep 1000 &
P=$!
sleep 1
ip link set eth1 netns $P
ip addr add 10.9.0.1/24 dev eth0
ip link set eth0 mtu 1500 up
nsenter -t $P -n ip addr add 10.9.0.2/24 dev eth1
nsenter -t $P -n ip link set eth1 up
nsenter -t $P -n ip link set lo up
for size in 18 56 1000 1472 4000; do
    ping -c 3 -W 5 -s $size 10.9.0.2 > /ping && echo "GUEST ping $size ok" || cat /ping
done
dd if=/dev/urandom of=/data bs=1024 count=4096 2>/dev/null
# A listener whose own input is at its end would hang up at once: it reads from a pipe that nobody closes.
mkfifo /hold
exec 9<>/hold
timeout 100 nsenter -t $P -n nc -l -p 7777 <&9 > /copy &
sleep 1
timeout 90 nc -w 20 10.9.0.2 7777 < /data
wait $!
cmp /data /copy && echo "GUEST tcp ok"
cat /proc/net/dev /proc/net/snmp
echo "GUEST done"
poweroff -f
"#;

/// Kernel and folder of the unpacked packages.
fn fetch() -> Option<(PathBuf, PathBuf)> {
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
            println!("skipped: {}", String::from_utf8_lossy(&done.stderr));
            return None;
        }
    }
    Some((kernel()?, tree))
}

/// An archive in the form that the kernel unpacks (cpio, newc).
fn archive(files: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
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

fn initramfs(tree: &Path) -> Vec<u8> {
    let (folder, program, link) = (0o040755, 0o100755, 0o120777);
    let mut files: Vec<(String, u32, Vec<u8>)> = ["bin", "proc", "dev", "modules"]
        .map(|d| (d.to_owned(), folder, Vec::new()))
        .into();
    files.push(("init".into(), program, INIT.into()));
    files.push((
        "bin/busybox".into(),
        program,
        std::fs::read(tree.join("bin/busybox")).unwrap(),
    ));
    let applets =
        "sh mount insmod unshare sleep ip nsenter ping cat dd nc cmp echo poweroff timeout mkfifo";
    for applet in applets.split(' ') {
        files.push((format!("bin/{applet}"), link, b"busybox".into()));
    }
    let modules = std::fs::read_dir(tree.join("lib/modules"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for (number, module) in MODULES.iter().enumerate() {
        let data = std::fs::read(modules.join("kernel").join(format!("{module}.ko"))).unwrap();
        files.push((format!("modules/{number}.ko"), 0o100644, data));
    }
    archive(&files)
}

fn boot(kernel: &Path, initrd: &Path, sockets: &[PathBuf; 2], card: &str) -> std::process::Child {
    let mut qemu = Command::new("nice");
    qemu.args([
        "-n",
        "19",
        QEMU,
        "-cpu",
        "max",
        "-accel",
        "tcg",
        "-m",
        "256",
        "-nographic",
        "-no-reboot",
    ]);
    qemu.args([
        "-object",
        "memory-backend-memfd,id=m,size=256M,share=on",
        "-numa",
        "node,memdev=m",
    ]);
    qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    qemu.args([
        "-append",
        "console=ttyS0 earlyprintk=ttyS0 no_timer_check panic=-1 loglevel=4",
    ]);
    for (i, socket) in sockets.iter().enumerate() {
        qemu.arg("-chardev")
            .arg(format!("socket,id=c{i},path={}", socket.display()));
        qemu.arg("-netdev")
            .arg(format!("vhost-user,id=n{i},chardev=c{i}"));
        // `vectors=0`, interrupts by pin: with MSI-X, Debian's QEMU 7.2 itself dies of SIGSEGV as soon as the guest's driver
        // sets up the queue of control messages of a vhost-user card.
        qemu.arg("-device").arg(format!(
            "virtio-net-pci,netdev=n{i},mac=02:fe:00:00:00:0{},vectors=0,{card}",
            i + 1
        ));
    }
    qemu.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    qemu.spawn().expect("qemu starts")
}

/// What the guest prints, as it comes.
fn listen(guest: &mut std::process::Child) -> Arc<Mutex<String>> {
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

fn run(options: VhostSpec, card: &str) {
    let Some((kernel, tree)) = fetch() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let initrd = dir.path().join("initrd");
    std::fs::File::create(&initrd)
        .unwrap()
        .write_all(&initramfs(&tree))
        .unwrap();
    let sockets = [dir.path().join("v0"), dir.path().join("v1")];
    let mut bench = Bench::new();
    for (name, socket) in [("v0", &sockets[0]), ("v1", &sockets[1])] {
        let ours = VhostSpec {
            socket: socket.clone(),
            role: SocketRole::Server,
            ..options.clone()
        };
        bench.create(name, InterfaceKind::VhostUser(ours)).unwrap();
    }
    bench.patch("v0", "v1");
    bench.patch("v1", "v0");
    let mut guest = boot(&kernel, &initrd, &sockets, card);
    let console = listen(&mut guest);
    let mut seen = String::new();
    bench.until(270, |b| {
        if b.is_up("v0") && seen.is_empty() {
            seen = b.show("v0").features;
        }
        console.lock().unwrap().contains("GUEST done") || guest.try_wait().unwrap().is_some()
    });
    let counts = (bench.counts("v0"), bench.counts("v1"));
    let _ = guest.kill();
    let _ = guest.wait();
    // What it printed last is on its way.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let text = console.lock().unwrap().clone();
    for expected in [
        "ping 18 ok",
        "ping 56 ok",
        "ping 1000 ok",
        "ping 1472 ok",
        "ping 4000 ok",
        "tcp ok",
    ] {
        assert!(
            text.contains(&format!("GUEST {expected}")),
            "{expected}: {seen}\n{counts:?} {:?}\n{text}",
            bench.drops()
        );
    }
    println!("{seen}: {counts:?}");
    // What the first card sent before the second was there had nowhere to go.
    let lost = counts.0.rx_packets.checked_sub(counts.1.tx_packets);
    assert!(
        lost.is_some_and(|lost| lost <= 10),
        "{counts:?} {:?}",
        bench.drops()
    );
    assert!(bench.until(10, |b| !b.is_up("v0") && !b.is_up("v1")));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
#[ignore = "boots an emulated machine three times: minutes"]
fn a_guest_with_a_stock_kernel() {
    let _alone = support::alone();
    if !has(QEMU) {
        return;
    }
    let plain = spec(Path::new(""), SocketRole::Server);
    run(plain.clone(), "mrg_rxbuf=on");
    run(
        VhostSpec {
            gso: true,
            event_idx: true,
            ..plain.clone()
        },
        "mrg_rxbuf=on",
    );
    run(
        VhostSpec {
            gso: true,
            packed: true,
            event_idx: true,
            ..plain
        },
        "packed=on",
    );
}
