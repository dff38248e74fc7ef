//! Does forwarding pause on other interfaces while interfaces are created, changed and deleted, and lose their peers? A
//! measurement: `cargo test -p volley --test gap -- --ignored --nocapture` (root, `ip`, `tcpdump`, `taskset`).
//!
//! A daemon with its worker pinned to core 1 and its control thread to core 0 sends a probe stream of 100,000 packets a second
//! by a packet socket. At the other end of that veth pair the kernel stamps each packet on arrival (on the worker's core, so
//! that a late receiver does not matter). The result is the longest time between two packets.
//!
//! Meanwhile every type of interface is created, changed in every way and deleted, and peers of memif and vhost-user are killed
//! under traffic. Before each such part comes an idle part of the same length, with core 0 equally busy: it measures the pauses
//! of the machine itself. The limit is 1 ms more than that, for the medians over the rounds: a pause caused by an operation
//! appears in every round, a pause caused by the hypervisor only in some.

mod support;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::Daemon;
use support::bed::{Space, must};
use volley_cli::client::Connection;

const ROUNDS: usize = 7;
/// Late work of the control thread, in seconds, belongs to the operation before.
const TAIL: f64 = 0.005;
/// Shorter gaps are not recorded, in seconds: the stream has one packet each 10 us.
const NOTED: f64 = 50e-6;
/// The number of operations that are listed individually.
const WORST: usize = 8;
const PROBE_RATE: usize = 100_000;

/// Seconds since 1970, the clock of the kernel's packet timestamps.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// Runs a program that must succeed.
/// A namespace with the far ends of the veth pairs.
fn far_ends() -> Option<Space> {
    Space::new(format!("vgap{}", std::process::id()))
}

/// Creates a veth pair whose far end is named `far`; returns the name of the near end.
fn veth(space: &Space, far: &str) -> String {
    let ours = format!("vg{}{far}", std::process::id() % 1_000_000);
    must(&format!(
        "ip link add {ours} type veth peer name {far} netns {}",
        space.0
    ));
    must(&format!("ip link set {ours} up"));
    space.ip(&format!("link set {far} up"));
    ours
}

/// A time without received packets, and how many packets of the stream are missing in it.
#[derive(Clone, Copy)]
struct Gap {
    start: f64,
    end: f64,
    lost: u32,
}

/// The final result of the receiver.
struct Seen {
    packets: usize,
    span: f64,
    gaps: Vec<Gap>,
}

/// The receiver: tcpdump in the namespace, whose output a thread of this test reads.
struct Probe {
    child: Child,
    seen: Receiver<Seen>,
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Reads a capture with nanoseconds and finds gaps between packets of the probe stream.
fn watch(mut from: impl Read) -> Seen {
    let (mut head, mut packet) = ([0; 24], vec![0; 1 << 16]);
    let mut seen = Seen {
        packets: 0,
        span: 0.0,
        gaps: Vec::new(),
    };
    if from.read_exact(&mut head).is_err() {
        return seen;
    }
    assert_eq!(number(&head), 0xa1b2_3c4d, "nanoseconds");
    let mut last: Option<(f64, u16)> = None;
    let mut first = 0.0;
    while from.read_exact(&mut head[..16]).is_ok() {
        let length = number(&head[8..]) as usize;
        if from.read_exact(&mut packet[..length]).is_err() {
            break;
        }
        let time = f64::from(number(&head)) + f64::from(number(&head[4..])) / 1e9;
        // The last two bytes of the destination address are a sequence number.
        let at = u16::from_be_bytes([packet[32], packet[33]]);
        match last {
            Some((before, was)) if time - before > NOTED => seen.gaps.push(Gap {
                start: before,
                end: time,
                lost: u32::from(at.wrapping_sub(was).wrapping_sub(1)),
            }),
            Some(_) => {}
            None => first = time,
        }
        last = Some((time, at));
        seen.packets += 1;
        seen.span = time - first;
    }
    seen
}

impl Probe {
    fn start(space: &Space) -> Self {
        let line = format!(
            "taskset -c 0 ip netns exec {} tcpdump -i p -w - --time-stamp-precision=nano -B 65536 -s 46 -Z root dst net 10.77.0.0/16",
            space.0
        );
        let mut words = line.split(' ');
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, seen) = channel();
        let from = child.stdout.take().unwrap();
        std::thread::spawn(move || tell.send(watch(std::io::BufReader::new(from))));
        Probe { child, seen }
    }

