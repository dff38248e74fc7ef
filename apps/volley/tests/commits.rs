//! Commits of a running daemon: kept, rolled back, activated again; a daemon that is killed, and a disk that is full.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::kept::{BASE, Kept, Small};
use support::{Daemon, text, volley};

fn with_routes(n: u32) -> String {
    format!("{BASE}[[route]]\nprefix = \"10.{n}.0.0/24\"\ncount = {n}\naction = \"drop\"\n")
}

/// Compares the commits 1 and 2 of the daemon, of which 3 runs and equals 1.
fn two_commits_are_compared(it: &mut Kept) {
    let forward = it.config(&["diff", "1", "2"]).unwrap();
    assert!(forward.contains("+ ip route add 10.2.") && !forward.contains("- ip route add 10.2."));
    assert_eq!(it.ctl("config diff 1 2"), forward);
    let back: Vec<String> = it
        .ctl("config diff 2 1")
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(back.len(), forward.lines().count(), "{back:?}");
    assert_eq!(it.ctl("config diff 1 3"), "no difference\n");
    let error = it.config(&["diff", "1", "9"]).unwrap_err();
    assert!(error.contains("there is no commit 9"), "{error}");
    let error = it.config(&["diff", "one", "2"]).unwrap_err();
    assert!(error.contains("'one' is not the number"), "{error}");
}

#[test]
fn a_commit_is_compared_kept_restored_and_gone_back_to() {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    let (one, two) = (
        it.file("1.toml", &with_routes(1)),
        it.file("2.toml", &with_routes(2)),
    );
    assert_eq!(it.config(&["history"]).unwrap(), "no commits yet\n");
    assert_eq!(it.config(&["diff", &base]).unwrap(), "no difference\n");
    assert_eq!(
        it.config(&["diff", &one]).unwrap(),
        "+ ip route replace 10.1.0.0/24 via drop\n".replace("replace", "add")
    );
    let message = it
        .config(&["commit", &one, "--comment", "the first \"one\""])
        .unwrap();
    assert_eq!(message, "commit 1: 1 steps\n");
    it.config(&["commit", &two]).unwrap();
    it.ctl("ip route add 11.0.0.0/8 via drop");
    assert_eq!(
        it.config(&["diff"]).unwrap(),
        "+ ip route add 11.0.0.0/8 via drop\n"
    );
    let history = it.config(&["history"]).unwrap();
    assert!(
        history.contains("holds") && history.contains("the first \"one\""),
        "{history}"
    );
    // A change without a commit is lost; and the file is no longer read.
    it.kill();
    it.start(&["-c", &base]);
    assert!(it.log().contains("commit 2 is in force"), "{}", it.log());
    assert_eq!(it.config(&["diff"]).unwrap(), "no difference\n");
    assert!(it.ctl("show ip fib").contains("10.2.1.0/24"));
    assert!(!it.ctl("show ip fib").contains("11.0.0.0/8"));
    let message = it.config(&["rollback", "1"]).unwrap();
    assert!(message.starts_with("commit 3"), "{message}");
    assert!(!it.ctl("show ip fib").contains("10.2.1.0/24"));
    two_commits_are_compared(&mut it);
    let error = it.config(&["rollback", "9"]).unwrap_err();
    assert!(
        error.contains("there is no commit 9; there are 1 to 3"),
        "{error}"
    );
    // The exported configuration equals the file, and a daemon can start with it.
    let shown = it.config(&["show"]).unwrap();
    let written = it.file("shown.toml", &shown);
    assert_eq!(it.config(&["diff", &written]).unwrap(), "no difference\n");
    it.kill();
    it.start(&[]);
    assert_eq!(it.config(&["show"]).unwrap(), shown);
    let commands = it.config(&["export", "commands"]).unwrap();
    assert!(
        commands.contains("ip route add 10.1.0.0/24 via drop"),
        "{commands}"
    );
}

