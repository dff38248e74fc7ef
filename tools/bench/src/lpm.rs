//! `volley bench lpm`: only the longest-prefix match.

use super::args::{Destinations, LpmArgs, Prefixes};
use super::report::Spread;
use super::tables::{self, Rows};
use super::{BenchError, pace};
use serde::Serialize;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use volley_fib::load::{UpdateKind, read_updates};
use volley_fib::{V4, V6};
use volley_graph::{Domain, Isa, Level};
use volley_simd::{Kernel, cycles};
use volley_tables::{Guard, Lpm4, Lpm4Snap, Lpm6, Lpm6Snap};

/// Lookups per batch, as in a vector.
const BATCH: usize = 256;
/// Destinations compared with the linear search.
const CHECKED: usize = 400;

#[derive(Serialize)]
struct LpmReport {
    family: &'static str,
    isa: String,
    prefixes: usize,
    bytes: usize,
    build_seconds: f64,
    distinct: usize,
    batched_cycles_per_lookup: Spread,
    batched_lookups_per_second: f64,
    single_cycles_per_lookup: Spread,
    updates: Option<usize>,
    updates_per_second: Option<f64>,
    lookups_meanwhile: Option<u64>,
    verified: bool,
}

/// One family's table, as this benchmark uses it.
trait Table: Sized {
    type Addr: tables::Addr + Send + Sync + 'static;
    type Snap: Clone + Send + Sync;
    const NAME: &'static str;
    fn rows(
        path: Option<&Path>,
        prefixes: Prefixes,
        seed: u64,
    ) -> Result<Rows<Self::Addr>, BenchError>;
    fn build(domain: &Arc<Domain>, rows: &Rows<Self::Addr>) -> Result<Self, BenchError>;
    fn snap(&self) -> Self::Snap;
    fn size(&self) -> usize;
    fn batch(
        snap: &Self::Snap,
        guard: Guard<'_>,
        level: Level,
        dst: &[Self::Addr],
        leaf: &mut [u32],
    );
    fn single(snap: &Self::Snap, guard: Guard<'_>, dst: Self::Addr) -> u32;
    fn set(&mut self, addr: Self::Addr, len: u8, leaf: u32);
    fn unset(&mut self, addr: Self::Addr, len: u8);
    fn updates(path: &Path) -> Result<Vec<(bool, Self::Addr, u8)>, BenchError>;
}

fn lpm_error(e: volley_tables::LpmError) -> BenchError {
    BenchError::Args(e.to_string())
}

struct Batch4<'a>(&'a Lpm4Snap, Guard<'a>, &'a [u32], &'a mut [u32]);
impl Kernel for Batch4<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self, _isa: I) {
        let view = self.0.read(self.1);
        for (dst, leaf) in self.2.chunks(BATCH).zip(self.3.chunks_mut(BATCH)) {
            view.lookup_batch(dst, leaf);
        }
    }
}

struct Batch6<'a>(&'a Lpm6Snap, Guard<'a>, &'a [u128], &'a mut [u32]);
impl Kernel for Batch6<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let view = self.0.read(self.1);
        let mut high = [0u64; BATCH];
        for (dst, leaf) in self.2.chunks(BATCH).zip(self.3.chunks_mut(BATCH)) {
            for (high, &dst) in high.iter_mut().zip(dst) {
                *high = (dst >> 64) as u64;
            }
            view.lookup_batch(isa, &high[..dst.len()], |row| dst[row] as u64, leaf);
        }
    }
}

impl Table for Lpm4 {
    type Addr = u32;
    type Snap = Lpm4Snap;
    const NAME: &'static str = "ip4";
    fn rows(path: Option<&Path>, prefixes: Prefixes, seed: u64) -> Result<Rows<u32>, BenchError> {
        tables::rows4(path, Some(prefixes.v4), None, seed)
    }
    fn build(domain: &Arc<Domain>, rows: &Rows<u32>) -> Result<Self, BenchError> {
        let mut table = Lpm4::new(domain);
        table
            .load_bulk(rows.iter().map(|&(a, l, r)| (a, l, r + 1)))
            .map_err(lpm_error)?;
        Ok(table)
    }
    fn snap(&self) -> Lpm4Snap {
        self.snap()
    }
    fn size(&self) -> usize {
        self.bytes()
    }
    fn batch(snap: &Lpm4Snap, guard: Guard<'_>, level: Level, dst: &[u32], leaf: &mut [u32]) {
        volley_simd::call(level, Batch4(snap, guard, dst, leaf));
    }
    fn single(snap: &Lpm4Snap, guard: Guard<'_>, dst: u32) -> u32 {
        snap.read(guard).lookup(dst)
    }
    fn set(&mut self, addr: u32, len: u8, leaf: u32) {
        // Prefixes of the update file are well-formed; a full table would show in the rate.
        let _ = self.insert(addr, len, leaf);
    }
    fn unset(&mut self, addr: u32, len: u8) {
        self.remove(addr, len);
    }
    fn updates(path: &Path) -> Result<Vec<(bool, u32, u8)>, BenchError> {
        let all = read_updates::<V4>(path)?;
        Ok(all
            .iter()
            .map(|u| (u.kind == UpdateKind::Announce, u.addr, u.len))
            .collect())
    }
}

