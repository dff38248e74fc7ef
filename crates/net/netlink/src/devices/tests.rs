use super::*;
use crate::message::Item;
use volley_iface::InterfaceTables;

fn link(index: u32, name: &str, device: Device) -> Item {
    Item::Link(Link {
        index,
        name: name.into(),
        mac: None,
        mtu: 1500,
        up: true,
        master: None,
        device,
    })
}

fn on(parent: u32, vlan: u16) -> Device {
    let tag = VlanTag::Dot1q;
    Device::Vlan { parent, tag, vlan }
}

fn pair(interface: &str, host: &str, vlan: bool) -> LcpRow {
    LcpRow {
        interface: interface.into(),
        host: host.into(),
        vlan,
        ..LcpRow::default()
    }
}

fn sub(id: u32, vlan: u16, inner: Option<u16>) -> InterfaceState {
    InterfaceState {
        name: format!("wan0.{id}"),
        sub_interface: Some(SubInterfaceRow {
            parent: "wan0".into(),
            id,
            tag: VlanTag::Dot1q,
            vlan,
            inner,
        }),
        ..InterfaceState::default()
    }
}

fn wan() -> InterfaceState {
    InterfaceState {
        name: "wan0".into(),
        ..InterfaceState::default()
    }
}

fn taps() -> KernelState {
    let mut taps = KernelState::default();
    taps.new_item(link(5, "w", Device::Other));
    taps
}

fn plan(taps: &mut KernelState, pairs: &[LcpRow], rows: &[InterfaceState]) -> SyncPlan {
    volley_fib::classes().unwrap();
    volley_lcp::classes().unwrap();
    volley_vlan::classes().unwrap();
    let mut todo = SyncPlan::default();
    let tables = [Family::V4, Family::V6]
        .map(|f| (f, 0))
        .into_iter()
        .collect();
    taps.plan_devices(pairs, rows, &tables, &mut todo);
    todo
}

fn words(todo: &SyncPlan) -> Vec<Vec<String>> {
    let all = todo.together.iter();
    all.map(|t| t.iter().map(ToString::to_string).collect())
        .collect()
}

#[test]
fn a_device_that_the_kernel_makes_is_a_sub_interface_until_either_side_ends_it() {
    let (mut taps, trunk) = (taps(), pair("wan0", "w", false));
    taps.new_item(link(9, "v100", on(5, 100)));
    // A device on an interface that is not an LCP tap, and a device whose parent is unknown.
    taps.new_item(link(6, "eth7", Device::Other));
    taps.new_item(link(10, "eth7.5", on(6, 5)));
    taps.new_item(link(11, "lost", on(77, 5)));
    let todo = plan(&mut taps, std::slice::from_ref(&trunk), &[wan()]);
    let made = [
        "create sub-interfaces wan0 100 dot1q 100",
        "lcp create wan0.100 host-if v100 vlan",
    ];
    assert_eq!(words(&todo), [made]);
    assert_eq!(
        taps.odd_devices(std::slice::from_ref(&trunk), &[wan()])
            .1
            .len(),
        1
    );
    // An existing sub-interface with the same tags is used.
    let rows = [wan(), sub(7, 100, None)];
    let todo = plan(&mut taps, std::slice::from_ref(&trunk), &rows);
    assert_eq!(words(&todo), [["lcp create wan0.7 host-if v100 vlan"]]);

    let both = [trunk.clone(), pair("wan0.100", "v100", true)];
    let rows = [wan(), sub(100, 100, None)];
    assert_eq!(plan(&mut taps, &both, &rows), SyncPlan::default());
    assert_eq!(taps.odd_devices(&both, &rows), (1, vec![]));
    let todo = plan(&mut taps, &[trunk], &rows);
    assert_eq!(todo.orders, [(9, Order::Gone)], "Volley has ended it");
    assert_eq!(plan(&mut taps, &both, &rows), SyncPlan::default());
    taps.lost_item(&link(9, "v100", on(5, 100)));
    let ended = ["lcp delete wan0.100", "delete interface wan0.100"];
    let todo = plan(&mut taps, &both, &rows);
    assert_eq!(words(&todo), [ended], "the kernel has ended it");
    taps.lost_item(&link(5, "w", Device::Other));
    let todo = plan(&mut taps, &both, &rows);
    assert_eq!(todo, SyncPlan::default(), "without the trunk nobody knows");
}

