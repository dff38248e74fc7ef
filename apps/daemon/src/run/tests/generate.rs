//! Random configurations and changes, with few names so that they interact.

use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use volley_fib::path::{Path, PathTarget};
use volley_fib::{Address, InterfaceTable, IpTable, Route, StaticNeighbor};
use volley_iface::Admin;
use volley_iface::{AdminState, Switch};
use volley_iface::{ArcFeature, MacAddress, Mtu};
use volley_l2::model::{BridgeDomain, BridgePort, L2FibEntry, L2Patch, Xconnect};
use volley_mcast::{Groups, Mroute, Source};
use volley_memif::model::{Memif, MemifRole, MemifSocket};
use volley_model::{Family, IfAddress, InterfaceSpec, Mac, Prefix, Request};
use volley_object::{Change, Instance, Object, Value};
use volley_pcap::model::{Pace, PcapInterface, Repeat};
use volley_pg::model::PgInterface;
use volley_pg::{Sizes, StreamSpec};
use volley_vlan::model::SubInterface;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0u8..4).prop_map(|n| format!("pg{n}")),
        1 => (0u8..4, 1u8..3).prop_map(|(n, id)| format!("pg{n}.{id}")),
    ]
}

/// A sub-interface with few tags, so that they interact.
fn sub_interface() -> impl Strategy<Value = Request> {
    let inner = proptest::option::of(1u16..3);
    let mtu = proptest::option::of(prop_oneof![Just(1400u32), Just(9000)]);
    let parts = (0u8..4, 1u32..3, any::<bool>(), 1u16..3, inner, mtu);
    parts.prop_map(|(n, id, service, vlan, inner, mtu)| {
        let sub = SubInterface {
            name: format!("pg{n}.{id}"),
            parent: format!("pg{n}"),
            id: None,
            dot1q: (!service).then_some(vlan),
            dot1ad: service.then_some(vlan),
            inner_dot1q: inner,
        };
        let spec = InterfaceSpec::of(&sub).unwrap();
        Request::InterfaceCreate(InterfaceSpec { mtu, ..spec })
    })
}

fn address() -> impl Strategy<Value = IfAddress> {
    (0u8..3, 1u8..4, any::<bool>()).prop_map(|(net, host, six)| {
        let text = match six {
            false => format!("10.0.{net}.{host}/24"),
            true => format!("2001:db8:{net}::{host}/64"),
        };
        text.parse().unwrap()
    })
}

fn next_hop() -> impl Strategy<Value = IpAddr> {
    (0u8..3, 1u8..6).prop_map(|(net, host)| Ipv4Addr::new(10, 0, net, host).into())
}

fn memif(id: u32) -> Instance {
    let memif = Memif {
        id,
        socket: 1,
        role: MemifRole::Slave,
        ..Memif::default()
    };
    memif.instance().unwrap()
}

fn pcap(n: u8) -> Instance {
    let name = format!("volley-prop-{}-{n}.pcap", std::process::id());
    let pcap = PcapInterface {
        name: "a".into(),
        rx: None,
        tx: Some(std::env::temp_dir().join(name)),
        r#loop: Repeat::Times(1),
        pace: Pace::Fast,
    };
    pcap.instance().unwrap()
}

fn kind() -> impl Strategy<Value = Instance> {
    prop_oneof![
        6 => Just(PgInterface { name: "a".into() }.instance().unwrap()),
        1 => (0u8..2).prop_map(pcap),
        1 => (0u32..3).prop_map(memif),
    ]
}

fn mac() -> impl Strategy<Value = Mac> {
    (0u8..3).prop_map(|n| Mac([2, 0xfe, 0, 0, 0, n]))
}

fn create() -> impl Strategy<Value = Request> {
    let mtu = proptest::option::of(prop_oneof![Just(1500u32), Just(4000)]);
    let parts = (name(), kind(), proptest::option::of(mac()), mtu);
    let with_driver = parts.prop_map(|(name, kind, mac, mtu)| {
        Request::InterfaceCreate(InterfaceSpec {
            kind: kind.named(&name),
            name,
            mac,
            mtu,
        })
    });
    prop_oneof![3 => with_driver, 1 => sub_interface()]
}

fn family() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::V4), Just(Family::V6)]
}

