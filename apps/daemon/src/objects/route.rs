//! Routes: spellings, errors, files, requests of earlier versions.

use super::keyed::{all, error, refusal, state};
use proptest::prelude::*;
use volley_cli::{Action, Names, complete, parse_line};
use volley_fib::Route;
use volley_fib::path::{Path, PathTarget, RouteSource};
use volley_model::{Prefix, Request};
use volley_object::Object;

const BED: [&str; 3] = [
    "create packet-generator interface pg0",
    "create packet-generator interface pg1",
    "ip table add 7",
];

fn with<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    BED.into_iter().chain(lines.iter().copied()).collect()
}

#[test]
fn well_known_spellings_and_their_canonical_form() {
    for (line, canonical) in [
        (
            "ip route add 10.0.0.0/24 via 192.0.2.1 pg1 weight 2 count 1000",
            "ip route add 10.0.0.0/24 count 1000 via 192.0.2.1 pg1 weight 2",
        ),
        (
            "ip route add table 7 10.0.0.0/8 drop",
            "ip route add 10.0.0.0/8 table 7 via drop",
        ),
        ("ip route add 10.0.0.0/8 via pg1", ""),
        ("ip route replace 10.0.0.0/8 source dynamic via pg1", ""),
        ("ip route add ::/0 via 2001:db8::1 next-hop-table 3", ""),
        (
            "ip6 route add 2001:db8::/32 via ip6-lookup-in-table 7",
            "ip route add 2001:db8::/32 via lookup-in-table 7",
        ),
        (
            "ip route add 10.0.0.0/8 via 192.0.2.1 pg1 via 192.0.2.2 pg2 weight 3",
            "",
        ),
        ("ip route delete 10.0.0.0/8", "ip route del 10.0.0.0/8"),
        ("ip route del 10.0.0.0/8 table 7 count 2", ""),
        (
            "ip route del count 2 10.0.0.0/8 drop",
            "ip route del 10.0.0.0/8 count 2 via drop",
        ),
    ] {
        let canonical = if canonical.is_empty() {
            line
        } else {
            canonical
        };
        assert_eq!(all(&[line])[0].to_string(), canonical, "{line}");
    }
}

#[test]
fn errors_are_one_sentence_with_the_column() {
    super::register().unwrap();
    for (line, expected) in [
        (
            "ip route add 10.0.0.1/8 via drop",
            "column 14: prefix '10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8",
        ),
        (
            "ip route add 10.0.0.0/33 via drop",
            "column 14: prefix '10.0.0.0/33' has a bad prefix length: IPv4 allows /0 to /32",
        ),
        (
            "ip route add 10.0.0.0/8 via 192.0.2.1 weight 0",
            "column 25: paths weight 0 is not valid: it must be 1 to 255",
        ),
        (
            "ip route add 10.0.0.0/8 weight 3",
            "column 25: 'weight' is not understood here: expected ",
        ),
        (
            "ip route add 10.0.0.0/8",
            "column 24: paths is missing, the route leads nowhere: give a path such as 'via 192.0.2.1' or 'via drop'",
        ),
        (
            "ip route add 10.0.0.0/8 table 1 table 2 drop",
            "column 39: 'table' is given twice",
        ),
        (
            "ip route add 255.0.0.0/8 count 2 drop",
            "column 32: count must be smaller: 255.0.0.0/8 has fewer prefixes behind it",
        ),
        (
            "ip route add ::/0 via 10.0.0.1",
            "column 19: paths have a fault: next hop 10.0.0.1 for IPv6 is not supported; give an IPv6 next hop",
        ),
        (
            "ip route add 10.0.0.0/8 source adjacency via drop",
            "column 32: source must not be adjacency: the FIB makes these routes itself; use static",
        ),
    ] {
        let reported = error(line);
        assert!(
            reported.starts_with(expected),
            "{line}\n  {reported}\n  {expected}"
        );
    }
}

struct Two;

impl Names for Two {
    fn names(&self, class: &str) -> Vec<String> {
        match class {
            "interface" => vec!["pg0".into(), "pg1".into()],
            _ => Vec::new(),
        }
    }
}