#[test]
fn a_commit_that_nobody_confirms_undoes_itself() {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    let (one, two) = (
        it.file("1.toml", &with_routes(1)),
        it.file("2.toml", &with_routes(2)),
    );
    it.start(&["-c", &base]);
    let gone = |fib: &str| !fib.contains("10.1.0.0/24");
    let message = it.config(&["commit", &one, "--confirm", "1s"]).unwrap();
    assert!(message.contains("rolled back at"), "{message}");
    assert!(!gone(&it.ctl("show ip fib")));
    it.wait_for("show ip fib", gone);
    assert!(
        it.config(&["confirm"])
            .unwrap_err()
            .contains("no commit waits")
    );
    // A confirmed commit stays.
    it.config(&["commit", &one, "--confirm", "2s"]).unwrap();
    assert_eq!(it.config(&["confirm"]).unwrap(), "commit 2 is kept\n");
    std::thread::sleep(Duration::from_millis(2500));
    assert!(!gone(&it.ctl("show ip fib")));
    // A restart before the deadline does not stop the clock.
    it.config(&["commit", &two, "--confirm", "6s"]).unwrap();
    it.kill();
    it.start(&[]);
    assert!(it.ctl("show ip fib").contains("10.2.0.0/24"));
    it.wait_for("show ip fib", |fib| !fib.contains("10.2.0.0/24"));
    assert!(!gone(&it.ctl("show ip fib")));
    // A deadline also counts if it passes while no daemon runs.
    it.config(&["commit", &two, "--confirm", "1s"]).unwrap();
    it.kill();
    std::thread::sleep(Duration::from_millis(1200));
    it.start(&[]);
    assert!(it.log().contains("is rolled back"), "{}", it.log());
    let fib = it.ctl("show ip fib");
    assert!(!gone(&fib) && !fib.contains("10.2.0.0/24"), "{fib}");
}

#[test]
fn errors_of_a_file_are_told_all_at_once_and_change_nothing() {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    let before = it.config(&["show"]).unwrap();
    let bad = it.file(
        "bad.toml",
        "[[interface]]\nname = \"pg0\"\nkind = \"pgg\"\nmtu = 1\n\n[[route]]\nprefix = \"10.0.0.1/8\"\nactoin = \"drop\"\n",
    );
    for errors in [
        it.config(&["commit", &bad]).unwrap_err(),
        text(&volley(&["config", "check", &bad]).stderr),
    ] {
        let part = |line: usize, what: &str| {
            assert!(
                errors
                    .lines()
                    .any(|l| l.contains(&format!("bad.toml:{line}:")) && l.contains(what)),
                "{what}: {errors}"
            );
        };
        part(3, "must be one of af_xdp, dpdk, host-interface");
        part(4, "must be a number from 68 to 65535");
        part(7, "10.0.0.0/8");
        part(8, "did you mean 'action'?");
    }
    assert_eq!(it.config(&["show"]).unwrap(), before);
    // A well-formed file that is refused in the middle is rolled back completely.
    let half = it.file(
        "half.toml",
        "[[interface]]\nname = \"pg1\"\nkind = \"pg\"\naddresses = [\"10.9.0.1/24\"]\n\n[[feature]]\ninterface = \"pg1\"\narc = \"ip4-unicast\"\nfeature = \"no-such\"\n",
    );
    let error = it.config(&["commit", &half]).unwrap_err();
    assert!(error.contains("no-such"), "{error}");
    assert_eq!(it.config(&["show"]).unwrap(), before);
    assert!(it.ctl("show interfaces").contains("pg0"));
    let none = it.file("none.toml", BASE);
    let mut other = Kept::new();
    other.state = it.state.clone();
    let refused = volley(&["run", "-c", &none, "--state-dir", &it.state]);
    assert!(text(&refused.stderr).contains("another daemon keeps its commits here"));
    let lonely = Daemon::start(BASE, &[]);
    assert!(lonely.refused("config commit").contains("--state-dir"));
}

/// Daemons that are killed at a time: while one waits, another uses the core.
const KILLED_TOGETHER: usize = 4;

#[test]
fn a_daemon_killed_at_any_time_restores_the_old_or_the_new() {
    let kills = std::env::var("VOLLEY_KILLS").ok();
    let kills: usize = kills.and_then(|n| n.parse().ok()).unwrap_or(12);
    let (old, new) = std::thread::scope(|scope| {
        let lanes = (0..KILLED_TOGETHER).map(|lane| (lane..kills).step_by(KILLED_TOGETHER));
        let lanes: Vec<_> = lanes.map(|lane| scope.spawn(|| killed(lane))).collect();
        let counts = lanes.into_iter().map(|lane| lane.join().unwrap());
        counts.fold((0, 0), |(old, new), (o, n)| (old + o, new + n))
    });
    println!("{kills} kills: {old} times the old, {new} times the new, 0 times a mix, bar 0");
    assert_eq!(old + new, kills);
}

