//! Counters of routes against a linear model: a list of routes, searched from one end to the other for each packet. Many routes
//! are counted in slices, between which routes change and packets pass.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use volley_fib::dataplane::RouteCount;
use volley_fib::{Fib, IfInfo, Path, Prefix, Source, V4, Via};
use volley_tables::Domain;

const WORKERS: usize = 2;
const SOURCES: [Source; 2] = [Source::Static, Source::LcpRt];

fn prefix(at: u8) -> Prefix<V4> {
    let (addr, len) = match at % 16 {
        0 => (0x0a00_0000, 8),
        n @ 1..=5 => (0x0a00_0000 + (u32::from(n) << 16), 16),
        n => (
            0x0a00_0000 + (u32::from(n - 5) << 16) + (u32::from(n) << 8),
            24,
        ),
    };
    Prefix::around(addr, len)
}

fn paths(set: u8) -> Vec<Path> {
    let hop = |host: u8| {
        Path::from(Via::NextHop {
            addr: [192, 0, 2, host].into(),
            iface: 0,
        })
    };
    match set % 4 {
        3 => vec![hop(1), hop(2)],
        n => vec![hop(n)],
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set {
        at: u8,
        source: usize,
        set: u8,
    },
    Remove {
        at: u8,
        source: usize,
    },
    /// Many routes at once: these prefixes get sets from `set` on.
    Load {
        from: u8,
        count: u8,
        source: usize,
        set: u8,
    },
    Count {
        at: u8,
        count: Option<bool>,
    },
    Packets(Vec<(u32, u32, usize)>),
    Reclaim,
}

fn step() -> impl Strategy<Value = Step> {
    let packet = (0u32..0x000c_0000, 20u32..1500, 0..WORKERS);
    prop_oneof![
        (0u8..16, 0..2usize, 0u8..4).prop_map(|(at, source, set)| Step::Set { at, source, set }),
        (0u8..16, 0..2usize).prop_map(|(at, source)| Step::Remove { at, source }),
        (0u8..16, 1u8..16, 0..2usize, 0u8..4).prop_map(|(from, count, source, set)| Step::Load {
            from,
            count,
            source,
            set
        }),
        (0u8..16, any::<Option<bool>>()).prop_map(|(at, count)| Step::Count { at, count }),
        prop::collection::vec(packet, 1..40).prop_map(Step::Packets),
        Just(Step::Reclaim),
    ]
}

/// What is counted together: source, paths, and the prefix of a counted route.
type Together = (usize, u8, Option<Prefix<V4>>);

#[derive(Default)]
struct Model {
    routes: BTreeMap<(Prefix<V4>, usize), u8>,
    counted: BTreeMap<Prefix<V4>, bool>,
    counts: BTreeMap<Together, RouteCount>,
}

impl Model {
    fn together(&self, prefix: Prefix<V4>, source: usize) -> Together {
        let mut marks = self.counted.iter();
        let own = marks.any(|(mark, longer)| {
            *mark == prefix || *longer && mark.len() < prefix.len() && mark.contains(prefix.addr())
        });
        (
            source,
            self.routes[&(prefix, source)] % 4,
            own.then_some(prefix),
        )
    }

    fn all(&self) -> impl Iterator<Item = Together> {
        let routes = self.routes.keys();
        routes.map(|(prefix, source)| self.together(*prefix, *source))
    }

    /// A count ends with its last route.
    fn forget(&mut self) {
        let all: Vec<Together> = self.all().collect();
        self.counts.retain(|key, _| all.contains(key));
    }

    /// Marks a prefix, or removes its mark: packets are counted while there is a mark. Returns whether that is a change.
    fn mark(&mut self, prefix: Prefix<V4>, count: Option<bool>) -> bool {
        let before = match count {
            Some(longer) => self.counted.insert(prefix, longer),
            None => self.counted.remove(&prefix),
        };
        if self.counted.is_empty() {
            self.counts.clear();
        }
        before != count
    }

    fn packet(&mut self, addr: u32, len: u32) {
        if self.counted.is_empty() {
            return;
        }
        let covering = self
            .routes
            .keys()
            .filter(|(prefix, _)| prefix.contains(addr));
        let best = covering.max_by_key(|(prefix, source)| (prefix.len(), usize::MAX - source));
        if let Some(&(prefix, source)) = best {
            let count = self
                .counts
                .entry(self.together(prefix, source))
                .or_default();
            count.packets += 1;
            count.bytes += u64::from(len);
        }
    }
}

fn fib(domain: &Arc<Domain>) -> Fib {
    let mut fib = Fib::for_workers(domain, WORKERS);
    let info = IfInfo {
        index: 0,
        name: "a".into(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up: true,
    };
    fib.set_interface(info).unwrap();
    fib
}

fn control(fib: &mut Fib, model: &mut Model, step: &Step) {
    match *step {
        Step::Set { at, source, set } => {
            fib.set_route(0, prefix(at), SOURCES[source], &paths(set))
                .unwrap();
            model.routes.insert((prefix(at), source), set);
        }
        Step::Remove { at, source } => {
            let done = fib.remove_route(0, prefix(at), SOURCES[source]);
            let had = model.routes.remove(&(prefix(at), source));
            assert_eq!(done.is_ok(), had.is_some());
        }
        Step::Load {
            from,
            count,
            source,
            set,
        } => {
            let sets: Vec<_> = (0..4).map(|n| paths(set + n)).collect();
            let row = |at: u8| (prefix(at).addr(), prefix(at).len(), u32::from(at % 4));
            let rows: Vec<_> = (from..from + count).map(row).collect();
            fib.load::<V4>(0, SOURCES[source], &sets, &rows).unwrap();
            for at in from..from + count {
                model.routes.insert((prefix(at), source), set + at % 4);
            }
        }
        Step::Count { at, count } => {
            let changed = model.mark(prefix(at), count);
            assert_eq!(fib.count_route(0, prefix(at), count), Ok(changed));
        }
        Step::Packets(_) | Step::Reclaim => fib.reclaim(),
    }
    model.forget();
}

proptest! {
    #[test]
    fn each_packet_is_counted_on_its_route_once(steps in prop::collection::vec(step(), 1..120)) {
        let domain = Domain::new();
        let (mut fib, mut model) = (fib(&domain), Model::default());
        let plane = fib.dataplane4();
        let counters = [plane.counters(0), plane.counters(1)];
        let mut readers = [domain.register(), domain.register()];
        for step in &steps {
            control(&mut fib, &mut model, step);
            if let Step::Packets(packets) = step {
                for &(offset, len, worker) in packets {
                    let (addr, guard) = (0x0a00_0000 + offset, readers[worker].guard());
                    let leaf = plane.read(guard).lpm(0).lookup(addr);
                    counters[worker].read(guard).add(leaf, 1, len.into());
                    model.packet(addr, len);
                }
                readers.iter_mut().for_each(|reader| reader.quiescent());
            }
            for (prefix, source) in model.routes.keys() {
                if *source == 1 && model.routes.contains_key(&(*prefix, 0)) {
                    continue;
                }
                let key = model.together(*prefix, *source);
                let want = model.counts.get(&key).copied().unwrap_or_default();
                let routes = model.all().filter(|other| *other == key).count() as u32;
                let want = (!model.counted.is_empty()).then_some((want, routes));
                prop_assert_eq!(fib.show(0, *prefix).unwrap().count, want, "{}", prefix);
            }
        }
    }

    #[test]
    fn counters_of_many_routes_stay_when_the_arrays_grow(routes in 1u32..3000) {
        let domain = Domain::new();
        let mut fib = fib(&domain);
        let plane = fib.dataplane4();
        let counters = plane.counters(1);
        let mut reader = domain.register();
        let all = Prefix::<V4>::around(0x0a00_0000, 8);
        fib.count_route(0, all, Some(true)).unwrap();
        let one = |n: u32| Prefix::<V4>::around(0x0a00_0000 + (n << 8), 24);
        for n in 0..routes {
            fib.set_route(0, one(n), Source::Static, &paths(1)).unwrap();
            for k in 0..=n.min(3) {
                let guard = reader.guard();
                let leaf = plane.read(guard).lpm(0).lookup(one(n - k).addr());
                counters.read(guard).add(leaf, 1, 100);
            }
            if n % 64 == 0 {
                reader.quiescent();
                fib.reclaim();
            }
        }
        let counted = fib.counted_routes::<V4>(0);
        prop_assert_eq!(counted.len(), routes as usize);
        for (n, (prefix, count)) in (0..).zip(counted) {
            let packets = u64::from((routes - n).min(4));
            prop_assert_eq!((prefix, count), (one(n), RouteCount { packets, bytes: 100 * packets }));
        }
    }
}

/// Many /24 routes with four sets of paths in turn.
fn many(fib: &mut Fib, count: u32) {
    let sets: Vec<_> = (0..4).map(paths).collect();
    let rows: Vec<_> = (0..count).map(|n| (many_at(n).addr(), 24, n % 4)).collect();
    fib.load::<V4>(0, Source::Static, &sets, &rows).unwrap();
}

fn many_at(n: u32) -> Prefix<V4> {
    Prefix::around(0x1400_0000 + (n << 8), 24)
}

#[test]
fn many_routes_are_counted_in_slices_while_routes_change() {
    const COUNT: u32 = 20_000;
    let domain = Domain::new();
    let mut fib = fib(&domain);
    let plane = fib.dataplane4();
    let (counters, mut reader) = (plane.counters(0), domain.register());
    many(&mut fib, COUNT);
    let before = fib.stats();
    let all = Prefix::<V4>::around(0, 0);
    let mut pass = |fib: &mut Fib, n: u32| {
        let guard = reader.guard();
        let view = plane.read(guard);
        let leaf = view.lpm(0).lookup(many_at(n).addr());
        counters.read(guard).add(leaf, 1, 100);
        assert_eq!(
            view.resolve(leaf),
            fib.show(0, many_at(n)).unwrap().buckets[0].dpo
        );
        reader.quiescent();
        fib.reclaim();
    };
    assert_eq!(fib.count_route(0, all, Some(true)), Ok(true));
    let (mut slices, mut at) = (1, 0);
    while fib.count_more() {
        slices += 1;
        let counted = fib.counted_routes::<V4>(0).len() as u32;
        assert!(counted < COUNT + 5, "{counted} after {slices} slices");
        // A route that may be counted already or not: it is from now on.
        fib.set_route(0, many_at(at), Source::Static, &paths(1))
            .unwrap();
        pass(&mut fib, at);
        fib.remove_route(0, many_at(at + 1), Source::Static)
            .unwrap();
        fib.set_route(0, many_at(COUNT + at), Source::Static, &paths(2))
            .unwrap();
        pass(&mut fib, COUNT + at);
        at += 4;
    }
    assert!(slices >= COUNT / 2048, "{slices} slices");
    let shown: BTreeMap<_, _> = fib.counted_routes::<V4>(0).into_iter().collect();
    // The built-in routes are counted too: the default route and four special ones.
    assert_eq!(shown.len() as u32, COUNT + 5);
    let one = RouteCount {
        packets: 1,
        bytes: 100,
    };
    for n in (0..at).step_by(4) {
        assert_eq!(shown[&many_at(COUNT + n)], one, "{n}");
        assert_eq!(fib.show(0, many_at(n)).unwrap().count.unwrap().1, 1);
    }
    let counted = fib.stats();
    assert_eq!(
        counted.lists, before.lists,
        "counted routes share the lists"
    );
    // One change of a neighbour reaches the counted routes.
    fib.set_neighbor(0, [192, 0, 2, 1].into(), volley_fib::Neighbor::new([6; 6]))
        .unwrap();
    (1..40).for_each(|n| pass(&mut fib, 4 * n + 1 + COUNT / 2));
    // Back again, with a removal of the mark before the slices have ended.
    assert_eq!(fib.count_route(0, all, None), Ok(true));
    assert_eq!(fib.count_route(0, many_at(5000), Some(false)), Ok(true));
    while fib.count_more() {}
    pass(&mut fib, 5000);
    let shown = fib.counted_routes::<V4>(0);
    assert_eq!(shown, [(many_at(5000), one)]);
    assert_eq!(fib.count_route(0, many_at(5000), None), Ok(true));
    assert_eq!(fib.stats().lists, before.lists);
    assert!(fib.stats().dataplane_bytes < counted.dataplane_bytes);
}
