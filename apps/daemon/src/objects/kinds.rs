//! Types of interfaces in every representation: spellings, files, JSON, and JSON of earlier versions.

use super::keyed::{all, error};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use volley_control::Core;
use volley_model::{InterfaceSpec, Mac, Request};
use volley_object::{Class, Instance, Strength, classes, instances};

fn kinds() -> Vec<Class> {
    crate::objects::register().unwrap();
    let classes = classes();
    let all = classes.interfaces().into_iter();
    all.filter(|c| !c.name().starts_with("test_"))
        .cloned()
        .collect()
}

/// Checks random interfaces, each with the settings that it can be created with.
fn each(check: impl Fn(&Request)) {
    let mut runner = TestRunner::deterministic();
    for class in kinds() {
        let strategy = instances(&class, &["pg0"]);
        for n in 0..64 {
            let kind = strategy.new_tree(&mut runner).unwrap().current();
            let mut spec = InterfaceSpec::of_object(kind);
            spec.mac =
                (n % 3 == 0 && class.is_created_with("mac")).then_some(Mac([2, 0, 0, 0, 0, 1]));
            spec.mtu = (n % 4 == 0 && class.is_created_with("mtu")).then_some(1400);
            check(&Request::InterfaceCreate(spec));
        }
    }
}

/// Checks random interfaces whose names are known before they are created.
fn each_named(check: impl Fn(&Request, &InterfaceSpec, &Instance)) {
    each(|request| match request {
        Request::InterfaceCreate(spec) if !spec.name.is_empty() => {
            check(request, spec, &spec.kind);
        }
        _ => {}
    });
}

fn kept(request: &Request) -> Request {
    match request {
        Request::InterfaceCreate(spec) => {
            let kind = spec.kind.kept();
            Request::InterfaceCreate(InterfaceSpec {
                kind,
                ..spec.clone()
            })
        }
        other => other.clone(),
    }
}

#[test]
fn commands_and_json_say_the_whole_interface_and_read_as_it() {
    each(|request| {
        let text = request.to_string();
        assert_eq!(&all(&[&text])[0], request, "{text}");
        let json = serde_json::to_string(request).unwrap();
        assert_eq!(&serde_json::from_str::<Request>(&json).unwrap(), request);
    });
    for class in kinds() {
        let example = class.def().example;
        let made = matches!(&all(&[example])[0], Request::InterfaceCreate(_));
        assert!(made, "{example}");
    }
}

/// The objects that an interface refers to.
fn needed(kind: &Instance) -> Vec<Request> {
    let mut needed = Vec::new();
    kind.references(&mut |class, value, strength| match strength {
        Strength::PartOf => {
            let pg = all(&[&format!("create packet-generator interface {value}")]);
            needed.extend(pg);
        }
        _ => {
            let classes = classes();
            let key = classes.get(class).map(|it| it.key(vec![value.clone()]));
            let sample = Instance::sample(&classes.get(class).unwrap().clone(), "pg0");
            if let (Some(Ok(key)), Some(sample)) = (key, sample)
                && !key.is_built_in()
            {
                let mut json = serde_json::to_value(&sample).unwrap();
                json["id"] = serde_json::to_value(value).unwrap();
                needed.push(Request::Set(serde_json::from_value(json).unwrap()));
            }
        }
    });
    needed
}

#[test]
fn the_file_says_the_whole_interface_and_reads_as_it() {
    each_named(|request, spec, kind| {
        let mut requests = needed(kind);
        requests.push(request.clone());
        let text = volley_config::write(&requests);
        let read = volley_config::parse(&text);
        let read = read.unwrap_or_else(|e| panic!("{request}: {e}\n{text}"));
        let created: Vec<Request> = read
            .requests
            .into_iter()
            .filter(|r| matches!(r, Request::InterfaceCreate(it) if it.name == spec.name))
            .collect();
        assert_eq!(created, [kept(request)], "{text}");
    });
}

