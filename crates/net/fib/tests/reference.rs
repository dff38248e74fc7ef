//! The whole FIB against a naive reference: after random changes every destination must be forwarded as a linear search over
//! plain lists of routes, neighbours and addresses requires. The reference has no path lists, leaves or slots.

use std::net::IpAddr;

use proptest::prelude::*;
use volley_fib::dataplane::{DataPlane, Dpo, DpoKind, DropWhy};
use volley_fib::{Af, Family, Fib, IfInfo, Neighbor, Path, Prefix, Side, Source, V4, V6, Via};
use volley_model::IfAddress;
use volley_tables::{Domain, Reader};

/// Addresses of the test: base + 0..64, in networks of 16.
fn base<F: Family>() -> u128 {
    match F::AF {
        Af::V4 => 0x0a00_0000,
        Af::V6 => 0x2001_0db8 << 96,
    }
}

fn addr<F: Family>(n: u8) -> F::Addr {
    F::from_wide(base::<F>() + u128::from(n % 64))
}

fn ip<F: Family>(n: u8) -> IpAddr {
    F::ip(addr::<F>(n))
}

fn prefix<F: Family>(n: u8, len: u8) -> Prefix<F> {
    let shorter = [0, 1, 2, 4, 5, 6, 8, F::BITS][usize::from(len % 8)];
    Prefix::around(addr::<F>(n), F::BITS - shorter)
}

#[derive(Clone, Debug)]
enum Op {
    Set(u8, u8, u8, Vec<(u8, u8, u8, u8)>),
    Unset(u8, u8, u8),
    Neighbor(u8, u8, u8),
    Forget(u8, u8),
    Address(u8, u8, u8),
    Unaddress(u8),
    Turn(u8),
    Mac(u8, u8),
    Quiesce,
}

fn op() -> impl Strategy<Value = Op> {
    let path = (0u8..10, any::<u8>(), 1u8..4, 0u8..2);
    prop_oneof![
        8 => (any::<u8>(), any::<u8>(), 0u8..3, prop::collection::vec(path, 1..4))
            .prop_map(|(a, l, s, p)| Op::Set(a, l, s, p)),
        3 => (any::<u8>(), any::<u8>(), 0u8..3).prop_map(|(a, l, s)| Op::Unset(a, l, s)),
        3 => (0u8..3, any::<u8>(), 0u8..4).prop_map(|(i, a, m)| Op::Neighbor(i, a, m)),
        1 => (0u8..3, any::<u8>()).prop_map(|(i, a)| Op::Forget(i, a)),
        2 => (0u8..3, any::<u8>(), 0u8..5).prop_map(|(i, a, l)| Op::Address(i, a, l)),
        1 => any::<u8>().prop_map(Op::Unaddress),
        1 => (0u8..3).prop_map(Op::Turn),
        1 => (0u8..3, any::<u8>()).prop_map(|(i, m)| Op::Mac(i, m)),
        2 => Just(Op::Quiesce),
    ]
}

fn source(s: u8) -> Source {
    [Source::Static, Source::File, Source::Dynamic][usize::from(s % 3)]
}

fn path<F: Family>((kind, n, weight, preference): (u8, u8, u8, u8)) -> Path {
    let iface = u32::from(n % 3);
    let via = match kind {
        0..=2 => Via::NextHop {
            addr: ip::<F>(n),
            iface,
        },
        3..=5 => Via::Recursive {
            addr: ip::<F>(n),
            table: 0,
        },
        6 => Via::Attached { iface },
        7 => Via::Drop(DropWhy::Blackhole),
        8 => [Via::Unreachable, Via::Prohibit][usize::from(n % 2)],
        _ => Via::Local { iface: None },
    };
    Path {
        via,
        weight,
        preference,
        onlink: false,
    }
}

/// Forwarding result in terms of the reference.
#[derive(Clone, Debug, PartialEq)]
enum Out {
    Drop(DropWhy),
    Send { iface: u32, header: Vec<u8> },
    Ask { iface: u32, addr: IpAddr },
    Glean(u32),
    Local(Option<u32>),
    Unreachable,
    Prohibit,
    Shared(Vec<Out>),
}

