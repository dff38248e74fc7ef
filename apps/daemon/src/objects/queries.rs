//! Queries of features in the command line and in HTTP.

use crate::objects;
use volley_cli::{Action, View, parse_line};
use volley_http::read_query;
use volley_object::Asked;
use volley_pcap::Monitor;

/// Commands, each with the path and the parameters of the same query, and the selected text.
const COMMANDS: &[(&str, &str, &str, View)] = &[
    ("show path-batcher", "path-batcher", "", View::Table),
    ("show rss", "rss", "", View::Table),
    (
        "show ip route-counters",
        "route-counters",
        "family=ip4",
        View::Table,
    ),
    ("show plugins", "plugins", "", View::Table),
    ("show click", "click", "", View::Table),
    (
        "show click c.count",
        "click",
        "handler=c.count",
        View::Table,
    ),
    ("show lcp", "lcp", "", View::Table),
    ("lcp audit", "lcp-audit", "", View::Table),
    ("show packet-generator", "packet-generator", "", View::Table),
    ("show memif", "memif", "", View::Table),
    ("show vhost-user", "vhost-user", "", View::Table),
    ("show virtio-user v0", "vhost-user", "name=v0", View::Table),
    (
        "show ip4-full-reassembly",
        "reassembly",
        "family=ip4",
        View::Table,
    ),
    (
        "show ip6-full-reassembly",
        "reassembly",
        "family=ip6",
        View::Table,
    ),
    (
        "show ip4-sv-reassembly",
        "virtual-reassembly",
        "family=ip4",
        View::Table,
    ),
    (
        "show ip6-sv-reassembly",
        "virtual-reassembly",
        "family=ip6",
        View::Table,
    ),
    ("show ip mroute", "mroutes", "family=ip4", View::Table),
    (
        "show ip6 mroute table 7",
        "mroutes",
        "family=ip6&table=7",
        View::Table,
    ),
    ("show igmp", "groups", "family=ip4", View::Table),
    (
        "show mld lan0",
        "groups",
        "family=ip6&interface=lan0",
        View::Table,
    ),
    ("show ip6 nd", "discovery", "", View::Table),
    (
        "show ip6 nd wan0",
        "discovery",
        "interface=wan0",
        View::Table,
    ),
    ("show l2", "l2", "", View::Table),
    ("show l2patch", "l2", "", View::Table),
    ("show mode", "l2", "", View::Table),
    ("show bridge-domain", "bridge-domains", "", View::Table),
    (
        "show bridge-domain 10",
        "bridge-domains",
        "id=10",
        View::Table,
    ),
    (
        "show bridge-domain detail",
        "bridge-domains",
        "",
        View::Verbose,
    ),
    (
        "show bridge-domain 10 detail",
        "bridge-domains",
        "id=10",
        View::Verbose,
    ),
    ("show l2fib", "l2-fib", "", View::Table),
    ("show l2fib 3", "l2-fib", "domain=3", View::Table),
    (
        "show mac address-table 3",
        "l2-fib",
        "domain=3",
        View::Table,
    ),
    ("show ip fib", "fib", "family=ip4&limit=1000", View::Table),
    (
        "show ip6 route table 7 limit 5 detail",
        "fib",
        "family=ip6&table=7&limit=5",
        View::Verbose,
    ),
    (
        "show ip fib 10.0.0.1",
        "fib",
        "family=ip4&address=10.0.0.1&limit=1000",
        View::Verbose,
    ),
    (
        "show ip fib ::/0 table 7",
        "fib",
        "family=ip4&prefix=::/0&table=7&limit=1000",
        View::Verbose,
    ),
    (
        "show ip fib summary",
        "fib",
        "family=ip4&summary=on&limit=1000",
        View::Table,
    ),
    ("show tables", "tables", "", View::Table),
    ("show ip6 table", "tables", "family=ip6", View::Table),
    ("show ip neighbors", "neighbors", "family=ip4", View::Table),
    ("show arp", "neighbors", "family=ip4", View::Table),
    (
        "show ip6 neighbor pg0",
        "neighbors",
        "family=ip6&interface=pg0",
        View::Table,
    ),
    ("pcap trace status", "pcap-trace", "", View::Table),
    ("show pcap trace", "pcap-trace", "", View::Table),
    (
        "ping 192.0.2.9 source 192.0.2.1 table 7 count 3 interval 20 size 9 ttl 5 timeout 30",
        "ping",
        "destination=192.0.2.9&source=192.0.2.1&table=7&count=3&interval_ms=20&size=9&hops=5&timeout_ms=30",
        View::Table,
    ),
    (
        "ping 2001:db8::9 repeat 0 hops 7",
        "ping",
        "destination=2001:db8::9&count=0&hops=7",
        View::Table,
    ),
    (
        "traceroute 192.0.2.9 most-hops 5 probes 1",
        "traceroute",
        "destination=192.0.2.9&most_hops=5&probes=1",
        View::Table,
    ),
    (
        "arping lan0 192.0.2.9 repeat 3",
        "arping",
        "interface=lan0&address=192.0.2.9&count=3",
        View::Table,
    ),
    (
        "ndping lan0 2001:db8::9 interval 20 timeout 30",
        "arping",
        "interface=lan0&address=2001:db8::9&interval_ms=20&timeout_ms=30",
        View::Table,
    ),
    ("show log", "log", "", View::Table),
    (
        "show log module interface 20 level warn",
        "log",
        "max=20&level=warn&module=interface",
        View::Table,
    ),
    ("show version", "version", "", View::Table),
    ("sh ver brief", "version", "", View::Table),
    ("show process", "process", "", View::Table),
    ("show buffers", "buffers", "", View::Table),
    ("show memory", "memory", "", View::Table),
    ("sh run", "runtime", "", View::Table),
    ("show runtime verbose", "runtime", "", View::Verbose),
    ("sh err", "errors", "", View::Table),
    ("show drops", "drops", "", View::Table),
    ("show trace", "trace", "", View::Table),
    ("show trace max 5", "trace", "max=5", View::Table),
    ("show node ip4-input", "node", "name=ip4-input", View::Table),
    ("show graph", "graph", "", View::Table),
    ("show graph text", "graph", "", View::Table),
    ("show graph dot", "graph", "", View::Named("dot")),
    ("show workers", "workers", "", View::Table),
    ("show load", "workers", "", View::Named("load")),
    ("show pauses", "pauses", "", View::Table),
    ("show perfmon", "perfmon", "", View::Table),
    ("show perfmon statistics", "perfmon", "", View::Table),
    ("show perfmon bundle", "perfmon-bundles", "", View::Table),
    (
        "show perfmon bundle page-faults",
        "perfmon-bundles",
        "bundle=page-faults",
        View::Table,
    ),
    ("show control latency", "control-latency", "", View::Table),
    ("show interfaces", "interfaces", "", View::Table),
    ("show int", "interfaces", "", View::Table),
    ("show int pg0", "interfaces", "name=pg0", View::Verbose),
    ("show interface detail", "interfaces", "", View::Verbose),
    ("show int addr", "interfaces", "", View::Named("address")),
    (
        "show interfaces addresses pg0",
        "interfaces",
        "name=pg0",
        View::Named("address"),
    ),
    ("show hardware", "hardware", "", View::Table),
    (
        "show hardware-interfaces pg0",
        "hardware",
        "name=pg0",
        View::Table,
    ),
    (
        "show interface rx-placement",
        "rx-placement",
        "",
        View::Table,
    ),
    (
        "show int rx pg0",
        "rx-placement",
        "interface=pg0",
        View::Table,
    ),
    ("show features", "features", "", View::Table),
    (
        "show interface features pg0",
        "features",
        "interface=pg0",
        View::Table,
    ),
];