#[test]
fn an_interface_gets_another_name_and_goes() {
    each_named(|request, spec, kind| {
        let mut requests = needed(kind);
        let bare = Core::state_of(&requests).unwrap();
        requests.push(request.clone());
        let full = Core::state_of(&requests).unwrap();
        let rename = |name: &str, new_name: &str| Request::InterfaceRename {
            name: name.into(),
            new_name: new_name.into(),
        };
        let mut state = full.clone();
        let renamed = state.edit(&rename(&spec.name, "up0"), &mut Default::default());
        if kind.is_part_of("interface", "pg0") {
            assert!(renamed.is_err(), "{request}");
            return;
        }
        renamed.unwrap();
        let created: Vec<Request> = volley_control::requests(&state);
        let named = |r: &Request| matches!(r, Request::InterfaceCreate(it) if it.name == "up0");
        assert!(created.iter().any(named), "{created:?}");
        state
            .edit(&rename("up0", &spec.name), &mut Default::default())
            .unwrap();
        assert_eq!(state, full);
        let name = spec.name.clone();
        state
            .edit(&Request::InterfaceDelete { name }, &mut Default::default())
            .unwrap();
        assert_eq!(state, bare);
    });
}

/// Lines, and how their requests are written; empty = like the line.
const SPELLINGS: &[(&str, &str)] = &[
    ("create packet-generator interface pg0", ""),
    (
        "create packet-generator interface pg0 mtu 1400 mac 02:fe:00:00:00:01",
        "create packet-generator interface pg0 mac 02:fe:00:00:00:01 mtu 1400",
    ),
    (
        "delete packet-generator interface pg0",
        "delete interface pg0",
    ),
    (
        "create sub-interfaces pg0 100 dot1q 100 exact-match",
        "create sub-interfaces pg0 100 dot1q 100",
    ),
    (
        "create sub-interface pg0 100",
        "create sub-interfaces pg0 100 dot1q 100",
    ),
    (
        "create sub-interfaces pg0 4294967295 dot1q 4094 inner-dot1q 1 exact-match",
        "create sub-interfaces pg0 4294967295 dot1q 4094 inner-dot1q 1",
    ),
    (
        "create sub-interfaces host-eth0.5 1 exact-match mtu 1400 dot1ad 1",
        "create sub-interfaces host-eth0.5 1 dot1ad 1 mtu 1400",
    ),
    ("create sub-interfaces pg0 7 dot1ad 200 inner-dot1q 7", ""),
    (
        "create sub-interfaces pg0 7 dot1q 200 mtu 1400 exact-match inner-dot1q 7",
        "create sub-interfaces pg0 7 dot1q 200 inner-dot1q 7 mtu 1400",
    ),
    ("delete sub-interface pg0.7", "delete interface pg0.7"),
    ("delete subif pg0.7", "delete interface pg0.7"),
    (
        "create pcap interface p0 rx a.pcap tx \"b c\" loop 3 pace recorded mac 02:fe:00:00:00:01 mtu 1500",
        "",
    ),
    (
        "create pcap interface p0 rx a.pcap loop forever pace fast",
        "create pcap interface p0 rx a.pcap loop forever",
    ),
    ("delete pcap interface p0", "delete interface p0"),
    (
        "create vhost-user name v0 hwaddr 02:fe:00:00:00:01 event-idx packed gso server socket /run/v.sock",
        "create vhost-user socket /run/v.sock server gso packed event-idx name v0 mac 02:fe:00:00:00:01",
    ),
    ("create vhost-user socket @v", ""),
    (
        "delete vhost-user VirtualEthernet0/0/0",
        "delete interface VirtualEthernet0/0/0",
    ),
    (
        "create interface virtio-user socket /run/v.sock queues 2 ring 1024",
        "",
    ),
    (
        "create dpdk interface wan0 dev 02:00.0 num-rx-queues 4 num-rx-desc 2048",
        "",
    ),
    (
        "create dpdk interface n1 vdev net_null1,size=64 num-tx-desc 64 no-offload mtu 1400",
        "",
    ),
    ("delete dpdk interface wan0", "delete interface wan0"),
    (
        "create interface memif id 0 socket-id 0 master",
        "create interface memif",
    ),
    (
        "create interface memif id 3 socket-id 1 slave ring-size 512 buffer-size 4096 rx-queues 2 tx-queues 4 secret psst no-zero-copy",
        "create interface memif id 3 socket-id 1 slave ring-size 512 buffer-size 4096 rx-queues 2 tx-queues 4 secret psst",
    ),
    (
        "create interface memif id 3 socket-id 1 slave name up1 mac 02:fe:00:00:00:01 mtu 1500",
        "",
    ),
    (
        "create interface memif slave hw-addr 02:fe:00:00:00:01",
        "create interface memif slave mac 02:fe:00:00:00:01",
    ),
    (
        "delete interface memif memif0/0",
        "delete interface memif0/0",
    ),
    (
        "create tap id 0 host-if-name lan host-ns red host-ip4-addr 10.0.0.2/24 host-ip6-addr 2001:db8::2/64",
        "create tap host-if-name lan host-ns red host-ip-addr 10.0.0.2/24 host-ip-addr 2001:db8::2/64",
    ),
    ("create tap id 3 tun vhost off", ""),
    (
        "create tap name up0 host-mac-addr 02:00:00:00:00:07 host-mtu-size 1400 num-rx-queues 2 no-offload mtu 1500",
        "",
    ),
    ("create tap vhost auto", "create tap"),
    ("delete tap interface tap0", "delete interface tap0"),
    (
        "create host-interface name veth0 wait hw-addr 02:fe:00:00:00:01",
        "create host-interface name veth0 wait mac 02:fe:00:00:00:01",
    ),
    (
        "create host-interface name veth0 as up0 netns red num-rx-queues 2 ring-size 64 no-offload",
        "",
    ),
    (
        "delete host-interface interface host-veth0",
        "delete interface host-veth0",
    ),
    ("create interface af_xdp host-if veth0", ""),
    (
        "create interface af_xdp host-if veth0 name up0 netns red num-rx-queues 2 ring-size 64 native no-zero-copy wait",
        "",
    ),
    (
        "create interface af_xdp host-if e1 zero-copy native",
        "create interface af_xdp host-if e1 native zero-copy",
    ),
    ("delete af_xdp interface veth0", "delete interface veth0"),
];