/// Sets or removes an object of any registered class.
fn object() -> impl Strategy<Value = Request> {
    crate::objects::register().unwrap();
    let names = ["pg0", "pg1", "pg2", "pg3"];
    let classes = volley_object::classes();
    // Without objects that create interfaces of the kernel.
    let ours = classes
        .iter()
        .filter(|class| !class.def().separate && !class.is_interface());
    let every = ours.map(|class| {
        let worker = class.field("worker").map(|(at, _)| at);
        // Only few workers may exist at a time.
        let set = volley_object::instances(class, &names)
            .prop_filter("a worker", move |it| {
                worker
                    .and_then(|at| it.field(at))
                    .is_none_or(|w: u32| w < 3)
            })
            .prop_map(Request::Set);
        let unset = volley_object::keys(class, &names).prop_map(Request::Unset);
        prop_oneof![3 => set, 1 => unset].boxed()
    });
    proptest::strategy::Union::new(every)
}

fn setting() -> impl Strategy<Value = Request> {
    let state = prop_oneof![3 => Just(AdminState::Up), 1 => Just(AdminState::Down)];
    prop_oneof![
        3 => (name(), state).prop_map(|(name, state)| Admin::request(name, state).unwrap()),
        1 => (name(), 1000u32..1003).prop_map(|(interface, mtu)| Request::set(&Mtu { interface, mtu }).unwrap()),
        1 => (name(), mac()).prop_map(|(interface, mac)| Request::set(&MacAddress { interface, mac }).unwrap()),
        8 => object(),
    ]
}

fn bind() -> impl Strategy<Value = Request> {
    (name(), family(), 0u32..3).prop_map(|(interface, family, table)| {
        let bound = InterfaceTable {
            interface,
            family,
            table,
        };
        Request::set(&bound).unwrap()
    })
}

fn add_address() -> impl Strategy<Value = Request> {
    (name(), address())
        .prop_map(|(interface, address)| Request::set(&Address { interface, address }).unwrap())
}

fn add_neighbor() -> impl Strategy<Value = Request> {
    (name(), next_hop(), mac())
        .prop_map(|(interface, address, mac)| {
            Request::set(&StaticNeighbor {
                interface,
                address,
                mac,
            })
        })
        .prop_filter_map("addresses of hosts", Result::ok)
}

fn path() -> impl Strategy<Value = Path> {
    let target = prop_oneof![
        3 => (next_hop(), proptest::option::of(name())).prop_map(|(addr, interface)| PathTarget::Via {
            addr,
            interface,
            table: None,
        }),
        1 => (next_hop(), 0u32..3).prop_map(|(addr, table)| PathTarget::Via {
            addr,
            interface: None,
            table: Some(table),
        }),
        1 => name().prop_map(PathTarget::Interface),
        1 => Just(PathTarget::Drop),
        1 => (0u32..3).prop_map(PathTarget::LookupIn),
    ];
    (target, 1u32..4, 0u8..2, any::<bool>()).prop_map(|(target, weight, preference, on)| Path {
        onlink: on
            && matches!(
                &target,
                PathTarget::Via {
                    interface: Some(_),
                    ..
                }
            ),
        target,
        weight,
        preference,
    })
}

fn prefix() -> impl Strategy<Value = Prefix> {
    (0u8..8, prop_oneof![Just(16u8), Just(20), Just(24)])
        .prop_map(|(n, len)| Prefix::masked(Ipv4Addr::new(20, 0, n * 16, 0).into(), len).unwrap())
}

fn a_route() -> impl Strategy<Value = Route> {
    (prefix(), 0u32..3, vec(path(), 1..3), 1u64..4).prop_map(|(prefix, table, mut paths, count)| {
        for path in &mut paths {
            // A route that looks up in its own table is always refused.
            if path.target == PathTarget::LookupIn(table) {
                path.target = PathTarget::Drop;
            }
        }
        Route {
            table,
            count,
            ..Route::new(prefix, paths)
        }
    })
}

fn l2() -> impl Strategy<Value = Request> {
    (name(), name(), any::<bool>()).prop_map(|(rx, tx, patch)| match patch {
        true => Request::set(&L2Patch { rx, tx }).unwrap(),
        false => Request::set(&Xconnect { rx, tx }).unwrap(),
    })
}

