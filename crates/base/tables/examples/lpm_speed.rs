//! Speed of the longest-prefix tables on real and synthetic routes, in TSC cycles per lookup (medians).
//!
//! `taskset -c 1 cargo run --release -p volley-tables --example lpm_speed [4|6|updates]`
//! Real tables are read from `$VOLLEY_SHARED/data` (default: `shared/data` beside the checkout) when present.
//! The clock is scaled by `VOLLEY_TSC_GHZ` (default 2.596).

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use volley_tables::{Domain, Lpm4, Lpm4View, Lpm6, Lpm6View};

const VECTOR: usize = 256;
const PASSES: usize = 41;

/// A small, seeded generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

type Route = (u128, u8, u32);

fn shared(file: &str) -> Option<String> {
    let shared = std::env::var("VOLLEY_SHARED").map_or_else(
        |_| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared")),
        PathBuf::from,
    );
    let path = shared.join("data").join(file);
    let out = path
        .exists()
        .then(|| Command::new("xz").arg("-dc").arg(&path).output())?;
    String::from_utf8(out.ok()?.stdout).ok()
}

fn prefix(text: &str) -> (u128, u8) {
    let (addr, len) = text.split_once('/').unwrap();
    let addr = match addr.parse().unwrap() {
        std::net::IpAddr::V4(a) => u128::from(u32::from(a)) << 96,
        std::net::IpAddr::V6(a) => u128::from(a),
    };
    (addr, len.parse().unwrap())
}

fn routes(file: &str) -> Option<Vec<Route>> {
    let parse = |line: &str| {
        let (p, id) = line.split_once(' ').unwrap();
        let (addr, len) = prefix(p);
        (addr, len, id.parse::<u32>().unwrap() + 1)
    };
    Some(shared(file)?.lines().map(parse).collect())
}

fn updates(file: &str) -> Option<Vec<(bool, u128, u8)>> {
    let parse = |line: &str| {
        let (addr, len) = prefix(&line[2..]);
        (line.starts_with('A'), addr, len)
    };
    Some(shared(file)?.lines().map(parse).collect())
}

/// Routes of the lengths that a backbone table has, without its clustering.
fn synthetic(n: usize, bits: u32, lens: &[u8]) -> Vec<Route> {
    let mut random = Random(7);
    let mut all: Vec<Route> = (0..n)
        .map(|_| {
            let len = lens[random.below(lens.len())];
            let addr =
                u128::from(random.next()) << 64 >> (128 - bits).min(3) << (128 - bits).min(3);
            (
                addr & (u128::MAX << (128 - len)),
                len,
                1 + random.below(3000) as u32,
            )
        })
        .collect();
    all.sort_unstable();
    all.dedup_by_key(|r| (r.0, r.1));
    all
}

/// `n` destinations: a random prefix each, random host bits.
fn destinations(routes: &[Route], n: usize) -> Vec<u128> {
    let mut random = Random(99);
    (0..n)
        .map(|_| {
            let (addr, len, _) = routes[random.below(routes.len())];
            let host = u128::from(random.next()) << 64 | u128::from(random.next());
            addr | host.checked_shr(u32::from(len)).unwrap_or(0)
        })
        .collect()
}

fn ghz() -> f64 {
    std::env::var("VOLLEY_TSC_GHZ")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(2.596)
}

/// Median cycles per item over several passes.
fn cycles(items: usize, mut pass: impl FnMut()) -> (f64, f64) {
    pass();
    let mut times: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            pass();
            start.elapsed().as_secs_f64() * 1e9 * ghz() / items as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[PASSES / 2], times[PASSES / 10])
}