#[test]
fn the_old_spellings_read_as_before() {
    crate::objects::register().unwrap();
    for (line, same) in SPELLINGS {
        let same = if same.is_empty() { line } else { same };
        assert_eq!(all(&[line])[0].to_string(), *same, "{line}");
    }
}

/// Requests of earlier versions, and their commands.
const JSON: &[(&str, &str)] = &[
    (
        r#"{"name":"pg0","kind":"pg","mac":"02:fe:00:00:00:01","mtu":null}"#,
        "create packet-generator interface pg0 mac 02:fe:00:00:00:01",
    ),
    (
        r#"{"name":"pg0.7","kind":{"sub-interface":{"parent":"pg0","id":7,"tag":"dot1ad","vlan":200,"inner":7}}}"#,
        "create sub-interfaces pg0 7 dot1ad 200 inner-dot1q 7",
    ),
    (
        r#"{"name":"pg0.7","kind":{"sub-interface":{"parent":"pg0","id":7,"tag":"dot1q","vlan":300,"inner":null}}}"#,
        "create sub-interfaces pg0 7 dot1q 300",
    ),
    (
        r#"{"name":"p1","kind":{"pcap":{"rx":"/a","tx":null,"repeat":{"times":3},"pace":"recorded"}}}"#,
        "create pcap interface p1 rx /a loop 3 pace recorded",
    ),
    (
        r#"{"name":"p1","kind":{"pcap":{"rx":"/a","tx":"/b","repeat":"forever","pace":"fast"}}}"#,
        "create pcap interface p1 rx /a tx /b loop forever",
    ),
    (
        r#"{"name":"","kind":{"vhost-user":{"socket":"/v","role":"server","gso":true,"packed":false,"event_idx":false,"queues":1,"ring":512}}}"#,
        "create vhost-user socket /v server gso",
    ),
    (
        r#"{"name":"v1","kind":{"virtio-user":{"socket":"/v","role":"client","gso":false,"packed":false,"event_idx":true,"queues":2,"ring":512}}}"#,
        "create interface virtio-user socket /v event-idx queues 2 name v1",
    ),
    (
        r#"{"name":"wan0","kind":{"dpdk":{"device":{"vdev":"net_null0"},"queues":2,"rx_desc":1024,"tx_desc":512,"offload":"off"}}}"#,
        "create dpdk interface wan0 vdev net_null0 num-rx-queues 2 num-tx-desc 512 no-offload",
    ),
    (
        r#"{"name":"wan0","kind":{"dpdk":{"device":{"pci":"02:00.0"},"queues":1,"rx_desc":1024,"tx_desc":1024,"offload":"on"}}}"#,
        "create dpdk interface wan0 dev 02:00.0",
    ),
    (
        r#"{"name":"memif1/3","kind":{"memif":{"id":3,"socket_id":1,"role":"slave","secret":null,"ring_size":512,"buffer_size":2048,"rx_queues":1,"tx_queues":1,"no_zero_copy":true}},"mac":null,"mtu":1500}"#,
        "create interface memif id 3 socket-id 1 slave ring-size 512 mtu 1500",
    ),
    (
        r#"{"name":"t0","kind":{"tap":{"mode":"tun","host":"lan","namespace":null,"host_mac":null,"host_mtu":1400,"host_addresses":["10.0.0.2/24"],"queues":2,"offload":"off","vhost":"auto"}},"mac":null,"mtu":null}"#,
        "create tap name t0 tun host-if-name lan host-mtu-size 1400 host-ip-addr 10.0.0.2/24 num-rx-queues 2 no-offload",
    ),
    (
        r#"{"name":"host-e","kind":{"host-interface":{"host":"e","namespace":null,"queues":1,"ring":1024,"offload":"on"}}}"#,
        "create host-interface name e",
    ),
    (
        r#"{"name":"e","kind":{"af-xdp":{"host":"e","namespace":"red","queues":null,"ring":64,"mode":"native","copy":"zero","wait":true}}}"#,
        "create interface af_xdp host-if e netns red ring-size 64 native zero-copy wait",
    ),
];

