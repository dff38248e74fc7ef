//! Taps whose packets the kernel's vhost-net carries, and the behaviour of taps without it.
//!
//! If `/dev/vhost-net` cannot be opened, tests that need it print a message and pass. `cargo xtask show interfaces --only
//! tap-vhost-net` runs them under Debian's kernel in an emulated guest. Time limits are long because the guest is slow.

use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_iface::Admin;
use volley_iface::ShowHardware;
use volley_iface::{AdminState, RxMode};
use volley_iface::{IfCounts, Mtu, NewInterface, ReceiveMode};
use volley_linux::Namespace;
use volley_linux::testbed::{Daemon, Testbed, datagrams};
use volley_model::{InterfaceSpec, Mac, Request};
use volley_object::Object;
use volley_tap::model::{TapInterface, TapMode, TapVhost};
use volley_tap::sys::{self, Header, Layer};
use volley_vhost::kernel::{self, Ended, Kernel, Rings, Service};
use volley_vhost::node::vhost_user_tx::VhostTx;
use volley_vhost::wire::VhostPort;

/// A time limit for operations that are fast here and slow in a guest.
const LONG: Duration = Duration::from_secs(60);
/// Set for the process that the test kills: the name of a namespace.
const VICTIM: &str = "VOLLEY_VHOST_VICTIM";
const PING: &[&str] = &["ping"];

/// Namespaces; none if the kernel has no vhost-net.
fn served(programs: &[&str]) -> Option<Testbed> {
    if let Err(why) = kernel::features() {
        println!("SKIP: {why}");
        return None;
    }
    Testbed::new(2, programs)
}

fn daemon() -> Daemon {
    Daemon::new(8192, None, |registry| {
        volley_l2::register(registry)?;
        volley_tap::register(registry)
    })
}

fn spec(bed: &Testbed, at: usize, vhost: TapVhost) -> TapInterface {
    TapInterface {
        host: Some("e".into()),
        namespace: Some(bed.name(at).into()),
        // A fixed address: after the tap is created again, its neighbour's cache entry stays valid.
        host_mac: Some(Mac([2, 0, 0, 0, 0, at as u8 + 1])),
        host_addresses: vec![format!("10.0.0.{}/24", at + 1).parse().unwrap()],
        vhost,
        ..TapInterface::default()
    }
}

/// Namespaces 0 and 1, each with `e` (10.0.0.1 and 10.0.0.2), connected by `a` and `b`. No host there sends unsolicited
/// packets.
fn joined(bed: &Testbed, mtu: u32, change: impl Fn(&mut TapInterface)) -> Daemon {
    let mut daemon = daemon();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        bed.exec(at, 20, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        let mut tap = spec(bed, at, TapVhost::On);
        change(&mut tap);
        daemon.create(name, tap.instance().unwrap(), Some(mtu));
        let (other, mac) = (2 - at, 2 - at);
        let neighbor = format!("neigh replace 10.0.0.{other} lladdr 02:00:00:00:00:0{mac} dev e");
        bed.ip(at, &neighbor);
    }
    daemon.patch("a", "b");
    daemon.until("link", |d| {
        d.link_fault("a").is_none() && d.link_fault("b").is_none()
    });
    daemon
}

/// The lines of `show hardware` for an interface.
fn details(daemon: &mut Daemon, name: &str) -> String {
    let asked = ShowHardware {
        name: Some(name.into()),
    };
    let reply = daemon.registry.owners.ask(&asked).unwrap();
    reply.hardware[0].details.join("\n")
}

