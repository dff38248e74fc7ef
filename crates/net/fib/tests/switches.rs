//! Features that are disabled by default: directed broadcasts and resilient groups.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use volley_fib::dataplane::{Dpo, DpoKind, DropWhy, Fib4Snap};
use volley_fib::{
    DirectedBroadcast, Fib, IfInfo, Multipath, Neighbor, Path, Prefix, Source, V4, Via,
};
use volley_model::{Owners, Request};
use volley_object::Object;
use volley_tables::{Domain, Reader};

struct Bench {
    domain: std::sync::Arc<Domain>,
    fib: Fib,
    plane: Fib4Snap,
    reader: Reader,
}

fn hop(iface: u32) -> Path {
    let addr = IpAddr::from([10, iface as u8, 0, 9]);
    Via::NextHop { addr, iface }.into()
}

impl Bench {
    /// Interfaces pgN with 10.N.0.1/24, up, with neighbour .9 on each.
    fn new(interfaces: u32) -> Self {
        let domain = Domain::new();
        let mut fib = Fib::new(&domain);
        for index in 0..interfaces {
            fib.set_interface(info(index, true)).unwrap();
            let address = format!("10.{index}.0.1/24").parse().unwrap();
            fib.add_address(index, address).unwrap();
            let addr = IpAddr::from([10, index as u8, 0, 9]);
            let mac = Neighbor::new([6, 0, 0, 0, index as u8, 9]);
            fib.set_neighbor(index, addr, mac).unwrap();
        }
        let plane = fib.dataplane4();
        let reader = domain.register();
        Bench {
            domain,
            fib,
            plane,
            reader,
        }
    }

    fn at(&self, dst: u32) -> Dpo {
        self.hashed(dst, 0)
    }

    fn hashed(&self, dst: u32, hash: u32) -> Dpo {
        let view = self.plane.read(self.reader.guard());
        view.forward(0, dst, hash)
    }

    /// The transmit interface of each of many flows.
    fn flows(&self) -> Vec<u32> {
        let view = self.plane.read(self.reader.guard());
        let tx = |flow: u32| {
            let hash = flow.wrapping_mul(0x9e37_79b9);
            view.adj(self.hashed(0x1400_0001, hash).index()).tx_if
        };
        (0..20_000).map(tx).collect()
    }

    fn route(&mut self, interfaces: &[u32]) {
        let prefix = Prefix::<V4>::around(0x1400_0000, 8);
        let paths: Vec<Path> = interfaces.iter().map(|i| hop(*i)).collect();
        self.fib
            .set_route(0, prefix, Source::Static, &paths)
            .unwrap();
    }

    /// Sets the route as part of a batch.
    fn load(&mut self, interfaces: &[u32]) {
        let paths: Vec<Path> = interfaces.iter().map(|i| hop(*i)).collect();
        let rows = [(0x1400_0000, 8, 0)];
        let done = self.fib.load::<V4>(0, Source::Static, &[paths], &rows);
        done.unwrap();
    }

    /// Carries out a request through the owner of its class.
    fn set(&mut self, object: impl Object) {
        let fib = Rc::new(RefCell::new(std::mem::replace(
            &mut self.fib,
            Fib::new(&self.domain),
        )));
        let mut owners = Owners::default();
        volley_fib::own(&mut owners, &fib).unwrap();
        let request = Request::Set(object.instance().unwrap());
        owners.apply(&request).unwrap().unwrap();
        drop(owners);
        self.fib = Rc::into_inner(fib).unwrap().into_inner();
    }

    fn resilient(&mut self, resilient: bool) {
        let buckets = 256;
        self.set(Multipath { resilient, buckets });
    }
}

fn info(index: u32, up: bool) -> IfInfo {
    IfInfo {
        index,
        name: format!("pg{index}"),
        mac: [2, 0, 0, 0, 0, index as u8],
        mtu: 9000,
        up,
    }
}

