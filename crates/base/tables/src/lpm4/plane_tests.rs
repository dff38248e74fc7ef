//! The writer's books, and what a change computes.

use super::super::Lpm4;
use super::super::root::ROOT;
use super::*;
use std::collections::HashMap;

fn word<W: Word>(word: &W) -> u32 {
    W::answer(word.load())
}

/// Compares the reference counts of shared answers with the number of entries that use each.
fn books_are_right(lpm: &Lpm4) {
    let view = lpm.plane.view();
    let answer = |base: u32| match &view.leaves {
        Leaves::Narrow(s) => word(&s.pool[base as usize]),
        Leaves::Wide(s) => word(&s.pool[base as usize]),
    };
    let mut users: HashMap<u32, u32> = HashMap::new();
    for block in 0..ROOT {
        let (base, len) = unpack(view.root.entry(block).load(Ordering::Relaxed));
        if len == 1 && base != 0 {
            let users = users.entry(base).or_default();
            *users += 1;
            assert_eq!(
                lpm.plane.room.singles.0.get(&answer(base)).map(|s| s.base),
                Some(base)
            );
        }
    }
    assert_eq!(users.len(), lpm.plane.room.singles.0.len());
    for single in lpm.plane.room.singles.0.values() {
        assert_eq!(users.get(&single.base), Some(&single.users));
    }
    lpm.plane.room.pages.check(&view.root);
}

/// Short and long prefixes are added and removed at random in few /10 and in many. The answers equal those of a linear
/// search, and the reference counts are correct, while the root is paged, when it becomes dense, and afterwards.
#[test]
fn a_paged_root_answers_as_a_dense_one() {
    let domain = Domain::new();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % n
    };
    for (spread, becomes_dense) in [(6, false), (1024, true)] {
        let mut lpm = Lpm4::new(&domain);
        let mut reader = domain.register();
        let mut routes: Vec<(u32, u8, u32)> = Vec::new();
        for step in 0..1500 {
            if routes.len() > 300 || (!routes.is_empty() && random(3) == 0) {
                let (addr, len, leaf) = routes.swap_remove(random(routes.len() as u64) as usize);
                assert_eq!(lpm.remove(addr, len), Some(leaf));
            } else {
                let len = [0, 1, 4, 7, 9, 10, 11, 14, 19, 20, 24, 30, 32][random(13) as usize];
                let page = random(spread) as u32 * (1024 / spread as u32);
                let addr = page << 22 | random(1 << 22) as u32;
                let addr = addr & (u64::from(u32::MAX) << (32 - len)) as u32;
                let leaf = 1 + random(7) as u32;
                routes.retain(|r| (r.0, r.1) != (addr, len));
                routes.push((addr, len, leaf));
                lpm.insert(addr, len, leaf).unwrap();
            }
            let ends = routes.iter().flat_map(|r| {
                let last = r.0 | (u64::from(u32::MAX) >> r.1) as u32;
                [r.0.wrapping_sub(1), r.0, last, last.wrapping_add(1)]
            });
            for dst in ends.filter(|_| step % 10 == 0) {
                let holds =
                    |(a, l, _): &&(u32, u8, u32)| u64::from(dst ^ a) >> (32 - u32::from(*l)) == 0;
                let best = routes.iter().filter(holds).max_by_key(|r| r.1);
                assert_eq!(lpm.lookup(dst), best.map_or(0, |r| r.2), "{dst:x}");
            }
            if step % 100 == 0 {
                books_are_right(&lpm);
            }
            reader.quiescent();
            domain.reclaim();
        }
        assert_eq!(lpm.plane.view().root.is_dense(), becomes_dense);
        let mut loaded = Lpm4::new(&domain);
        loaded.load_bulk(routes.iter().copied()).unwrap();
        books_are_right(&loaded);
        for _ in 0..20_000 {
            let dst = random(1 << 32) as u32;
            assert_eq!(loaded.lookup(dst), lpm.lookup(dst), "{dst:x}");
        }
    }
}

#[test]
fn a_change_of_a_host_computes_its_network_only() {
    let domain = Domain::new();
    let mut lpm = Lpm4::new(&domain);
    let (base, hosts) = (10 << 24, 32 * 256);
    lpm.insert(base, 19, 7).unwrap();
    PAINTED.set(0);
    for host in 0..hosts {
        lpm.insert(base + host, 32, 100 + host % 3).unwrap();
    }
    assert_eq!(PAINTED.get(), u64::from(hosts));
    books_are_right(&lpm);
    for host in 0..hosts {
        assert_eq!(lpm.lookup(base + host), 100 + host % 3);
        assert_eq!(lpm.remove(base + host, 32), Some(100 + host % 3));
        assert_eq!(lpm.lookup(base + host), 7);
        assert_eq!(
            lpm.lookup(base + hosts - 1),
            if host + 1 == hosts {
                7
            } else {
                100 + (hosts - 1) % 3
            }
        );
    }
    // The last prefix of a network leaves nothing to compute.
    assert_eq!(PAINTED.get(), u64::from(2 * hosts - 32));
    books_are_right(&lpm);
}

#[test]
fn shared_answers_are_counted_through_streaks() {
    let domain = Domain::new();
    let mut lpm = Lpm4::new(&domain);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..40 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (addr, len) = ((state >> 32) as u32, (state % 20) as u8);
        if round % 4 == 3 {
            lpm.remove(addr, len);
        } else {
            lpm.insert(addr, len, 1 + (state >> 20) as u32 % 5).unwrap();
            // A longer prefix in the middle, so that streaks end.
            lpm.insert(addr ^ 0x0040_0000, 26, 9).unwrap();
        }
        if round % 8 == 7 {
            books_are_right(&lpm);
        }
    }
    // Beyond the narrow answers: everything moves while a short prefix is painted.
    lpm.insert(0, 0, 40_000).unwrap();
    lpm.insert(0, 0, 3).unwrap();
    books_are_right(&lpm);
    assert_eq!(lpm.get(0, 0), Some(3));
}