/// Wait as long as a guest may need.
fn soon(daemon: &mut Daemon, what: &str, mut holds: impl FnMut(&mut Daemon) -> bool) {
    let end = Instant::now() + LONG;
    while !holds(daemon) {
        let fault = daemon.link_fault("a");
        assert!(Instant::now() < end, "waiting for {what}, link {fault:?}");
        daemon.registry.processes.run_manual();
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn pings(bed: &Testbed, daemon: &mut Daemon, at: usize, size: usize) {
    let to = format!("10.0.0.{}", 2 - at);
    soon(daemon, &format!("an answer of {to}"), |_| {
        bed.pings(at, &to, size)
    });
}

fn exchange(bed: &Testbed, largest: usize) {
    let (a, b) = (bed.udp(0, "10.0.0.1", LONG), bed.udp(1, "10.0.0.2", LONG));
    datagrams(&a, &b, (18..=largest).step_by(61));
    let odd = [18, 1472, 2006, 2007, 2058, 2059, 4054, 4055, largest];
    datagrams(&b, &a, odd.into_iter().filter(|n| *n <= largest));
}

#[test]
fn frames_of_all_sizes_pass_both_ways() {
    let Some(bed) = served(PING) else { return };
    let mut daemon = joined(&bed, 9000, |_| {});
    let message = details(&mut daemon, "a");
    assert!(
        message.contains("vhost-net serves 1 queue(s), rings of 1024 descriptors, features")
            && message.contains("mrg-rxbuf")
            && message.contains("version-1"),
        "{message}"
    );
    pings(&bed, &mut daemon, 0, 56);
    pings(&bed, &mut daemon, 1, 8972);
    exchange(&bed, 8972);
    println!("{}", details(&mut daemon, "a"));
    let counts = daemon.counts("a");
    assert_eq!((counts.rx_errors, counts.tx_errors), (0, 0));
    let message = details(&mut daemon, "a");
    let passed = format!("rx ring 0: {} packets", counts.rx_packets);
    assert!(message.contains(&passed), "{message}");
    daemon.stop();
}

#[test]
fn datagrams_that_fill_a_packet_pass() {
    let Some(bed) = served(&[]) else { return };
    let daemon = joined(&bed, 65_521, |_| {});
    let (a, b) = (bed.udp(0, "10.0.0.1", LONG), bed.udp(1, "10.0.0.2", LONG));
    let largest = 65_521 - 28;
    for _ in 0..100 {
        datagrams(&a, &b, [largest].into_iter());
        datagrams(&b, &a, [largest, 30_000].into_iter());
    }
    let counts = daemon.counts("a");
    assert_eq!((counts.rx_errors, counts.tx_errors), (0, 0));
    daemon.stop();
}

/// A TCP stream between the namespaces; `-R` for the opposite direction.
fn stream(bed: &Testbed, way: &str) {
    let _server = bed.start(1, 60, "iperf3 -s -1");
    let end = Instant::now() + LONG;
    loop {
        let words = format!("iperf3 -c 10.0.0.2 -t 2 -f m {way}");
        let out = bed.exec(0, 50, words.trim());
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if out.status.success() {
            let figures = text.lines().filter(|l| l.contains("receiver"));
            return figures.for_each(|line| println!("{way}: {line}"));
        }
        assert!(Instant::now() < end, "{text}");
    }
}

#[test]
fn tcp_goes_both_ways_in_super_segments() {
    let Some(bed) = served(&["iperf3"]) else {
        return;
    };
    for mtu in [1500, 9000] {
        let daemon = joined(&bed, mtu, |_| {});
        for (way, from) in [("", "a"), ("-R", "b")] {
            let before = daemon.counts(from);
            stream(&bed, way);
            let now = daemon.counts(from);
            let packets = now.rx_packets - before.rx_packets;
            let mean = (now.rx_bytes - before.rx_bytes) / packets.max(1);
            assert!(
                mean > u64::from(mtu) + 100,
                "no super-segments: {mean} bytes a packet"
            );
        }
        let errors = ["a", "b"].map(|name| daemon.counts(name).rx_errors);
        assert_eq!(errors, [0, 0]);
        daemon.stop();
    }
}

#[test]
fn without_offload_and_with_several_queues() {
    let Some(bed) = served(&["iperf3"]) else {
        return;
    };
    for offload in [true, false] {
        let mut daemon = joined(&bed, 1500, |tap| {
            tap.offload = offload;
            tap.queues = 4;
        });
        assert!(details(&mut daemon, "b").contains("vhost-net serves 4 queue(s)"));
        for _ in 0..4 {
            exchange(&bed, 1472);
        }
        stream(&bed, "-P 4");
        println!("{}", details(&mut daemon, "b"));
        let used = details(&mut daemon, "b");
        let idle = used
            .lines()
            .filter(|l| l.starts_with("tx") && l.contains(": 0 packets"));
        assert!(idle.count() < 3, "flows are spread: {used}");
        daemon.stop();
    }
}

#[test]
fn a_worker_that_sleeps_is_woken() {
    let Some(bed) = served(PING) else { return };
    for mode in [RxMode::Interrupt, RxMode::Adaptive, RxMode::Polling] {
        let mut daemon = joined(&bed, 1500, |_| {});
        for name in ["a", "b"] {
            let interface = name.to_owned();
            daemon.must(Request::set(&ReceiveMode { interface, mode }).unwrap());
        }
        pings(&bed, &mut daemon, 0, 56);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(300));
            exchange(&bed, 1472);
        }
        daemon.stop();
    }
}