#[derive(Default)]
struct World<F: Family> {
    routes: Vec<(Prefix<F>, Source, Vec<Path>)>,
    neighbors: Vec<(u32, IpAddr, [u8; 6])>,
    addresses: Vec<(u32, IfAddress)>,
    ifs: Vec<IfInfo>,
}

/// A route of the reference: source and paths in order.
type List = (Source, Vec<Path>);

impl<F: Family> World<F> {
    fn entries(&self) -> Vec<(Prefix<F>, Source, Vec<Path>)> {
        let mut all = self.routes.clone();
        let drop = |a: &str, len, s, why| {
            let n = F::number(a.parse().unwrap()).unwrap();
            (Prefix::around(n, len), s, vec![Via::Drop(why).into()])
        };
        match F::AF {
            Af::V4 => all.extend([
                drop("0.0.0.0", 0, Source::Default, DropWhy::NoRoute),
                drop("0.0.0.0", 32, Source::Special, DropWhy::Unspecified),
                drop("224.0.0.0", 4, Source::Special, DropWhy::Multicast),
                drop("240.0.0.0", 4, Source::Special, DropWhy::Reserved),
                drop("255.255.255.255", 32, Source::Special, DropWhy::Broadcast),
            ]),
            Af::V6 => all.extend([
                drop("::", 0, Source::Default, DropWhy::NoRoute),
                drop("fe80::", 10, Source::Special, DropWhy::LinkLocal),
            ]),
        }
        all.extend(self.connected());
        let known = all.clone();
        for (iface, a, _) in &self.neighbors {
            let n = F::number(*a).unwrap();
            let cover = best(known.iter().filter(|e| e.0.len() < F::BITS), n);
            let attached = cover.is_some_and(|(_, p)| matches!(p[..], [Path { via: Via::Attached { iface: i }, .. }] if i == *iface));
            if attached {
                let via = Via::NextHop {
                    addr: *a,
                    iface: *iface,
                };
                all.push((Prefix::host(n), Source::Adjacency, vec![via.into()]));
            }
        }
        all
    }

    fn connected(&self) -> Vec<(Prefix<F>, Source, Vec<Path>)> {
        let mut asked: Vec<(Prefix<F>, u8, u32, Via)> = Vec::new();
        for (iface, a) in self
            .addresses
            .iter()
            .filter(|(i, _)| self.ifs[*i as usize].up)
        {
            let own = F::number(a.addr()).unwrap();
            let net = Prefix::<F>::around(own, a.len());
            asked.push((
                Prefix::host(own),
                0,
                *iface,
                Via::Local {
                    iface: Some(*iface),
                },
            ));
            if a.len() < F::BITS {
                asked.push((net, 1, *iface, Via::Attached { iface: *iface }));
            }
            if F::AF == Af::V4 && a.len() < 31 {
                for end in [net.addr(), net.last()] {
                    asked.push((Prefix::host(end), 2, 0, Via::Drop(DropWhy::SubnetBroadcast)));
                }
            }
        }
        asked.sort_by_key(|a| (a.0, a.1, a.2));
        asked.dedup_by_key(|a| a.0);
        asked
            .into_iter()
            .map(|a| (a.0, Source::Interface, vec![a.3.into()]))
            .collect()
    }

    fn forward(&self, entries: &[(Prefix<F>, Source, Vec<Path>)], dst: F::Addr) -> Out {
        let Some(list) = best(entries.iter(), dst) else {
            return Out::Drop(DropWhy::NoRoute);
        };
        self.eval(entries, &list)
    }

    fn next(&self, entries: &[(Prefix<F>, Source, Vec<Path>)], path: &Path) -> Option<List> {
        let Via::Recursive { addr, .. } = path.via else {
            return None;
        };
        best(entries.iter(), F::number(addr).unwrap())
    }

    fn reaches(&self, entries: &[(Prefix<F>, Source, Vec<Path>)], from: &List, to: &List) -> bool {
        let mut seen = vec![from.clone()];
        let mut i = 0;
        while i < seen.len() {
            if &seen[i] == to {
                return true;
            }
            for path in seen[i].1.clone() {
                seen.extend(self.next(entries, &path).filter(|n| !seen.contains(n)));
            }
            i += 1;
        }
        false
    }