#[test]
fn requests_of_earlier_versions_are_read() {
    crate::objects::register().unwrap();
    for (json, line) in JSON {
        let json = format!("{{\"interface-create\":{json}}}");
        let read: Request = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
        assert_eq!(read.to_string(), *line);
        assert_eq!(read, all(&[line])[0]);
    }
    let unknown = r#"{"interface-create":{"name":"a","kind":{"memif":{"idd":3}}}}"#;
    let message = serde_json::from_str::<Request>(unknown)
        .unwrap_err()
        .to_string();
    assert!(message.contains("unknown field `idd`"), "{message}");
    let other = r#"{"interface-create":{"name":"a","kind":{"class":"memif","name":"b"}}}"#;
    let message = serde_json::from_str::<Request>(other)
        .unwrap_err()
        .to_string();
    assert!(message.contains("name must be a"), "{message}");
}

/// Faulty lines, and the fault that is reported.
const WRONG_LINES: &[(&str, &str)] = &[
    (
        "create sub-interfaces pg0 5000",
        "column 27: id must be a VLAN, 1 to 4094, where there is no tag",
    ),
    (
        "create sub-interfaces pg0 1 inner-dot1q 7",
        "column 29: 'inner-dot1q' is not understood here",
    ),
    (
        "create sub-interfaces pg0 1 dot1q 7 dot1ad 8",
        "column 37: 'dot1ad' is not understood here",
    ),
    (
        "create sub-interfaces pg0 0",
        "column 27: id must be a VLAN, 1 to 4094, where there is no tag",
    ),
    (
        "create sub-interfaces pg0 1 dot1q 4095",
        "column 35: dot1q must be a number from 1 to 4094, not '4095'",
    ),
    (
        "create sub-interfaces pg0 1 mac 02:fe:00:00:00:01",
        "'mac' is not understood here",
    ),
    (
        "create pcap interface p",
        "rx must be given, or tx, or both",
    ),
    (
        "create pcap interface p rx a tx a",
        "column 33: tx must be another file than rx",
    ),
    (
        "create pcap interface p rx a loop 0",
        "column 35: loop must be a number of times from 1",
    ),
    ("create vhost-user server", "socket is missing"),
    (
        "create interface virtio-user socket /v ring 65",
        "column 45: ring must be a power of two",
    ),
    (
        "create interface virtio-user socket /v queues 17",
        "from 1 to 16",
    ),
    (
        "create dpdk interface d dev eth0",
        "write its address as 0000:02:00.0",
    ),
    ("create dpdk interface d vdev null0", "it begins with net_"),
    (
        "create dpdk interface d vdev net_null0 num-rx-desc 7",
        "from 32 to 32768",
    ),
    (
        "create interface memif id 0 slave ring-size 1000",
        "column 45: ring_size must be a power of two, 1 to 16384, not 1000",
    ),
    (
        "create interface memif id 0 slave buffer-size 8",
        "column 47: buffer-size must be a number from 64 to 65535, not '8'",
    ),
    (
        "create interface memif id 0 secret 1234567890123456789012345",
        "column 36: secret must have 24 bytes at most, not 25",
    ),
    ("create interface memif rx-queues 65", "from 1 to 64"),
    (
        "create interface memif master slave",
        "'role' is given twice",
    ),
    (
        "create interface memif mtu 1500 mtu 1400",
        "'mtu' is given twice",
    ),
    (
        "create interface memif mtu 1",
        "mtu must be a number from 68 to 65535, not '1'",
    ),
    ("create interface memif mac 01:00:00:00:00:01", "column 28"),
    (
        "create tap vhost on tun",
        "column 18: vhost must not be on for a tun",
    ),
    (
        "create tap num-rx-queues 17 vhost on",
        "column 26: queues must be a number from 1 to 16 with vhost on",
    ),
    (
        "create tap num-rx-queues 257",
        "column 26: queues must be a number from 1 to 256, not '257'",
    ),
    (
        "create tap host-if-name a/b",
        "column 25: host 'a/b': use letters, digits",
    ),
    (
        "create tap host-mac-addr 01:00:00:00:00:01",
        "column 26: host_mac must be",
    ),
    (
        "create tap name a-name-that-is-too-long",
        "column 17: name 'a-name-that-is-too-long': use 1 to 15 characters",
    ),
    ("create tap tun tun", "'mode' is given twice"),
    (
        "create host-interface name veth0 ring-size 1",
        "from 64 to 65536",
    ),
    (
        "create interface af_xdp host-if veth0 ring-size 65",
        "column 49: ring must be a power of two",
    ),
    (
        "create interface af_xdp host-if veth0 generic zero-copy",
        "column 47: copy must not be zero",
    ),
    (
        "create interface af_xdp host-if veth0 netns ..",
        "column 45: namespace '..': give a name",
    ),
];