macro_rules! levels {
    ($(($single:ident, $batch:ident, $single6:ident, $batch6:ident, $feature:literal)),*) => { $(
        #[allow(dead_code, reason = "only the batch is compared at both levels")]
        #[target_feature(enable = $feature)]
        fn $single(view: &Lpm4View, dst: &[u32]) -> u32 {
            dst.iter().fold(0, |sum, &d| sum ^ view.lookup(d))
        }
        #[target_feature(enable = $feature)]
        fn $batch(view: &Lpm4View, dst: &[u32], leaf: &mut [u32]) {
            view.lookup_batch(dst, leaf);
        }
        #[allow(dead_code, reason = "as above")]
        #[target_feature(enable = $feature)]
        fn $single6(view: &Lpm6View, hi: &[u64], lo: &[u64]) -> u32 {
            hi.iter().zip(lo).fold(0, |sum, (&h, &l)| sum ^ view.lookup(h, l))
        }
        #[target_feature(enable = $feature)]
        fn $batch6(view: &Lpm6View, hi: &[u64], lo: &[u64], leaf: &mut [u32]) {
            view.lookup_batch(hi, lo, leaf);
        }
    )* }
}
levels!(
    // The two levels that differ for these tables.
    (
        single_v3,
        batch_v3,
        single6_v3,
        batch6_v3,
        "avx2,bmi1,bmi2,lzcnt,popcnt,fma,movbe"
    ),
    (single_v2, batch_v2, single6_v2, batch6_v2, "sse4.2,popcnt")
);

fn v4(routes: &[Route]) -> impl Iterator<Item = (u32, u8, u32)> {
    routes.iter().map(|r| ((r.0 >> 96) as u32, r.1, r.2))
}

fn v6(routes: &[Route]) -> impl Iterator<Item = (u64, u64, u8, u32)> {
    routes
        .iter()
        .map(|r| ((r.0 >> 64) as u64, r.0 as u64, r.1, r.2))
}

fn speed4(name: &str, routes: &[Route]) {
    let domain = Domain::new();
    let reader = domain.register();
    let mut table = Lpm4::new(&domain);
    let input: Vec<_> = v4(routes).collect();
    let start = Instant::now();
    table.load_bulk(input).unwrap();
    let load = start.elapsed();
    println!(
        "{name}: {} prefixes, load {load:?}, {:.2} MiB",
        table.len(),
        table.bytes() as f64 / (1 << 20) as f64
    );
    let snap = table.snap();
    let view = snap.read(reader.guard());
    for (label, n) in [("64k", 1 << 16), ("1M", 1 << 20), ("1 dst", 0)] {
        let dst: Vec<u32> = if n == 0 {
            vec![(destinations(routes, 1)[0] >> 96) as u32; 1 << 16]
        } else {
            destinations(routes, n)
                .iter()
                .map(|d| (d >> 96) as u32)
                .collect()
        };
        let mut leaf = [0u32; VECTOR];
        let mut sum = 0;
        // SAFETY: AVX2-level features checked in `main`.
        let single = cycles(dst.len(), || sum ^= unsafe { single_v3(view, &dst) });
        let mut batch = |v3: bool| {
            cycles(dst.len(), || {
                for d in dst.chunks(VECTOR) {
                    // SAFETY: as above.
                    unsafe {
                        if v3 {
                            batch_v3(view, d, &mut leaf)
                        } else {
                            batch_v2(view, d, &mut leaf)
                        }
                    }
                    std::hint::black_box(&mut leaf);
                }
            })
        };
        let (v3, v2) = (batch(true), batch(false));
        std::hint::black_box(sum);
        println!(
            "  {label:6} single {:5.1}  batch v3 {:5.2} (best {:5.2})  batch v2 {:5.2}",
            single.0, v3.0, v3.1, v2.0
        );
    }
}

