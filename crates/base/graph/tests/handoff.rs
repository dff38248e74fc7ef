//! Handoff between workers: no packet is lost or duplicated, flows stay in order through all changes, all buffers are freed.

use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum FromSource { Spread => "spread" } }
nexts! { enum FromSpread { Drop => "error-drop", End => "end" } }
counters! {
    /// What spread counts.
    enum Count {
        /// the ring to another worker is full
        Full = "full" (Error),
    }
}

const FLOWS: usize = 23;

/// Shared by all workers of a test: the state of each flow, and its worker.
struct Shared {
    /// Packets that are still to be sent, and the next packet's number, by worker.
    left: [AtomicU64; 4],
    /// The number of the last packet of each flow.
    last: [AtomicU32; FLOWS],
    seen: AtomicU64,
    by_worker: [AtomicU64; 4],
    table: [AtomicU32; FLOWS],
    version: AtomicU64,
    stays: AtomicU64,
    went: AtomicU64,
    refused: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Shared {
            left: [const { AtomicU64::new(0) }; 4],
            last: [const { AtomicU32::new(0) }; FLOWS],
            seen: zero(),
            by_worker: [const { AtomicU64::new(0) }; 4],
            table: [const { AtomicU32::new(0) }; FLOWS],
            version: zero(),
            stays: zero(),
            went: zero(),
            refused: zero(),
        })
    }

    fn is_done(&self, sent: u64) -> bool {
        self.seen.load(SeqCst) + self.refused.load(SeqCst) == sent
    }

    fn all_had_some(&self, workers: usize) -> bool {
        self.by_worker[..workers].iter().all(|n| n.load(SeqCst) > 0)
    }

    /// Assign every flow to a random worker.
    fn shuffle(&self, rng: &mut u32, workers: u32) {
        for entry in &self.table {
            *rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            entry.store((*rng >> 16) % workers, SeqCst);
        }
        self.version.fetch_add(1, SeqCst);
    }
}

/// Sends packets of many flows, each with its flow and its number in the flow. A flow has one source.
struct Flows {
    worker: usize,
    burst: usize,
    next: [u32; FLOWS],
    turn: usize,
    shared: Arc<Shared>,
}

impl Source for Flows {
    const NAME: &'static str = "flows";
    type Next = FromSource;
    type Count = NoCounters;
    fn poll<I: Isa>(
        &mut self,
        _: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, FromSource>,
    ) -> usize {
        let left = self.shared.left[self.worker].load(SeqCst) as usize;
        let mut fresh = out.alloc(self.burst.min(left), self.worker as u32);
        let (next, turn, worker) = (&mut self.next, &mut self.turn, self.worker);
        fresh.fill(|_, data| {
            *turn = (*turn + 1) % (FLOWS / 4);
            let flow = *turn * 4 + worker;
            next[flow] += 1;
            data[..4].copy_from_slice(&(flow as u32).to_be_bytes());
            data[4..8].copy_from_slice(&next[flow].to_be_bytes());
            60
        });
        let n = fresh.send(FromSource::Spread);
        self.shared.left[self.worker].fetch_sub(n as u64, SeqCst);
        n
    }
    fn may_sleep(&self, _: u64, _: u64) -> bool {
        self.worker != 0
    }
}

/// Hands each packet off to the worker that the table names for its flow.
struct Spread {
    shared: Arc<Shared>,
    end: NodeId,
    table: [u32; FLOWS],
    version: u64,
    codes: Column,
}

impl Spread {
    /// Use the current table, if order can be kept.
    fn renew(&mut self, stage_cx: &mut StageCx<'_>) {
        let version = self.shared.version.load(SeqCst);
        if version != self.version && stage_cx.begin_epoch() {
            self.version = version;
            for (mine, all) in self.table.iter_mut().zip(&self.shared.table) {
                *mine = all.load(SeqCst);
            }
        }
    }
}

