//! Every registered class in every representation: what one writes, it reads as the same object, and it refuses what is wrong.

use crate::objects;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use volley_cli::{Action, parse_line};
use volley_control::Core;
use volley_iface::Admin;
use volley_model::Request;
use volley_object::{Class, Effect, Instance, Object, Place, classes, instances};

const INTERFACES: [&str; 2] = ["pg0", "pg1"];
const TWO: &str =
    "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";

fn all() -> Vec<Class> {
    objects::register().unwrap();
    let classes = classes();
    // Other tests add and remove classes.
    let own = classes.iter().filter(|c| !c.name().starts_with("test_"));
    let own = own.filter(|c| !c.is_interface());
    own.cloned().collect()
}

pub(super) fn read(line: &str) -> Request {
    match parse_line(line) {
        Ok(command) => match command.action {
            Action::Request(request) => *request,
            other => panic!("{line}: {other:?}"),
        },
        Err(error) => panic!("{line}: {error}"),
    }
}

fn each(mut check: impl FnMut(&Request)) {
    for class in all() {
        let mut runner = TestRunner::new(Config {
            cases: 48,
            failure_persistence: None,
            ..Config::default()
        });
        let strategy = instances(&class, &INTERFACES);
        for _ in 0..48 {
            let object = strategy.new_tree(&mut runner).unwrap().current();
            check(&Request::Set(object.clone()));
            check(&Request::Unset(object.key()));
        }
    }
}

#[test]
fn a_command_says_the_whole_object_and_reads_as_it() {
    each(|request| assert_eq!(&read(&request.to_string()), request, "{request}"));
    for class in all() {
        let example = class.def().example;
        assert!(!example.is_empty(), "{class:?} has no example");
        assert!(matches!(read(example), Request::Set(_)), "{example}");
    }
}

#[test]
fn json_says_the_whole_object_and_reads_as_it() {
    each(|request| {
        let text = serde_json::to_string(request).unwrap();
        assert_eq!(&serde_json::from_str::<Request>(&text).unwrap(), request);
    });
}

/// The objects of other classes that an object refers to, with default values.
fn needed(object: &Instance) -> Vec<Request> {
    let mut all = Vec::new();
    let version = object.ip_version();
    object.references(&mut |class, value, _| {
        let classes = classes();
        let key = classes
            .get(class)
            .and_then(|it| it.key_named(value, version));
        // Several references may have the same key.
        let object = key.and_then(|key| Instance::usual(&key)).map(Request::Set);
        all.extend(object.filter(|object| !all.contains(object)));
    });
    all
}

#[test]
fn the_file_says_the_whole_object_and_reads_as_it() {
    each(|request| {
        let Request::Set(object) = request else {
            return;
        };
        if object.class().def().file == Place::None || object.key().is_unsaved() {
            return;
        }
        let mut requests = volley_config::parse(TWO).unwrap().requests;
        requests.extend(needed(object));
        requests.push(request.clone());
        let text = volley_config::write(&requests);
        let again = volley_config::parse(&text);
        let again = again.unwrap_or_else(|e| panic!("{request}: {e}\n{text}"));
        let [before, after] = [&requests, &again.requests].map(|all| Core::state_of(all).unwrap());
        assert_eq!(Core::difference(&before, &after), [""; 0], "{text}");
    });
}