/// Faulty keys after the name, from line 3 on, and the fault that is reported.
const WRONG_FILES: &[(&str, &str)] = &[
    (
        "kind = \"sub-interface\"\nparent = \"a\"",
        "volley.toml:2:8: interface.name: must be the parent's name, a dot and a number, such as a.100",
    ),
    (
        "kind = \"sub-interface\"",
        "volley.toml:1:1: interface: the key 'parent' is missing",
    ),
    (
        "kind = \"sub-interface\"\nparent = \"x\"",
        "volley.toml:4:10: interface.parent: there is no interface x in this file",
    ),
    (
        "kind = \"sub-interface\"\nparent = \"a\"\ndot1q = 1\ndot1ad = 2",
        "volley.toml:2:8: interface.name: must be the parent's name, a dot and a number",
    ),
    (
        "kind = \"pg\"\ndot1q = 1",
        "volley.toml:4:9: interface.dot1q: is for kind sub-interface only",
    ),
    (
        "kind = \"sub-interface\"\nparent = \"a\"\ndot1q = 4095",
        "volley.toml:5:9: interface.dot1q: must be a number from 1 to 4094",
    ),
    (
        "kind = \"pcap\"",
        "volley.toml:1:1: interface: rx must be given, or tx, or both",
    ),
    (
        "kind = \"pcap\"\nrx = \"a\"\nloop = 0",
        "volley.toml:5:8: interface.loop: must be a number of times from 1",
    ),
    (
        "kind = \"pcap\"\nrx = \"a\"\npace = \"slow\"",
        "must be fast or recorded, not 'slow'",
    ),
    (
        "kind = \"vhost-user\"",
        "volley.toml:1:1: interface: the key 'socket' is missing",
    ),
    (
        "kind = \"vhost-user\"\nsocket = \"/v\"\nring = 64",
        "volley.toml:5:8: interface.ring: is for kind ",
    ),
    (
        "kind = \"dpdk\"",
        "volley.toml:1:1: interface: dev must be given (a PCI address), or vdev",
    ),
    (
        "kind = \"dpdk\"\ndev = \"eth0\"",
        "volley.toml:4:7: interface.dev: must be a PCI address",
    ),
    (
        "kind = \"dpdk\"\ndev = \"02:00.0\"\nvdev = \"net_null0\"",
        "volley.toml:5:8: interface.vdev: must not be beside dev",
    ),
    (
        "kind = \"pg\"\nvdev = \"net_null0\"",
        "is for kind dpdk only",
    ),
    (
        "kind = \"pg\"\nmemif = { id = 1 }",
        "volley.toml:4:9: interface.memif: is for kind memif only",
    ),
    (
        "kind = \"memif\"\nmemif = { ring_size = 3 }",
        "volley.toml:4:23: interface.memif.ring_size: must be a power of two",
    ),
    (
        "kind = \"memif\"\nmemif = { rol = 1 }",
        "did you mean 'role'?",
    ),
    (
        "kind = \"memif\"\nmemif = 1",
        "volley.toml:4:9: interface.memif: must be a table",
    ),
    (
        "kind = \"memif\"\nmemif = { socket = 7 }",
        "volley.toml:4:20: interface.memif.socket: there is no memif socket 7 in this file",
    ),
    (
        "kind = \"tap\"\nhost = \"a b\"",
        "volley.toml:4:8: interface.host: 'a b': use letters",
    ),
    (
        "kind = \"tap\"\nhost_addresses = [\"x\"]",
        "volley.toml:4:18: interface.host_addresses",
    ),
    (
        "kind = \"tap\"\nvhost = \"never\"",
        "must be auto, on or off, not 'never'",
    ),
    (
        "kind = \"tap\"\nring = 64",
        "volley.toml:4:8: interface.ring: is for kind ",
    ),
    (
        "kind = \"host-interface\"",
        "volley.toml:1:1: interface: the key 'host' is missing",
    ),
    (
        "kind = \"host-interface\"\nwait = true",
        "unknown key 'wait'",
    ),
    (
        "kind = \"af_xdp\"\nhost = \"e\"\nring = 65",
        "volley.toml:5:8: interface.ring: must be a power of two",
    ),
    (
        "kind = \"mamif\"",
        "volley.toml:3:8: interface.kind: must be one of ",
    ),
];

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    crate::objects::register().unwrap();
    let lines = WRONG_LINES
        .iter()
        .map(|(line, why)| (line, why, error(line)));
    let files = WRONG_FILES.iter().map(|(keys, why)| {
        let text = format!("[[interface]]\nname = \"a\"\n{keys}\n");
        let refused = volley_config::parse(&text).unwrap_err();
        (keys, why, refused.to_string())
    });
    let others: Vec<_> = lines
        .chain(files)
        .filter(|(_, why, found)| !found.contains(**why))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// Faulty names and keys of sub-interfaces of pg0, and the fault that is reported.
