//! An operator's first week, scripted: a boot without one of the interfaces, and interfaces of every type that go down and up,
//! are deleted and created again, while other packets pass and FRR has sessions with its neighbours. An ordinary user in group
//! `volley` types every command.
//!
//! `VOLLEY_WEEK=N` makes N rounds of each type (5 without it), and lets the missing interface appear after 30 seconds instead
//! of 3. Needs root, `ip` and `ping`; FRR if it is installed. Without them the test says so and passes, or leaves FRR out.

mod support;

#[path = "week/bench.rs"]
mod bench;
#[path = "week/held.rs"]
mod held;
#[path = "week/scenes.rs"]
mod scenes;

use bench::{Bench, Flood, Speakers, behind};
use held::Held;
use scenes::{End, Scene, Works};
use serde_json::Value;
use std::time::Duration;
use support::bed::{Bed, Space, interface, resident_kib, wait_for_link};
use support::http::Http;
use support::mirror::{in_step, soon};
use support::pinging::Pinged;
use support::users::Users;
use support::{Daemon, Folder};

/// The fewest rounds that show whether memory grows.
const LEAST: usize = 5;

/// Rounds of each type of interface, if the environment sets them.
fn asked() -> Option<usize> {
    let message = std::env::var("VOLLEY_WEEK").ok()?;
    let rounds = message
        .parse()
        .ok()
        .filter(|n| *n >= LEAST)
        .unwrap_or_else(|| {
            panic!("VOLLEY_WEEK={message}: give the number of rounds, {LEAST} or more")
        });
    Some(rounds)
}

/// The most memory that a round may add, in KiB: the mean without the tenth of the rounds that added the most, and the tenth
/// that added the least. The allocator keeps a large freed block once.
const GROWTH: i64 = 160;
/// The most memory that the mean of the last tenth of the rounds may have above that of the second tenth, in KiB.
const KEPT: i64 = 16 * 1024;

/// The most memory that all rounds after the first may add together, in KiB: with few rounds a mean is not meaningful, because
/// the allocator allocates blocks of this size.
const BLOCKS: i64 = 2 * 1024;
/// With fewer rounds, one large block of the allocator looks like growth: then this many rounds decide.
const ENOUGH: usize = 20;

/// Whether memory does not grow; there is a sample after each round.
fn flat(kind: &str, memory: &[i64]) -> bool {
    let tenth = memory.len().div_ceil(10);
    let mean = |part: &[i64]| part.iter().sum::<i64>() / part.len() as i64;
    let at = tenth.min(memory.len() - tenth);
    let (second, last) = (
        mean(&memory[at..at + tenth]),
        mean(&memory[memory.len() - tenth..]),
    );
    let mut grown: Vec<i64> = memory.windows(2).map(|w| w[1] - w[0]).collect();
    grown.sort_unstable();
    let edge = grown.len().div_ceil(10);
    let each = mean(&grown[edge..grown.len() - edge]);
    let whole = memory[memory.len() - 1] - memory[1.min(memory.len() - 1)];
    println!("{kind}: memory {second} KiB, then {last} KiB; a round takes {each} KiB");
    (each <= GROWTH || whole <= BLOCKS) && last <= second + KEPT
}

#[test]
fn memory_that_grows_with_each_round_is_not_flat() {
    let rounds =
        |each: i64, count: i64| -> Vec<i64> { (0..count).map(|n| 1000 + n * each).collect() };
    assert!(!flat("leak", &rounds(GROWTH + 1, 40)));
    assert!(!flat("leak", &rounds(BLOCKS, 4)));
    assert!(flat("no leak", &rounds(GROWTH, 40)));
    // The samples of a run that failed with four rounds, and with the rounds that decide.
    let mut memory = vec![342_152, 341_944, 342_132, 344_248];
    assert!(!flat("a block", &memory));
    memory.extend([344_248; 15]);
    assert!(flat("a block", &memory));
}

/// Types of interfaces in the daemon's API.
fn kinds(daemon: &Daemon) -> Vec<String> {
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let document = http.get("/v1/openapi.json");
    let mut names = Vec::new();
    variants(
        &document["components"]["schemas"]["InterfaceSpec"]["properties"]["kind"],
        &mut names,
    );
    names
}

