//! The daemon with the user, the capabilities and the filters of `packaging/volley.service`.
//!
//! - Here: the user and capabilities that the unit names, set by `setpriv`.
//! - In a guest (`cargo xtask show hostile --only unit`): by systemd itself, which reads the unit.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::bed::{Space, must, run, wait_until_up};
use support::{Daemon, Folder, text, volley};

const UNIT: &str = include_str!("../../../packaging/volley.service");
const NAMESPACES: &str = include_str!("../../../packaging/namespaces.conf");
const PERFMON: &str = include_str!("../../../packaging/perfmon.conf");
/// User and group ids in the tests' `/etc/passwd`.
const ID: u32 = 977;

/// The values of a setting in all of its lines.
fn values<'a>(unit: &'a str, setting: &str) -> Vec<&'a str> {
    let of = |line: &'a str| line.strip_prefix(setting)?.strip_prefix('=');
    let lines = unit.lines().filter_map(of);
    lines.flat_map(str::split_whitespace).collect()
}

/// The capabilities of a unit as `setpriv` names them: the bounding set is also the ambient set.
fn capabilities(unit: &str) -> String {
    let ambient = values(unit, "AmbientCapabilities");
    assert_eq!(ambient, values(unit, "CapabilityBoundingSet"));
    let names = ambient
        .iter()
        .map(|name| name.strip_prefix("CAP_").unwrap());
    let words: Vec<String> = names
        .map(|name| format!(",+{}", name.to_lowercase()))
        .collect();
    format!("-all{}", words.concat())
}

#[test]
fn the_unit_is_rated_at_most_two_and_a_half() {
    let folder = Folder::new();
    for (unit, limit) in [
        (UNIT.to_owned(), "25"),
        (format!("{UNIT}{NAMESPACES}"), "27"),
        (format!("{UNIT}{PERFMON}"), "25"),
    ] {
        let file = folder.file("volley.service");
        std::fs::write(&file, unit).unwrap();
        let threshold = format!("--threshold={limit}");
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", &threshold]);
        let Ok(output) = analyze.arg(&file).output() else {
            println!("SKIP: it needs systemd-analyze");
            return;
        };
        let message = text(&output.stdout);
        let last = message.trim_end().lines().last().unwrap_or_default();
        println!("{last}");
        assert!(output.status.success(), "{message}{}", text(&output.stderr));
        assert!(last.contains("exposure level"), "{message}");
    }
}

/// Two namespaces: the router's, and a host's. Pairs of devices `p` and `x` connect them.
struct Place {
    router: Space,
    host: Space,
}

