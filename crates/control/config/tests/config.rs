//! The file from its readers' view: the example, the exact sentences of errors, and random text.

use proptest::prelude::*;
use volley_config::{parse, parse_named};
use volley_object::{Choice, Object, Startup, classes as registered, register};

const EXAMPLE: &str = include_str!("../examples/router.toml");

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "engine", file = "[engine]", startup)]
struct Engine {
    /// Packets per vector.
    #[object(default = 256, range = 1..=1024)]
    vector_size: u32,
    /// Level.
    #[object(default = Isa::Auto)]
    isa: Isa,
}

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
enum Isa {
    /// Any.
    Auto,
    /// None.
    Scalar,
}

/// Registers a table that is read at start, and the classes of settings of interfaces.
fn classes() {
    Engine::class().unwrap();
    volley_iface::classes().unwrap();
    volley_fib::classes().unwrap();
    volley_pg::classes().unwrap();
}

fn errors(text: &str) -> String {
    classes();
    parse(text).expect_err("the text has errors").to_string()
}

#[test]
fn all_errors_come_at_once_with_their_places() {
    let text = r#"
[engine]
vector_size = 2000
isa = "avx"
[[interface]]
name = "pg0"
kind = "pg"
adresses = ["10.0.0.1/24"]
[[route]]
prefix = "10.0.0.1/8"
via = 5
[[route]]
prefix = "10.0.0.0/8"
interface = "pg7"
weight = -1
[[neighbour]]
"#;
    assert_eq!(
        errors(text),
        "\
volley.toml:3:15: engine.vector_size: must be a number from 1 to 1024, not '2000'
volley.toml:4:7: engine.isa: must be auto or scalar, not 'avx'
volley.toml:8:1: unknown key 'adresses' in [[interface]]: did you mean 'addresses'? allowed are name, kind, capture, addresses, state, description, directed_broadcast, table, mac, mtu, promiscuous, rx_mode, rx_placement, unnumbered
volley.toml:10:10: route.prefix: '10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8
volley.toml:11:7: route.via: must be an IP address such as 192.0.2.1, not '5'
volley.toml:14:13: route.interface: there is no interface pg7 in this file; there are: pg0
volley.toml:15:10: route.weight: must be a number from 1 to 255, not -1
volley.toml:16:3: unknown key 'neighbour' in the file: did you mean 'neighbor'? allowed are interface, engine, feature, multipath, neighbor, route, route_counter, route_file, stream, table"
    );
}

const WRONG: &[(&str, &str)] = &[
    ("[engine\n", "volley.toml:1:8: "),
    ("a = 1\na = 2\n", "volley.toml:2:1: duplicate key"),
    (
        "route = 1",
        "volley.toml:1:9: route: must be written [[route]]",
    ),
    (
        "[[route]]\n",
        "volley.toml:1:1: route: the key 'prefix' is missing",
    ),
    (
        "[[route]]\nprefix = '::/0'\n",
        "volley.toml:1:1: route: leads nowhere",
    ),
    (
        "[[route]]\nprefix = '::/0'\nvia = '::1'\naction='drop'",
        "volley.toml:1:1: route: leads to several places",
    ),
    (
        "[[route]]\nprefix = '::/0'\nvia = '1.1.1.1'\n",
        "volley.toml:1:1: route: paths have a fault: next hop 1.1.1.1 for IPv6 is not supported; give an IPv6 next hop",
    ),
    (
        "[[route]]\nprefix = '::/0'\ntable = 3\naction='drop'",
        "volley.toml:3:9: route.table: there is no table 3 ip6 in this file",
    ),
    (
        "[[table]]\nid = 3\n[[table]]\nid = 3\nfamily='ip6'",
        "volley.toml:3:1: table: table 3 ip6 is declared twice",
    ),
    (
        "[[interface]]\nname = 'p q'\nkind = 'pg'\n",
        "volley.toml:2:8: interface.name: interface name 'p q' is not valid",
    ),
    (
        "[[stream]]\nname = 's'\nnode='x'\n",
        "volley.toml:1:1: stream: template is missing, as data and pcap are: give one of them",
    ),
    (
        "[[stream]]\nname = 's'\nnode='x'\ntemplate='eth srv 1'",
        "volley.toml:4:10: stream.template: column 5: 'srv' is not a field of eth",
    ),
    (
        "[[stream]]\nname = 's'\ntemplate='eth'",
        "volley.toml:1:1: stream: interface is missing, as node is",
    ),
    (
        "[[stream]]\nname = 's'\nnode='x'\ntemplate='eth'\nsize = 1.5",
        "volley.toml:5:8: stream.size: must be lengths such as 64, not a float",
    ),
];

#[test]
fn each_wrong_thing_has_its_sentence() {
    let pg = "[[interface]]\nname = 'pg0'\nkind = 'pg'\n";
    for &(text, error) in WRONG {
        let all = errors(text);
        assert!(all.starts_with(error), "{text}\n{all}");
    }
    let twice = errors(&format!("{pg}{pg}"));
    assert_eq!(
        twice,
        "volley.toml:5:8: interface.name: interface pg0 is declared twice"
    );
}

