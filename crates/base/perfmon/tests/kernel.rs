//! Events that the kernel counts on every machine: they show that groups are opened, enabled and read as the kernel means it. The
//! other witness is what the thread does, and `/proc`.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use volley_graph::{CounterGroup, Reading};
use volley_perfmon::{CounterError, Group, How, Source, availability, bundle, this_thread};

const PAGE: usize = 4096;

/// The counters of a bundle; none for a user without rights, who gets the sentence.
fn open(name: &str, thread: i32) -> Option<Group> {
    match Group::open(bundle(name).unwrap(), thread) {
        Ok(group) => Some(group),
        Err(error @ (CounterError::Refused { .. } | CounterError::NoKernelSupport)) => {
            println!("SKIP: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Events between two readings of a group without a pause.
fn between(from: &Reading, to: &Reading) -> [u64; 3] {
    assert_eq!(from.off_ns, to.off_ns, "nothing else needs these counters");
    [0, 1, 2].map(|at| to.values[at] - from.values[at])
}

/// More faults than are repeated because other threads change the memory of the process at the same time.
const REPEATED: u64 = 20;

/// Fresh memory of this many pages that the kernel does not join to large ones.
fn pages(count: usize) -> memmap2::MmapMut {
    let memory = memmap2::MmapMut::map_anon(count * PAGE).unwrap();
    memory.advise(memmap2::Advice::NoHugePage).unwrap();
    memory
}

fn touch(memory: &mut memmap2::MmapMut) {
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
}

#[test]
fn each_page_that_is_touched_is_a_fault() {
    let Some(mut group) = open("page-faults", this_thread()) else {
        return;
    };
    // The pages of the code are there from now on.
    touch(&mut pages(1));
    for count in [1, 10, 300] {
        let mut memory = pages(count);
        let from = group.read();
        touch(&mut memory);
        let [minor, major, _] = between(&from, &group.read());
        let expected = count as u64..count as u64 + REPEATED;
        assert!(
            expected.contains(&minor) && major < REPEATED,
            "{minor} {major}"
        );
        // The second time there is nothing to do.
        let from = group.read();
        touch(&mut memory);
        let [minor, major, _] = between(&from, &group.read());
        assert!(minor < REPEATED && major < REPEATED, "{minor} {major}");
    }
    assert_eq!(group.how()(), How::Read, "software has no register");
}

/// The switches of this thread by `/proc`.
fn switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.ends_with("ctxt_switches").then_some(value)
    });
    lines.map(|it| it.trim().parse::<u64>().unwrap()).sum()
}

#[test]
fn context_switches_agree_with_proc() {
    let Some(mut group) = open("context-switches", this_thread()) else {
        return;
    };
    let outside = switches();
    let from = group.read();
    let inside = switches();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let inside = switches() - inside;
    let counted = between(&from, &group.read())[0];
    let outside = switches() - outside;
    assert!(inside >= 10, "{inside}");
    assert!(
        (inside..=outside).contains(&counted),
        "{inside} {counted} {outside}"
    );
}

#[test]
fn the_clock_of_a_thread_stops_while_it_sleeps() {
    let Some(mut group) = open("page-faults", this_thread()) else {
        return;
    };
    let (from, start) = (group.read(), Instant::now());
    std::thread::sleep(Duration::from_millis(30));
    let asleep = between(&from, &group.read())[2];
    assert!(asleep < 15_000_000, "{asleep}");
    let mut turns = 0u64;
    // As long as the kernel says that this thread was on a core for 5 ms.
    while between(&from, &group.read())[2] < asleep + 5_000_000 {
        turns = std::hint::black_box(turns + 1);
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    let all = between(&from, &group.read())[2];
    assert!(u128::from(all) < start.elapsed().as_nanos(), "{turns}");
}

#[test]
fn counters_that_another_thread_opened_count_the_thread_alone() {
    let (send_id, id) = mpsc::channel();
    let (send_group, groups) = mpsc::channel::<Group>();
    let thread = std::thread::spawn(move || {
        send_id.send(this_thread()).unwrap();
        let mut group = groups.recv().ok()?;
        // The pages of the code are there from now on.
        touch(&mut pages(1));
        let mut memory = pages(50);
        let from = group.read();
        touch(&mut memory);
        Some((between(&from, &group.read())[0], group))
    });
    let Some(group) = open("page-faults", id.recv().unwrap()) else {
        return;
    };
    let mut mine = pages(500);
    send_group.send(group).unwrap();
    touch(&mut mine);
    let (counted, group) = thread.join().unwrap().unwrap();
    // The other thread has 500.
    assert!((50..50 + REPEATED).contains(&counted), "{counted}");
    drop(group);
}

#[test]
fn no_thread_has_no_counters() {
    let ended = std::thread::spawn(this_thread).join().unwrap();
    let page_faults = bundle("page-faults").unwrap();
    // The kernel removes the thread shortly after it has ended.
    let until = Instant::now() + Duration::from_secs(10);
    let error = loop {
        match Group::open(page_faults, ended) {
            Err(error @ (CounterError::Refused { .. } | CounterError::NoKernelSupport)) => {
                println!("SKIP: {error}");
                return;
            }
            Err(error) => break error,
            Ok(_) => assert!(Instant::now() < until),
        }
    };
    assert_eq!(error, CounterError::NoThread);
}

/// Whether the kernel knows a PMU of the processor, by the list of its devices.
fn has_pmu() -> bool {
    let devices = std::fs::read_dir("/sys/bus/event_source/devices").unwrap();
    let mut names = devices.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.any(|name| name.starts_with("cpu") || name.starts_with("armv8"))
}

#[test]
fn a_machine_without_pmu_is_recognised() {
    for bundle in &volley_perfmon::BUNDLES {
        let available = availability(bundle);
        println!("{}: {available:?}", bundle.name);
        if let Err(error @ (CounterError::Refused { .. } | CounterError::NoKernelSupport)) =
            &available
        {
            println!("SKIP: {error}");
            continue;
        }
        if bundle.source == Source::Processor && !has_pmu() {
            assert_eq!(available, Err(CounterError::NoPmu), "{}", bundle.name);
        }
    }
    // With one, instructions are counted exactly where nothing disturbs: at least those of the loop.
    if let Ok(mut group) = Group::open(bundle("inst-and-clock").unwrap(), this_thread()) {
        let from = group.read();
        let sum = (0..1000u64).fold(0, |sum, n| std::hint::black_box(sum + n));
        let [instructions, cycles, _] = between(&from, &group.read());
        assert!(
            instructions >= 2000 && cycles > 0,
            "{instructions} {cycles} {sum}"
        );
    }
}