fn directed_broadcast(enabled: bool) -> DirectedBroadcast {
    let interface = "pg0".to_owned();
    DirectedBroadcast { interface, enabled }
}

#[test]
fn a_network_s_broadcast_address_leads_to_all_hosts_where_that_is_asked_for() {
    let mut b = Bench::new(2);
    let (net, all, others) = (0x0a00_0000, 0x0a00_00ff, 0x0a01_00ff);
    let drop = Dpo::drop(DropWhy::SubnetBroadcast);
    assert_eq!(b.at(all), drop);
    b.set(directed_broadcast(true));
    let found = b.at(all);
    assert_eq!(found.kind(), DpoKind::Broadcast);
    let adj = b.plane.read(b.reader.guard()).adj(found.index());
    let header = [[0xff; 6], [2, 0, 0, 0, 0, 0]].concat();
    assert_eq!((adj.tx_if, &adj.bytes()[..12]), (0, &header[..]));
    assert_eq!((b.at(net), b.at(others)), (drop, drop));
    // Paths that are added later, and paths that are removed and return.
    b.fib
        .add_address(0, "10.9.0.1/16".parse().unwrap())
        .unwrap();
    assert_eq!(b.at(0x0a09_ffff).kind(), DpoKind::Broadcast);
    b.fib.set_interface(info(0, false)).unwrap();
    assert_eq!(b.at(all), Dpo::NO_ROUTE);
    b.fib.set_interface(info(0, true)).unwrap();
    assert_eq!(b.at(all).kind(), DpoKind::Broadcast);
    b.set(directed_broadcast(false));
    assert_eq!((b.at(all), b.at(0x0a09_ffff)), (drop, drop));
    for address in ["10.0.0.1/24", "10.9.0.1/16"] {
        b.fib.del_address(0, address.parse().unwrap()).unwrap();
    }
    assert_eq!(b.at(all), Dpo::NO_ROUTE);
}

/// Flows that used a path other than `gone` before and use another path now.
fn moved(before: &[u32], after: &[u32], gone: u32) -> usize {
    let both = before.iter().zip(after);
    both.filter(|(b, a)| **b != gone && b != a).count()
}

#[test]
fn only_flows_of_the_path_that_goes_move() {
    let mut b = Bench::new(5);
    let all = [0, 1, 2, 3, 4];
    b.route(&all);
    let plain = b.flows();
    b.fib.set_interface(info(2, false)).unwrap();
    let without = b.flows();
    assert!(
        moved(&plain, &without, 2) > 2_000,
        "the plain way moves others"
    );
    b.fib.set_interface(info(2, true)).unwrap();
    b.resilient(true);
    let before = b.flows();
    for way in ["link", "route", "load"] {
        let change = |b: &mut Bench, there: bool| match (way, there) {
            ("link", up) => b.fib.set_interface(info(2, up)).unwrap(),
            ("route", true) => b.route(&all),
            ("route", false) => b.route(&[0, 1, 3, 4]),
            (_, true) => b.load(&all),
            (_, false) => b.load(&[0, 1, 3, 4]),
        };
        let first = b.flows();
        change(&mut b, false);
        let second = b.flows();
        assert_eq!(moved(&first, &second, 2), 0, "{way}");
        assert!(!second.contains(&2), "{way}");
        change(&mut b, true);
        let third = b.flows();
        // A fifth of the flows, and one bucket of rounding for each path.
        let moves = second.iter().zip(&third).filter(|(s, t)| s != t).count();
        assert!(
            moves <= 20_000 / 5 + 5 * 20_000 / 256 + 200,
            "{way}: {moves}"
        );
        for iface in all {
            let share = third.iter().filter(|i| **i == iface).count();
            assert!((3_500..4_500).contains(&share), "{way}: {iface} {share}");
        }
    }
    assert_eq!(before.len(), b.flows().len());
    b.resilient(false);
    assert_eq!(b.flows(), plain, "the plain way has no memory");
}
