//! Queries of features in the command line and in HTTP.

use crate::objects;
use volley_cli::{Action, View, parse_line};
use volley_http::read_query;
use volley_model::Query;

/// Commands, each with the path and the parameters of the same query, and whether its text is the detailed one.
const COMMANDS: &[(&str, &str, &str, bool)] = &[
    ("show path-batcher", "path-batcher", "", false),
    ("show rss", "rss", "", false),
    ("show lcp", "lcp", "", false),
    ("lcp audit", "lcp-audit", "", false),
    ("show packet-generator", "packet-generator", "", false),
    ("show memif", "memif", "", false),
    ("show vhost-user", "vhost-user", "", false),
    ("show virtio-user v0", "vhost-user", "name=v0", false),
    (
        "show ip4-full-reassembly",
        "reassembly",
        "family=ip4",
        false,
    ),
    (
        "show ip6-full-reassembly",
        "reassembly",
        "family=ip6",
        false,
    ),
    (
        "show ip4-sv-reassembly",
        "virtual-reassembly",
        "family=ip4",
        false,
    ),
    (
        "show ip6-sv-reassembly",
        "virtual-reassembly",
        "family=ip6",
        false,
    ),
    ("show ip mroute", "mroutes", "family=ip4", false),
    (
        "show ip6 mroute table 7",
        "mroutes",
        "family=ip6&table=7",
        false,
    ),
    ("show igmp", "groups", "family=ip4", false),
    (
        "show mld lan0",
        "groups",
        "family=ip6&interface=lan0",
        false,
    ),
    ("show ip6 nd", "discovery", "", false),
    ("show ip6 nd wan0", "discovery", "interface=wan0", false),
    ("show l2", "l2", "", false),
    ("show l2patch", "l2", "", false),
    ("show mode", "l2", "", false),
    ("show bridge-domain", "bridge-domains", "", false),
    ("show bridge-domain 10", "bridge-domains", "id=10", false),
    ("show bridge-domain detail", "bridge-domains", "", true),
    (
        "show bridge-domain 10 detail",
        "bridge-domains",
        "id=10",
        true,
    ),
    ("show l2fib", "l2-fib", "", false),
    ("show l2fib 3", "l2-fib", "domain=3", false),
    ("show mac address-table 3", "l2-fib", "domain=3", false),
    ("show ip fib", "fib", "family=ip4&limit=1000", false),
    (
        "show ip6 route table 7 limit 5 detail",
        "fib",
        "family=ip6&table=7&limit=5",
        true,
    ),
    (
        "show ip fib 10.0.0.1",
        "fib",
        "family=ip4&address=10.0.0.1&limit=1000",
        true,
    ),
    (
        "show ip fib ::/0 table 7",
        "fib",
        "family=ip4&prefix=::/0&table=7&limit=1000",
        true,
    ),
    (
        "show ip fib summary",
        "fib",
        "family=ip4&summary=on&limit=1000",
        false,
    ),
    ("show tables", "tables", "", false),
    ("show ip6 table", "tables", "family=ip6", false),
    ("show ip neighbors", "neighbors", "family=ip4", false),
    ("show arp", "neighbors", "family=ip4", false),
    (
        "show ip6 neighbor pg0",
        "neighbors",
        "family=ip6&interface=pg0",
        false,
    ),
    ("pcap trace status", "pcap-trace", "", false),
    ("show pcap trace", "pcap-trace", "", false),
];

fn read(line: &str) -> (Query, View) {
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
    for (line, name, parameters, detail) in COMMANDS {
        let (query, view) = read(line);
        assert_eq!(view == View::Verbose, *detail, "{line}");
        assert_eq!(Ok(query), read_query(name, parameters), "{line}");
    }
    let known = volley_object::classes();
    for query in known.queries() {
        let name = query.name();
        assert!(
            COMMANDS.iter().any(|it| it.1 == name),
            "no command of {name}"
        );
        let example = query.class().def().example;
        let Query::Registered(asked) = read(example).0 else {
            panic!("{example}");
        };
        assert_eq!(asked.class().name(), name, "{example}");
    }
}