#[test]
fn it_comes_and_goes_under_traffic_and_leaves_nothing_behind() {
    let Some(bed) = served(PING) else { return };
    let mut daemon = joined(&bed, 1500, |_| {});
    let here = |at: usize| bed.ip(at, "-o link").contains(" e:");
    let flood = bed.start(1, 200, "ping -q -i 0.001 10.0.0.1");
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(200));
        daemon.must(Request::InterfaceDelete { name: "a".into() });
        assert!(!here(0), "the kernel's end is gone at once");
        let tap = spec(&bed, 0, TapVhost::On).instance().unwrap();
        daemon.create("a", tap, None);
        daemon.patch("a", "b");
    }
    drop(flood);
    pings(&bed, &mut daemon, 1, 56);
    let before = servants(std::process::id());
    assert_eq!(before.len(), 2, "{before:?}");
    for name in ["a", "b"] {
        daemon.must(Request::InterfaceDelete { name: name.into() });
    }
    assert!(!here(0) && !here(1));
    soon(&mut daemon, "the end of the kernel's threads", |_| {
        !before.iter().any(|thread| thread.exists())
    });
    daemon.stop();
}

/// Threads of vhost-net that serve a process: kernel threads named after the thread that started them; since Linux 6.4 threads
/// of the process.
fn servants(process: u32) -> Vec<PathBuf> {
    let tasks = format!("/proc/{process}/task");
    let threads = names(Path::new(&tasks));
    let wanted: Vec<String> = threads
        .iter()
        .filter_map(|(path, _)| Some(format!("vhost-{}", path.file_name()?.to_str()?)))
        .collect();
    let kernels = names(Path::new("/proc"));
    let kernels = kernels
        .into_iter()
        .filter(|(_, name)| wanted.contains(name));
    let own = threads
        .into_iter()
        .filter(|(_, name)| name.starts_with("vhost-"));
    kernels.chain(own).map(|(path, _)| path).collect()
}

/// Processes or threads, by folder, with their names.
fn names(folder: &Path) -> Vec<(PathBuf, String)> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |path: &Path| std::fs::read_to_string(path.join("comm")).ok();
    let named = all.filter_map(|e| Some((e.path(), name(&e.path())?.trim().to_owned())));
    named.collect()
}

/// Processor time of processes or threads, by folder.
fn cpu_time<'a>(folders: impl IntoIterator<Item = &'a PathBuf>) -> Duration {
    let ticks = folders.into_iter().filter_map(|folder| {
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(words.get(11)?.parse::<u64>().ok()? + words.get(12)?.parse::<u64>().ok()?)
    });
    Duration::from_millis(10 * ticks.sum::<u64>())
}

#[test]
fn admin_state_and_mtu_are_those_of_the_kernels_end() {
    let Some(bed) = served(PING) else { return };
    let mut daemon = joined(&bed, 1500, |_| {});
    let set = |state| Admin::request("a", state).unwrap();
    daemon.must(set(AdminState::Down));
    soon(&mut daemon, "no carrier", |_| {
        bed.ip(0, "link show e").contains("NO-CARRIER")
    });
    daemon.must(set(AdminState::Up));
    pings(&bed, &mut daemon, 0, 56);
    let (interface, mtu) = ("a".to_owned(), 4000);
    daemon.must(Request::set(&Mtu { interface, mtu }).unwrap());
    assert!(bed.ip(0, "link show e").contains("mtu 4000"));
    daemon.stop();
}