/// Kills a daemon in each of these rounds, while it commits; counts the configurations, old and new, that the next start has.
fn killed(rounds: impl Iterator<Item = usize>) -> (usize, usize) {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    it.config(&["commit"]).unwrap();
    // Two configurations with only the interface in common, large enough that writing them takes time.
    let many = |net: u32| {
        let mut text = BASE.to_owned();
        for i in 0..3000u32 {
            let (b, c) = (i * 7 % 3001 / 16, i * 7 % 3001 % 16 * 16);
            text += &format!("[[route]]\nprefix = \"{net}.{b}.{c}.0/28\"\naction = \"drop\"\n");
        }
        text
    };
    let files = [it.file("a.toml", &many(20)), it.file("b.toml", &many(30))];
    let began = Instant::now();
    it.config(&["commit", &files[0]]).unwrap();
    // On a machine with other work a commit takes longer.
    let whole = began.elapsed().max(Duration::from_millis(400));
    let mut held = it.config(&["show"]).unwrap();
    let (mut old, mut new) = (0, 0);
    for round in rounds {
        let wanted = &files[(new + 1) % 2];
        let socket = it.socket();
        let mut commit = Command::new(env!("CARGO_BIN_EXE_volley"))
            .args(["config", "commit", wanted, "--socket", &socket])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Delays over the duration of a commit, and a little longer.
        std::thread::sleep(whole * (round as u32 * 37 % 150) / 100);
        it.kill();
        let reported = commit.wait().unwrap().success();
        it.start(&[]);
        assert_eq!(it.config(&["diff"]).unwrap(), "no difference\n");
        let now = it.config(&["show"]).unwrap();
        let is_new = it.config(&["diff", wanted]).unwrap() == "no difference\n";
        assert!(is_new || now == held, "round {round}: a mix");
        assert!(
            is_new || !reported,
            "round {round}: told that it is kept, and lost"
        );
        old += usize::from(!is_new);
        new += usize::from(is_new);
        held = now;
    }
    (old, new)
}

#[test]
fn a_full_disk_refuses_a_commit_and_loses_none() {
    let mut it = Kept::new();
    let Some(_small) = Small::mount(Path::new(&it.state)) else {
        println!("skipped: a small file system cannot be mounted here (root only)");
        return;
    };
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    it.config(&["commit"]).unwrap();
    let good = it.config(&["show"]).unwrap();
    let mut many = BASE.to_owned();
    for i in 0..4000u32 {
        many += &format!(
            "[[route]]\nprefix = \"20.{}.{}.0/28\"\naction = \"drop\"\n",
            i / 128,
            i % 128 * 2
        );
    }
    let big = it.file("big.toml", &many);
    let error = it.config(&["commit", &big]).unwrap_err();
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    assert!(error.contains("the commits there are as before"), "{error}");
    // A configuration that could not be stored is not active either.
    assert_eq!(it.config(&["show"]).unwrap(), good);
    std::fs::write(Path::new(&it.state).join("filler"), vec![0; 400_000]).unwrap_err();
    let error = it
        .config(&["commit", "--comment", "nothing fits"])
        .unwrap_err();
    assert!(error.contains("are as before"), "{error}");
    it.kill();
    it.start(&[]);
    assert_eq!(it.config(&["show"]).unwrap(), good);
    std::fs::remove_file(Path::new(&it.state).join("filler")).unwrap();
    it.config(&["commit", "--comment", "there is room again"])
        .unwrap();
}