impl Place {
    fn new() -> Option<Place> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("unit{}-{number}{end}", std::process::id());
        // The guest has no udev.
        if is_guest() {
            must("chmod 666 /dev/net/tun");
        }
        let (router, host) = (Space::new(name("r"))?, Space::new(name("h"))?);
        for (net, pair) in ["p", "x"].iter().enumerate() {
            must(&format!(
                "ip link add {pair} netns {} type veth peer name {pair} netns {}",
                router.0, host.0
            ));
            router.ip(&format!("link set {pair} up"));
            host.ip(&format!("addr add 10.9.{net}.2/24 dev {pair}"));
            host.ip(&format!("link set {pair} up"));
        }
        for space in [&router, &host] {
            space.ip("link set lo up");
            for pair in ["p", "x"] {
                wait_until_up(&format!("-n {}", space.0), pair);
            }
        }
        Some(Place { router, host })
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether this machine lets a service lock memory like `LimitMEMLOCK=infinity`; the rings of XDP sockets are locked.
fn memory_can_be_locked() -> bool {
    let raised = run(5, &["sh", "-c", "ulimit -l unlimited"]);
    if !raised.status.success() {
        println!("without af_xdp: the limit of locked memory cannot be raised here");
    }
    raised.status.success()
}

/// Creates an interface of every driver that the kernel supports, sends packets through them, commits, and deletes everything.
/// `ctl` runs a command that must succeed; `runtime` is the folder of sockets.
fn every_driver_works(place: &Place, runtime: &str, ctl: &dyn Fn(&str) -> String) {
    let lines = [
        "create tap id 0 host-if-name unit0 host-ip4-addr 10.9.2.2/24 name t",
        "create host-interface name p as p",
        &format!("create memif socket id 1 filename {runtime}/m.sock"),
        "create interface memif id 0 socket-id 1 master name m0",
        &format!("create vhost-user socket {runtime}/v.sock server name v0"),
        &format!("create interface virtio-user socket {runtime}/v.sock name v1"),
        "create packet-generator interface pg0",
        "set interface ip address p 10.9.0.1/24",
        "set interface ip address x 10.9.1.1/24",
        "set interface ip address t 10.9.2.1/24",
    ];
    // Otherwise the same by a packet socket.
    let xdp = match memory_can_be_locked() {
        true => "create interface af_xdp host-if x name x",
        false => "create host-interface name x as x",
    };
    ctl(xdp);
    for line in lines {
        ctl(line);
    }
    for name in ["t", "p", "x", "m0", "v0", "v1", "pg0"] {
        ctl(&format!("set interface state {name} up"));
    }
    let peer = Daemon::start("", &[]);
    peer.ok(&format!(
        "create memif socket id 1 filename {runtime}/m.sock"
    ));
    peer.ok("create interface memif id 0 socket-id 1 slave name m1");
    peer.ok("set interface state m1 up");
    for pair in ["m0", "v0", "v1"] {
        until(pair, || {
            let message = ctl(&format!("show interfaces {pair}"));
            !message.contains("no link")
        });
    }
    until("the host's packets", || {
        let ping = |net: u8| place.host.does(10, &format!("ping -c 1 -W 1 10.9.{net}.1"));
        ping(0) && ping(1)
    });
    until("the tap's packets", || {
        place.router.does(10, "ping -c 1 -W 1 10.9.2.1")
    });
    ctl("workers add");
    ctl("lcp create p host-if lp");
    until("the twin's address", || {
        place.router.ip("addr show lp").contains("10.9.0.1/24")
    });
    ctl(&format!("pcap trace rx max 10 file {runtime}/own.pcap"));
    ctl("pcap trace off");
    ctl("config commit");
    ctl("lcp delete p");
    let kinds = [
        ("interface memif", "m0"),
        ("vhost-user", "v1 v0"),
        ("interface", "t p x pg0"),
    ];
    for (kind, names) in kinds {
        for name in names.split(' ') {
            ctl(&format!("delete {kind} {name}"));
        }
    }
}

/// A daemon in the router's namespace with the user and rights of the unit.
fn as_the_unit(place: &Place, unit: &str, config: &str) -> (Daemon, Folder) {
    let etc = Folder::new();
    let user = values(unit, "User")[0];
    let group = values(unit, "Group")[0];
    let passwd = format!("root:x:0:0::/:/bin/sh\n{user}:x:{ID}:{ID}::/:/bin/false\n");
    std::fs::write(etc.file("passwd"), passwd).unwrap();
    std::fs::write(etc.file("group"), format!("root:x:0:\n{group}:x:{ID}:\n")).unwrap();
    std::fs::create_dir(etc.file("state")).unwrap();
    let caps = capabilities(unit);
    assert_eq!(values(unit, "LimitMEMLOCK"), ["infinity"]);
    // The daemon's folder, with its configuration and its sockets, is given to the user.
    let script = format!(
        "mount --make-rslave / && mount --bind \"$0/passwd\" /etc/passwd && mount --bind \"$0/group\" /etc/group && \
         chown -R {user}:{group} \"$0/state\" \"${{4%/*}}\" && {{ ulimit -l unlimited || true; }} 2> /dev/null && exec setpriv --reuid={user} --regid={group} --init-groups \
         --bounding-set={caps} --inh-caps={caps} --ambient-caps={caps} --no-new-privs \"$@\""
    );
    let folder = etc.0.display().to_string();
    let state = etc.file("state").display().to_string();
    let enter = ["ip", "netns", "exec", &place.router.0, "unshare", "-m"];
    let program = ["sh", "-c", &script, &folder, env!("CARGO_BIN_EXE_volley")];
    let program = [&enter[..], &program].concat();
    let mut daemon = Daemon::start_by(&program, config, &["--state-dir", &state], &[]);
    // The client reads the service's user from the same file.
    let namespace = format!("--target={}", daemon.pid());
    daemon.client = ["nsenter", &namespace, "--mount", "--"]
        .map(str::to_owned)
        .into();
    (daemon, etc)
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

#[test]
fn every_driver_works_for_the_units_user_with_its_capabilities() {
    let Some(place) = Place::new() else { return };
    let (mut daemon, _etc) = as_the_unit(&place, UNIT, "");
    let pid = daemon.pid();
    assert_eq!(status(pid, "Uid").split('\t').next(), Some("977"));
    // CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF.
    for set in ["CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status(pid, set), "0000008000003000", "{set}");
    }
    let shown = daemon.ok("show process");
    assert!(shown.contains("uid 977, gid 977"), "{shown}");
    assert!(shown.contains("net_admin net_raw bpf  no "), "{shown}");
    let runtime = daemon.folder.0.display().to_string();
    every_driver_works(&place, &runtime, &|line| daemon.ok(line));
    let error = daemon.refused(&format!(
        "create host-interface name p as o netns {}",
        place.host.0
    ));
    assert!(error.contains("cap_sys_admin"), "{error}");
    daemon.stop("TERM");
}

#[test]
fn with_the_packaged_drop_in_other_namespaces_can_be_entered() {
    let Some(place) = Place::new() else { return };
    let unit = format!("{UNIT}{NAMESPACES}");
    let (mut daemon, _etc) = as_the_unit(&place, &unit, "");
    let host = &place.host.0;
    daemon.ok(&format!("create host-interface name p as o netns {host}"));
    daemon.ok("set interface state o up");
    daemon.ok(&format!("lcp create o host-if lo1 netns {host}"));
    assert!(must(&format!("ip -n {host} link show lo1")).contains("lo1"));
    daemon.ok("lcp delete o");
    daemon.ok("delete interface o");
    daemon.stop("TERM");
}

/// Stops systemd and everything that it runs.
struct Systemd(Child);

impl Drop for Systemd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates what the package and its sysusers file create; the guest loses it at its end.
const INSTALL: &str = "set -e
mount -t cgroup2 cgroup2 /sys/fs/cgroup
rm -rf /etc/systemd/system/*
mkdir -p /etc/volley /run/systemd/system/volley.service.d
groupadd -r volley && useradd -r -g volley -M volley
getent group kvm > /dev/null || groupadd -r kvm
usermod -aG kvm volley
if [ -e /dev/vhost-net ]; then chgrp kvm /dev/vhost-net && chmod 660 /dev/vhost-net; fi
cp \"$1\" /usr/bin/volley
cp \"$2/volley.service\" /run/systemd/system/
printf '[process]\\ncapabilities = \"keep\"\\n' > /etc/volley/volley.toml
printf '[Unit]\\nRequires=volley.service\\n' > /run/systemd/system/go.target
# It has no namespace of the network of its own: the test's is the daemon's.
printf '[Service]\\nNetworkNamespacePath=%s\\n' \"$3\" > /run/systemd/system/volley.service.d/test.conf
";

const SYSTEMD: &str = "/lib/systemd/systemd";

fn is_guest() -> bool {
    let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.contains("volley_guest") && Path::new(SYSTEMD).exists()
}

#[test]
fn systemd_runs_the_unit_and_every_driver_works() {
    if !is_guest() {
        println!("SKIP: systemd is started in a guest only: cargo xtask show hostile --only unit");
        return;
    }
    let place = Place::new().unwrap();
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let space = format!("/run/netns/{}", place.router.0);
    let program = env!("CARGO_BIN_EXE_volley");
    let words = ["sh", "-c", INSTALL, "sh", program, packaging, &space];
    let output = run(60, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let log = std::fs::File::create("/run/systemd.log").unwrap();
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--cgroup",
    ]);
    command.args(["--ipc", SYSTEMD, "--system", "--unit=go.target"]);
    command.args(["--log-target=console", "--show-status=no"]);
    command.env("container", "lxc").stdin(Stdio::null());
    let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn();
    let _systemd = Systemd(child.unwrap());
    let runtime = "/run/volley";
    let ctl = |line: &str| {
        let socket = format!("{runtime}/volley.sock");
        let mut words = vec!["ctl", "--socket", &socket];
        words.extend(line.split(' '));
        volley(&words)
    };
    let read = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    until("the daemon", || ctl("show version").status.success());
    let mode = must(&format!("stat -c %A:%U:%G {runtime}/volley.sock"));
    assert_eq!(mode.trim(), "srw-rw----:volley:volley");
    every_driver_works(&place, runtime, &|line| {
        let output = ctl(line);
        let why = || {
            format!(
                "{line}: {}{}",
                text(&output.stderr),
                read("/run/systemd.log")
            )
        };
        assert!(output.status.success(), "{}", why());
        text(&output.stdout)
    });
}