#[test]
fn words_of_paths_are_offered_with_their_meaning() {
    super::register().unwrap();
    let offered = |line: &str| {
        let all = complete(line, &Two).candidates.into_iter();
        all.map(|it| (it.text, it.help)).collect::<Vec<_>>()
    };
    let texts: Vec<String> = offered("ip route add 10.0.0.0/8 via 192.0.2.1 p")
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(texts, ["pg0", "pg1", "preference", "prohibit"]);
    let drop = offered("ip route add 10.0.0.0/8 via dr");
    assert_eq!(drop, [("drop".to_owned(), "Drop the packets.".to_owned())]);
}

#[test]
fn what_a_route_needs_has_to_be_there() {
    for (lines, why) in [
        (
            &["ip route add 10.0.0.0/8 table 8 via drop"][..],
            "no table 8 ip4",
        ),
        (&["ip route add ::/0 table 7 via drop"], "no table 7 ip6"),
        (
            &["ip route add 10.0.0.0/8 via 192.0.2.1 pg9"],
            "no interface pg9",
        ),
        (
            &["ip route add 10.0.0.0/8 via lookup-in-table 8"],
            "no table 8 ip4",
        ),
        (
            &["ip route add 10.0.0.0/8 table 7 via pg0", "ip table del 7"],
            "in use by route 10.0.0.0/8 table 7",
        ),
        (
            &["ip route add 10.0.0.0/8 via pg0", "delete interface pg0"],
            "in use by route 10.0.0.0/8",
        ),
        (&["ip route del 10.0.0.0/8"], "there is no route 10.0.0.0/8"),
        (
            &[
                "ip route add 10.0.0.0/8 via pg0",
                "ip route del 10.0.0.0/8 via pg1",
            ],
            "there is no path 'via pg1' of route 10.0.0.0/8",
        ),
    ] {
        let reported = refusal(&with(lines));
        assert!(reported.contains(why), "{lines:?}: {reported}");
    }
}

#[test]
fn several_tables_of_a_file_are_one_route_and_paths_have_two_forms() {
    super::register().unwrap();
    let pg = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n";
    let read = |text: &str| volley_config::parse(&format!("{pg}{text}"));
    let config = read(
        "[[route]]\nprefix = \"10.0.0.0/8\"\nvia = \"192.0.2.1\"\ninterface = \"pg0\"\nweight = 2\n\
         [[route]]\nprefix = \"10.0.0.0/8\"\npaths = [{ action = \"drop\" }, { via = \"192.0.2.2\" }]\n\
         [[route]]\nprefix = \"20.0.0.0/24\"\ncount = 3\naction = \"drop\"\n",
    );
    let config = config.unwrap();
    let state = volley_control::Core::state_of(&config.requests).unwrap();
    let requests = volley_control::requests(&state);
    let lines: Vec<String> = requests.iter().map(Request::to_string).collect();
    let wanted = [
        "ip route add 10.0.0.0/8 via 192.0.2.1 pg0 weight 2 via 192.0.2.2 via drop",
        "ip route add 20.0.0.0/24 count 3 via drop",
    ];
    assert_eq!(lines[1..3], wanted);
    let text = volley_config::write(&requests);
    assert!(
        text.contains("[[route]]\nprefix = \"20.0.0.0/24\"\ncount = 3\naction = \"drop\"\n"),
        "{text}"
    );
    let again = volley_config::parse(&text).unwrap().requests;
    assert_eq!(volley_control::Core::state_of(&again).unwrap(), state);
    for (text, why) in [
        (
            "[[route]]\nprefix = \"10.0.0.0/8\"\naction = \"drop\"\npaths = [{ action = \"drop\" }]\n",
            "give either 'paths' or the keys of one here",
        ),
        (
            "[[route]]\nprefix = \"::/0\"\ntable = 3\naction = \"drop\"\n",
            "no table 3 ip6 in this file",
        ),
        (
            "[[route]]\nprefix = \"::/0\"\nlookup_in = 3\n",
            "no table 3 ip6 in this file",
        ),
        (
            "[[route]]\nprefix = \"10.0.0.0/8\"\nsource = \"dynamic\"\naction = \"drop\"\n",
            "no file has it",
        ),
    ] {
        let reported = read(text).unwrap_err().to_string();
        assert!(reported.contains(why), "{reported}");
    }
}