    /// Stops the receiver; returns its result, and tcpdump's text about packets that it missed.
    fn stop(mut self) -> (Seen, String) {
        must(&format!("kill -INT {}", self.child.id()));
        let seen = self.seen.recv_timeout(Duration::from_secs(60)).unwrap();
        let mut message = String::new();
        let mut from = self.child.stderr.take().unwrap();
        from.read_to_string(&mut message).unwrap();
        self.child.wait().unwrap();
        let dropped = message.lines().find(|l| l.contains("dropped by kernel"));
        (seen, dropped.unwrap_or("").to_owned())
    }
}

/// An operation and its time.
struct Done {
    what: String,
    start: f64,
    end: f64,
}

/// The daemon, and the operations on it.
struct Site {
    daemon: Daemon,
    control: Connection,
    done: Vec<Done>,
    refused: Vec<String>,
    /// The seconds in which a peer kept core 0 busy.
    crowded: f64,
}

impl Site {
    /// Carries out a line as operation `what`. A refusal counts as an operation, too.
    fn ask(&mut self, what: &str, line: &str) -> bool {
        let start = now();
        let answer = self.control.exec(line, false);
        self.note(what, start);
        if let Err(error) = &answer {
            self.refused.push(format!("{what}: {error}"));
        }
        answer.is_ok()
    }

    /// Carries out a line that must succeed.
    fn must(&mut self, what: &str, line: &str) {
        assert!(self.ask(what, line), "{:?}", self.refused.last());
    }

    fn note(&mut self, what: &str, start: f64) {
        let (what, end) = (what.to_owned(), now() + TAIL);
        if end - start > 0.5 {
            println!("{what} took {:.2} s", end - start);
        }
        self.done.push(Done { what, start, end });
    }

