//! Tests the tool on threads that contend, and on threads that do not.

use super::lines::Verdict;
use super::meant::Meant;
use super::stepper::Stepper;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WHAT: &str = "XTASK_CONTENDED_TRACEE";

/// Words on one cache line. `APART` has words on separate lines.
#[repr(align(64))]
struct Together([AtomicU64; 8]);
#[repr(align(128))]
struct Apart(AtomicU64);

static TOGETHER: Together = Together([const { AtomicU64::new(0) }; 8]);
static APART: [Apart; 4] = [const { Apart(AtomicU64::new(0)) }; 4];

#[inline(never)]
fn bump(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Two threads take turns: the thread whose turn it is may access the shared word.
#[inline(never)]
fn whose_turn(turn: &AtomicU64) -> u64 {
    turn.load(Ordering::Acquire)
}

#[inline(never)]
fn pass_on(turn: &AtomicU64, to: u64) {
    turn.store(to, Ordering::Release);
}

#[inline(never)]
fn rounds(me: usize, what: &str) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        match what {
            // Each thread has its own word: only the cache line is shared.
            "one-line" => bump(&TOGETHER.0[me]),
            "own-lines" => bump(&APART[me].0),
            "one-looks" if me == 0 => bump(&APART[0].0),
            "one-looks" => _ = whose_turn(&APART[0].0),
            // The word at 1 belongs to the thread whose turn it is at 0.
            _ if whose_turn(&APART[0].0) == me as u64 => {
                bump(&APART[1].0);
                pass_on(&APART[0].0, 1 - me as u64);
            }
            _ => std::hint::spin_loop(),
        }
    }
}

/// Not a test: the process that the other tests examine.
#[test]
#[ignore = "started by the tests of this file"]
fn tracee() {
    let Ok(what) = std::env::var(WHAT) else {
        return;
    };
    let thread = |me: usize| {
        let what = what.clone();
        let name = format!("seen-{me}");
        std::thread::Builder::new()
            .name(name)
            .spawn(move || rounds(me, &what))
    };
    let threads: Vec<_> = (0..2).map(|me| thread(me).unwrap()).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

const TURNS: [Meant; 1] = [Meant {
    name: "turn",
    why: "a test",
    sources: &[(
        "dev/experiments/src/contended/tests.rs",
        &["whose_turn", "pass_on"],
    )],
    orders: true,
}];

/// Verdicts of all lines that several threads use, with a report of the contended ones.
fn verdicts(what: &str, meant: &[Meant]) -> Option<Vec<(Verdict, String)>> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "contended::tests::tracee",
            "--ignored",
            "--nocapture",
        ])
        .env(WHAT, what)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let stepper = loop {
        match Stepper::attach(child.id(), "seen-", meant) {
            Err(_) if start.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => break other,
        }
    };
    let found = stepper.map(|mut stepper| {
        stepper.run(40_000, Duration::from_secs(60)).unwrap();
        assert!(stepper.steps().iter().all(|(_, steps)| *steps > 5_000));
        let numbers: Vec<u64> = stepper.lines.lines.keys().copied().collect();
        let verdict = |n: &u64| stepper.lines.lines[n].verdict(&stepper.places);
        let all: Vec<(u64, Verdict)> = numbers.iter().map(|n| (*n, verdict(n))).collect();
        let all = all.into_iter().filter(|(_, v)| *v != Verdict::Own);
        all.map(|(n, v)| (v, super::report::line(n, &mut stepper)))
            .collect()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    match found {
        Ok(found) => Some(found),
        Err(reason) if reason.starts_with("ptrace") => {
            println!("SKIP: threads cannot be traced here: {reason}");
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

#[test]
fn two_threads_that_write_one_line_are_found() {
    let Some(found) = verdicts("one-line", &[]) else {
        return;
    };
    assert_eq!(found.len(), 1, "{found:?}");
    let (verdict, text) = &found[0];
    assert_eq!(*verdict, Verdict::Fought);
    assert!(
        text.contains("bump dev/experiments/src/contended/tests.rs:"),
        "{text}"
    );
    assert!(
        text.contains("rounds dev/experiments/src"),
        "the calls: {text}"
    );
}

#[test]
fn two_threads_with_lines_of_their_own_are_clean() {
    let Some(found) = verdicts("own-lines", &[]) else {
        return;
    };
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_thread_that_looks_at_what_another_writes_is_found() {
    let Some(found) = verdicts("one-looks", &[]) else {
        return;
    };
    assert_eq!(
        found.iter().map(|f| f.0).collect::<Vec<_>>(),
        [Verdict::Looked]
    );
}

#[test]
fn what_is_passed_on_in_order_is_told_apart() {
    let Some(mut found) = verdicts("turns", &TURNS) else {
        return;
    };
    found.sort();
    let kinds: Vec<Verdict> = found.iter().map(|f| f.0).collect();
    assert_eq!(kinds, [Verdict::Handed, Verdict::Meant(0)], "{found:?}");
    // Without the list the sharing is reported as contention.
    let Some(found) = verdicts("turns", &[]) else {
        return;
    };
    assert!(found.iter().any(|f| f.0 == Verdict::Fought), "{found:?}");
}