impl Table for Lpm6 {
    type Addr = u128;
    type Snap = Lpm6Snap;
    const NAME: &'static str = "ip6";
    fn rows(path: Option<&Path>, prefixes: Prefixes, seed: u64) -> Result<Rows<u128>, BenchError> {
        tables::rows6(path, Some(prefixes.v6), seed)
    }
    fn build(domain: &Arc<Domain>, rows: &Rows<u128>) -> Result<Self, BenchError> {
        let mut table = Lpm6::new(domain);
        let rows = rows
            .iter()
            .map(|&(a, l, r)| ((a >> 64) as u64, a as u64, l, r + 1));
        table.load_bulk(rows).map_err(lpm_error)?;
        Ok(table)
    }
    fn snap(&self) -> Lpm6Snap {
        self.snap()
    }
    fn size(&self) -> usize {
        self.bytes()
    }
    fn batch(snap: &Lpm6Snap, guard: Guard<'_>, level: Level, dst: &[u128], leaf: &mut [u32]) {
        volley_simd::call(level, Batch6(snap, guard, dst, leaf));
    }
    fn single(snap: &Lpm6Snap, guard: Guard<'_>, dst: u128) -> u32 {
        snap.read(guard).lookup((dst >> 64) as u64, dst as u64)
    }
    fn set(&mut self, addr: u128, len: u8, leaf: u32) {
        // As above.
        let _ = self.insert((addr >> 64) as u64, addr as u64, len, leaf);
    }
    fn unset(&mut self, addr: u128, len: u8) {
        self.remove((addr >> 64) as u64, addr as u64, len);
    }
    fn updates(path: &Path) -> Result<Vec<(bool, u128, u8)>, BenchError> {
        let all = read_updates::<V6>(path)?;
        Ok(all
            .iter()
            .map(|u| (u.kind == UpdateKind::Announce, u.addr, u.len))
            .collect())
    }
}

/// Measure, check, print.
pub fn run(args: &LpmArgs) -> Result<(), BenchError> {
    let level: Level = args
        .level
        .isa
        .parse()
        .map_err(volley_daemon::stack::StackError::Level)?;
    let report = if args.v6 {
        measure::<Lpm6>(args, level)?
    } else {
        measure::<Lpm4>(args, level)?
    };
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).unwrap_or_default()
        );
        return Ok(());
    }
    println!(
        "{} longest-prefix match, {} prefixes, {}",
        report.family, report.prefixes, report.isa
    );
    println!(
        "  bytes                   {} ({:.2} MiB)",
        report.bytes,
        report.bytes as f64 / 1048576.0
    );
    println!("  built in                {:.3} s", report.build_seconds);
    println!(
        "  batched, cycles/lookup  {}   ({} destinations)",
        report.batched_cycles_per_lookup, report.distinct
    );
    println!(
        "  batched, lookups/s      {:.1} M",
        report.batched_lookups_per_second / 1e6
    );
    println!(
        "  single, cycles/lookup   {}",
        report.single_cycles_per_lookup
    );
    if let (Some(rate), Some(n)) = (report.updates_per_second, report.updates) {
        println!(
            "  updates/s               {:.2} M ({n} replayed while another thread looked up)",
            rate / 1e6
        );
    }
    println!(
        "  answers {}",
        if report.verified {
            "verified against a linear search"
        } else {
            "WRONG"
        }
    );
    Ok(())
}

