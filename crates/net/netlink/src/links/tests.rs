use super::*;
use volley_fib::{Address, StaticNeighbor};
use volley_iface::Admin;
use volley_object::Object;

fn pair() -> LcpRow {
    LcpRow {
        interface: "eth0".into(),
        host: "e0".into(),
        ..LcpRow::default()
    }
}

fn row(up: bool, addresses: &[&str]) -> InterfaceState {
    volley_iface::classes().unwrap();
    InterfaceState {
        name: "eth0".into(),
        state: if up { AdminState::Up } else { AdminState::Down },
        mtu: 1500,
        mac: Some(Mac([2, 0, 0, 0, 0, 1])),
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        ..InterfaceState::default()
    }
}

fn link(up: bool) -> Item {
    Item::Link(Link {
        index: 5,
        name: "e0".into(),
        mac: Some(Mac([2, 0, 0, 0, 0, 1])),
        mtu: 1500,
        up,
        master: None,
        device: crate::message::Device::Other,
    })
}

fn a(text: &str) -> IfAddress {
    text.parse().unwrap()
}

fn address(text: &str) -> Address {
    volley_fib::classes().unwrap();
    Address {
        interface: "eth0".into(),
        address: a(text),
    }
}

fn admin(state: AdminState) -> Request {
    Admin::request("eth0", state).unwrap()
}

/// A synchronised state for `row`.
fn agreed(row: &InterfaceState) -> KernelState {
    let mut taps = KernelState::default();
    taps.new_item(link(row.state == AdminState::Up));
    for address in &row.addresses {
        taps.new_item(Item::Address(5, *address));
    }
    let todo = taps.plan(&[pair()], std::slice::from_ref(row), &[]);
    assert_eq!(todo, SyncPlan::default());
    taps
}

#[test]
fn at_first_each_side_gets_what_the_other_has_and_either_may_have_set_it_up() {
    let mut taps = KernelState::default();
    taps.new_item(link(true));
    taps.new_item(Item::Address(5, a("fe80::1/64")));
    let todo = taps.plan(&[pair()], &[row(false, &["10.0.0.1/24"])], &[]);
    let add = Request::set(&address("fe80::1/64")).unwrap();
    let up = admin(AdminState::Up);
    assert_eq!(
        todo.requests,
        [up, add],
        "somebody was quick with a new twin"
    );
    assert_eq!(todo.orders, [(5, Order::Address(a("10.0.0.1/24"), true))]);
    let mut taps = KernelState::default();
    taps.new_item(link(false));
    let todo = taps.plan(&[pair()], &[row(true, &[])], &[]);
    assert_eq!(
        (todo.requests, todo.orders),
        (vec![], vec![(5, Order::Up(true))])
    );
}

#[test]
fn the_side_that_changed_goes_before() {
    let both = row(true, &["10.0.0.1/24", "10.0.0.2/24"]);
    let mut taps = agreed(&both);
    let todo = taps.plan(&[pair()], &[row(true, &["10.0.0.1/24"])], &[]);
    assert_eq!(todo.orders, [(5, Order::Address(a("10.0.0.2/24"), false))]);
    let mut taps = agreed(&both);
    taps.lost_item(&Item::Address(5, a("10.0.0.2/24")));
    let first = taps.plan(&[pair()], std::slice::from_ref(&both), &[]);
    assert!(first.requests.is_empty() && first.again, "it looks twice");
    let todo = taps.plan(&[pair()], std::slice::from_ref(&both), &[]);
    let del = Request::unset(&address("10.0.0.2/24")).unwrap();
    assert_eq!(todo.requests, [del]);
    taps.new_item(link(false));
    let todo = taps.plan(&[pair()], &[both], &[]);
    let down = admin(AdminState::Down);
    assert!(todo.requests.contains(&down), "{todo:?}");
}

/// As when the LCP tap is put into a VRF.
#[test]
fn addresses_come_back_when_the_link_was_down_for_a_moment_between_two_looks() {
    let both = row(true, &["2001:db8::1/64", "10.0.0.1/24"]);
    let mut taps = agreed(&both);
    taps.new_item(link(false));
    taps.lost_item(&Item::Address(5, a("2001:db8::1/64")));
    taps.new_item(link(true));
    for _ in 0..2 {
        let todo = taps.plan(&[pair()], std::slice::from_ref(&both), &[]);
        let back = (5, Order::Address(a("2001:db8::1/64"), true));
        assert_eq!((todo.requests, todo.orders), (vec![], vec![back]));
    }
}