/// Names of the variants of a schema, and of the variants inside them.
fn variants(schema: &Value, names: &mut Vec<String>) {
    let choices = ["oneOf", "anyOf"].map(|key| schema[key].as_array());
    let mut choices = choices.into_iter().flatten().flatten().peekable();
    if choices.peek().is_some() {
        return choices.for_each(|choice| variants(choice, names));
    }
    // An object of a class, an object of one field, or a word.
    let class = schema["properties"]["class"]["const"].as_str();
    let field = class.or(schema["required"][0].as_str());
    let word = schema["const"].as_str().or(schema["enum"][0].as_str());
    names.push(field.or(word).unwrap().replace('_', "-"));
}

/// Transmitted and received packets of an interface.
fn passed(daemon: &Daemon, name: &str) -> [u64; 2] {
    let row = interface(daemon, name);
    ["tx", "rx"].map(|way| row[way]["packets"].as_u64().unwrap())
}

fn works(bench: &Bench, end: &End, when: &str) {
    let what = format!("{} works {when}", end.name);
    if end.works != Works::Refused {
        soon(&what, || interface(&bench.daemon, end.name)["link"] == "up");
    }
    match end.works {
        Works::Answers(_) => bench.answered(end.net, &what),
        Works::Replies | Works::Transmits => {
            let ways = if end.works == Works::Replies { 2 } else { 1 };
            let before = passed(&bench.daemon, end.name);
            soon(&what, || {
                let now = passed(&bench.daemon, end.name);
                (0..ways).all(|way| now[way] > before[way])
            });
        }
        Works::Refused => {}
    }
}

/// Configures addresses, a neighbour, a route over it, and an LCP tap.
fn configure(bench: &Bench, end: &End) {
    let (daemon, End { name, net, .. }) = (&bench.daemon, end);
    for line in [
        format!("set interface ip address {name} 10.90.{net}.1/24"),
        format!("set interface ip6 address {name} 2001:db8:90:{net:x}::1/64"),
        format!("set interface state {name} up"),
        format!("lcp create {name} host-if tw{net} netns {}", bench.taps.0),
        format!("set ip neighbor {name} 10.90.{net}.77 02:00:00:00:00:77"),
        format!("ip route add 100.64.{net}.0/24 via 10.90.{net}.77 {name}"),
    ] {
        daemon.ok(&line);
    }
}

/// Creates the interfaces of a scene, checks that they work, sets them down and up, and deletes them while packets are
/// received.
fn round(bench: &Bench, scene: &Scene, floods: &[Flood]) {
    let daemon = &bench.daemon;
    if scene.ends[0].works == Works::Refused {
        let refused = daemon.refused(&scene.create[0]);
        assert!(refused.contains("is not supported"), "{refused}");
        return;
    }
    for line in &scene.create {
        daemon.ok(line);
    }
    for end in &scene.ends {
        configure(bench, end);
    }
    for end in &scene.ends {
        works(bench, end, "after it was created");
        daemon.ok(&format!("set interface state {} down", end.name));
        assert_eq!(interface(daemon, end.name)["state"], "down");
        daemon.ok(&format!("set interface state {} up", end.name));
        works(bench, end, "after it was down");
    }
    for end in scene.ends.iter().filter(|_| !floods.is_empty()) {
        let what = format!("a flood on {}", end.name);
        soon(&what, || passed(daemon, end.name)[1] > 20);
    }
    for End { name, net, .. } in &scene.ends {
        let route = format!("100.64.{net}.0/24 via 10.90.{net}.77 {name}");
        daemon.ok(&format!("ip route del {route}"));
    }
    for line in scene
        .delete
        .iter()
        .filter(|l| l.starts_with("packet-generator"))
    {
        daemon.ok(line);
    }
    for end in &scene.ends {
        daemon.ok(&format!("delete interface {}", end.name));
    }
    for line in scene
        .delete
        .iter()
        .filter(|l| !l.starts_with("packet-generator"))
    {
        daemon.ok(line);
    }
}

/// Runs the rounds of a scene. Nothing is left of it, and memory does not grow.
fn rounds(bench: &Bench, scene: &Scene, count: usize) {
    let before = Held::settled(bench);
    round(bench, scene, &[]);
    // Resources that the process opens once for all interfaces of a type stay open. All others must be released already.
    let first = Held {
        files: Held::settled(bench).files,
        maps: Held::settled(bench).maps,
        threads: Held::settled(bench).threads,
        nodes: Held::settled(bench).nodes,
        ..before
    };
    let what = format!("{} after the first round", scene.kind);
    Held::same_as(bench, &first, &what);
    let floods: Vec<Flood> = scene
        .ends
        .iter()
        .filter_map(|end| match end.works {
            Works::Answers(far) => Some(bench.flood(far, end.net)),
            _ => None,
        })
        .collect();
    let mut memory = Vec::new();
    let mut rounds = |count: usize| {
        for _ in 0..count {
            round(bench, scene, &floods);
            // A worker releases rings and shared memory in its next round.
            soon("the end of mappings", || {
                held::maps(bench.daemon.pid()) == first.maps
            });
            memory.push(resident_kib(bench.daemon.pid()) as i64);
        }
        flat(scene.kind, &memory)
    };
    let flat = rounds(count - 1) || count < ENOUGH && rounds(ENOUGH - count);
    drop(floods);
    let what = format!("{} after {} rounds", scene.kind, memory.len());
    Held::same_as(bench, &first, &what);
    assert!(flat, "{}: memory grows: {memory:?} KiB", scene.kind);
}

