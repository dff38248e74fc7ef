//! Disks that damage files, fill up or fail: a commit that was rolled back never becomes active again, and each fault is
//! reported in a sentence.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::kept::{BASE, Kept, Small};
use support::{signal, text};

fn with_route(n: u32) -> String {
    format!("{BASE}[[route]]\nprefix = \"10.{n}.0.0/24\"\naction = \"drop\"\n")
}

/// A stopped daemon with commits 1 and 2, and commit 3, which its deadline rolled back.
fn after_a_rollback() -> Kept {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    for n in 1..=2 {
        let file = it.file(&format!("{n}.toml"), &with_route(n));
        it.config(&["commit", &file]).unwrap();
    }
    let bad = it.file("3.toml", &with_route(3));
    it.config(&["commit", &bad, "--confirm", "1s"]).unwrap();
    it.wait_for("show ip fib", |fib| !fib.contains("10.3.0.0/24"));
    it.wait_for("config history", |rows| rows.contains("rolled back"));
    it.kill();
    it
}

fn file(it: &Kept, name: &str) -> PathBuf {
    Path::new(&it.state).join(name)
}

/// Flips one bit of a file, at a fraction of its length.
fn flip(path: &Path, part: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = (bytes.len() - 1) * part / 4;
    bytes[at] ^= 0x04;
    std::fs::write(path, bytes).unwrap();
}

fn runs(it: &Kept, n: u32) {
    let fib = it.ctl("show ip fib");
    for other in 1..=3 {
        let there = fib.contains(&format!("10.{other}.0.0/24"));
        assert_eq!(there, other == n, "{fib}");
    }
}

#[test]
fn damage_of_one_head_changes_nothing_and_of_both_is_refused() {
    let mut it = after_a_rollback();
    for (name, part) in [("head.1", 0), ("head.2", 1), ("head.1", 3), ("head.2", 4)] {
        flip(&file(&it, name), part);
        it.start(&[]);
        assert!(
            it.log().contains("the other copy of the head is used"),
            "{}",
            it.log()
        );
        runs(&it, 2);
        it.kill();
    }
    flip(&file(&it, "head.1"), 2);
    flip(&file(&it, "head.2"), 3);
    let base = it.file("base.toml", BASE);
    for more in [&[][..], &["-c", &base]] {
        let error = it.refused(more);
        assert!(
            error.contains("it is not known which commit is active"),
            "{error}"
        );
        assert!(
            error.contains("`volley run --fallback` to apply commit 2"),
            "{error}"
        );
    }
    // The command in the sentence fixes it.
    it.start(&["--fallback"]);
    runs(&it, 2);
    it.config(&["rollback", "2"]).unwrap();
    it.kill();
    it.start(&[]);
    runs(&it, 2);
}

#[test]
fn a_damaged_active_commit_is_refused_and_one_that_was_rolled_back_never_returns() {
    let mut it = after_a_rollback();
    let active = file(&it, "commit-00000002");
    let good = std::fs::read(&active).unwrap();
    for part in 0..=4 {
        std::fs::write(&active, &good).unwrap();
        flip(&active, part);
        let error = it.refused(&[]);
        assert!(
            error.contains("commit-00000002") && error.contains("damaged"),
            "{error}"
        );
        assert!(
            error.contains("`volley run --fallback` to apply commit 1"),
            "{error}"
        );
    }
    it.start(&["--fallback"]);
    assert!(it.log().contains("commit 2 is NOT applied"), "{}", it.log());
    runs(&it, 1);
    let history = it.config(&["history"]).unwrap();
    assert!(history.contains("commit-00000002 is damaged"), "{history}");
    it.config(&["rollback", "1"]).unwrap();
    it.kill();
    it.start(&[]);
    runs(&it, 1);
    it.kill();
    // No commit is left: the daemon starts neither with the file nor as an empty router without a message.
    for name in ["commit-00000004", "commit-00000001"] {
        std::fs::remove_file(file(&it, name)).unwrap();
    }
    let base = it.file("base.toml", BASE);
    for more in [&["-c", &base][..], &["--fallback"]] {
        let error = it.refused(more);
        assert!(
            error.contains(&format!("`mv {0} {0}.damaged`", it.state)),
            "{error}"
        );
    }
    it.start(&["--fallback", "-c", &base]);
    runs(&it, 0);
}

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((b ^ (b >> 31)) % end.max(1) as u64) as usize
    }
}

type Files = Vec<(String, Vec<u8>)>;