#[test]
fn what_is_read_at_start_is_no_request() {
    classes();
    let config = parse("[engine]\nvector_size = 16\n").unwrap();
    assert_eq!(config.requests, []);
    let (engine, usual): (Engine, Engine) =
        (config.startup.get(), parse("").unwrap().startup.get());
    assert_eq!((engine.vector_size, engine.isa), (16, Isa::Auto));
    assert_eq!(usual, Engine::default());
    let text = serde_json::to_string(&config.startup).unwrap();
    assert_eq!(
        text,
        r#"[{"class":"engine","vector_size":16,"isa":"auto"}]"#
    );
    assert_eq!(
        serde_json::from_str::<Startup>(&text).unwrap(),
        config.startup
    );
    let differing = config.startup.differing(&Startup::default());
    assert_eq!(differing, [Engine::class().unwrap()]);
    // The other lists do not contain its class.
    assert!(registered().get("engine").is_none());
    let unknown = serde_json::from_str::<Startup>(r#"[{"class":"lamp"}]"#).unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("there is no class 'lamp' that is read at start")
    );
    let mut faulty = Engine::definition();
    (faulty.name, faulty.commands) = (
        "motor",
        vec![(volley_object::Effect::Set, "set motor <vector-size>")],
    );
    let refused = register(faulty).unwrap_err().to_string();
    assert!(
        refused.contains("its place in the file is that of class engine"),
        "{refused}"
    );
    let mut faulty = Engine::definition();
    (faulty.name, faulty.commands) = (
        "motor",
        vec![(volley_object::Effect::Set, "set motor <vector-size>")],
    );
    faulty.file = volley_object::Place::None;
    let refused = register(faulty).unwrap_err().to_string();
    assert!(refused.contains("its object is read at start"), "{refused}");
}

#[test]
fn ten_thousand_objects_read_fast() {
    let mut text = String::new();
    for i in 0..5000 {
        text += &format!("[[interface]]\nname = 'pg{i}'\nkind = 'pg'\n");
        text += &format!(
            "[[route]]\nprefix = '10.{}.{}.0/24'\ninterface = 'pg{i}'\n",
            i / 256,
            i % 256
        );
    }
    assert_eq!(parse(&text).map(|c| c.requests.len()), Ok(15_000));
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(parse(&deep).is_err());
    let deep = format!("a = {}1{}", "{ b = ".repeat(50_000), " }".repeat(50_000));
    assert!(parse(&deep).is_err());
    let dotted = format!("a{} = 1", ".b".repeat(50_000));
    assert!(parse(&dotted).is_err());
}

#[test]
fn files_are_named_and_must_be_text() {
    let dir = std::env::temp_dir().join(format!("volley-config-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a.toml");
    let load = || volley_config::load(&path).unwrap_err().to_string();
    assert!(
        load().contains("a.toml:0:0: cannot be read: "),
        "{}",
        load()
    );
    std::fs::write(&path, b"a = '\xff'").unwrap();
    assert!(
        load().ends_with("is not UTF-8 text: byte 5 does not belong there"),
        "{}",
        load()
    );
    std::fs::remove_dir_all(&dir).unwrap();
    let named = parse_named("x.toml", "]").unwrap_err().to_string();
    assert!(named.starts_with("x.toml:1:1: "), "{named}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn mutations_of_the_example_are_read_or_refused(
        at in 0..EXAMPLE.len(), cut in 0usize..40, insert in "[\\[\\]{}=\"'0-9a-z.,/:\n -]{0,6}",
    ) {
        let at = EXAMPLE.floor_char_boundary(at);
        let end = EXAMPLE.floor_char_boundary((at + cut).min(EXAMPLE.len()));
        let text = format!("{}{insert}{}", &EXAMPLE[..at], &EXAMPLE[end..]);
        if let Err(e) = parse(&text) {
            prop_assert!(!e.0.is_empty());
            for error in e.0 {
                prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
                prop_assert!(!error.message.contains('\n'), "{}", error.message);
            }
        }
    }

    #[test]
    fn keys_with_any_value_are_read_or_refused(
        table in prop::sample::select(volley_config::schema().to_vec()),
        key in 0usize..14,
        value in prop::sample::select(vec!["1", "-1", "''", "'a'", "true", "[]", "[1]", "{}", "1.5", "[{}]",
            "'10.0.0.0/8'", "99999999999999999", "0x1f", "['a', 2]", "1979-05-27"]),
    ) {
        let key = table.keys[key % table.keys.len()].name;
        let text = match table.name.split_once('.') {
            Some((outer, inner)) => format!("[[{outer}]]\n{inner} = {{ {key} = {value} }}"),
            None => format!("{}\n{key} = {value}\n", table.title()),
        };
        let _ = parse(&text);
    }
}
