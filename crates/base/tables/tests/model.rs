//! Random changes are compared with a model that tries every prefix, through the writer and through readers' batches.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use support::batch6;
use volley_simd::Level;
use volley_tables::{Domain, Lpm4, Lpm6, LpmError, MAX_LEAF};

/// The number of cases; `VOLLEY_TEST_SCALE` (percent) changes it.
fn scale(n: u32) -> u32 {
    let percent = std::env::var("VOLLEY_TEST_SCALE")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(100);
    (n * percent / 100).max(1)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: scale(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Prefixes by (first address, length), addresses left-aligned in 128 bits.
#[derive(Default)]
struct Model(HashMap<(u128, u8), u32>);

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

impl Model {
    fn insert(&mut self, addr: u128, len: u8, leaf: u32) -> Option<u32> {
        self.0.insert((addr & mask(len), len), leaf)
    }
    fn remove(&mut self, addr: u128, len: u8) -> Option<u32> {
        self.0.remove(&(addr & mask(len), len))
    }
    fn lookup(&self, addr: u128) -> u32 {
        let holds =
            |(p, len): (&(u128, u8), &u32)| (addr & mask(p.1) == p.0).then_some((p.1, *len));
        self.0
            .iter()
            .filter_map(holds)
            .max()
            .map_or(0, |best| best.1)
    }
    /// The edges of every prefix, where answers change.
    fn edges(&self) -> Vec<u128> {
        let edges = |&(start, len): &(u128, u8)| {
            let last = start | !mask(len);
            [start, start.wrapping_sub(1), last, last.wrapping_add(1)]
        };
        self.0.keys().flat_map(edges).collect()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u128, u8, u32),
    Remove(u128, u8),
    /// Removes the n-th of the existing prefixes.
    RemoveOne(usize),
    Bulk(Vec<(u128, u8, u32)>),
}

/// Addresses with few different values in every byte, so that prefixes nest and touch.
fn addr() -> impl Strategy<Value = u128> {
    let byte = prop_oneof![Just(0u8), Just(0xff), Just(0x80), Just(1), any::<u8>()];
    let near = proptest::collection::vec(byte, 16)
        .prop_map(|b| b.iter().fold(0u128, |a, &b| a << 8 | u128::from(b)));
    let nested = any::<u128>().prop_map(|a| (a & 0xf0f) | (0x2001 << 112) | (a & (0x3 << 64)));
    prop_oneof![4 => near, 3 => nested, 1 => any::<u128>()]
}

fn leaf(wide: bool) -> impl Strategy<Value = u32> {
    let top = if wide { MAX_LEAF } else { 0x7fff };
    prop_oneof![0..4u32, Just(top), 0..=top]
}

fn op(bits: u8, wide: bool) -> impl Strategy<Value = Op> {
    let route = (addr(), 0..=bits, leaf(wide));
    prop_oneof![
        6 => route.prop_map(|(a, l, v)| Op::Insert(a, l, v)),
        1 => (addr(), 0..=bits).prop_map(|(a, l)| Op::Remove(a, l)),
        2 => any::<usize>().prop_map(Op::RemoveOne),
        1 => proptest::collection::vec((addr(), 0..=bits, leaf(wide)), 0..200).prop_map(Op::Bulk),
    ]
}

/// One table of either family behind left-aligned addresses.
trait Table {
    const BITS: u8;
    fn insert(&mut self, addr: u128, len: u8, leaf: u32) -> Option<u32>;
    fn remove(&mut self, addr: u128, len: u8) -> Option<u32>;
    fn get(&self, addr: u128, len: u8) -> Option<u32>;
    fn load(&mut self, routes: Vec<(u128, u8, u32)>);
    fn len(&self) -> usize;
    /// Looks all addresses up by every method, whose results must be equal.
    fn lookup(&self, domain: &Arc<Domain>, addr: &[u128]) -> Vec<u32>;
}

fn v4(addr: u128) -> u32 {
    (addr >> 96) as u32
}

impl Table for Lpm4 {
    const BITS: u8 = 32;
    fn insert(&mut self, addr: u128, len: u8, leaf: u32) -> Option<u32> {
        Lpm4::insert(self, v4(addr), len, leaf).unwrap()
    }
    fn remove(&mut self, addr: u128, len: u8) -> Option<u32> {
        Lpm4::remove(self, v4(addr), len)
    }
    fn get(&self, addr: u128, len: u8) -> Option<u32> {
        Lpm4::get(self, v4(addr), len)
    }
    fn load(&mut self, routes: Vec<(u128, u8, u32)>) {
        self.load_bulk(routes.into_iter().map(|(a, l, v)| (v4(a), l, v)))
            .unwrap();
    }
    fn len(&self) -> usize {
        Lpm4::len(self)
    }
    fn lookup(&self, domain: &Arc<Domain>, addr: &[u128]) -> Vec<u32> {
        let reader = domain.register();
        let snap = self.snap();
        let view = snap.read(reader.guard());
        let dst: Vec<u32> = addr.iter().map(|&a| v4(a)).collect();
        let mut leaf = vec![u32::MAX; dst.len()];
        for d in &dst {
            view.prefetch(*d);
        }
        view.lookup_batch(&dst, &mut leaf);
        for (d, l) in dst.iter().zip(&leaf) {
            assert_eq!(view.lookup(*d), *l);
            assert_eq!(Lpm4::lookup(self, *d), *l);
        }
        leaf
    }
}

fn v6(addr: u128) -> (u64, u64) {
    ((addr >> 64) as u64, addr as u64)
}

impl Table for Lpm6 {
    const BITS: u8 = 128;
    fn insert(&mut self, addr: u128, len: u8, leaf: u32) -> Option<u32> {
        Lpm6::insert(self, v6(addr).0, v6(addr).1, len, leaf).unwrap()
    }
    fn remove(&mut self, addr: u128, len: u8) -> Option<u32> {
        Lpm6::remove(self, v6(addr).0, v6(addr).1, len)
    }
    fn get(&self, addr: u128, len: u8) -> Option<u32> {
        Lpm6::get(self, v6(addr).0, v6(addr).1, len)
    }
    fn load(&mut self, routes: Vec<(u128, u8, u32)>) {
        self.load_bulk(routes.into_iter().map(|(a, l, v)| (v6(a).0, v6(a).1, l, v)))
            .unwrap();
    }
    fn len(&self) -> usize {
        Lpm6::len(self)
    }
    fn lookup(&self, domain: &Arc<Domain>, addr: &[u128]) -> Vec<u32> {
        let reader = domain.register();
        let snap = self.snap();
        let view = snap.read(reader.guard());
        let (hi, lo): (Vec<u64>, Vec<u64>) = addr.iter().map(|&a| v6(a)).unzip();
        let mut leaf = vec![u32::MAX; hi.len()];
        for (h, l) in hi.iter().zip(&lo) {
            view.prefetch(*h, *l);
        }
        batch6(Level::Scalar, view, &hi, &lo, &mut leaf);
        for level in Level::available() {
            let mut again = vec![u32::MAX; hi.len()];
            batch6(level, view, &hi, &lo, &mut again);
            assert_eq!(again, leaf, "{level}");
        }
        for ((h, l), got) in hi.iter().zip(&lo).zip(&leaf) {
            assert_eq!(view.lookup(*h, *l), *got);
            assert_eq!(Lpm6::lookup(self, *h, *l), *got);
        }
        leaf
    }
}

fn cut<T: Table>(addr: u128) -> u128 {
    addr & mask(T::BITS)
}

fn play<T: Table>(domain: &Arc<Domain>, table: &mut T, ops: Vec<Op>, probes: &[u128]) {
    let mut model = Model::default();
    for op in ops {
        match op {
            Op::Insert(a, len, leaf) => assert_eq!(
                table.insert(a, len, leaf),
                model.insert(cut::<T>(a), len, leaf)
            ),
            Op::Remove(a, len) => assert_eq!(table.remove(a, len), model.remove(cut::<T>(a), len)),
            Op::RemoveOne(n) => {
                let mut all: Vec<_> = model.0.keys().copied().collect();
                all.sort_unstable();
                if let Some(&(a, len)) = all.get(n % all.len().max(1)) {
                    assert_eq!(table.get(a, len), model.0.get(&(a, len)).copied());
                    assert_eq!(table.remove(a, len), model.remove(a, len));
                    assert_eq!(table.get(a, len), None);
                }
            }
            Op::Bulk(routes) => {
                for &(a, len, leaf) in &routes {
                    model.insert(cut::<T>(a), len, leaf);
                }
                table.load(routes);
            }
        }
        assert_eq!(table.len(), model.0.len());
    }
    let mut addr = model.edges();
    addr.extend(probes);
    let expect: Vec<u32> = addr.iter().map(|&a| model.lookup(cut::<T>(a))).collect();
    assert_eq!(table.lookup(domain, &addr), expect);
    for (&(a, len), &leaf) in &model.0 {
        assert_eq!(table.get(a, len), Some(leaf));
    }
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn v4_agrees_with_the_model(
        ops in any::<bool>().prop_flat_map(|w| proptest::collection::vec(op(32, w), 1..60)),
        probes in proptest::collection::vec(addr(), 1..300),
    ) {
        let domain = Domain::new();
        play(&domain, &mut Lpm4::new(&domain), ops, &probes);
    }

    #[test]
    fn v6_agrees_with_the_model(
        ops in any::<bool>().prop_flat_map(|w| proptest::collection::vec(op(128, w), 1..120)),
        probes in proptest::collection::vec(addr(), 1..300),
    ) {
        let domain = Domain::new();
        play(&domain, &mut Lpm6::new(&domain), ops, &probes);
    }

    /// Many single inserts and removals in a small region: blocks split and merge, pools grow.
    #[test]
    fn dense_changes(
        inserts in proptest::collection::vec((any::<u16>(), 0..=16u8, 1..5u32), 300..900),
        keep in 0..100usize,
    ) {
        let at = |v: u16, len: u8| (u128::from(v) & (mask(len) >> 112)) << 96 | 0x2a00 << 112;
        let ops: Vec<Op> = inserts.iter().map(|&(v, len, leaf)| Op::Insert(at(v, len), 16 + len, leaf))
            .chain(inserts.iter().skip(keep).map(|&(v, len, _)| Op::Remove(at(v, len), 16 + len))).collect();
        let probes: Vec<u128> = (0..=0xffff).step_by(97).map(|v| at(v, 16)).collect();
        let domain = Domain::new();
        play(&domain, &mut Lpm6::new(&domain), ops.clone(), &probes);
        play(&domain, &mut Lpm4::new(&domain), ops, &probes);
    }
}

/// A step of [`v4_exchanges_agree_with_the_model`]: numbers of prefixes that are removed, others, and those that are added.
type Exchange = (Vec<usize>, Vec<(u128, u8)>, Vec<(u128, u8, u32)>);

fn exchange() -> impl Strategy<Value = Exchange> {
    (
        proptest::collection::vec(any::<usize>(), 0..40),
        proptest::collection::vec((addr(), 0..=32u8), 0..10),
        proptest::collection::vec((addr(), 0..=32u8, leaf(true)), 0..60),
    )
}

proptest! {
    #![proptest_config(config(32))]

    /// Prefixes are removed and added at once, with single changes in between.
    #[test]
    fn v4_exchanges_agree_with_the_model(
        steps in proptest::collection::vec(exchange(), 1..8),
        probes in proptest::collection::vec(addr(), 1..200),
    ) {
        let domain = Domain::new();
        let (mut table, mut model) = (Lpm4::new(&domain), Model::default());
        for (some, others, added) in steps {
            let mut all: Vec<_> = model.0.keys().copied().collect();
            all.sort_unstable();
            let some = some.iter().filter_map(|n| all.get(n % all.len().max(1)));
            let removed: Vec<(u128, u8)> = some.copied().chain(others).collect();
            let gone: Vec<(u32, u8)> = removed.iter().map(|(a, len)| (v4(*a), *len)).collect();
            let fresh: Vec<(u32, u8, u32)> = added.iter().map(|(a, len, leaf)| (v4(*a), *len, *leaf)).collect();
            prop_assert_eq!(table.check_bulk(&gone, &fresh), Ok(()));
            table.exchange_bulk(&gone, &fresh).unwrap();
            for (a, len) in removed {
                model.remove(cut::<Lpm4>(a), len);
            }
            for (a, len, leaf) in added {
                model.insert(cut::<Lpm4>(a), len, leaf);
            }
            let single = ((model.0.len() as u128 * 77) << 100, 30);
            prop_assert_eq!(
                table.insert(v4(single.0), single.1, 3).unwrap(),
                model.insert(cut::<Lpm4>(single.0), single.1, 3)
            );
            prop_assert_eq!(table.len(), model.0.len());
            let mut addr = model.edges();
            addr.extend(&probes);
            let expect: Vec<u32> = addr.iter().map(|&a| model.lookup(cut::<Lpm4>(a))).collect();
            prop_assert_eq!(Table::lookup(&table, &domain, &addr), expect);
        }
    }
}

/// The number of networks with prefixes longer than /24 is bounded: what an exchange removes makes room for what it adds.
#[test]
fn an_exchange_counts_long_prefixes_behind_it() {
    const MOST: u32 = 1 << 20;
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    let host = |net: u32| (net << 8 | 7, 32);
    let with = |(addr, len): (u32, u8)| (addr, len, 5);
    table
        .load_bulk((0..MOST).map(|net| with(host(net))))
        .unwrap();
    table.insert(8, 31, 6).unwrap();
    let full = Err(LpmError::TooManyLong { max: MOST });
    let new = [with(host(MOST))];
    for (removed, done) in [
        (vec![], full),
        // Another prefix of the network stays, the prefix is not there, and the network gets one again.
        (vec![host(0)], full),
        (vec![(9 << 8, 32), host(1)], Ok(())),
        (vec![(9 << 8, 32)], full),
        (vec![host(0), (9, 31)], Ok(())),
        (vec![host(2), host(2)], Ok(())),
    ] {
        assert_eq!(table.check_bulk(&removed, &new), done, "{removed:?}");
    }
    let again = [with(host(MOST)), with((3 << 8, 30))];
    assert_eq!(table.exchange_bulk(&[host(3)], &again), full);
    assert_eq!(
        (table.get(host(3).0, 32), table.lookup(host(3).0)),
        (Some(5), 5)
    );
    table.exchange_bulk(&[host(0), (8, 31)], &new).unwrap();
    assert_eq!(table.len(), MOST as usize);
    let seen = [host(0), (8, 31), host(MOST)].map(|(addr, _)| table.lookup(addr));
    assert_eq!(seen, [0, 0, 5]);
}

#[test]
fn refuses_what_does_not_fit() {
    let domain = Domain::new();
    let (mut t4, mut t6) = (Lpm4::new(&domain), Lpm6::new(&domain));
    assert_eq!(
        t4.insert(0, 33, 1),
        Err(LpmError::Length { len: 33, max: 32 })
    );
    assert_eq!(
        t4.insert(0, 8, MAX_LEAF + 1),
        Err(LpmError::Leaf { leaf: MAX_LEAF + 1 })
    );
    assert_eq!(
        t6.insert(0, 0, 129, 1),
        Err(LpmError::Length { len: 129, max: 128 })
    );
    assert_eq!(
        t6.load_bulk([(0, 0, 0, 5), (0, 0, 0, u32::MAX)]),
        Err(LpmError::Leaf { leaf: u32::MAX })
    );
    assert_eq!(
        t4.load_bulk([(0, 0, 5), (0, 40, 1)]),
        Err(LpmError::Length { len: 40, max: 32 })
    );
    assert_eq!((t4.remove(0, 33), t6.remove(0, 0, 200)), (None, None));
    assert_eq!((t4.get(0, 255), t6.get(0, 0, 255)), (None, None));
    assert!(t4.is_empty() && t6.is_empty());
    assert_eq!((t4.lookup(0), t6.lookup(0, 0)), (0, 0));
}

#[test]
fn ids_beyond_15_bits_widen_the_table() {
    let domain = Domain::new();
    let mut t = Lpm4::new(&domain);
    let reader = domain.register();
    let snap = t.snap();
    for i in 0..200u32 {
        t.insert(0x0a00_0000 + (i << 8), 24, i + 1).unwrap();
        t.insert(0x0a00_0000 + (i << 8) + 7, 32, 0x7fff).unwrap();
    }
    let narrow = snap.read(reader.guard());
    assert!(!narrow.is_wide());
    t.insert(0x0a00_0500, 25, 0x8000).unwrap();
    let wide = snap.read(reader.guard());
    assert!(wide.is_wide());
    assert_eq!(wide.lookup(0x0a00_0501), 0x8000);
    assert_eq!(
        (wide.lookup(0x0a00_0507), wide.lookup(0x0a00_0580)),
        (0x7fff, 6)
    );
    assert_eq!(
        (wide.lookup(0x0a00_0907), wide.lookup(0x0a00_0908)),
        (0x7fff, 10)
    );
    // The old view still shows the old state.
    assert_eq!(narrow.lookup(0x0a00_0501), 6);
}

#[test]
fn host_routes_beyond_16_bit_chunks() {
    let domain = Domain::new();
    let mut t = Lpm4::new(&domain);
    let n = if cfg!(debug_assertions) && scale(100) < 100 {
        2_000
    } else {
        33_000
    };
    for i in 0..n {
        t.insert((i << 8) + (i & 255), 32, i % 1000 + 1).unwrap();
    }
    for i in 0..n {
        assert_eq!(t.lookup((i << 8) + (i & 255)), i % 1000 + 1);
        assert_eq!(t.lookup((i << 8) + ((i + 1) & 255)), 0);
    }
    for i in 0..n {
        assert_eq!(t.remove((i << 8) + (i & 255), 32), Some(i % 1000 + 1));
    }
    assert!(t.is_empty());
    assert_eq!(t.lookup(0), 0);
}

#[test]
fn memory_is_recycled() {
    let domain = Domain::new();
    let mut t = Lpm4::new(&domain);
    let mut reader = domain.register();
    let churn = |t: &mut Lpm4, round: u32| {
        for i in 0..2000u32 {
            let addr = i << 13 | (round & 31) << 8;
            t.insert(addr, 24, 1 + (i + round) % 100).unwrap();
            t.remove(i << 13 | (round.wrapping_sub(3) & 31) << 8, 24);
        }
    };
    let mut bytes = Vec::new();
    for round in 0..40 {
        churn(&mut t, round);
        reader.quiescent();
        domain.reclaim();
        bytes.push(t.bytes());
    }
    // 3 prefixes in each of 2000 blocks: at most 7 answers each, and spare capacity.
    assert!(t.bytes() < (4 << 20) + 2000 * 7 * 2 * 8, "{bytes:?}");
    assert!(bytes[39] <= bytes[10], "memory still grows: {bytes:?}");
}

#[test]
fn a_stalled_reader_makes_tables_grow_not_fail() {
    let domain = Domain::new();
    let (mut t4, mut t6) = (Lpm4::new(&domain), Lpm6::new(&domain));
    let stalled = domain.register();
    let (s4, s6) = (t4.snap(), t6.snap());
    let (old4, old6) = (s4.read(stalled.guard()), s6.read(stalled.guard()));
    for i in 0..30_000u32 {
        t4.insert((i % 500) << 13 | (i % 31) << 8, 24, 1 + i % 7)
            .unwrap();
        t4.remove((i % 500) << 13 | ((i + 5) % 31) << 8, 24);
        t6.insert(u64::from(i % 5000) << 32, 0, 32, 1 + i % 7)
            .unwrap();
        t6.remove(u64::from((i + 77) % 5000) << 32, 0, 32);
    }
    // A reader that does not proceed may see old or new answers, but the memory stays readable.
    assert!(old4.lookup(5 << 13) < 8 && old6.lookup(5 << 32, 0) < 8);
    assert_eq!(domain.reclaim(), 0);
    assert!(domain.retired() > 0);
    // Without readers no value waits.
    drop(stalled);
    assert_eq!(domain.retired(), 0);
}

/// Longer prefixes are added to a /24 one by one and removed again, beside other /24 that keep theirs. After every step
/// each address is compared with the longest of the prefixes.
#[test]
fn a_network_gets_many_long_prefixes_and_loses_them() {
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    let mut reader = domain.register();
    let mut routes: Vec<(u32, u8, u32)> = vec![(0x0a00_0000, 16, 9)];
    table.insert(0x0a00_0000, 16, 9).unwrap();
    let check = |table: &Lpm4, routes: &[(u32, u8, u32)], step: u32| {
        let dst: Vec<u32> = (0x0a00_0000..0x0a00_0400).collect();
        let mut leaf = vec![0; dst.len()];
        table
            .snap()
            .read(domain.register().guard())
            .lookup_batch(&dst, &mut leaf);
        for (&d, &leaf) in dst.iter().zip(&leaf) {
            let holds = |(a, l, _): &&(u32, u8, u32)| (d ^ a) >> (32 - u32::from(*l)) == 0;
            let best = routes.iter().filter(holds).max_by_key(|r| r.1);
            let want = best.map_or(0, |r| r.2);
            assert_eq!(
                (leaf, table.lookup(d)),
                (want, want),
                "{d:x} in step {step}"
            );
        }
    };
    let mut state = 7u32;
    for step in 0..400 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (bits, len) = ((state >> 8) & 0x3ff, 25 + (state >> 20) % 8);
        let addr = (0x0a00_0000 | bits) >> (32 - len) << (32 - len);
        // Grows for a hundred steps, shrinks for a hundred, twice.
        if step / 100 % 2 == 0 {
            let leaf = 1 + (state >> 24) % 5;
            routes.retain(|r| (r.0, r.1) != (addr, len as u8));
            routes.push((addr, len as u8, leaf));
            table.insert(addr, len as u8, leaf).unwrap();
        } else if routes.len() > 1 {
            let (addr, len, leaf) = routes.swap_remove(1 + state as usize % (routes.len() - 1));
            assert_eq!(table.remove(addr, len), Some(leaf));
        }
        check(&table, &routes, step);
        reader.quiescent();
        domain.reclaim();
    }
}

#[test]
fn a_lone_host_route_costs_a_cache_line() {
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    let empty = table.bytes();
    // More lines than 16-bit answers can name.
    let n = 20_000;
    let host = |i: u32| i << 13 | (i & 31) << 8 | 77;
    for i in 0..n {
        table.insert(host(i), 32, 1 + i % 100).unwrap();
    }
    for i in 0..n {
        let near = [host(i) - 1, host(i), host(i) + 1].map(|dst| table.lookup(dst));
        assert_eq!(near, [0, 1 + i % 100, 0]);
    }
    let each = (table.bytes() - empty) / n as usize;
    // A line of 64 bytes, up to three pooled answers of 16 or 32 bits, and spare capacity (at most twice the number of lines).
    assert!(each <= 160, "{each} bytes a route");
}

/// The routes of a new table of the router: all addresses, groups, reserved addresses and one host.
#[test]
fn a_table_without_routes_costs_kilobytes() {
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    let some = [
        (0, 0, 1),
        (0xe000_0000, 4, 2),
        (0xf000_0000, 4, 3),
        (!0, 32, 4),
    ];
    for (addr, len, leaf) in some {
        table.insert(addr, len, leaf).unwrap();
    }
    for (dst, leaf) in [
        (0, 1),
        (0xdfff_ffff, 1),
        (0xe000_0000, 2),
        (0xf000_0000, 3),
        (!0, 4),
    ] {
        assert_eq!(table.lookup(dst), leaf, "{dst:x}");
    }
    assert!(table.bytes() <= 32 << 10, "{} bytes", table.bytes());
}