/// The files of the journal.
fn journal(it: &Kept) -> Files {
    let names = std::fs::read_dir(&it.state).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name != "lock" && name != "identity")
        .collect();
    names.sort();
    let read = |name: String| {
        let bytes = std::fs::read(file(it, &name)).unwrap();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

/// Damages one file: bits, length, a range of zeros, a page of another file, or its removal. Returns the damage in words.
fn hurt(it: &Kept, files: &Files, random: &mut Random) -> String {
    let (name, bytes) = &files[random.below(files.len())];
    let path = file(it, name);
    let mut bytes = std::fs::read(&path).unwrap_or_else(|_| bytes.clone());
    let (what, at) = (random.below(7), random.below(bytes.len()));
    let end = (at + 1 + random.below(64)).min(bytes.len());
    match what {
        0..=2 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        3 => bytes.truncate(at),
        4 => bytes[at..end].fill(0),
        5 => bytes.clone_from(&files[random.below(files.len())].1),
        _ => {
            let _ = std::fs::remove_file(&path);
            return format!("{name} removed");
        }
    }
    std::fs::write(&path, &bytes).unwrap();
    format!("{name}: {what} at {at} to {end}")
}

/// Whether an error names a file or a commit, and the command that repairs the journal.
fn names_what_and_how(it: &Kept, error: &str) -> bool {
    let what = error.contains(&it.state) || error.contains("there is no commit");
    what && (error.contains("`volley ") || error.contains("`mv "))
}

/// `VOLLEY_DAMAGED=N` makes it N journals.
#[test]
fn a_damaged_journal_is_refused_or_its_active_commit_runs() {
    let mut it = after_a_rollback();
    let good = journal(&it);
    let asked = std::env::var("VOLLEY_DAMAGED").ok();
    let wanted: u64 = asked.map_or(20, |text| text.parse().unwrap());
    let (mut ran, mut fell_back, mut refused) = (0, 0, 0);
    for seed in 0..wanted {
        for (name, _) in journal(&it) {
            std::fs::remove_file(file(&it, &name)).unwrap();
        }
        for (name, bytes) in &good {
            std::fs::write(file(&it, name), bytes).unwrap();
        }
        let mut random = Random(seed);
        let count = 1 + random.below(3);
        let damage: Vec<String> = (0..count).map(|_| hurt(&it, &good, &mut random)).collect();
        let Err(error) = it.attempt(&[]) else {
            runs(&it, 2);
            it.kill();
            ran += 1;
            continue;
        };
        let named = names_what_and_how(&it, &error);
        assert!(named, "seed {seed}, {damage:?}: {error}");
        match it.attempt(&["--fallback"]) {
            Ok(()) => {
                let fib = it.ctl("show ip fib");
                let there = [1, 2, 3].map(|n| fib.contains(&format!("10.{n}.0.0/24")));
                let one = there == [true, false, false] || there == [false, true, false];
                assert!(one, "seed {seed}, {damage:?}: {fib}");
                it.kill();
                fell_back += 1;
            }
            Err(error) => {
                let named = names_what_and_how(&it, &error);
                assert!(named, "seed {seed}, {damage:?}, --fallback: {error}");
                refused += 1;
            }
        }
    }
    println!(
        "{wanted} damaged journals: the active commit runs {ran} times, is refused with a command {} times, and --fallback \
         applies an earlier one or it {fell_back} times; 0 starts with another commit, bar 0",
        fell_back + refused
    );
}

/// The files' CRCs equal those of zlib, and an error names an unknown field.
#[test]
fn files_have_the_crc_of_zlib_and_no_unknown_field() {
    let mut it = after_a_rollback();
    let script = "\
import sys, zlib
for path in sys.argv[2:]:
    line, body = open(path, 'rb').read().split(b'\\n', 1)
    kind, length, crc = line.split(b' ')
    assert int(length) == len(body) and int(crc, 16) == zlib.crc32(body), path
    if sys.argv[1]:
        body = body.replace(b'\"time_s\"', b'\"colour\":1,\"time_s\"', 1)
        line = b'%s %d %08x\\n' % (kind, len(body), zlib.crc32(body))
        open(path, 'wb').write(line + body)
";
    let python = |change: &str, names: &[&str]| {
        let paths = names.iter().map(|name| file(&it, name));
        let command = Command::new("python3")
            .args(["-c", script, change])
            .args(paths)
            .output();
        let output = command.unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    python(
        "",
        &[
            "head.1",
            "head.2",
            "commit-00000001",
            "commit-00000002",
            "rolled-back-00000003",
        ],
    );
    python("yes", &["commit-00000002"]);
    let error = it.refused(&[]);
    assert!(error.contains("unknown field `colour`"), "{error}");
    it.start(&["--fallback"]);
    runs(&it, 1);
}

#[test]
fn a_deadline_on_a_full_disk_rolls_back_what_runs() {
    let mut it = Kept::new();
    let Some(_small) = Small::mount(Path::new(&it.state)) else {
        println!("skipped: a small file system cannot be mounted here (root only)");
        return;
    };
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    let (good, bad) = (
        it.file("1.toml", &with_route(1)),
        it.file("2.toml", &with_route(2)),
    );
    it.config(&["commit", &good]).unwrap();
    it.config(&["commit", &bad, "--confirm", "2s"]).unwrap();
    runs(&it, 2);
    std::fs::write(file(&it, "filler"), vec![0; 400_000]).unwrap_err();
    it.wait_for("show ip fib", |fib| fib.contains("10.1.0.0/24"));
    runs(&it, 1);
    it.wait_for("show log", |log| {
        log.contains("is tried again every second")
    });
    assert!(
        it.config(&["commit"])
            .unwrap_err()
            .contains("No space left")
    );
    runs(&it, 1);
    // A start on the full disk does not activate it either.
    it.kill();
    it.start(&[]);
    runs(&it, 1);
    std::fs::remove_file(file(&it, "filler")).unwrap();
    it.wait_for("show log", |log| log.contains("can be written again"));
    assert!(
        it.config(&["history"])
            .unwrap()
            .contains("not confirmed, rolled back")
    );
    it.kill();
    it.start(&[]);
    runs(&it, 1);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_read() {
    let mut it = Kept::new();
    let Some(_small) = Small::mount(Path::new(&it.state)) else {
        println!("skipped: a small file system cannot be mounted here (root only)");
        return;
    };
    let one = it.file("1.toml", &with_route(1));
    it.start(&["-c", &one]);
    it.config(&["commit"]).unwrap();
    it.kill();
    let remount = ["-o", "remount,ro", &it.state];
    assert!(
        Command::new("mount")
            .args(remount)
            .status()
            .unwrap()
            .success()
    );
    it.start(&[]);
    runs(&it, 1);
    assert!(
        it.log().contains("nothing can be committed"),
        "{}",
        it.log()
    );
    let error = it.config(&["commit"]).unwrap_err();
    assert!(error.contains("Read-only file system"), "{error}");
    runs(&it, 1);
}

#[test]
fn history_and_differences_are_read_while_a_commit_is_written() {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    it.config(&["commit"]).unwrap();
    let it = &it;
    let many = |net: u32| {
        let route = |i: u32| {
            format!(
                "[[route]]\nprefix = \"{net}.{}.{}.0/28\"\naction = \"drop\"\n",
                i / 256,
                i % 256
            )
        };
        (0..4000)
            .map(route)
            .fold(BASE.to_owned(), |all, route| all + &route)
    };
    let files = [it.file("a.toml", &many(20)), it.file("b.toml", &many(30))];
    std::thread::scope(|scope| {
        let commits = scope.spawn(|| {
            for n in 0..6 {
                it.config(&["commit", &files[n % 2]]).unwrap();
            }
        });
        let mut reads = 0;
        while !commits.is_finished() {
            assert!(it.config(&["history"]).unwrap().contains("holds"));
            it.config(&["diff"]).unwrap();
            reads += 1;
        }
        commits.join().unwrap();
        assert!(reads > 5, "{reads}");
    });
}

#[test]
fn odd_numbers_comments_and_signals_end_nothing() {
    let mut it = Kept::new();
    let base = it.file("base.toml", BASE);
    it.start(&["-c", &base]);
    let long = "x".repeat(100_000);
    let error = it.config(&["commit", "--comment", &long]).unwrap_err();
    assert!(error.contains("100000 bytes, the limit is 1024"), "{error}");
    it.config(&["commit", "--comment", &long[..1024]]).unwrap();
    assert!(it.config(&["history"]).unwrap().contains(&long[..1024]));
    signal(it.child.as_ref().unwrap().id(), "HUP");
    std::thread::sleep(Duration::from_millis(300));
    runs(&it, 0);
    it.kill();
    for core in ["1024", "4294967295"] {
        let content = format!("[engine]\nworker_core = {core}\n{BASE}");
        let file = it.file("core.toml", &content);
        let output = support::volley(&["run", "-c", &file, "--socket", &it.socket()]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("0 to 1023"),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn what_is_stored_belongs_to_its_user_alone() {
    use std::os::unix::fs::MetadataExt;
    let mut it = after_a_rollback();
    it.start(&[]);
    let capture = it.folder.file("c.pcap").display().to_string();
    it.ctl(&format!("pcap trace rx max 10 file {capture}"));
    it.ctl("pcap trace off");
    let mut all: Vec<PathBuf> = std::fs::read_dir(&it.state)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.extend([PathBuf::from(&it.state), PathBuf::from(capture)]);
    assert!(all.len() > 6, "{all:?}");
    for path in all {
        let mode = std::fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}