    fn eval(&self, entries: &[(Prefix<F>, Source, Vec<Path>)], list: &List) -> Out {
        let mut usable: Vec<(&Path, Out)> = Vec::new();
        let mut first_fault = None;
        for path in &list.1 {
            match self.share(entries, list, path) {
                Out::Drop(why) => first_fault = first_fault.or(Some(why)),
                out => usable.push((path, out)),
            }
        }
        let Some(best) = usable.iter().map(|u| u.0.preference).min() else {
            return Out::Drop(first_fault.unwrap());
        };
        usable.retain(|u| u.0.preference == best);
        if let [(_, out)] = &usable[..] {
            return out.clone();
        }
        // Buckets computed by the reference: ascending weight, doubling until the rounding error is small enough.
        usable.sort_by_key(|u| u.0.weight);
        let sum: f64 = usable.iter().map(|u| f64::from(u.0.weight)).sum();
        let mut size = usable.len().next_power_of_two();
        loop {
            let exact = |u: &(&Path, Out)| f64::from(u.0.weight) * size as f64 / sum;
            let mut left = size;
            let mut error = 0.0;
            let mut counts = Vec::new();
            for u in &usable {
                let n = (exact(u).round() as usize).min(left);
                left -= n;
                error += (n as f64 - exact(u)).abs();
                counts.push(n);
            }
            counts[0] += left;
            if error <= size as f64 * 0.1 + 1e-9 {
                let buckets = usable.iter().zip(counts);
                return Out::Shared(buckets.flat_map(|(u, n)| vec![u.1.clone(); n]).collect());
            }
            size *= 2;
        }
    }

    fn share(&self, entries: &[(Prefix<F>, Source, Vec<Path>)], list: &List, path: &Path) -> Out {
        match path.via {
            Via::NextHop { iface, .. } | Via::Attached { iface } | Via::Broadcast { iface }
                if !self.ifs[iface as usize].up =>
            {
                Out::Drop(DropWhy::InterfaceDown)
            }
            Via::NextHop { addr, iface } => self.neighbor(iface, addr),
            Via::Attached { iface } => Out::Glean(iface),
            Via::Broadcast { .. } => unreachable!("no interface here has that"),
            Via::Recursive { addr, .. } => {
                let fault = |why| match self.is_down(addr) {
                    true => Out::Drop(DropWhy::InterfaceDown),
                    false => Out::Drop(why),
                };
                let Some(next) = self.next(entries, path) else {
                    return fault(DropWhy::Unresolved);
                };
                if self.reaches(entries, &next, list) {
                    return fault(DropWhy::RecursionLoop);
                }
                match self.eval(entries, &next) {
                    Out::Drop(_) => fault(DropWhy::Unresolved),
                    Out::Glean(iface) => self.neighbor(iface, addr),
                    out => out,
                }
            }
            Via::Drop(why) => Out::Drop(why),
            Via::Unreachable => Out::Unreachable,
            Via::Prohibit => Out::Prohibit,
            Via::Local { iface } => Out::Local(iface),
            Via::LookupIn { .. } => unreachable!("not generated"),
        }
    }

    /// Whether an address is in the network of an interface that is down.
    fn is_down(&self, addr: IpAddr) -> bool {
        let addr = F::number(addr).unwrap();
        let down = self
            .addresses
            .iter()
            .filter(|(i, _)| !self.ifs[*i as usize].up);
        let mut nets = down
            .filter(|(_, a)| a.len() < F::BITS)
            .map(|(_, a)| Prefix::<F>::around(F::number(a.addr()).unwrap(), a.len()));
        nets.any(|net| net.contains(addr))
    }

    fn neighbor(&self, iface: u32, addr: IpAddr) -> Out {
        match self.neighbors.iter().find(|n| (n.0, n.1) == (iface, addr)) {
            Some((_, _, mac)) => {
                let kind: [u8; 2] = if F::AF == Af::V4 {
                    [8, 0]
                } else {
                    [0x86, 0xdd]
                };
                let header = [&mac[..], &self.ifs[iface as usize].mac, &kind].concat();
                Out::Send { iface, header }
            }
            None => Out::Ask { iface, addr },
        }
    }
}