fn no_errors(daemon: &Daemon) {
    let log = daemon.log();
    let errors: Vec<&str> = log.lines().filter(|l| l.contains("Z error ")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn interfaces_of_every_kind_come_and_go_and_nothing_is_left() {
    let Some(bench) = Bench::new() else { return };
    let kinds = kinds(&bench.daemon);
    let scenes = scenes::of(&bench, &kinds);
    let pings = bench.pinging();
    for scene in &scenes {
        rounds(&bench, scene, asked().unwrap_or(LEAST));
    }
    for (ping, version) in pings.into_iter().zip(["IPv4", "IPv6"]) {
        let Pinged { missed, answered } = ping.stop();
        println!("{version}: {answered} answers, {} lost", missed.len());
        assert!(answered > 100 && missed.is_empty(), "{missed:?}");
    }
    if let Some(speakers) = &bench.speakers {
        assert_eq!(speakers.ups_and_downs(), (1, 0), "{}", speakers.changes());
        speakers.announced(&bench.daemon, 77);
    }
    in_step(&bench.daemon);
    no_errors(&bench.daemon);
    no_errors(&bench.peer);
}

/// The router of the test bed with LCP taps, committed.
fn committed(bed: &Bed, users: &Users, taps: &Space, state: &str) -> Daemon {
    let daemon = bed.router_of(users.daemon_of_the_group("", &["--state-dir", state]));
    for end in ["left", "right"] {
        daemon.ok(&format!("lcp create {end} host-if {end} netns {}", taps.0));
    }
    in_step(&daemon);
    daemon.ok("config commit");
    daemon
}

#[test]
fn a_boot_without_an_interface_waits_for_it_with_all_that_depends_on_it() {
    let Some(bed) = Bed::new() else { return };
    let Some(users) = Users::new() else { return };
    let (taps, state) = (Space::new(bed.name("k")).unwrap(), Folder::new());
    taps.ip("link set lo up");
    let state = state.file("state").display().to_string();
    committed(&bed, &users, &taps, &state).stop("TERM");
    bed.ip("r", "link del right");

    let mut daemon = users.daemon_of_the_group("", &["--state-dir", &state]);
    let log = daemon.log();
    assert!(log.contains("commit 1 is in force"), "{log}");
    let speakers = Speakers::start(&bed, &taps, &[("a", 77), ("b", 78)]);
    wait_for_link(&mut daemon, "left", "up");
    if let Some(speakers) = &speakers {
        speakers.announced(&daemon, 77);
    }
    let missing = asked().map_or(3, |_| 30);
    for _ in 0..missing {
        std::thread::sleep(Duration::from_secs(1));
        let row = interface(&daemon, "right");
        assert!(row["waiting"] == true && row["link"] == "down", "{row}");
        assert_eq!(bed.pings("a", "10.77.0.1", 1, "0.2"), 1);
    }
    let shown = daemon.ok("show interfaces");
    let why = format!("right: waiting for right in namespace {}\n", bed.name("r"));
    assert!(shown.contains(&why), "{shown}");
    assert_eq!(daemon.ok("config diff").trim(), "no difference");

    bed.plug_in("b", "right", 78);
    wait_for_link(&mut daemon, "right", "up");
    assert_eq!(interface(&daemon, "right")["waiting"], false);
    bed.soon_through("the interface has appeared");
    assert_eq!(bed.pings("a", "10.78.0.2", 20, "0.05"), 20);
    if let Some(speakers) = &speakers {
        speakers.announced(&daemon, 78);
        assert_eq!(bed.pings("a", &behind(78), 20, "0.05"), 20);
        assert_eq!(speakers.ups_and_downs(), (2, 0), "{}", speakers.changes());
    }
    in_step(&daemon);
    assert_eq!(daemon.ok("config diff").trim(), "no difference");
    no_errors(&daemon);
}