fn bridge_domain() -> impl Strategy<Value = Request> {
    (1u32..3, any::<bool>(), 3u32..6).prop_map(|(id, learn, mac_age)| {
        let usual = BridgeDomain::defaults([u64::from(id).into()]).unwrap();
        Request::set(&BridgeDomain {
            learn,
            mac_age,
            ..usual
        })
        .unwrap()
    })
}

/// The removal of the object of a request.
fn removed(request: Request) -> Request {
    match request {
        Request::Set(object) => Request::Unset(object.key()),
        other => other,
    }
}

fn bridge_port() -> impl Strategy<Value = Request> {
    (name(), 1u32..3, 0u32..2).prop_map(|(interface, domain, shg)| {
        let port = BridgePort {
            interface,
            domain,
            shg,
        };
        Request::set(&port).unwrap()
    })
}

fn station() -> impl Strategy<Value = Request> {
    (mac(), 1u32..3, proptest::option::of(name())).prop_map(|(mac, domain, interface)| {
        Request::set(&L2FibEntry {
            domain,
            mac,
            filter: interface.is_none(),
            interface,
        })
        .unwrap()
    })
}

fn group() -> impl Strategy<Value = (Prefix, Option<std::net::IpAddr>, u32)> {
    let groups = ["239.1.1.1/32", "239.1.0.0/16", "ff05::1/128"];
    let group = proptest::sample::select(groups.to_vec());
    (group, any::<bool>(), 0u32..2).prop_map(|(group, sourced, table)| {
        let group: Prefix = group.parse().unwrap();
        let source = match group.len() {
            32 => "10.0.0.9",
            _ => "2001:db8::9",
        };
        let source = (sourced && group.len() != 16).then(|| source.parse().unwrap());
        (group, source, table)
    })
}

fn mroute() -> impl Strategy<Value = Request> {
    let names = |least| proptest::collection::btree_set(name(), least..4);
    (group(), names(1), names(0)).prop_map(|((group, source, table), accept, forward)| {
        Request::set(&Mroute {
            group: Groups(group),
            source: Source(source),
            table,
            accept,
            forward,
        })
        .unwrap()
    })
}

fn feature(switch: impl Strategy<Value = Switch>) -> impl Strategy<Value = Request> {
    (name(), family(), switch).prop_map(|(interface, family, switch)| {
        let (arc, feature) = match family {
            Family::V4 => ("ip4-unicast", "ip4-not-enabled"),
            Family::V6 => ("ip6-unicast", "ip6-not-enabled"),
        };
        let set = Request::set(&ArcFeature {
            interface,
            arc: arc.into(),
            feature: feature.into(),
        });
        match switch {
            Switch::On => set.unwrap(),
            Switch::Off => removed(set.unwrap()),
        }
    })
}

fn stream() -> impl Strategy<Value = Request> {
    (0u8..3, name(), 64u32..66).prop_map(|(n, interface, size)| {
        let template = "eth / ip4 dst 20.0.0.1 / udp / payload 20";
        Request::set(&StreamSpec {
            edits: vec!["ip4.src increment 1.0.0.0 1.0.0.9".parse().unwrap()],
            size: Some(Sizes::Fixed(size)),
            rate: Some(1),
            ..StreamSpec::new(&format!("s{n}"), &interface, template.parse().unwrap())
        })
        .unwrap()
    })
}

/// Starts or stops one stream or all of them.
fn sends(stream: Option<u8>, on: bool) -> Request {
    let mut fields = vec![("enabled", Value::Bool(on))];
    fields.extend(stream.map(|n| ("name", format!("s{n}").as_str().into())));
    Request::Change(Change::of_fields("stream", &fields).unwrap())
}

fn table() -> impl Strategy<Value = Request> {
    (family(), 1u32..3).prop_map(|(family, id)| Request::set(&IpTable { id, family }).unwrap())
}

fn memif_socket() -> Request {
    let filename = std::env::temp_dir().join(format!("volley-prop-{}.sock", std::process::id()));
    Request::set(&MemifSocket { id: 1, filename }).unwrap()
}