#[test]
fn one_name_for_a_field_in_every_face() {
    for class in all() {
        for field in class.fields() {
            let dashed = field.dashed();
            assert_eq!(dashed.replace('-', "_"), field.name);
            // The first pattern spells objects; the others are spellings of VPP.
            for pattern in class.patterns(Effect::Set).iter().take(1) {
                let shown = pattern.show(class.fields());
                // A word before the value of a field is the field's name.
                let behind = format!(" <{dashed}>");
                for (at, _) in shown.match_indices(&behind) {
                    let word = shown[..at].rsplit([' ', '{', '(', '|']).next().unwrap();
                    // `option[s]` is a word with two spellings.
                    let word = word.replace(['[', ']'], "");
                    let free = class.keys().iter().any(|k| k.name == field.name);
                    let none = word.is_empty() || word.ends_with('>') || word.ends_with(')');
                    let same = word == dashed || none;
                    assert!(
                        free || same || class.values().len() == 1,
                        "{class:?}: {shown}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_text_names_its_subject() {
    let pronoun = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        [
            "It", "Its", "Their", "They", "This", "That", "Them", "Whose", "What",
        ]
        .contains(&first)
    };
    for class in all() {
        assert!(!pronoun(class.doc()), "{class:?}: {}", class.doc());
        for field in class.fields() {
            assert!(
                !pronoun(field.doc),
                "{class:?}.{}: {}",
                field.name,
                field.doc
            );
        }
    }
}

/// Faulty lines, and the fault that is reported.
const WRONG_LINES: &[(&str, &str)] = &[
    ("set ip icmp rate x", "column 18"),
    (
        "set ip icmp burst 0",
        "burst must be a number from 1 to 100000, not '0'",
    ),
    ("set ip icmp rate 1 rate 2", "'rate' is given twice"),
    (
        "set ip multipath buckets 100",
        "buckets must be a power of two",
    ),
    ("set urpf ip4 rx tight pg0", "'tight'"),
    ("set interface rss pg0 workers 2,1", "rising order"),
    (
        "set interface rss pg0 workers 64",
        "workers must be a number from 0 to 63, not '64'",
    ),
    ("set interface rss pg0 workers 0,x", "not 'x'"),
    ("set interface rss pg0 sideways", "'sideways'"),
    (
        "set path-batcher defaults batch 0",
        "batch must be a number from 1 to 1024, not '0'",
    ),
    (
        "set path-batcher defaults learn-sample 4",
        "learn must be given",
    ),
    (
        "set path-batcher defaults learn 2 learn-field vlan",
        "such as vlan.id, not 'vlan'",
    ),
    (
        "set path-batcher queue 0",
        "id must be a number from 1 to 63, not '0'",
    ),
    ("delete path-batcher queue 0", "from 1 to 63"),
    ("set path-batcher queue 1 strict 256", "from 1 to 255"),
    (
        "set path-batcher rule r queue 64",
        "queue must be a number from 0 to 63",
    ),
    (
        "set path-batcher rule r queue 1 match ip4=4",
        "'ip4' is a header",
    ),
    (
        "set path-batcher rule r queue 1 match udp.dst=9-1",
        "ends before it begins",
    ),
    (
        "set interface dad pg0 11",
        "probes must be a number from 0 to 10, not '11'",
    ),
    (
        "set interface proxy pg0 ff02::/16",
        "must not be of multicast groups: ff02::/16",
    ),
    ("set interface proxy pg0", "one prefix at least"),
    ("set interface proxy pg0 192.0.2.1/25", "host bits"),
    (
        "ip6 nd pg0 ra-send ra-interval 3",
        "max-interval must be a number from 4 to 1800",
    ),
    ("ip6 nd pg0 ra-send ra-interval 30 29", "three quarters"),
    (
        "ip6 nd pg0 ra-send ra-lifetime 10",
        "not shorter than max_interval",
    ),
    (
        "ip6 nd pg0 ra-send rdnss ff02::1",
        "the address of one host",
    ),
    ("ip6 nd pg0 ra-send dnssl a..b", "not 'a..b'"),
    (
        "ip6 nd pg0 ra-send ra-managed-config-flag managed on",
        "'managed'",
    ),
    (
        "ip6 nd pg0 prefix 2001:db8::/64 100 200",
        "must not be longer than valid",
    ),
    (
        "ip6 nd pg0 prefix fe80::/64",
        "neither link-local nor multicast",
    ),
    ("ip6 nd pg0 prefix 10.0.0.0/8", "must be of IPv6"),
    (
        "set interface igmp pg0 on robustness 8",
        "robustness must be a number from 1 to 7",
    ),
    (
        "set interface igmp pg0 on query-interval 10 max-response 10000",
        "shorter than the query interval of 10 s",
    ),
    (
        "set interface mld pg0 on last-member-count 0",
        "from 1 to 7",
    ),
    ("set interface mld pg0 on often", "'often'"),
    ("set interface rx-mode pg0 sometimes", "'sometimes'"),
    ("set interface mtu 20 pg0", "from 68 to 65535, not '20'"),
    (
        "set interface mac address pg0 01:00:5e:00:00:01",
        "must be a unicast address",
    ),
    ("set interface unnumbered pg0 use pg0", "another interface"),
    (
        "set interface rx-placement pg0 queue 1024 auto",
        "queue must be a number from 0 to 1023",
    ),
    (
        "bridge-domain add 0",
        "id must be a number from 1 to 16777215, not '0'",
    ),
    ("bridge-domain add 1 mac-age 16667", "from 0 to 16666"),
    ("bridge-domain add 1 mac-limit x", "column 31"),
    (
        "bridge-domain add 1 learn no-learn",
        "'learn' is given twice",
    ),
    (
        "bridge-domain add 1 group-fwd-mask 65536",
        "from 0 to 65535",
    ),
    ("bridge-domain del 16777216", "from 1 to 16777215"),
    (
        "l2fib add 03:00:00:00:00:01 1 filter",
        "must be a unicast address",
    ),
    ("l2fib add 02:00:00:00:00:01 0 filter", "from 1 to 16777215"),
    ("set interface l2 bridge pg0 0", "from 1 to 16777215"),
    ("set interface l2 bridge pg0 1 shg 256", "from 0 to 255"),
    ("l2fib add 02:00:00:00:00 1 filter", "02:00:00:00:00"),
    (
        "set node worker ip4-lookup 64",
        "worker must be a number from 0 to 63",
    ),
];

/// Faulty files, and the fault that is reported.
const WRONG_FILES: &[(&str, &str)] = &[
    (
        "[icmp]\nburst = 0\n",
        "volley.toml:2:9: icmp.burst: must be a number from 1 to 100000",
    ),
    (
        "[icmp]\nerrors = 1\n",
        "volley.toml:2:10: icmp.errors: must be true or false",
    ),
    ("[icmp]\nburts = 1\n", "did you mean 'burst'?"),
    ("[reassembly.ip6]\ntimeout = 0\n", "volley.toml:2"),
    (
        "[reassembly.ip7]\ntimeout = 1\n",
        "must be ip4 or ip6, not 'ip7'",
    ),
    ("[multipath]\nbuckets = 100\n", "power of two"),
    (
        "[[interface]]\nname = \"a\"\nkind = \"pg\"\nurpf = { ip4 = \"tight\" }\n",
        "volley.toml:4",
    ),
    (
        "[[interface]]\nname = \"a\"\nkind = \"pg\"\nredirects = \"x\"\n",
        "volley.toml:4",
    ),
    (
        "[[node_worker]]\nnode = \"ip4-lookup\"\n",
        "'worker' is missing",
    ),
    ("[[bridge_domain]]\nid = 0\n", "1 to 16777215"),
    (
        "[[bridge_domain]]\nid = 1\n[[bridge_domain]]\nid = 1\n",
        "bridge domain 1 is declared twice",
    ),
    (
        "[[bridge_domain]]\nid = 7\n[[l2fib]]\nmac = \"02:00:00:00:00:01\"\ndomain = 3\nfilter = true\n",
        "volley.toml:5:10: l2fib.domain: there is no bridge domain 3 in this file; there are: 7",
    ),
    (
        "[[bridge_domain]]\nid = 1\n[[l2fib]]\nmac = \"02:00:00:00:00:01\"\ndomain = 1\n",
        "volley.toml:3:1: l2fib: interface must be given",
    ),
    (
        "[[l2fib]]\nmac = \"02:00:00:00:00:01\"\ndomain = 1\ninterface = \"pg7\"\n",
        "volley.toml:4:13: l2fib.interface: there is no interface pg7 in this file",
    ),
    (
        "[[bridge_port]]\ninterface = \"a\"\ndomain = 3\n",
        "volley.toml:2:13: bridge_port.interface: there is no interface a in this file",
    ),
    (
        "[[xconnect]]\nrx = \"a\"\n",
        "xconnect: the key 'tx' is missing",
    ),
    (
        "[[xconnect]]\nrx = 1\ntx = \"a\"\n",
        "volley.toml:2:6: xconnect.rx",
    ),
    (
        "[[path_rule]]\nname = \"r\"\nqueue = 3\n",
        "volley.toml:3:9: path_rule.queue: there is no path queue 3 in this file",
    ),
];

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    all();
    for (line, error) in WRONG_LINES {
        let reported = parse_line(line).unwrap_err().to_string();
        assert!(reported.contains(error), "{line}: {reported}");
    }
    for (text, error) in WRONG_FILES {
        let reported = volley_config::parse(text).unwrap_err().to_string();
        assert!(reported.contains(error), "{text}: {reported}");
    }
}

/// Faulty keys of an interface, and the fault that is reported.
const WRONG_KEYS: &[(&str, &str)] = &[
    (
        "rss = \"inner auto\"",
        "volley.toml:4:7: interface.rss: must be a table",
    ),
    (
        "rss = { inner = true, workers = [2, 1] }",
        "workers must be in rising order",
    ),
    ("rss = { mod = \"auto\" }", "did you mean 'mode'?"),
    (
        "rss = { hash = \"md5\" }",
        "rss.hash: must be toeplitz or crc32c, not 'md5'",
    ),
    (
        "rx_mode = \"busy\"",
        "must be polling, interrupt or adaptive, not 'busy'",
    ),
    (
        "rx_placement = [{ queue = 1 }]",
        "the key 'worker' is missing",
    ),
    (
        "rx_placement = [{ queue = 1, worker = 0 }, { queue = 1, worker = 2 }]",
        "declared twice",
    ),
    ("promiscuous = 1", "must be true or false"),
    ("dad = 11", "from 0 to 10"),
    ("path_batcher = 1", "must be true or false"),
    ("proxy = [\"ff02::/16\"]", "groups"),
    ("proxy = \"192.0.2.0/25\"", "must be a list"),
    (
        "router_advertisement = { max_interval = 3 }",
        "from 4 to 1800",
    ),
    (
        "router_advertisement = { dnssl = [\"-\", \"a b\"] }",
        "'a b'",
    ),
    (
        "advertised_prefix = [{ valid = 3 }]",
        "the key 'prefix' is missing",
    ),
    (
        "autoconf = \"yes\"",
        "must be off, on or default-route, not 'yes'",
    ),
    (
        "group_querier = { ip5 = {} }",
        "must be ip4 or ip6, not 'ip5'",
    ),
    (
        "group_querier = { ip4 = { robustness = 9 } }",
        "from 1 to 7",
    ),
];

#[test]
fn wrong_keys_of_interfaces_are_refused_at_their_place() {
    all();
    for (key, error) in WRONG_KEYS {
        let text = format!("[[interface]]\nname = \"a\"\nkind = \"pg\"\n{key}\n");
        let reported = volley_config::parse(&text).unwrap_err().to_string();
        assert!(reported.contains(error), "{key}: {reported}");
        assert!(reported.contains("volley.toml:4"), "{key}: {reported}");
    }
}

/// Lines, and how their requests are written; empty = like the line.
const SPELLINGS: &[(&str, &str)] = &[
    ("set interface ip table pg0 7", ""),
    ("set interface ip6 table pg0 7", ""),
    ("set interface ip table pg0 0", ""),
    ("set interface unnumbered pg0 use pg1", ""),
    ("set interface unnumbered del pg0", ""),
    ("set int mtu packet 1500 pg0", "set interface mtu 1500 pg0"),
    ("set interface mtu default pg0", ""),
    (
        "set interface mac address pg0 02:FE:00:00:00:01",
        "set interface mac address pg0 02:fe:00:00:00:01",
    ),
    ("set interface mac address pg0 default", ""),
    ("set ip icmp", "set ip icmp"),
    ("set ip icmp errors on rate 1000", "set ip icmp"),
    ("set ip icmp errors off rate 0 burst 7 receiver-rate 9", ""),
    ("set ip6 reassembly", ""),
    ("set ip6 reassembly virtual-timeout 250", ""),
    ("set ip4 reassembly max-buffers 1024", "set ip4 reassembly"),
    ("set interface ip virtual-reassembly pg0 on", ""),
    (
        "set interface ip redirects pg0 enable",
        "set interface ip redirects pg0 on",
    ),
    ("set interface ip directed-broadcast pg0 off", ""),
    ("set urpf ip rx strict pg0", "set urpf ip4 strict pg0"),
    ("set urpf ip6 loose pg0", ""),
    ("set urpf ip4 rx off pg0", "set urpf ip4 off pg0"),
    ("set ip multipath resilient buckets 512", ""),
    ("default urpf pg0 ip4", "set urpf ip4 off pg0"),
    ("default icmp", "default icmp"),
    ("set interface promiscuous on pg0", ""),
    (
        "set int promisc enable pg0",
        "set interface promiscuous on pg0",
    ),
    ("set interface rx-mode pg0 interrupt", ""),
    ("set interface rx-placement pg0 queue 1 worker 2", ""),
    (
        "set interface rx-placement pg0 worker 2",
        "set interface rx-placement pg0 queue 0 worker 2",
    ),
    (
        "set interface rx-placement pg0 auto",
        "set interface rx-placement pg0 queue 0 auto",
    ),
    ("set interface rss pg0 on", "set interface rss pg0"),
    (
        "set interface rss pg0 auto workers 0,2 inner crc32c symmetric",
        "set interface rss pg0 crc32c symmetric inner workers 0,2 auto",
    ),
    (
        "set interface rss pg0 workers all auto",
        "set interface rss pg0 auto",
    ),
    ("set interface rss pg0 off", ""),
    (
        "set path-batcher defaults timeout 9 batch 64",
        "set path-batcher defaults batch 64 timeout 9",
    ),
    (
        "set path-batcher defaults learn 2 learn-field vlan.id learn-field udp.dst",
        "set path-batcher defaults learn 2 learn-field vlan.id learn-field udp.dst",
    ),
    (
        "set path-batcher queue 1 strict 2 batch 7",
        "set path-batcher queue 1 batch 7 strict 2",
    ),
    ("set path-batcher queue 1", ""),
    ("delete path-batcher queue 1", ""),
    (
        "set path-batcher rule dns queue 1 match udp.dst=53 priority 10 match ip4",
        "set path-batcher rule dns queue 1 priority 10 match udp.dst=53 match \"ip4\"",
    ),
    ("delete path-batcher rule dns", ""),
    ("set interface path-batcher on pg0", ""),
    ("set int dad pg0 3", "set interface dad pg0 3"),
    ("set interface dad pg0 off", ""),
    ("set interface proxy pg0 192.0.2.0/25 2001:db8::/48", ""),
    ("set interface proxy pg0 off", ""),
    ("ip6 nd address autoconfig pg0", ""),
    ("ip6 nd address autoconfig pg0 default-route", ""),
    (
        "ip6 nd addr auto pg0 disable",
        "ip6 nd address autoconfig pg0 disable",
    ),
    ("ip6 nd pg0 ra-suppress", ""),
    ("ip6 nd pg0 ra-send", ""),
    (
        "ip6 nd pg0 ra-send rdnss 2001:db8::53 ra-interval 30 10 ra-managed-config-flag dnssl a.example rdnss ::9",
        "ip6 nd pg0 ra-send max-interval 30 min-interval 10 managed on rdnss 2001:db8::53 rdnss ::9 dnssl a.example",
    ),
    (
        "ip6 nd pg0 ra-send ra-suppress-mtu ra-suppress-link-layer ra-hop-limit 0 ra-lifetime 0",
        "ip6 nd pg0 ra-send lifetime 0 hop-limit 0 send-mtu off send-link-layer off",
    ),
    (
        "ip6 nd pg0 prefix 2001:db8::/64 100 50 off-link no-autoconfig",
        "ip6 nd pg0 prefix 2001:db8::/64 valid 100 preferred 50 on-link off autoconfig off",
    ),
    (
        "ip6 nd pg0 prefix 2001:db8::/64 100",
        "ip6 nd pg0 prefix 2001:db8::/64 valid 100",
    ),
    ("ip6 nd pg0 no prefix 2001:db8::/64", ""),
    ("set interface igmp pg0 on", ""),
    (
        "set interface mld pg0 on last-member-count 4 robustness 3",
        "set interface mld pg0 on robustness 3 last-member-count 4",
    ),
    ("set interface mld pg0 off", ""),
    ("set node worker ip4-lookup 1", ""),
    (
        "create bridge-domain 10 no-flood learn mac-age 5 no-forward group-fwd-mask 1 mac-limit 9",
        "bridge-domain add 10 no-flood no-forward mac-limit 9 group-fwd-mask 1",
    ),
    ("delete bridge-domain 10", "bridge-domain del 10"),
    (
        "l2fib add 02:FE:00:00:00:01 10 filter",
        "l2fib add 02:fe:00:00:00:01 10 filter",
    ),
    (
        "l2fib add 02:fe:00:00:00:01 10 pg0 static",
        "l2fib add 02:fe:00:00:00:01 10 pg0",
    ),
    ("l2fib del 02:fe:00:00:00:01 10", ""),
    ("test l2patch rx pg0 tx pg1", ""),
    ("test l2patch rx pg0 tx pg1 del", ""),
    ("delete l2patch pg0", ""),
    ("set interface l2 xconnect pg0 pg1", ""),
    ("delete xconnect pg0", ""),
    ("set int l2 bridge pg0 10", "set interface l2 bridge pg0 10"),
    ("set interface l2 bridge pg0 10 shg 3", ""),
    ("delete bridge-port pg0", ""),
    ("set interface l3 pg0", ""),
    ("set node worker ip4-lookup default", ""),
];

#[test]
fn the_old_spellings_read_as_before() {
    all();
    for (line, same) in SPELLINGS {
        let same: &str = if same.is_empty() { line } else { same };
        assert_eq!(read(line).to_string(), same, "{line}");
    }
}

#[test]
fn a_setting_goes_with_its_interface_and_follows_its_name() {
    let classes = all();
    let mut runner = TestRunner::deterministic();
    let settings: Vec<Request> = classes
        .iter()
        .filter(|c| c.part_of() == Some("interface"))
        .filter(|c| c.def().one_of.is_empty())
        .flat_map(|class| {
            let strategy = instances(class, &INTERFACES);
            let made = (0..80).map(|_| strategy.new_tree(&mut runner).unwrap().current());
            let of_pg0 = made.filter(|it| it.is_part_of("interface", "pg0"));
            // An object that is only a key is true or absent.
            let is_key = class.values().is_empty();
            let says: Vec<_> = of_pg0.filter(|it| is_key || !it.is_usual()).collect();
            assert!(!says.is_empty(), "{class:?} says nothing");
            says.into_iter()
                .take(1)
                .map(Request::Set)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(settings.len() >= 4);
    goes_and_follows(&settings);
}

/// An interface has one object of a group, so each class is tested alone.
#[test]
fn an_object_of_a_group_goes_with_its_interfaces_and_follows_their_names() {
    let mut runner = TestRunner::deterministic();
    let classes = all();
    let in_group = classes.iter().filter(|c| !c.def().one_of.is_empty());
    let made: Vec<Request> = in_group
        .flat_map(|class| {
            let strategy = instances(class, &INTERFACES);
            let made = (0..40).map(|_| strategy.new_tree(&mut runner).unwrap().current());
            made.filter(|it| it.is_part_of("interface", "pg0"))
                .take(8)
                .map(Request::Set)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(made.len() >= 24);
    for request in made {
        goes_and_follows(&[request]);
    }
}

#[test]
fn lists_of_interfaces_lose_them_and_follow_their_names() {
    let mut runner = TestRunner::deterministic();
    let classes = all();
    let made: Vec<Request> = classes
        .iter()
        .filter(|class| class.loses())
        .flat_map(|class| {
            let strategy = instances(class, &INTERFACES);
            let made = (0..80).map(|_| strategy.new_tree(&mut runner).unwrap().current());
            made.filter(|it| it.refers_to("interface", "pg0"))
                .map(Request::Set)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(made.len() >= 8);
    for request in made {
        goes_and_follows(&[request]);
    }
}

/// Objects that are parts of pg0 follow a rename of pg0, and are deleted with pg0.
fn goes_and_follows(settings: &[Request]) {
    let mut requests = volley_config::parse(TWO).unwrap().requests;
    // The settings include the states of the interfaces.
    requests.retain(|request| request.object_of(Admin::CLASS).is_none());
    for request in settings {
        if let Request::Set(object) = request {
            requests.extend(needed(object));
        }
    }
    let bare = Core::state_of(&requests).unwrap();
    requests.extend(settings.iter().cloned());
    let full = Core::state_of(&requests).unwrap();
    assert_eq!(full.len(), bare.len() + settings.len());
    let rename = |name: &str, new_name: &str| Request::InterfaceRename {
        name: name.into(),
        new_name: new_name.into(),
    };
    let mut state = full.clone();
    state
        .edit(&rename("pg0", "up0"), &mut Default::default())
        .unwrap();
    assert_eq!(state.len(), full.len());
    assert!(!format!("{state:?}").contains("pg0"), "{state:?}");
    state
        .edit(&rename("up0", "pg0"), &mut Default::default())
        .unwrap();
    assert_eq!(state, full);
    let delete = Request::InterfaceDelete { name: "pg0".into() };
    state.edit(&delete, &mut Default::default()).unwrap();
    assert!(!format!("{state:?}").contains("pg0"), "{state:?}");
}

/// Every beginning of a command of at most `words` words, with a sample value in each slot.
fn beginnings(words: usize) -> Vec<(String, String)> {
    let sample = |slot: &str| match slot {
        "interface" => "pg0",
        "prefix" => "10.0.0.0/8",
        "address" => "192.0.2.1",
        "mac" => "02:00:00:00:00:01",
        _ => "1",
    };
    let (mut all, mut at) = (vec![(String::new(), String::new())], 0);
    let mut seen = std::collections::BTreeSet::new();
    while let Some((line, _)) = all.get(at).cloned() {
        at += 1;
        if line.split_whitespace().count() >= words {
            continue;
        }
        for help in volley_cli::help(&line, &volley_cli::NoNames).lines() {
            let (word, meaning) = help.trim().split_once("  ").unwrap_or((help.trim(), ""));
            let next = match word.strip_prefix('<') {
                Some("enter>") => continue,
                Some(slot) => sample(slot.trim_end_matches('>')),
                None if word == "nothing fits here" => continue,
                None => word,
            };
            let next = format!("{line}{next} ");
            if seen.insert(next.clone()) {
                all.push((next, meaning.trim().to_owned()));
            }
        }
    }
    all
}

#[test]
fn every_keyword_of_every_class_has_a_meaning() {
    objects::register().unwrap();
    let all = beginnings(4);
    assert!(all.len() > 1000, "{}", all.len());
    let without = |(line, meaning): &&(String, String)| {
        let none = meaning.is_empty() || meaning.ends_with(" more)");
        !line.is_empty() && (none || meaning == "switches it on by itself")
    };
    let without: Vec<_> = all.iter().filter(without).collect();
    assert!(without.is_empty(), "{without:#?}");
}