#[test]
fn a_batch_is_undone_as_a_whole_when_asked() {
    let it = Daemon::start(BASE, &[]);
    let before = it.ok("config show");
    let batch = it.folder.file("batch.vly");
    let lines = "ip route add 10.0.0.0/8 via drop\n# a word\nip table add 7\nip route add 11.0.0.0/8 via 1.2.3.4 pg9\n";
    std::fs::write(&batch, lines).unwrap();
    let file = batch.display().to_string();
    let error = it.refused(&format!("exec {file} undo"));
    assert!(error.contains("pg9"), "{error}");
    assert_eq!(it.ok("config show"), before);
    std::fs::write(&batch, lines.replace("ip table add 7", "ip table del 7")).unwrap();
    let error = it.refused(&format!("exec {file} undo"));
    assert!(error.contains("batch.vly:3"), "{error}");
    assert_eq!(it.ok("config show"), before);
    // Without it, the commands before the error stay in effect.
    assert!(it.refused(&format!("exec {file}")).contains("batch.vly:3"));
    assert!(it.ok("config show").contains("10.0.0.0/8"));
    std::fs::write(&batch, "ip route del 10.0.0.0/8\nip table add 7\n").unwrap();
    it.ok(&format!("exec {file} undo"));
    assert!(it.ok("show tables").contains('7'));
    assert!(
        it.refused("watch times 2 ip table add 8")
            .contains("can be watched")
    );
    let twice = it.ok("watch every 1 times 2 show tables | grep 7");
    assert_eq!(twice.lines().count(), 2, "{twice}");
    let fish = text(&volley(&["completions", "fish"]).stdout);
    assert!(fish.contains("rollback"), "{fish}");
}

/// Ten thousand objects of many classes.
fn ten_thousand() -> String {
    let mut out = String::new();
    for i in 0..100u32 {
        out += &format!(
            "[[interface]]\nname = \"pg{i}\"\nkind = \"pg\"\nmtu = 1500\naddresses = [\"10.{i}.0.1/16\"]\n"
        );
    }
    for i in 0..2000u32 {
        out += &format!(
            "[[neighbor]]\ninterface = \"pg{}\"\naddress = \"10.{}.1.{}\"\nmac = \"02:fe:00:00:{:02x}:{:02x}\"\n",
            i % 100,
            i % 100,
            i / 100 + 2,
            i >> 8,
            i & 255
        );
    }
    for i in 0..10u32 {
        out += &format!("[[table]]\nid = {}\nfamily = \"ip4\"\n", i + 1);
    }
    for i in 0..7590u32 {
        out += &format!(
            "[[route]]\nprefix = \"{}.{}.{}.0/24\"\ntable = {}\nvia = \"10.{}.1.2\"\ninterface = \"pg{}\"\n",
            20 + i % 50,
            i / 50,
            i % 7 * 2,
            i % 11,
            i % 100,
            i % 100
        );
    }
    out
}

/// A router with a stream of 100,000 packets a second.
const FLOW: &str = "[[interface]]\nname = \"rx\"\nkind = \"pg\"\nmac = \"02:fe:00:00:00:01\"\naddresses = [\"192.0.2.1/24\"]\n\
        [[interface]]\nname = \"tx\"\nkind = \"pg\"\naddresses = [\"198.51.100.1/24\"]\n\
        [[neighbor]]\ninterface = \"tx\"\naddress = \"198.51.100.2\"\nmac = \"02:fe:00:00:00:02\"\n\
        [[route]]\nprefix = \"99.0.0.0/8\"\nvia = \"198.51.100.2\"\ninterface = \"tx\"\n\
        [[stream]]\nname = \"s\"\ninterface = \"rx\"\nrate = 100000\nenabled = true\n\
        template = \"eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 99.0.0.1 / udp / payload 20\"\n";

/// Stops the stream; every received packet must have been transmitted.
fn nothing_was_lost(it: &Kept) {
    it.ctl("packet-generator disable s");
    std::thread::sleep(Duration::from_millis(300));
    let json: serde_json::Value = serde_json::from_str(&it.ctl("show interfaces json")).unwrap();
    let of = |name: &str, way: &str| {
        let rows = json["interfaces"].as_array().unwrap();
        let row = rows.iter().find(|r| r["name"] == name).unwrap();
        row[way]["packets"].as_u64().unwrap()
    };
    let (received, sent) = (of("rx", "rx"), of("tx", "tx"));
    let runtime: serde_json::Value = serde_json::from_str(&it.ctl("show runtime json")).unwrap();
    let longest = runtime["workers"][0]["longest_round_us"].as_f64();
    let longest = longest.unwrap_or(f64::NAN);
    println!("traffic: {received} packets in, {sent} out, longest round {longest:.0} us");
    assert!(received > 10_000, "{received}");
    assert_eq!(
        received,
        sent,
        "packets were lost: {}",
        it.ctl("show drops")
    );
}