const WRONG_SUBS: &[(&str, &str, &str)] = &[
    (
        "pg0.5000",
        "",
        "volley.toml:5:8: interface.name: must be a VLAN, 1 to 4094, where there is no tag",
    ),
    (
        "pg1.1",
        "",
        "volley.toml:5:8: interface.name: must be the parent's name, a dot and a number, such as pg0.100",
    ),
    (
        "pg0.01",
        "",
        "volley.toml:5:8: interface.name: must be the parent's name, a dot and a number, such as pg0.100",
    ),
    (
        "pg0.1",
        "dot1q = 1\ndot1ad = 2",
        "volley.toml:9:10: interface.dot1ad: must not be beside dot1q: there is one outer tag",
    ),
    (
        "pg0.1",
        "mac = \"02:fe:00:00:00:01\"",
        "mac of pg0.1 is not valid: an interface of kind sub interface takes no mac",
    ),
];

/// A file with pg0 and a sub-interface of pg0.
fn sub_file(name: &str, keys: &str) -> String {
    format!(
        "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"{name}\"\nkind = \"sub-interface\"\nparent = \"pg0\"\n{keys}\n"
    )
}

#[test]
fn a_sub_interface_has_the_tags_that_its_file_says() {
    crate::objects::register().unwrap();
    let created = |text: &str| {
        let requests = volley_config::parse(text).unwrap().requests;
        let lines = requests.iter().map(Request::to_string);
        let line: Vec<String> = lines.filter(|l| l.starts_with("create sub")).collect();
        (line.join(", "), volley_config::write(&requests))
    };
    for (name, keys, want) in [
        ("pg0.100", "", "pg0 100 dot1q 100"),
        (
            "pg0.100",
            "inner_dot1q = 7",
            "pg0 100 dot1q 100 inner-dot1q 7",
        ),
        (
            "pg0.7",
            "dot1ad = 200\ninner_dot1q = 4094\nmtu = 1400",
            "pg0 7 dot1ad 200 inner-dot1q 4094 mtu 1400",
        ),
    ] {
        let want = format!("create sub-interfaces {want}");
        let (line, written) = created(&sub_file(name, keys));
        assert_eq!(line, want);
        assert_eq!(created(&written).0, want, "{written}");
    }
    for (name, keys, want) in WRONG_SUBS {
        let error = volley_config::parse(&sub_file(name, keys)).unwrap_err();
        assert!(error.to_string().contains(want), "{name} {keys}: {error}");
    }
}

#[test]
fn an_interface_of_no_kind_is_refused_in_json() {
    crate::objects::register().unwrap();
    for (kind, want) in [
        ("\"lamp\"", "there is no kind 'lamp' of interfaces"),
        ("{\"lamp\":{}}", "there is no kind 'lamp' of interfaces"),
        ("7", "must be an object with the field `class`"),
        ("{\"class\":\"mtu\"}", "no kind of interfaces"),
        (
            "{\"class\":\"sub_interface\",\"parent\":\"pg0\",\"dot1q\":1,\"dot1ad\":2}",
            "dot1ad must not be beside dot1q",
        ),
    ] {
        let json = format!("{{\"name\":\"pg0.7\",\"kind\":{kind}}}");
        let error = serde_json::from_str::<InterfaceSpec>(&json).unwrap_err();
        assert!(error.to_string().contains(want), "{json}: {error}");
    }
}
