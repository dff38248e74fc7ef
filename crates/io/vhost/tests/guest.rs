//! A QEMU guest (emulated processor) with a stock Debian kernel and two network cards, one in its own namespace. The only
//! path between the cards is Volley. Ping in several sizes and a TCP stream; all checksums must be right.
//!
//! `cargo test -p volley-vhost --test guest -- --ignored --nocapture`: fetches the kernel and busybox (28 MB) once.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::guest::{FILE, FOLDER, QEMU, archive, fetch, listen, plain};
use support::{Bench, back_end, has, spec};
use volley_vhost::model::{SocketRole, VirtioUser};

/// Kernel modules in load order.
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

/// The guest's init script. `unshare` executes the program that it starts, so `$!` is the namespace's process.
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

fn initramfs(tree: &Path) -> Vec<u8> {
    let mut files = plain(tree, INIT);
    let modules = std::fs::read_dir(tree.join("lib/modules"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    files.push(("modules".into(), FOLDER, Vec::new()));
    for (number, module) in MODULES.iter().enumerate() {
        let data = std::fs::read(modules.join("kernel").join(format!("{module}.ko"))).unwrap();
        files.push((format!("modules/{number}.ko"), FILE, data));
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

fn run(options: VirtioUser, card: &str) {
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
        let ours = VirtioUser {
            socket: socket.clone(),
            role: SocketRole::Server,
            ..options.clone()
        };
        bench.create(name, back_end(ours)).unwrap();
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
    // Let the last output arrive.
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
    // Packets that the first card sent before the second one was up were dropped.
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
        VirtioUser {
            gso: true,
            event_idx: true,
            ..plain.clone()
        },
        "mrg_rxbuf=on",
    );
    run(
        VirtioUser {
            gso: true,
            packed: true,
            event_idx: true,
            ..plain
        },
        "packed=on",
    );
}