#[test]
fn routes_of_programs_stay_and_are_not_saved() {
    let lines = with(&[
        "ip route add 10.0.0.0/8 via pg0",
        "ip route add 20.0.0.0/8 source dynamic via pg0",
        "ip route add 30.0.0.0/8 source file via pg0",
    ]);
    let state = state(&lines);
    let text = volley_config::write(&volley_control::requests(&state.lasting()));
    assert!(!text.contains("20.0.0.0/8"), "{text}");
    assert!(
        text.contains("prefix = \"30.0.0.0/8\"\nsource = \"file\"\n"),
        "{text}"
    );
}

fn target(v6: bool) -> impl Strategy<Value = PathTarget> {
    let addr = (1u32..0xdfff_ffff).prop_map(move |n| match v6 {
        true => std::net::Ipv6Addr::from_bits(u128::from(n) | 0x2001 << 112).into(),
        false => std::net::Ipv4Addr::from_bits(n).into(),
    });
    let name = "[a-z][a-z0-9-]{0,8}|via|del|weight|[a-z]{1,4}[0-9]{1,3}/[0-9]";
    let over = proptest::option::of(name);
    prop_oneof![
        (addr.clone(), over).prop_map(|(addr, interface)| PathTarget::Via {
            addr,
            interface,
            table: None,
        }),
        (addr, any::<u32>()).prop_map(|(addr, table)| PathTarget::Via {
            addr,
            interface: None,
            table: Some(table),
        }),
        name.prop_map(PathTarget::Interface),
        Just(PathTarget::Drop),
        Just(PathTarget::Unreachable),
        Just(PathTarget::Prohibit),
        Just(PathTarget::Local),
        any::<u32>().prop_map(PathTarget::LookupIn),
    ]
}

fn route() -> impl Strategy<Value = Route> {
    let sources = [RouteSource::Static, RouteSource::File, RouteSource::Dynamic];
    let parts = any::<bool>().prop_flat_map(move |v6| {
        let path = (target(v6), 1u32..=255, any::<u8>());
        let path = path.prop_map(|(target, weight, preference)| Path {
            weight,
            preference,
            ..Path::to(target)
        });
        let paths = proptest::collection::vec(path, 1..4);
        let source = proptest::sample::select(sources.to_vec());
        (
            Just(v6),
            any::<u32>(),
            1u8..=32,
            paths,
            0u32..9,
            source,
            1u64..3,
        )
    });
    parts.prop_filter_map(
        "an address space that goes on",
        |(v6, addr, len, paths, table, source, count)| {
            let addr = match v6 {
                true => std::net::Ipv6Addr::from_bits(u128::from(addr) << 96).into(),
                false => std::net::Ipv4Addr::from_bits(addr).into(),
            };
            let prefix = Prefix::masked(addr, len).ok()?;
            prefix.step(count - 1)?;
            Some(Route {
                prefix,
                table,
                source,
                count,
                paths,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn every_request_comes_back_from_its_spelling_and_its_json(route in route(), kind in 0u8..3) {
        super::register().unwrap();
        let request = match kind {
            0 => Request::add(&route).unwrap(),
            1 => Request::set(&route).unwrap(),
            _ => Request::take(&route).unwrap(),
        };
        let line = request.to_string();
        let back = parse_line(&line).map_err(|e| TestCaseError::fail(format!("{line}\n{e}")))?;
        prop_assert_eq!(back.action, Action::Request(Box::new(request.clone())), "{}", line);
        let json = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request, "{}", json);
        let object = route.instance().unwrap();
        let bulk = Request::Bulk(Box::new(volley_object::Bulk::with(&object).unwrap()));
        let json = serde_json::to_string(&bulk).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), bulk, "{}", json);
    }
}