#[test]
fn the_kernels_end_goes_down_and_vanishes() {
    let Some(bed) = served(PING) else { return };
    let mut daemon = joined(&bed, 1500, |_| {});
    let flood = bed.start(1, 100, "ping -q -i 0.001 10.0.0.1");
    let message = |d: &Daemon, what: &str| d.link_fault("a").is_some_and(|w| w.contains(what));
    bed.ip(0, "link set e down");
    soon(&mut daemon, "down", |d| message(d, "e is down"));
    bed.ip(0, "link set e up");
    soon(&mut daemon, "up", |d| d.link_fault("a").is_none());
    pings(&bed, &mut daemon, 1, 56);
    bed.ip(0, "link del e");
    soon(&mut daemon, "gone", |d| message(d, "gone"));
    drop(flood);
    std::thread::sleep(Duration::from_secs(1));
    // Neither Volley's nor the kernel's thread polls while idle.
    let mut watched = servants(std::process::id());
    assert_eq!(watched.len(), 2, "{watched:?}");
    watched.push("/proc/self".into());
    let before = (cpu_time(&watched), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let busy = (cpu_time(&watched) - before.0).as_secs_f64() / before.1.elapsed().as_secs_f64();
    println!("with a dead device: {:.1} % of a core", 100.0 * busy);
    assert!(busy < 0.5, "{busy}");
    daemon.must(Request::InterfaceDelete { name: "a".into() });
    daemon.stop();
}

fn victim(space: &str) -> ! {
    let mut daemon = daemon();
    for name in ["a", "b"] {
        let tap = TapInterface {
            host: Some(format!("t{name}")),
            namespace: Some(space.into()),
            queues: 2,
            vhost: TapVhost::On,
            ..TapInterface::default()
        };
        daemon.create(name, tap.instance().unwrap(), None);
    }
    daemon.patch("a", "b");
    std::thread::sleep(2 * LONG);
    std::process::exit(1)
}

#[test]
fn killed_it_leaves_nothing_behind() {
    if let Ok(space) = std::env::var(VICTIM) {
        victim(&space);
    }
    let Some(bed) = served(&[]) else { return };
    for _ in 0..3 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--nocapture", "--exact", "killed_it_leaves_nothing_behind"]);
        command.env(VICTIM, bed.name(0));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let wait = |what: &str, holds: &dyn Fn() -> bool| {
            let end = Instant::now() + LONG;
            while !holds() {
                assert!(Instant::now() < end, "waiting for {what}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let links = || bed.ip(0, "-o link");
        wait("its taps", &|| {
            links().contains(" tb:") && servants(child.id()).len() == 4
        });
        let served = servants(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        wait("the end of them", &|| {
            let gone = !served.iter().any(|thread| thread.exists());
            gone && !links().contains(" ta:") && !links().contains(" tb:")
        });
    }
}

/// An interface of one queue over its own rings, without the tap's driver; the test is about its rings.
struct Bare {
    daemon: Daemon,
    wire: Arc<VhostPort>,
    service: Service,
    _kernel: Rc<Kernel>,
    _tap: File,
}

impl Bare {
    fn new(bed: &Testbed) -> Bare {
        let mut kernel = None;
        let daemon = Daemon::new(1024, None, |registry| {
            kernel = Some(Kernel::register(registry)?);
            Ok(())
        });
        let space = Namespace::new(Some(bed.name(0)));
        let tap = space.run(|| Ok(sys::open("e", Layer::Ethernet)));
        let tap = tap.unwrap().unwrap();
        sys::set_header(&tap, Header::Virtio).unwrap();
        let rings = Rings::new(&[tap.as_fd()]).unwrap();
        let (host, table) = (daemon.registry.host(), daemon.registry.table());
        let wire: Rc<OnceCell<Arc<VhostPort>>> = Rc::default();
        let first = wire.clone();
        let new = NewInterface {
            rx_node: kernel::INPUT,
            ..NewInterface::new("a", "tap")
        };
        let make = move |worker, index| {
            let wire = first.get_or_init(|| VhostPort::new(index)).clone();
            VhostTx::new(worker, table.clone(), wire, 256)
        };
        host.attach(new, make).unwrap();
        let wire = wire.get().unwrap().clone();
        let ended = Ended::default();
        let kernel = kernel.unwrap();
        let service = kernel.start(wire.clone(), rings, &[0], ended);
        Bare {
            daemon,
            wire,
            service,
            _kernel: kernel,
            _tap: tap,
        }
    }

    /// Write a word into the memory of the rings, which begins with the receive ring.
    fn write(&self, at: u64, word: u16) {
        let claim = std::iter::from_fn(|| Some(self.wire.rx[0].claim()))
            .flatten()
            .next();
        let claim = claim.unwrap();
        let memory = &claim.as_ref().unwrap().memory;
        let start = memory.describe().next().unwrap().guest;
        let place = memory.guest(start + at, 2).unwrap();
        memory.view(place).unwrap().store16(0, word);
    }
}

#[test]
fn a_ring_that_makes_no_sense_ends_with_a_name() {
    let Some(bed) = served(&[]) else { return };
    let avail = 16 * u64::from(kernel::RING_SIZE);
    let used = (avail + 6 + 2 * u64::from(kernel::RING_SIZE)).next_multiple_of(128);
    let mut bare = Bare::new(&bed);
    bare.daemon
        .must(Admin::request("a", AdminState::Up).unwrap());
    bare.write(used + 2, 5000);
    let name = "index-jump";
    soon(&mut bare.daemon, name, |d| {
        d.link_fault("a").is_some_and(|why| why.contains(name))
    });
    println!("{:?}", bare.daemon.link_fault("a"));
    assert!(!bare.wire.rx[0].is_live() && !bare.wire.tx[0].is_live());
    let host = bare.daemon.registry.host();
    host.detach(bare.service.interface()).unwrap();
    drop(bare.service);
    bare.daemon.stop();
}

#[test]
fn counters_are_those_of_a_tap_without_it() {
    let Some(bed) = served(&[]) else { return };
    let counts: Vec<[IfCounts; 2]> = [TapVhost::Off, TapVhost::On]
        .into_iter()
        .map(|vhost| {
            let daemon = joined(&bed, 9000, |tap| tap.vhost = vhost);
            exchange(&bed, 8972);
            let counts = ["a", "b"].map(|name| daemon.counts(name));
            daemon.stop();
            counts
        })
        .collect();
    println!("{:?}", counts[1]);
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn auto_uses_it_where_it_can_and_says_why_not() {
    let Some(bed) = Testbed::new(2, PING) else {
        return;
    };
    let there = kernel::features();
    let mut daemon = joined(&bed, 1500, |tap| tap.vhost = TapVhost::Auto);
    let message = details(&mut daemon, "a");
    match &there {
        Ok(_) => assert!(message.contains("vhost-net serves 1 queue(s)"), "{message}"),
        Err(why) => {
            let line = format!("vhost-net does not serve it: {why}");
            assert!(message.contains(&line), "{message}");
        }
    }
    println!("{message}");
    pings(&bed, &mut daemon, 0, 1472);
    exchange(&bed, 1472);
    daemon.stop();
    let mut daemon = joined(&bed, 1500, |tap| tap.vhost = TapVhost::Off);
    let message = details(&mut daemon, "a");
    assert!(
        message.contains("vhost-net does not serve it: off"),
        "{message}"
    );
    daemon.stop();
    let mut daemon = joined(&bed, 1500, |tap| {
        tap.vhost = TapVhost::Auto;
        tap.queues = 17;
    });
    let message = details(&mut daemon, "a");
    let why = if there.is_ok() {
        "at most 16 queues"
    } else {
        "vhost-net"
    };
    assert!(
        message.contains("does not serve it") && message.contains(why),
        "{message}"
    );
    exchange(&bed, 1472);
    daemon.stop();
}

#[test]
fn tuns_are_as_they_were() {
    let Some(bed) = Testbed::new(2, PING) else {
        return;
    };
    let mut daemon = daemon();
    let tap = TapInterface {
        mode: TapMode::Tun,
        host_mac: None,
        ..spec(&bed, 0, TapVhost::Auto)
    };
    daemon.create("a", tap.instance().unwrap(), None);
    let message = details(&mut daemon, "a");
    assert!(
        message.contains("vhost-net does not serve it: it serves Ethernet taps only"),
        "{message}"
    );
    daemon.stop();
}

#[test]
fn where_it_is_missing_on_is_refused_and_nothing_is_left() {
    let Some(bed) = Testbed::new(1, &[]) else {
        return;
    };
    let Err(missing) = kernel::features() else {
        return println!("this kernel has vhost-net: there is nothing to refuse");
    };
    let mut daemon = daemon();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut leaves_nothing = || {
        let before = open();
        let error = daemon.ask(Request::InterfaceCreate(InterfaceSpec {
            name: "x".into(),
            kind: spec(&bed, 0, TapVhost::On).instance().unwrap().named("x"),
            mac: None,
            mtu: None,
        }));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(&missing.to_string()) && error.contains("interface x with vhost on")
        );
        open() <= before
    };
    // Other tests of this process open files at the same time; a leaked file would be found by every attempt.
    assert!((0..50).any(|_| leaves_nothing()), "a file is left open");
    assert!(!bed.ip(0, "-o link").contains(" e:"));
    assert!(daemon.registry.interfaces.borrow().by_name("x").is_none());
    daemon.create("x", spec(&bed, 0, TapVhost::Auto).instance().unwrap(), None);
    daemon.stop();
}

/// Sends frames of 64 bytes from namespace 0 to 1 as fast as one socket can: prints the rate through Volley and the
/// worker's time for each frame, while the worker sleeps whenever it is idle.
fn rate(bed: &Testbed, vhost: TapVhost) -> f64 {
    let mut daemon = joined(bed, 1500, |tap| tap.vhost = vhost);
    for name in ["a", "b"] {
        let mode = ReceiveMode {
            interface: name.into(),
            mode: RxMode::Interrupt,
        };
        daemon.must(Request::set(&mode).unwrap());
    }
    let (a, b) = (bed.udp(0, "10.0.0.1", LONG), bed.udp(1, "10.0.0.2", LONG));
    a.connect(b.local_addr().unwrap()).unwrap();
    let threads = names(Path::new("/proc/self/task"));
    let is_worker = |name: &str| name.starts_with("volley-w");
    let worker: Vec<_> = threads
        .iter()
        .filter(|(_, name)| is_worker(name))
        .map(|(path, _)| path)
        .collect();
    let before = cpu_time(worker.iter().copied());
    let (start, end) = (Instant::now(), Instant::now() + Duration::from_secs(5));
    while Instant::now() < end {
        (0..64).for_each(|_| _ = a.send(&[0; 22]));
    }
    let sent = daemon.counts("b").tx_packets as f64;
    let rate = sent / start.elapsed().as_secs_f64();
    let time = 1e6 * (cpu_time(worker) - before).as_secs_f64() / sent;
    println!(
        "vhost {vhost:?}: {rate:.0} packets/s of 64 bytes from tap to tap, {time:.2} us of the worker for each"
    );
    println!(
        "{}",
        details(&mut daemon, "b").lines().last().unwrap_or_default()
    );
    daemon.stop();
    rate
}

#[test]
fn speed_beside_a_tap_without_it() {
    let Some(bed) = served(&[]) else { return };
    for round in 0..2 {
        let (off, on) = (rate(&bed, TapVhost::Off), rate(&bed, TapVhost::On));
        println!("round {round}: on is {:.2} times off", on / off);
    }
    for vhost in [TapVhost::Off, TapVhost::On] {
        if Command::new("iperf3").arg("-v").output().is_ok() {
            let daemon = joined(&bed, 1500, |tap| tap.vhost = vhost);
            println!("vhost {vhost:?}:");
            stream(&bed, "");
            daemon.stop();
        }
    }
}