#[test]
fn a_pair_whose_device_was_never_there_gets_it() {
    let mut taps = taps();
    let pairs = [
        pair("wan0", "w", false),
        pair("wan0.7", "v7", true),
        pair("wan0.8", "v8", true),
    ];
    let rows = [wan(), sub(7, 700, None), sub(8, 700, Some(9))];
    let outer = (5, Order::Device("v7".into(), VlanTag::Dot1q, 700));
    assert_eq!(plan(&mut taps, &pairs, &rows).orders, [outer]);
    taps.new_item(link(20, "v7", on(5, 700)));
    let inner = (20, Order::Device("v8".into(), VlanTag::Dot1q, 9));
    assert_eq!(plan(&mut taps, &pairs, &rows).orders, [inner]);
    taps.new_item(link(21, "v8", on(20, 9)));
    assert_eq!(plan(&mut taps, &pairs, &rows), SyncPlan::default());
}

#[test]
fn a_device_on_a_device_has_two_tags() {
    let (mut taps, trunk) = (taps(), pair("wan0", "w", false));
    let outer = Device::Vlan {
        parent: 5,
        tag: VlanTag::Dot1ad,
        vlan: 30,
    };
    taps.new_item(link(9, "s30", outer));
    taps.new_item(link(10, "s30.4", on(9, 4)));
    taps.new_item(link(11, "deeper", on(10, 4)));
    let made = words(&plan(&mut taps, &[trunk], &[wan()]));
    let want = [
        [
            "create sub-interfaces wan0 30 dot1ad 30",
            "lcp create wan0.30 host-if s30 vlan",
        ],
        [
            "create sub-interfaces wan0 300004 dot1ad 30 inner-dot1q 4",
            "lcp create wan0.300004 host-if s30.4 vlan",
        ],
    ];
    assert_eq!(made, want);
}

#[test]
fn a_tap_in_a_vrf_takes_its_interface_along_and_back() {
    let (mut taps, pairs) = (taps(), [pair("wan0", "w", false)]);
    taps.new_item(link(8, "red", Device::Vrf { table: 10 }));
    assert_eq!(plan(&mut taps, &pairs, &[wan()]), SyncPlan::default());
    let within = |master| match link(5, "w", Device::Other) {
        Item::Link(link) => Item::Link(Link { master, ..link }),
        other => other,
    };
    taps.new_item(within(Some(8)));
    let bound = [
        "ip table add 10",
        "ip6 table add 10",
        "set interface ip table wan0 10",
        "set interface ip6 table wan0 10",
    ];
    assert_eq!(words(&plan(&mut taps, &pairs, &[wan()])), [bound]);
    assert_eq!(taps.odd_devices(&pairs, &[wan()]).1.len(), 2);
    let mut there = wan();
    there.tables = InterfaceTables { ip4: 10, ip6: 10 };
    let rows = [there];
    assert_eq!(plan(&mut taps, &pairs, &rows), SyncPlan::default());
    assert_eq!(taps.odd_devices(&pairs, &rows), (2, vec![]));
    taps.new_item(within(None));
    let back = [
        "set interface ip table wan0 0",
        "set interface ip6 table wan0 0",
    ];
    assert_eq!(words(&plan(&mut taps, &pairs, &rows)), [back]);
    assert_eq!(plan(&mut taps, &pairs, &[wan()]), SyncPlan::default());
    assert_eq!(
        plan(&mut taps, &pairs, &rows),
        SyncPlan::default(),
        "the operator's to say now"
    );
}