fn measure<T: Table>(args: &LpmArgs, level: Level) -> Result<LpmReport, BenchError> {
    let rows = T::rows(args.table.as_deref(), args.prefixes, args.seed)?;
    let domain = Domain::new();
    let start = Instant::now();
    let mut table = T::build(&domain, &rows)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let dst = tables::destinations(
        &rows,
        Destinations::Uniform,
        args.distinct.max(BATCH),
        args.seed,
    );
    let snap = table.snap();
    let mut reader = domain.register();
    let mut leaf = vec![0; dst.len()];
    let mut cost = |single: bool| {
        let guard = reader.guard();
        let start = cycles();
        match single {
            false => T::batch(&snap, guard, level, &dst, &mut leaf),
            true => one_by_one::<T>(&snap, guard, &dst, &mut leaf),
        }
        black_box(&leaf);
        let spent = (cycles() - start) as f64 / dst.len() as f64;
        reader.quiescent();
        spent
    };
    let passes = args.repetitions.max(3);
    let single = pace::undisturbed(passes, || cost(true));
    let batched = pace::undisturbed(4 * passes, || cost(false));
    let verified = is_right(&rows, &dst, &leaf, args.seed);
    if !verified {
        return Err(BenchError::Wrong(
            "a lookup disagrees with the linear search".into(),
        ));
    }
    let (bytes, batched) = (table.size(), Spread::of(batched.into_iter()));
    drop(reader);
    let replay = args
        .updates
        .as_deref()
        .map(|path| replay(&mut table, &domain, &dst, level, path))
        .transpose()?;
    Ok(LpmReport {
        family: T::NAME,
        isa: level.to_string(),
        prefixes: rows.len(),
        bytes,
        build_seconds,
        distinct: dst.len(),
        batched_cycles_per_lookup: batched,
        batched_lookups_per_second: volley_simd::cycles_per_second() / batched.median,
        single_cycles_per_lookup: Spread::of(single.into_iter()),
        updates: replay.map(|r| r.0),
        updates_per_second: replay.map(|r| r.1),
        lookups_meanwhile: replay.map(|r| r.2),
        verified,
    })
}

/// Single lookups, each of which depends on the previous one, as in packet-by-packet processing.
fn one_by_one<T: Table>(snap: &T::Snap, guard: Guard<'_>, dst: &[T::Addr], leaf: &mut [u32]) {
    let mut last = 0;
    for (dst, leaf) in dst.iter().zip(leaf) {
        let bits = tables::Addr::to_bits(*dst) ^ u128::from(last >> 31);
        last = T::single(snap, guard, tables::Addr::from_bits(bits));
        *leaf = last;
    }
}

/// Compare a sample of results with a search through all rows.
fn is_right<A: tables::Addr>(rows: &Rows<A>, dst: &[A], leaf: &[u32], seed: u64) -> bool {
    let mut random = tables::Random(seed);
    (0..CHECKED).all(|_| {
        let at = random.below(dst.len());
        let covers = |row: &&(A, u8, u32)| {
            let shift = A::BITS - u32::from(row.1);
            let cut = |a: A| a.to_bits().checked_shr(shift).unwrap_or(0);
            cut(row.0) == cut(dst[at])
        };
        let best = rows.iter().filter(covers).max_by_key(|row| row.1);
        best.map_or(0, |row| row.2 + 1) == leaf[at]
    })
}

/// Replay updates as fast as possible while another thread looks up: number of updates, rate, and lookups meanwhile.
fn replay<T: Table>(
    table: &mut T,
    domain: &Arc<Domain>,
    dst: &[T::Addr],
    level: Level,
    path: &Path,
) -> Result<(usize, f64, u64), BenchError> {
    let updates = T::updates(path)?;
    let (stop, snap) = (AtomicBool::new(false), table.snap());
    let mut reader = domain.register();
    let mut rate = 0.0;
    let lookups = std::thread::scope(|scope| {
        let (stop, snap, reader) = (&stop, &snap, &mut reader);
        let looker = scope.spawn(move || {
            let (mut leaf, mut count) = (vec![0; dst.len()], 0u64);
            while !stop.load(Ordering::Relaxed) {
                for (dst, leaf) in dst.chunks(BATCH).zip(leaf.chunks_mut(BATCH)) {
                    T::batch(snap, reader.guard(), level, dst, leaf);
                    reader.quiescent();
                }
                count += dst.len() as u64;
            }
            black_box(&leaf);
            count
        });
        let start = Instant::now();
        for (i, &(announce, addr, len)) in updates.iter().enumerate() {
            match announce {
                true => table.set(addr, len, 1 + (i as u32 & 0xfff)),
                false => table.unset(addr, len),
            }
            if i % 1024 == 0 {
                domain.reclaim();
            }
        }
        rate = updates.len() as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        looker.join().unwrap_or(0)
    });
    Ok((updates.len(), rate, lookups))
}