impl Node for Spread {
    const NAME: &'static str = "spread";
    type Next = FromSpread;
    type Count = Count;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, FromSpread>) -> Consumed {
        self.renew(&mut v.stage_cx());
        let me = v.stage_cx().worker() as u32;
        for row in 0..v.len() {
            let flow = number(v.view(row).bytes(), 0) as usize;
            let worker = if self.version == 0 {
                me
            } else {
                self.table[flow]
            };
            let code = handoff_code(worker as usize, self.end);
            self.codes.words_mut(row + 1)[row] = code;
        }
        let (done, handed) = v.handoff(&self.codes, Count::Full.index(), FromSpread::Drop);
        self.shared.stays.fetch_add(handed.stayed, SeqCst);
        self.shared.went.fetch_add(handed.went, SeqCst);
        self.shared.refused.fetch_add(handed.refused, SeqCst);
        cx.count(Count::Full, handed.refused);
        done
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The end of all packets: each must have a higher number in its flow than the last one on any worker.
struct End {
    worker: usize,
    shared: Arc<Shared>,
}

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let bytes = v.view(row).bytes();
            let (flow, number) = (number(bytes, 0) as usize, number(bytes, 4));
            let before = self.shared.last[flow].swap(number, SeqCst);
            assert!(number > before, "flow {flow}: {number} behind {before}");
        }
        self.shared.seen.fetch_add(v.len() as u64, SeqCst);
        self.shared.by_worker[self.worker].fetch_add(v.len() as u64, SeqCst);
        v.free()
    }
}

struct Bench {
    engine: Engine,
    pool: Arc<Pool>,
    shared: Arc<Shared>,
}