    /// Waits until an interface's link is `up` or `down`.
    fn link(&mut self, name: &str, state: &str) {
        let end = now() + 10.0;
        loop {
            let answer = self
                .control
                .exec(&format!("show interfaces {name}"), true)
                .unwrap();
            let data = answer.data.unwrap_or_default();
            if data["interfaces"][0]["link"] == state {
                return;
            }
            assert!(now() < end, "{name} is not {state}: {data}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every possible change of an interface.
    fn changes(&mut self, kind: &str, name: &str) {
        let other = format!("{name}x");
        let lines = [
            ("up", format!("set interface state {name} up")),
            ("patch", format!("test l2patch rx {name} tx sink")),
            ("mtu", format!("set interface mtu 1400 {name}")),
            (
                "mac",
                format!("set interface mac address {name} 02:fe:00:00:77:01"),
            ),
            (
                "promiscuous",
                format!("set interface promiscuous on {name}"),
            ),
            (
                "promiscuous",
                format!("set interface promiscuous off {name}"),
            ),
            ("rx-mode", format!("set interface rx-mode {name} interrupt")),
            ("rx-mode", format!("set interface rx-mode {name} polling")),
            ("rx-mode", format!("set interface rx-mode {name} adaptive")),
            ("rename", format!("set interface name {name} {other}")),
            ("rename", format!("set interface name {other} {name}")),
            ("down", format!("set interface state {name} down")),
            ("up", format!("set interface state {name} up")),
        ];
        for (what, line) in lines {
            self.ask(&format!("{kind} {what}"), &line);
        }
    }

    /// Creates, changes and deletes an interface of the kernel.
    fn of_kernel(&mut self, kind: &str, name: &str, create: &str) {
        self.must(&format!("{kind} create"), create);
        self.changes(kind, name);
        self.must(
            &format!("{kind} delete"),
            &format!("delete interface {name}"),
        );
    }

    /// Interfaces to another program, which sends and is killed twice.
    fn of_peers(&mut self) {
        let folder = self.daemon.folder.0.display().to_string();
        let memif = format!("create memif socket id 1 filename {folder}/m.sock");
        self.must("memif socket", &memif);
        self.must(
            "memif create",
            "create interface memif id 0 socket-id 1 master name m0",
        );
        let vhost = format!("create vhost-user socket {folder}/v.sock server name v0");
        self.must("vhost-user create", &vhost);
        let both = [("memif", "m0"), ("vhost-user", "v0")];
        for (kind, name) in both {
            self.changes(kind, name);
        }
        for _ in 0..2 {
            let began = now();
            let mut peer = peer(&folder);
            for (kind, name) in both {
                self.link(name, "up");
                self.note(&format!("{kind} connect"), began);
            }
            for (kind, name) in both {
                self.changes(kind, name);
                self.link(name, "up");
            }
            std::thread::sleep(Duration::from_millis(200));
            let start = now();
            peer.kill();
            self.crowded += start - began;
            for (kind, name) in both {
                self.link(name, "down");
                self.note(&format!("{kind} peer killed"), start);
            }
        }
        self.must("memif delete", "delete interface memif m0");
        self.must("memif socket", "delete memif socket id 1");
        self.must("vhost-user delete", "delete vhost-user v0");
    }
}

/// The other program: a second daemon, on core 0, that floods both interfaces.
struct Peer(Child, #[allow(dead_code)] support::Folder);

impl Peer {
    /// Kills the program with SIGKILL.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peer(folder: &str) -> Peer {
    let own = support::Folder::new();
    let mut config = format!(
        "[engine]\nworker_core = 0\nbuffers = 4096\n\
         [[memif_socket]]\nid = 1\nfilename = \"{folder}/m.sock\"\n\
         [[interface]]\nname = \"m\"\nkind = \"memif\"\nmemif = {{ id = 0, socket = 1, role = \"slave\" }}\n\
         [[interface]]\nname = \"v\"\nkind = \"virtio-user\"\nsocket = \"{folder}/v.sock\"\n"
    );
    for (at, out) in ["m", "v"].into_iter().enumerate() {
        config += &format!(
            "[[interface]]\nname = \"pg{at}\"\nkind = \"pg\"\nmac = \"02:fe:00:00:00:0{at}\"\n\
             addresses = [\"10.{at}.0.1/24\"]\n\
             [[neighbor]]\ninterface = \"{out}\"\naddress = \"10.8{at}.0.2\"\nmac = \"02:aa:00:00:00:02\"\n\
             [[route]]\nprefix = \"10.9{at}.0.0/16\"\nvia = \"10.8{at}.0.2\"\ninterface = \"{out}\"\n\
             [[stream]]\nname = \"s{at}\"\ninterface = \"pg{at}\"\nrate = 20000\nenabled = true\n\
             template = \"eth dst 02:fe:00:00:00:0{at} / ip4 src 10.{at}.0.2 dst 10.9{at}.0.1 / udp / payload 20\"\n"
        );
    }
    let file = own.file("volley.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_volley"), "run", "-c"]);
    command.arg(&file).arg("--socket").arg(own.file("s"));
    let log = std::fs::File::create(own.file("log")).unwrap();
    let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
    Peer(child, own)
}

/// Starts the daemon with the probe stream.
fn site(out: &str) -> Site {
    let config = format!(
        "[engine]\nworker_core = 1\n\
         [[interface]]\nname = \"pg0\"\nkind = \"pg\"\nrx_mode = \"polling\"\n\
         [[interface]]\nname = \"sink\"\nkind = \"pg\"\n\
         [[interface]]\nname = \"probe\"\nkind = \"host-interface\"\nhost = \"{out}\"\n\
         [[stream]]\nname = \"probe\"\ninterface = \"pg0\"\nrate = {PROBE_RATE}\n\
         template = \"eth / ip4 src 10.76.0.1 dst 10.77.0.0 / udp / payload 18\"\n\
         edits = [\"ip4.dst increment 10.77.0.0 10.77.255.255\"]\n"
    );
    let daemon = Daemon::start(&config, &[]);
    must(&format!("taskset -cp 0 {}", daemon.pid()));
    let control = Connection::open(&daemon.folder.file("s")).unwrap();
    let mut site = Site {
        daemon,
        control,
        done: Vec::new(),
        refused: Vec::new(),
        crowded: 0.0,
    };
    site.must("probe", "test l2patch rx pg0 tx probe");
    site.link("probe", "up");
    site
}

/// Does nothing for this long, with core 0 as busy as it was with peers: other work of the machine (the hypervisor's memory
/// watcher takes a core for 12 ms) then moves to the worker's core.
fn idle(length: f64, crowded: f64) {
    let start = now();
    while now() < start + crowded {
        std::hint::spin_loop();
    }
    std::thread::sleep(Duration::from_secs_f64((length - crowded).max(0.0)));
}

/// The longest gap that overlaps a span, in milliseconds.
fn longest(gaps: &[Gap], start: f64, end: f64) -> f64 {
    let inside = gaps.iter().filter(|g| g.start < end && g.end > start);
    inside.map(|g| (g.end - g.start) * 1e3).fold(0.0, f64::max)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The longest gap in each round, for operations of one name.
fn by_round(site: &Site, seen: &Seen, rounds: &[[f64; 3]], what: &str) -> Vec<f64> {
    let of = |[_, start, end]: &[f64; 3]| {
        let done = site
            .done
            .iter()
            .filter(|d| d.what == what && d.start >= *start && d.start < *end);
        done.map(|d| longest(&seen.gaps, d.start, d.end))
            .fold(0.0, f64::max)
    };
    rounds.iter().map(of).collect()
}

/// Prints all results; returns the longest gap of the idle parts, and what operations add to it: medians over the rounds, in
/// milliseconds.
fn tell(site: &Site, seen: &Seen, rounds: &[[f64; 3]]) -> (f64, f64) {
    let parts = |from: usize| -> Vec<f64> {
        rounds
            .iter()
            .map(|r| longest(&seen.gaps, r[from], r[from + 1]))
            .collect()
    };
    let (idle, busy) = (parts(0), parts(1));
    println!(
        "longest gap in ms, {} rounds of {:.1} s each",
        rounds.len(),
        rounds[0][1] - rounds[0][0]
    );
    println!(
        "  idle control      median {:.3}, each {idle:.3?}",
        median(idle.clone())
    );
    println!(
        "  with operations   median {:.3}, each {busy:.3?}",
        median(busy.clone())
    );
    let mut names: Vec<&str> = site.done.iter().map(|d| d.what.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut worst: Vec<(f64, &str, Vec<f64>)> = names
        .into_iter()
        .map(|what| {
            let gaps = by_round(site, seen, rounds, what);
            (median(gaps.clone()), what, gaps)
        })
        .collect();
    // A gap in only some rounds does not count as much as one in every round.
    let longest = |gaps: &[f64]| gaps.iter().copied().fold(0.0, f64::max);
    worst.sort_by(|a, b| longest(&b.2).total_cmp(&longest(&a.2)));
    println!("  the worst of {} operations:", worst.len());
    for (median, what, gaps) in worst.iter().take(WORST) {
        println!("    {what:<24} median {median:.3}, each {gaps:.3?}");
    }
    let quiet = median(idle);
    (quiet, median(busy) - quiet)
}

#[test]
#[ignore = "a measurement: it takes a minute and two cores"]
fn no_operation_on_interfaces_pauses_others() {
    // Programs started from here inherit this core, except for the daemon's worker.
    core_affinity::set_for_current(core_affinity::CoreId { id: 0 });
    let Some(space) = far_ends() else { return };
    let [out, packet, xdp] = ["p", "q", "x"].map(|far| veth(&space, far));
    let mut site = site(&out);
    let probe = Probe::start(&space);
    std::thread::sleep(Duration::from_millis(500));
    site.must("probe", "packet-generator enable probe");
    std::thread::sleep(Duration::from_millis(500));
    site.done.clear();
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    let mut length = 1.0;
    for _ in 0..ROUNDS {
        let start = now();
        idle(length, std::mem::take(&mut site.crowded));
        let middle = now();
        site.of_kernel("tap", "t0", "create tap id 0 name t0");
        let create = format!("create host-interface name {packet} as h0");
        site.of_kernel("af_packet", "h0", &create);
        let create = format!("create interface af_xdp host-if {xdp} name x0 num-rx-queues 1");
        site.of_kernel("af_xdp", "x0", &create);
        site.of_peers();
        let end = now();
        // The next idle part is as long as this one.
        length = end - middle;
        rounds.push([start, middle, end]);
        println!("round {}: {length:.1} s of operations", rounds.len());
    }
    site.must("probe", "packet-generator disable probe");
    std::thread::sleep(Duration::from_millis(500));
    let (seen, dropped) = probe.stop();
    let rate = seen.packets as f64 / seen.span;
    println!(
        "probe: {} packets, {rate:.0} a second; tcpdump: {dropped}",
        seen.packets
    );
    site.refused.sort();
    site.refused.dedup();
    site.refused
        .iter()
        .for_each(|why| println!("refused, {why}"));
    let lost: u32 = seen.gaps.iter().map(|g| g.lost).sum();
    println!("lost in gaps: {lost}");
    let (quiet, added) = tell(&site, &seen, &rounds);
    println!("operations add {added:.3} ms to the longest gap");
    assert!(
        rate > 0.95 * PROBE_RATE as f64,
        "the probe stream is {rate:.0} packets a second"
    );
    if quiet > 1.0 {
        println!(
            "not judged: nothing was done, and still the worker paused for {quiet:.3} ms: others use its core"
        );
        return;
    }
    assert!(
        added <= 1.0,
        "operations add {added:.3} ms to the longest gap"
    );
    site.daemon.stop("TERM");
}