fn read(line: &str) -> (Asked, View) {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Query(query, view) => (query, view),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn commands_and_paths_make_the_same_queries() {
    objects::register().unwrap();
    for (line, name, parameters, wanted) in COMMANDS {
        let (query, view) = read(line);
        assert_eq!(view, *wanted, "{line}");
        assert_eq!(Ok(query), read_query(name, parameters), "{line}");
    }
    let known = volley_object::classes();
    for query in known.queries() {
        let name = query.name();
        assert!(
            !query.has_whole() || COMMANDS.iter().any(|it| it.1 == name),
            "no command of {name}"
        );
        let example = query.class().def().example;
        assert_eq!(read(example).0.name(), name, "{example}");
    }
}

#[test]
fn packets_are_shown_as_they_pass_and_have_no_path() {
    objects::register().unwrap();
    let refused = read_query("monitor", "count=1").unwrap_err();
    assert!(refused.message.contains("there is no /v1/show/monitor"));
    let (query, _) = read(r#"monitor any tx drop filter "udp and port 53" count 10 pcapng"#);
    let monitor: Monitor = query.get().unwrap();
    assert_eq!(
        monitor,
        Monitor {
            interface: None,
            rx: false,
            tx: true,
            drop: true,
            filter: Some("udp and port 53".parse().unwrap()),
            count: Some(10),
            max_bytes_per_packet: None,
            pcapng: true,
        }
    );
    assert!(query.is_stream());
    for (line, why) in [
        ("monitor", "interface"),
        ("monitor any count 0", "1 to 1000000"),
        ("monitor any count 2 count 3", "given twice"),
        ("monitor any max-bytes-per-packet 9", "14 to 65535"),
        ("watch monitor any", "only commands that show something"),
        ("ping 192.0.2.9 interval 1", "10 to 10000"),
        (
            "ping 224.0.0.1",
            "column 6: destination must be the address of one host, not 224.0.0.1",
        ),
    ] {
        let error = parse_line(line).unwrap_err().to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}