/// Requests of a whole configuration. It leaves out requests that an earlier one makes invalid, so that most are accepted.
pub fn config() -> impl Strategy<Value = Vec<Request>> {
    let route = a_route().prop_map(|it| Request::add(&it).unwrap());
    let send = (0u8..3).prop_map(|n| sends(Some(n), true));
    let parts = (
        vec(prop_oneof![table().boxed(), bridge_domain().boxed()], 0..6),
        vec(create(), 1..5),
        vec(bind(), 0..4),
        vec(add_address(), 0..6),
        vec(prop_oneof![add_neighbor().boxed(), route.boxed()], 0..12),
        vec(
            prop_oneof![
                l2().boxed(),
                bridge_port().boxed(),
                station().boxed(),
                feature(Just(Switch::On)).boxed()
            ],
            0..6,
        ),
        vec(setting(), 0..8),
        vec(stream(), 0..3),
        vec(send, 0..3),
    );
    parts.prop_map(|(a, b, c, d, e, f, g, h, i)| {
        let mut all = vec![memif_socket()];
        for request in [a, b, c, d, e, f, g, h, i].into_iter().flatten() {
            all.push(request);
            if volley_control::Core::state_of(&all).is_err() {
                all.pop();
            }
        }
        all
    })
}

fn any_change() -> impl Strategy<Value = Request> {
    let switch = prop_oneof![Just(Switch::On), Just(Switch::Off)];
    prop_oneof![
        6 => create(),
        1 => name().prop_map(|name| Request::InterfaceDelete { name }),
        1 => (name(), name()).prop_map(|(name, new_name)| Request::InterfaceRename { name, new_name }),
        4 => setting(),
        2 => bind(),
        3 => add_address(),
        1 => add_address().prop_map(removed),
        3 => add_neighbor(),
        1 => add_neighbor().prop_map(removed),
        2 => table(),
        1 => table().prop_map(removed),
        4 => a_route().prop_map(|it| Request::add(&it).unwrap()),
        1 => a_route().prop_map(|it| Request::set(&it).unwrap()),
        1 => a_route().prop_map(|it| Request::take(&it).unwrap()),
        1 => a_route().prop_map(|r| Request::take(&Route { paths: Vec::new(), ..r }).unwrap()),
        2 => l2(),
        2 => bridge_domain(),
        3 => bridge_port(),
        2 => station(),
        1 => bridge_domain().prop_map(removed),
        1 => station().prop_map(removed),
        1 => l2().prop_map(removed),
        1 => l2().prop_map(|request| match request {
            Request::Set(object) => Request::UnsetExact(object),
            other => other,
        }),
        1 => bridge_port().prop_map(|request| match request {
            Request::Set(object) => Request::UnsetAny(object.key()),
            other => other,
        }),
        4 => mroute(),
        1 => mroute().prop_map(removed),
        2 => feature(switch),
        2 => stream(),
        1 => stream().prop_map(removed),
        1 => (0u8..3).prop_map(|n| sends(Some(n), true)),
        1 => Just(sends(None, false)),
        1 => Just(memif_socket()),
    ]
}

/// Groups of changes, many of a single change.
pub fn changes() -> impl Strategy<Value = Vec<Vec<Request>>> {
    let group = prop_oneof![3 => vec(any_change(), 1..2), 1 => vec(any_change(), 2..6)];
    vec(group, 1..40)
}

/// An interface to route through: four objects.
pub fn uplink() -> Vec<Request> {
    let text = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\naddresses = [\"10.0.0.1/24\"]\n\
                [[neighbor]]\ninterface = \"pg0\"\naddress = \"10.0.0.2\"\nmac = \"02:fe:00:00:00:02\"\n";
    volley_config::parse(text).unwrap().requests
}

/// Routes to scattered prefixes, by four next hops.
pub fn routes(many: u32) -> Vec<Request> {
    let route = |i: u32| {
        // The factor and the modulus, a prime, have no common divisor: all prefixes differ, and consecutive ones are far apart.
        let bits = 0x1400_0000 + (u64::from(i) * 700_001 % 1_000_003) as u32 * 256;
        let prefix = Prefix::masked(Ipv4Addr::from_bits(bits).into(), 24).unwrap();
        let hop = Ipv4Addr::new(10, 0, 0, 2 + (i % 4) as u8).into();
        Request::add(&Route::new(prefix, vec![Path::via(hop, Some("pg0"))])).unwrap()
    };
    (0..many).map(route).collect()
}