fn speed6(name: &str, routes: &[Route]) {
    let domain = Domain::new();
    let reader = domain.register();
    let mut table = Lpm6::new(&domain);
    let input: Vec<_> = v6(routes).collect();
    let start = Instant::now();
    table.load_bulk(input).unwrap();
    let load = start.elapsed();
    println!(
        "{name}: {} prefixes, load {load:?}, {:.2} MiB",
        table.len(),
        table.bytes() as f64 / (1 << 20) as f64
    );
    let snap = table.snap();
    let view = snap.read(reader.guard());
    for (label, n) in [("64k", 1 << 16), ("1M", 1 << 20), ("1 dst", 0)] {
        let all = if n == 0 {
            vec![destinations(routes, 1)[0]; 1 << 16]
        } else {
            destinations(routes, n)
        };
        let (hi, lo): (Vec<u64>, Vec<u64>) =
            all.iter().map(|&d| ((d >> 64) as u64, d as u64)).unzip();
        let mut leaf = [0u32; VECTOR];
        let mut sum = 0;
        // SAFETY: AVX2-level features checked in `main`.
        let single = cycles(hi.len(), || sum ^= unsafe { single6_v3(view, &hi, &lo) });
        let mut batch = |v3: bool| {
            cycles(hi.len(), || {
                for (h, l) in hi.chunks(VECTOR).zip(lo.chunks(VECTOR)) {
                    // SAFETY: as above.
                    unsafe {
                        if v3 {
                            batch6_v3(view, h, l, &mut leaf)
                        } else {
                            batch6_v2(view, h, l, &mut leaf)
                        }
                    }
                    std::hint::black_box(&mut leaf);
                }
            })
        };
        let (v3, v2) = (batch(true), batch(false));
        std::hint::black_box(sum);
        println!(
            "  {label:6} single {:5.1}  batch v3 {:5.2} (best {:5.2})  batch v2 {:5.2}",
            single.0, v3.0, v3.1, v2.0
        );
    }
}

/// Time this thread spent on a processor: the machine is shared.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

/// Runs `read` on another thread, vector after vector, while `write` works; returns its seconds, its seconds on a processor, and vectors read.
fn beside(
    domain: &Arc<Domain>,
    mut read: impl FnMut(&volley_tables::Reader) + Send,
    write: impl FnOnce(),
) -> (f64, f64, u64) {
    let stop = AtomicBool::new(false);
    let vectors = AtomicU64::new(0);
    let (mut seconds, mut cpu) = (0.0, 0.0);
    std::thread::scope(|scope| {
        let mut reader = domain.register();
        let (stop, vectors) = (&stop, &vectors);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                read(&reader);
                reader.quiescent();
                vectors.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (start, busy) = (Instant::now(), cpu_seconds());
        write();
        (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - busy);
        stop.store(true, Ordering::Relaxed);
    });
    (seconds, cpu, vectors.into_inner())
}

fn report(
    name: &str,
    n: usize,
    slowest_us: f64,
    (seconds, cpu, vectors): (f64, f64, u64),
    bytes: usize,
) {
    println!(
        "{name}: {:.0} k/s, {:.0} k/s of processor time ({n} in {seconds:.2} s), slowest {slowest_us:.0} us, {:.1} M lookups/s beside, {:.2} MiB after",
        n as f64 / seconds / 1e3,
        n as f64 / cpu / 1e3,
        vectors as f64 * VECTOR as f64 / seconds / 1e6,
        bytes as f64 / (1 << 20) as f64
    );
}

/// Replays a day of updates; `change` says which leaf the i-th announcement sets.
fn updates4(name: &str, routes: &[Route], day: &[(bool, u128, u8)], change: fn(usize) -> u32) {
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    table.load_bulk(v4(routes)).unwrap();
    let snap = table.snap();
    let dst: Vec<u32> = destinations(routes, VECTOR * 64)
        .iter()
        .map(|d| (d >> 96) as u32)
        .collect();
    let mut leaf = [0; VECTOR];
    let mut chunks = dst.chunks(VECTOR).cycle();
    let mut slowest = 0.0f64;
    let read = |reader: &volley_tables::Reader| {
        snap.read(reader.guard())
            .lookup_batch(chunks.next().unwrap_or(&[]), &mut leaf);
    };
    let timed = beside(&domain, read, || {
        let mut last = Instant::now();
        for (i, &(announce, addr, len)) in day.iter().enumerate() {
            let addr = (addr >> 96) as u32;
            if announce {
                table.insert(addr, len, change(i)).unwrap();
            } else {
                table.remove(addr, len);
            }
            if i % 16 == 0 {
                domain.reclaim();
                let now = Instant::now();
                slowest = slowest.max((now - last).as_secs_f64() * 1e6);
                last = now;
            }
        }
    });
    assert_eq!(
        table.len(),
        1_043_392,
        "prefixes left at the end of the day"
    );
    report(name, day.len(), slowest, timed, table.bytes());
}