/// Commands that add routes whose neighbours have other next hops.
fn hundred_thousand() -> String {
    let mut lines = String::new();
    for i in 0..100_000u64 {
        // The factor and the modulus, a prime, have no common divisor: all differ, and consecutive ones are far apart.
        let at = i * 700_001 % 1_000_003;
        lines += &format!(
            "ip route add {}.{}.{}.0/24 via 198.51.100.{} tx\n",
            20 + at / 65_536,
            at / 256 % 256,
            at % 256,
            i % 4 + 2
        );
    }
    lines
}

/// Bytes of the commits on the disk.
fn on_disk(it: &Kept) -> u64 {
    let files = std::fs::read_dir(&it.state).unwrap().map(Result::unwrap);
    let commits = files.filter(|it| it.file_name().to_string_lossy().starts_with("commit-"));
    commits.map(|it| it.metadata().unwrap().len()).sum()
}

#[test]
fn commits_of_one_change_each_share_the_rest() {
    let mut it = Kept::new();
    let base = it.file("base.toml", FLOW);
    it.start(&["-c", &base]);
    let file = it.file("routes.vly", &hundred_thousand());
    it.ctl(&format!("exec {file} undo"));
    it.ctl("config commit");
    let whole = on_disk(&it);
    for n in 2..=10 {
        it.ctl(&format!("ip route add 10.{n}.0.0/16 via drop"));
        it.ctl("config commit");
    }
    let all = on_disk(&it);
    let share = all as f64 / whole as f64;
    println!("one commit: {whole} bytes, ten: {all}, {share:.4} of it, bar 1.2");
    assert!(whole > 5_000_000 && share <= 1.2, "{whole} {all}");
    let times = (0..5).map(|_| {
        let start = Instant::now();
        let history = it.config(&["history"]).unwrap();
        assert!(history.lines().count() >= 10, "{history}");
        start.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    println!("config history: {times:?}, the fastest must be below 0.1 s");
    // Other tests use the cores.
    assert!(times[0] < Duration::from_millis(100), "{times:?}");
    let difference = |commit: &str| it.ctl(&format!("config diff commit {commit}"));
    let eight = difference("8");
    assert!(
        eight.contains("10.9.0.0/16") && eight.contains("10.10.0.0/16"),
        "{eight}"
    );
    assert_eq!(eight.lines().count(), 2, "{eight}");
    it.kill();
    it.start(&[]);
    let difference = |commit: &str| it.ctl(&format!("config diff commit {commit}"));
    assert_eq!(difference("10"), "no difference\n");
    it.config(&["rollback", "4"]).unwrap();
    assert_eq!(difference("4"), "no difference\n");
    let runs = it.ctl("show ip fib summary");
    assert!(runs.contains("/16           3\n"), "{runs}");
}

#[test]
fn a_hundred_thousand_routes_are_one_transaction() {
    let mut it = Kept::new();
    let base = it.file("base.toml", FLOW);
    it.start(&["-c", &base]);
    std::thread::sleep(Duration::from_millis(300));
    let file = it.file("routes.vly", &hundred_thousand());
    let start = Instant::now();
    it.ctl(&format!("exec {file} undo"));
    let took = start.elapsed().as_secs_f64();
    println!("100000 routes: {took:.3} s, bar 3 s");
    nothing_was_lost(&it);
    let summary = it.ctl("show ip fib summary");
    assert!(
        summary.contains("100002") || summary.contains("100001"),
        "{summary}"
    );
    if !cfg!(debug_assertions) {
        assert!(took < 3.0, "{took} s");
    }
}

#[test]
fn ten_thousand_objects_are_committed_while_packets_flow() {
    let mut it = Kept::new();
    let base = it.file("base.toml", FLOW);
    let all = it.file("all.toml", &format!("{FLOW}{}", ten_thousand()));
    it.start(&["-c", &base]);
    it.ctl("config commit");
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    let message = it.config(&["commit", &all]).unwrap();
    let took = start.elapsed().as_secs_f64();
    let checked = it.config(&["history"]).unwrap();
    println!("10000 objects: {took:.3} s, bar 2 s; {}", message.trim());
    nothing_was_lost(&it);
    assert!(checked.contains("holds"));
    if !cfg!(debug_assertions) {
        assert!(took < 2.0, "{took} s");
    }
}