fn best<'a, F: Family>(
    entries: impl Iterator<Item = &'a (Prefix<F>, Source, Vec<Path>)>,
    dst: F::Addr,
) -> Option<List> {
    let found = entries
        .filter(|e| e.0.contains(dst))
        .min_by_key(|e| (F::BITS - e.0.len(), e.1))?;
    let mut kept: Vec<Path> = Vec::new();
    for p in &found.2 {
        kept.retain(|k| k.via != p.via);
        kept.push(*p);
    }
    kept.sort_by(Path::order);
    Some((found.1, kept))
}

/// Result of the data plane in terms of the reference.
fn seen<F: Family>(plane: &DataPlane<F>, reader: &Reader, dst: F::Addr, hash: u32) -> Out {
    let view = plane.read(reader.guard());
    let dpo = view.forward(0, dst, hash);
    let iface = |d: Dpo| (d.index() != Dpo::NO_IFACE).then_some(d.index());
    match dpo.kind() {
        DpoKind::Drop => Out::Drop(dpo.why()),
        DpoKind::Adj => {
            let adj = view.adj(dpo.index());
            assert_eq!(adj.mtu, 1500 + adj.tx_if as u16);
            Out::Send {
                iface: adj.tx_if,
                header: adj.bytes().to_vec(),
            }
        }
        DpoKind::Incomplete => {
            let adj = view.adj(dpo.index());
            let octets: [u8; 16] = adj.bytes().try_into().unwrap();
            Out::Ask {
                iface: adj.tx_if,
                addr: std::net::Ipv6Addr::from(octets).to_canonical(),
            }
        }
        DpoKind::Glean => Out::Glean(dpo.index()),
        DpoKind::Broadcast => unreachable!("no interface here has that"),
        DpoKind::Local => Out::Local(iface(dpo)),
        DpoKind::Unreachable => Out::Unreachable,
        DpoKind::Prohibit => Out::Prohibit,
        DpoKind::Multi | DpoKind::LookupIn => panic!("{dpo:?}"),
    }
}

fn pick(mut out: Out, mut hash: u32) -> Out {
    while let Out::Shared(buckets) = out {
        out = buckets[hash as usize & (buckets.len() - 1)].clone();
        hash >>= 1;
    }
    out
}

fn info(index: u32) -> IfInfo {
    IfInfo {
        index,
        name: format!("pg{index}"),
        mac: [2, 0, 0, 0, 0, index as u8],
        mtu: 1500 + index as u16,
        up: index < 2,
    }
}

/// A host that is configured on an interface is its own next hop.
fn own_hops<F: Family>(prefix: Prefix<F>, source: Source, mut paths: Vec<Path>) -> Vec<Path> {
    for path in &mut paths {
        if let (Via::Attached { iface }, Source::Static) = (path.via, source)
            && prefix.len() == F::BITS
        {
            let addr = F::ip(prefix.addr());
            path.via = Via::NextHop { addr, iface };
        }
    }
    paths
}