/// As [`updates4`].
fn updates6(name: &str, routes: &[Route], day: &[(bool, u128, u8)], change: fn(usize) -> u32) {
    let domain = Domain::new();
    let mut table = Lpm6::new(&domain);
    table.load_bulk(v6(routes)).unwrap();
    let snap = table.snap();
    let dst = destinations(routes, VECTOR * 64);
    let (hi, lo): (Vec<u64>, Vec<u64>) = dst.iter().map(|&d| ((d >> 64) as u64, d as u64)).unzip();
    let mut leaf = [0; VECTOR];
    let mut chunks = hi.chunks(VECTOR).zip(lo.chunks(VECTOR)).cycle();
    let mut slowest = 0.0f64;
    let read = |reader: &volley_tables::Reader| {
        let (h, l) = chunks.next().unwrap_or((&[], &[]));
        snap.read(reader.guard()).lookup_batch(h, l, &mut leaf);
    };
    let timed = beside(&domain, read, || {
        let mut last = Instant::now();
        for (i, &(announce, addr, len)) in day.iter().enumerate() {
            let (hi, lo) = ((addr >> 64) as u64, addr as u64);
            if announce {
                table.insert(hi, lo, len, change(i)).unwrap();
            } else {
                table.remove(hi, lo, len);
            }
            if i % 16 == 0 {
                domain.reclaim();
                let now = Instant::now();
                slowest = slowest.max((now - last).as_secs_f64() * 1e6);
                last = now;
            }
        }
    });
    assert_eq!(table.len(), 246_309, "prefixes left at the end of the day");
    report(name, day.len(), slowest, timed, table.bytes());
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let wants = |w: &str| what.is_empty() || what == w;
    let has = |found: &[bool]| found.iter().all(|f| *f);
    assert!(
        has(&[
            is_x86_feature_detected!("avx2"),
            is_x86_feature_detected!("bmi1"),
            is_x86_feature_detected!("bmi2"),
            is_x86_feature_detected!("lzcnt"),
            is_x86_feature_detected!("popcnt"),
            is_x86_feature_detected!("fma"),
            is_x86_feature_detected!("movbe"),
        ]),
        "needs an x86-64-v3 processor"
    );
    let ris4 = routes("rib4-ris3333-20260511-nhmodel.txt.xz");
    let ris6 = routes("rib6-ris3333-20260511-nhmodel.txt.xz");
    if wants("4") {
        for (name, table) in [
            ("ris4", &ris4),
            ("pch4", &routes("rib4-pch3856-20151023.txt.xz")),
        ] {
            if let Some(table) = table {
                speed4(name, table);
            }
        }
        speed4(
            "synthetic4",
            &synthetic(
                1_000_000,
                32,
                &[16, 19, 20, 21, 22, 22, 23, 23, 24, 24, 24, 24, 24, 24],
            ),
        );
    }
    if wants("6") {
        if let Some(table) = &ris6 {
            speed6("ris6", table);
        }
        speed6(
            "synthetic6",
            &synthetic(250_000, 128, &[32, 36, 40, 44, 48, 48, 48, 48, 56, 64]),
        );
    }
    if wants("updates") {
        if let (Some(table), Some(day)) = (&ris4, updates("update4-ris3333-20260511.txt.xz")) {
            updates4("updates4, leaf changes", table, &day, |i| {
                1 + (i as u32).wrapping_mul(2_654_435_761) % 4000
            });
            updates4("updates4, leaf stays 5", table, &day, |_| 5);
        }
        if let (Some(table), Some(day)) = (&ris6, updates("update6-ris3333-20260511.txt.xz")) {
            updates6("updates6, leaf changes", table, &day, |i| {
                1 + (i as u32).wrapping_mul(2_654_435_761) % 4000
            });
            updates6("updates6, leaf stays 5", table, &day, |_| 5);
        }
    }
}