fn bench(workers: usize, vector_size: usize, burst: usize) -> (Bench, Vec<Worker>) {
    let pool = Pool::new(16_384).unwrap();
    let settings = Settings {
        workers,
        vector_size,
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    let shared = Shared::new();
    let theirs = shared.clone();
    engine
        .add_source("flows", move |worker| Flows {
            worker,
            burst,
            next: [0; FLOWS],
            turn: 0,
            shared: theirs.clone(),
        })
        .unwrap();
    let theirs = shared.clone();
    let end = engine
        .add("end", move |worker| End {
            worker,
            shared: theirs.clone(),
        })
        .unwrap();
    let theirs = shared.clone();
    engine
        .add("spread", move |_| Spread {
            shared: theirs.clone(),
            end,
            table: [0; FLOWS],
            version: 0,
            codes: Column::new(vector_size),
        })
        .unwrap();
    let workers = engine.build().unwrap();
    engine.add_handoff_rings().unwrap();
    let bench = Bench {
        engine,
        pool,
        shared,
    };
    (bench, workers)
}

impl Bench {
    /// Every sent packet was received or refused, and every buffer is free.
    fn check(&self, sent: u64) {
        let refused = self.shared.refused.load(SeqCst);
        assert_eq!(self.shared.seen.load(SeqCst) + refused, sent);
        let drops: u64 = self.engine.drops().iter().map(|d| d.count).sum();
        assert_eq!(drops, refused, "what is dropped has its reason");
        assert_eq!(self.pool.report().in_use(), 0);
        let handed = self.engine.handoffs();
        let sum = |of: &dyn Fn(&HandoffReport) -> u64| handed.iter().map(of).sum::<u64>();
        assert_eq!(sum(&|h| h.refused), refused);
        let others = handed.iter().filter(|h| h.from != h.to);
        let went: u64 = others.map(|h| h.packets).sum();
        assert_eq!(went, self.shared.went.load(SeqCst));
    }

    fn grown(&self, workers: usize) -> u64 {
        let of = |w| self.engine.load(w).unwrap().3;
        (0..workers).map(of).sum()
    }
}

fn small() -> bool {
    std::env::var_os("VOLLEY_SMALL").is_some()
}

/// Step until no packet moves; an epoch needs rounds without packets.
fn settle(workers: &mut [Worker]) {
    let mut quiet = 0;
    while quiet < 4 {
        let moved: usize = workers.iter_mut().map(Worker::step).sum();
        quiet = if moved == 0 { quiet + 1 } else { 0 };
    }
}

#[test]
fn one_busy_source_is_spread_over_workers_on_threads() {
    for workers in 2..=4 {
        let (bench, built) = bench(workers, 64, 64);
        let portion = if small() { 20_000 } else { 400_000 };
        let (mut sent, mut rng) = (portion, 7);
        bench.shared.shuffle(&mut rng, workers as u32);
        bench.shared.left[0].store(sent, SeqCst);
        let running = WorkerThreads::start(built, &[]).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until && running.is_alive() {
            if bench.shared.is_done(sent) {
                if bench.shared.all_had_some(workers) {
                    break;
                }
                // A random assignment may leave a worker out, and a portion may be complete before the next assignment.
                sent += portion;
                bench.shared.left[0].store(portion, SeqCst);
            }
            bench.shared.shuffle(&mut rng, workers as u32);
            std::thread::sleep(Duration::from_millis(1));
        }
        let stopped = running.stop();
        assert_eq!(
            stopped.len(),
            workers,
            "no worker found a flow out of order"
        );
        drop(stopped);
        bench.check(sent);
        assert!(bench.shared.all_had_some(workers));
    }
}

#[test]
fn every_worker_hands_to_every_other_on_threads() {
    let (bench, built) = bench(4, 256, 100);
    let each = if small() { 5_000 } else { 100_000 };
    let mut rng = 99;
    bench.shared.shuffle(&mut rng, 4);
    bench.shared.left.iter().for_each(|l| l.store(each, SeqCst));
    let running = WorkerThreads::start(built, &[]).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let done = || bench.shared.seen.load(SeqCst) + bench.shared.refused.load(SeqCst) == 4 * each;
    while !done() && Instant::now() < until && running.is_alive() {
        bench.shared.shuffle(&mut rng, 4);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(running.stop().len(), 4);
    bench.check(4 * each);
}

#[test]
fn a_worker_that_does_not_run_refuses_and_nobody_waits() {
    let (bench, mut workers) = bench(2, 16, 16);
    workers.iter_mut().for_each(|w| _ = w.step());
    bench.shared.table.iter().for_each(|e| e.store(1, SeqCst));
    bench.shared.version.store(1, SeqCst);
    bench.shared.left[0].store(16 * 100, SeqCst);
    for _ in 0..101 {
        workers[0].step();
    }
    // One of 64 entries is reserved for the marker of an epoch, and one contains the marker of the first table.
    let took = bench.shared.went.load(SeqCst);
    assert_eq!(took, 16 * 62);
    assert_eq!(bench.shared.refused.load(SeqCst), 1600 - took);
    assert_eq!(
        bench.pool.report().in_use() as u64,
        took,
        "held in the ring"
    );
    settle(&mut workers);
    bench.check(1600);
    assert_eq!(bench.grown(2), 0, "frames are exchanged, not made");
}

#[test]
fn what_waits_for_a_worker_that_ends_is_freed() {
    let (bench, mut workers) = bench(2, 16, 16);
    workers.iter_mut().for_each(|w| _ = w.step());
    bench.shared.table.iter().for_each(|e| e.store(1, SeqCst));
    bench.shared.version.store(1, SeqCst);
    bench.shared.left[0].store(160, SeqCst);
    (0..12).for_each(|_| _ = workers[0].step());
    assert_eq!(bench.pool.report().in_use(), 160);
    drop(workers);
    assert_eq!(bench.pool.report().in_use(), 0);
}

/// A source without packets that allows its worker to sleep; the other worker's source is added later.
struct Quiet;
impl Source for Quiet {
    const NAME: &'static str = "quiet";
    type Next = FromSource;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, _: &mut Output<'_, I, FromSource>) -> usize {
        0
    }
    fn may_sleep(&self, _: u64, _: u64) -> bool {
        true
    }
}

/// Two workers; all flows are assigned to the second one.
fn sleepers() -> (Engine, Arc<Shared>) {
    let pool = Pool::new(4096).unwrap();
    let settings = Settings {
        workers: 2,
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, pool, Domain::new()).unwrap();
    let shared = Shared::new();
    shared.version.store(1, SeqCst);
    let theirs = shared.clone();
    engine.add_source("quiet", |_| Quiet).unwrap();
    let end = engine
        .add("end", move |worker| End {
            worker,
            shared: theirs.clone(),
        })
        .unwrap();
    let theirs = shared.clone();
    engine
        .add("spread", move |_| Spread {
            shared: theirs.clone(),
            end,
            table: [1; FLOWS],
            version: 1,
            codes: Column::new(256),
        })
        .unwrap();
    (engine, shared)
}

#[test]
fn a_sleeping_worker_is_woken_by_what_it_is_handed() {
    let (mut engine, shared) = sleepers();
    let mut workers = engine.build().unwrap();
    engine.add_handoff_rings().unwrap();
    workers.iter_mut().for_each(|w| _ = w.step());
    let other = workers.pop().unwrap();
    let mut first = workers.pop().unwrap();
    let running = WorkerThreads::start(vec![other], &[]).unwrap();
    let theirs = shared.clone();
    engine
        .add_source("flows", move |worker| Flows {
            worker,
            burst: 8,
            next: [0; FLOWS],
            turn: 0,
            shared: theirs.clone(),
        })
        .unwrap();
    shared.left[1].store(0, SeqCst);
    let (mut took, mut slept) = (Vec::new(), 0);
    for n in 1..=50 {
        std::thread::sleep(Duration::from_millis(2));
        slept += u64::from(engine.is_asleep(1));
        let before = Instant::now();
        shared.left[0].store(8, SeqCst);
        while shared.seen.load(SeqCst) < 8 * n && before.elapsed() < Duration::from_secs(5) {
            first.step();
        }
        took.push(before.elapsed());
    }
    running.stop();
    assert_eq!(shared.seen.load(SeqCst), 400);
    took.sort_unstable();
    // Without a wake-up the worker would sleep 20 ms each time, of which 2 have passed.
    let quick = Duration::from_millis(10);
    assert!(slept > 0 && took[12] < quick, "{slept} {took:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if small() { 16 } else { 200 }))]

    /// Workers are stepped in any interleaving, with changes of the table in between.
    #[test]
    fn any_interleaving_keeps_flows_in_order(
        workers in 2usize..=4,
        size in prop::sample::select(vec![4usize, 16, 64]),
        script in prop::collection::vec((0u8..10, 0usize..4), 1..400),
        seed: u32,
    ) {
        let (bench, mut built) = bench(workers, size, 48);
        let (mut rng, mut sent) = (seed, 0);
        for (what, worker) in script {
            let worker = worker % workers;
            match what {
                0 => bench.shared.shuffle(&mut rng, workers as u32),
                1 => {
                    bench.shared.left[worker].fetch_add(77, SeqCst);
                    sent += 77;
                }
                _ => _ = built[worker].step(),
            }
        }
        settle(&mut built);
        bench.check(sent);
        prop_assert_eq!(bench.grown(workers), 0);
    }
}

/// The counter of packets that find the ring to a placed node's worker full.
fn full(engine: &Engine) -> (NodeId, usize) {
    (engine.node("spread").unwrap(), Count::Full.index())
}

/// The value of the counter of refused packets, without those that the node itself refused.
fn turned_away(engine: &Engine) -> u64 {
    let all = engine.counters();
    let mine = all.iter().filter(|c| c.node == "spread");
    mine.map(|c| c.count).sum()
}

#[test]
fn a_node_runs_on_its_worker_and_comes_back() {
    let (mut bench, mut workers) = bench(3, 16, 16);
    let seen = |b: &Bench| [0, 1, 2].map(|w| b.shared.by_worker[w].swap(0, SeqCst));
    let send = |b: &Bench| {
        b.shared
            .left
            .iter()
            .take(3)
            .for_each(|l| l.store(100, SeqCst))
    };
    send(&bench);
    settle(&mut workers);
    assert_eq!(seen(&bench), [100, 100, 100]);
    let full = full(&bench.engine);
    for home in [2, 0, 1] {
        bench.engine.place_node("end", Some(home), full).unwrap();
        send(&bench);
        settle(&mut workers);
        let mut all = [0; 3];
        all[home] = 300;
        assert_eq!(seen(&bench), all);
        assert_eq!(bench.engine.placed_nodes(), [("end".to_owned(), home)]);
    }
    bench.engine.place_node("end", None, full).unwrap();
    assert!(bench.engine.placed_nodes().is_empty());
    while !bench.engine.restore_nodes() {
        workers.iter_mut().for_each(|w| _ = w.step());
    }
    let before: Vec<u64> = bench.engine.handoffs().iter().map(|h| h.packets).collect();
    send(&bench);
    settle(&mut workers);
    assert_eq!(seen(&bench), [100, 100, 100]);
    let after: Vec<u64> = bench.engine.handoffs().iter().map(|h| h.packets).collect();
    assert_eq!(before, after, "nothing is handed over any more");
    assert_eq!(bench.pool.report().in_use(), 0);
    assert_eq!(bench.grown(3), 0);
}

#[test]
fn nodes_that_cannot_move_are_named() {
    let (mut bench, _workers) = bench(2, 16, 16);
    let full = full(&bench.engine);
    let mut error = |node, worker| {
        let placed = bench.engine.place_node(node, Some(worker), full);
        placed.unwrap_err().to_string()
    };
    assert!(error("flows", 1).contains("`flows` runs where"));
    assert!(error("error-drop", 1).contains("`error-drop` runs where"));
    assert!(error("nowhere", 1).contains("no node `nowhere`"));
    assert_eq!(
        error("end", 2),
        "there is no worker 2: `show workers` lists them"
    );
}

#[test]
fn nodes_move_between_workers_on_threads() {
    let (mut bench, built) = bench(4, 64, 64);
    let each = if small() { 5_000 } else { 200_000 };
    let full = full(&bench.engine);
    let running = WorkerThreads::start(built, &[]).unwrap();
    // Before the start, the first workers would be done when the last one is ready.
    bench.shared.left.iter().for_each(|l| l.store(each, SeqCst));
    bench.engine.wake();
    let until = Instant::now() + Duration::from_secs(60);
    let (mut rng, mut homes, mut made) = (5u32, 0, 4 * each);
    loop {
        let gone = bench.shared.seen.load(SeqCst) + turned_away(&bench.engine);
        if gone == made && homes == 0 {
            // The workers were faster than this thread: the node must move while packets flow.
            made += 4 * each;
            bench.shared.left.iter().for_each(|l| l.store(each, SeqCst));
            bench.engine.wake();
        } else if gone == made || Instant::now() > until || !running.is_alive() {
            break;
        }
        rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let home = Some((rng >> 16) as usize % 5).filter(|home| *home < 4);
        homes += u32::from(bench.engine.place_node("end", home, full).is_ok());
        bench.engine.restore_nodes();
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = running.stop();
    assert_eq!(stopped.len(), 4, "no worker found a flow out of order");
    drop(stopped);
    assert!(homes > 0);
    assert_eq!(
        bench.shared.seen.load(SeqCst) + turned_away(&bench.engine),
        made
    );
    assert_eq!(bench.pool.report().in_use(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if small() { 16 } else { 200 }))]

    /// A node is moved while workers are stepped in any order. Flows are not moved: with two hops, the epoch of the first
    /// states nothing about the second.
    #[test]
    fn any_placement_keeps_flows_in_order(
        count in 2usize..=4,
        script in prop::collection::vec((0u8..12, 0usize..5), 1..300),
        seed: u32,
    ) {
        let (mut bench, mut workers) = bench(count, 16, 24);
        let (mut sent, mut rng) = (0, seed);
        let full = full(&bench.engine);
        for (what, which) in script {
            match what {
                0 => _ = bench.engine.place_node("end", Some(which).filter(|w| *w < count), full),
                1 => _ = bench.engine.restore_nodes(),
                2 if sent == 0 => bench.shared.shuffle(&mut rng, count as u32),
                3 => {
                    bench.shared.left[which % count].fetch_add(50, SeqCst);
                    sent += 50;
                }
                _ => _ = workers[which % count].step(),
            }
        }
        settle(&mut workers);
        let away = turned_away(&bench.engine);
        prop_assert_eq!(bench.shared.seen.load(SeqCst) + away, sent);
        let drops: u64 = bench.engine.drops().iter().map(|d| d.count).sum();
        prop_assert_eq!(drops, away);
        prop_assert_eq!(bench.pool.report().in_use(), 0);
        prop_assert_eq!(bench.grown(count), 0);
    }
}