fn apply<F: Side>(fib: &mut Fib, world: &mut World<F>, reader: &mut Reader, op: &Op) {
    match op {
        Op::Set(a, l, s, paths) => {
            let (p, s) = (prefix::<F>(*a, *l), source(*s));
            let paths: Vec<Path> = paths.iter().map(|p| path::<F>(*p)).collect();
            fib.set_route(0, p, s, &paths).unwrap();
            world.routes.retain(|r| (r.0, r.1) != (p, s));
            world.routes.push((p, s, own_hops(p, s, paths)));
        }
        Op::Unset(a, l, s) => {
            let (p, s) = (prefix::<F>(*a, *l), source(*s));
            let there = world.routes.iter().any(|r| (r.0, r.1) == (p, s));
            assert_eq!(fib.remove_route(0, p, s).is_ok(), there);
            world.routes.retain(|r| (r.0, r.1) != (p, s));
        }
        Op::Neighbor(iface, a, m) => {
            let (iface, a, mac) = (u32::from(*iface), ip::<F>(*a), [6, 0, 0, 0, 0, *m]);
            fib.set_neighbor(iface, a, Neighbor::new(mac)).unwrap();
            world.neighbors.retain(|n| (n.0, n.1) != (iface, a));
            world.neighbors.push((iface, a, mac));
        }
        Op::Forget(iface, a) => {
            let (iface, a) = (u32::from(*iface), ip::<F>(*a));
            let there = world.neighbors.iter().any(|n| (n.0, n.1) == (iface, a));
            assert_eq!(fib.remove_neighbor(iface, a).is_ok(), there);
            world.neighbors.retain(|n| (n.0, n.1) != (iface, a));
        }
        Op::Address(iface, a, l) => {
            let len = F::BITS - [0, 1, 2, 4, 5][usize::from(*l)];
            let a = IfAddress::new(ip::<F>(*a), len).unwrap();
            let taken = world.addresses.iter().any(|(_, b)| b.addr() == a.addr());
            assert_eq!(fib.add_address((*iface).into(), a).is_err(), taken);
            if !taken {
                world.addresses.push(((*iface).into(), a));
            }
        }
        Op::Unaddress(n) => {
            if !world.addresses.is_empty() {
                let (iface, a) = world
                    .addresses
                    .remove(usize::from(*n) % world.addresses.len());
                fib.del_address(iface, a).unwrap();
            }
        }
        Op::Turn(i) => {
            let info = &mut world.ifs[usize::from(*i)];
            info.up = !info.up;
            fib.set_interface(info.clone()).unwrap();
        }
        Op::Mac(i, m) => {
            let info = &mut world.ifs[usize::from(*i)];
            info.mac[4] = *m;
            fib.set_interface(info.clone()).unwrap();
        }
        Op::Quiesce => {
            reader.quiescent();
            fib.reclaim();
        }
    }
}

fn plane<F: Side>(fib: &Fib) -> Box<dyn std::any::Any> {
    match F::AF {
        Af::V4 => Box::new(fib.dataplane4()),
        Af::V6 => Box::new(fib.dataplane6()),
    }
}

fn check<F: Side>(ops: &[Op]) {
    let domain = Domain::new();
    let mut reader = domain.register();
    let mut fib = Fib::new(&domain);
    let fresh = fib.stats();
    let plane = plane::<F>(&fib).downcast::<DataPlane<F>>().unwrap();
    let ifs: Vec<IfInfo> = (0..3).map(info).collect();
    let mut world = World::<F> {
        routes: vec![],
        neighbors: vec![],
        addresses: vec![],
        ifs,
    };
    world
        .ifs
        .iter()
        .for_each(|i| fib.set_interface(i.clone()).unwrap());
    for (i, op) in ops.iter().enumerate() {
        apply(&mut fib, &mut world, &mut reader, op);
        if i % 8 == 7 || i + 1 == ops.len() {
            let strangers = [0, 1 << 20, (1 << F::BITS.min(127)) - 1].map(F::from_wide);
            let entries = world.entries();
            for dst in (0..64).map(addr::<F>).chain(strangers) {
                let want = world.forward(&entries, dst);
                for hash in 0..32 {
                    let (got, want) = (seen(&plane, &reader, dst, hash), pick(want.clone(), hash));
                    assert_eq!(
                        got,
                        want,
                        "{} hash {hash} after {:?}",
                        F::ip(dst),
                        &ops[..=i]
                    );
                }
            }
        }
    }
    tear_down(&mut fib, world);
    reader.quiescent();
    fib.reclaim();
    let end = fib.stats();
    let kept = |s: volley_fib::FibStats| (s.prefixes, s.lists, s.adjacencies, s.waiting);
    assert_eq!(
        kept(end),
        (fresh.prefixes, fresh.lists, 0, 0),
        "nothing is left behind"
    );
}

fn tear_down<F: Side>(fib: &mut Fib, world: World<F>) {
    for (p, s, _) in world.routes {
        fib.remove_route(0, p, s).unwrap();
    }
    for (iface, a) in world.addresses {
        fib.del_address(iface, a).unwrap();
    }
    for i in 0..3 {
        fib.remove_interface(i).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ipv4_forwards_as_the_reference_says(ops in prop::collection::vec(op(), 1..48)) {
        check::<V4>(&ops);
    }
    #[test]
    fn ipv6_forwards_as_the_reference_says(ops in prop::collection::vec(op(), 1..48)) {
        check::<V6>(&ops);
    }
}