#[test]
fn addresses_that_the_kernel_loses_with_its_link_come_back_with_it() {
    let both = row(true, &["2001:db8::1/64"]);
    let mut taps = agreed(&both);
    taps.lost_item(&Item::Address(5, a("2001:db8::1/64")));
    assert!(taps.plan(&[pair()], std::slice::from_ref(&both), &[]).again);
    assert!(taps.new_item(link(false)));
    let down = row(false, &["2001:db8::1/64"]);
    let todo = taps.plan(&[pair()], &[down], &[]);
    assert_eq!(todo, SyncPlan::default());
    taps.new_item(link(true));
    let todo = taps.plan(&[pair()], &[both], &[]);
    assert_eq!(
        todo.orders,
        [(5, Order::Address(a("2001:db8::1/64"), true))]
    );
    assert!(
        todo.requests
            .iter()
            .all(|r| !matches!(r, Request::Unset(_)))
    );
}

fn fixed(address: IpAddr, mac: Mac) -> Neighbor {
    Neighbor {
        interface: "eth0".into(),
        address,
        mac,
    }
}

#[test]
fn neighbours_that_the_kernel_loses_with_its_link_or_its_mac_come_back() {
    let (address, mac) = ("10.0.0.9".parse().unwrap(), Mac([2, 0, 0, 0, 0, 9]));
    let ours = [fixed(address, mac)];
    let there = Item::Neighbor(5, address, Some(mac));
    let back = [(5, Order::Neighbor(address, Some(mac)))];
    let (up, down) = (row(true, &[]), row(false, &[]));
    let start = || {
        let mut taps = agreed(&up);
        taps.new_item(there.clone());
        let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
        assert_eq!(todo, SyncPlan::default());
        taps
    };
    // The interface goes down, with the loss of the neighbour notified before the link, then up again.
    let mut taps = start();
    taps.lost_item(&Item::Neighbor(5, address, None));
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
    assert!(todo.requests.is_empty() && todo.again, "{todo:?}");
    taps.new_item(link(false));
    let todo = taps.plan(&[pair()], std::slice::from_ref(&down), &ours);
    assert_eq!(todo, SyncPlan::default());
    let (_, differs) = taps.differences(&[pair()], std::slice::from_ref(&down), &ours);
    assert!(differs.is_empty(), "{differs:?}");
    taps.new_item(link(true));
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
    assert_eq!((todo.requests, todo.orders), (vec![], back.to_vec()));
    // The link goes down and up between two plans, with the loss of the neighbour notified last.
    let mut taps = start();
    taps.new_item(link(false));
    taps.new_item(link(true));
    taps.lost_item(&Item::Neighbor(5, address, None));
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
    assert_eq!((todo.requests, todo.orders), (vec![], back.to_vec()));
    // Volley ordered another MAC address.
    let mut taps = start();
    taps.done(5, &Order::Mac(Mac([2, 0, 0, 0, 0, 1])));
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
    assert_eq!((todo.requests, todo.orders), (vec![], back.to_vec()));
    // An operator removed a neighbour.
    let mut taps = start();
    taps.lost_item(&Item::Neighbor(5, address, None));
    assert!(taps.plan(&[pair()], std::slice::from_ref(&up), &ours).again);
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &ours);
    let interface = "eth0".into();
    assert_eq!(todo.requests, [unset(interface, address)]);
}

#[test]
fn neighbours_follow_whoever_changed_them() {
    let up = row(true, &[]);
    let mut taps = agreed(&up);
    let (address, mac) = ("10.0.0.9".parse().unwrap(), Mac([2, 0, 0, 0, 0, 9]));
    taps.new_item(Item::Neighbor(5, address, Some(mac)));
    let neighbor = StaticNeighbor {
        interface: "eth0".into(),
        address,
        mac,
    };
    let neighbor = neighbor.instance().unwrap();
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &[]);
    assert_eq!(todo.requests, [Request::Set(neighbor)]);
    let ours = fixed(address, mac);
    let todo = taps.plan(&[pair()], std::slice::from_ref(&up), &[ours]);
    assert_eq!(todo, SyncPlan::default());
    let todo = taps.plan(&[pair()], &[up], &[]);
    assert_eq!(todo.orders, [(5, Order::Neighbor(address, None))]);
}

fn unset(interface: String, address: IpAddr) -> Request {
    let mac = Mac([2; 6]);
    let neighbor = StaticNeighbor {
        interface,
        address,
        mac,
    };
    Request::unset(&neighbor).unwrap()
}
