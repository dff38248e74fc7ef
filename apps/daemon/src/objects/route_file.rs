//! Files of routes: spellings, the file, the order of the files of a table, which are removed together.

use super::keyed::{Nothing, all, error, refusal, state, steps};
use volley_control::{Core, Executor, Probe, State};
use volley_model::{Applied, ModelError, Request};
use volley_object::Instance;

const BED: [&str; 3] = [
    "create packet-generator interface pg1",
    "create packet-generator interface lan",
    "ip table add 7",
];
const RANGE: &str = "ip route load /a format mrt table 7 family ip4 limit 9 fold clamp next-hops 192.0.2.2 2 pg1 \"lan\"";
const PATHS: &str = "ip route load \"/b c\" via 192.0.2.1 \"lan\" onlink weight 2 via drop via lookup-in-table 7 preference 3";

fn with<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    BED.into_iter().chain(lines.iter().copied()).collect()
}

#[test]
fn they_keep_their_spellings() {
    for line in [
        RANGE,
        PATHS,
        "ip route load /a",
        "ip route load /a via \"drop\" via drop",
        "ip route unload",
        "ip route unload table 7",
    ] {
        assert_eq!(all(&[line])[0].to_string(), line);
    }
    for (line, same) in [
        (
            "ip6 route load /a drop unreachable weight 2",
            "ip route load /a via drop via unreachable weight 2",
        ),
        (
            "ip route load /a via 192.0.2.1 next-hop-table 7 family both",
            "ip route load /a via 192.0.2.1 next-hop-table 7",
        ),
        (
            "ip route load /a via ip4-lookup-in-table 7",
            "ip route load /a via lookup-in-table 7",
        ),
    ] {
        assert_eq!(all(&[line])[0].to_string(), same);
    }
    let [Request::Unset(key)] = &all(&["default route-file /a family ip4 table 7"])[..] else {
        panic!("an object is removed")
    };
    assert_eq!(key.to_string(), "route file table 7 /a family ip4");
    assert_eq!(
        key.unset_command(),
        "default route-file /a table 7 family ip4"
    );
}

#[test]
fn wrong_ones_are_refused_in_a_sentence() {
    for (line, message) in [
        (
            "ip route load /a next-hops 192.0.2.2 2",
            "interfaces must be given",
        ),
        (
            "ip route load /a next-hops 192.0.2.2 0 pg1",
            "column 38: count must be a number from 1",
        ),
        (
            "ip route load /a next-hops 255.255.255.254 9 pg1",
            "the address space ends",
        ),
        (
            "ip route load /a next-hops 192.0.2.2 2 pg1 via drop",
            "must not be given together",
        ),
        (
            "ip route load /a family ip6 via 192.0.2.1",
            "192.0.2.1 for IPv6",
        ),
        (
            "ip route load /a via 192.0.2.1 weight 0",
            "it must be 1 to 255",
        ),
        ("ip route load /a via 192.0.2.1 weight x", "column 39"),
        ("ip route load /a limit 0", "limit must be"),
        ("ip route load /a weight 2", "weight"),
    ] {
        let found = error(line);
        assert!(found.contains(message), "{line}: {found}");
    }
    for (lines, message) in [
        (&["ip route load /a via 192.0.2.1 pg9"][..], "pg9"),
        (&["ip route load /a family ip6 table 7"], "table 7 ip6"),
        (
            &["ip route load /a family ip4 via 192.0.2.1 next-hop-table 8"],
            "table 8 ip4",
        ),
        (&["ip route unload table 7"], "route file table 7"),
        (
            &["ip route load /a via pg1", "delete interface pg1"],
            "in use by route file /a",
        ),
    ] {
        let found = refusal(&with(lines));
        assert!(found.contains(message), "{lines:?}: {found}");
    }
}

#[test]
fn the_file_has_tables_for_paths() {
    let requests = all(&with(&[RANGE, PATHS]));
    let text = volley_config::write(&requests);
    let paths = "paths = [{ via = \"192.0.2.1\", interface = \"lan\", onlink = true, weight = 2 }, \
        { action = \"drop\" }, { lookup_in = 7, preference = 3 }]";
    assert!(text.contains(paths), "{text}");
    let read = volley_config::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let files = |all: &[Request]| -> Vec<String> {
        let lines = all.iter().map(ToString::to_string);
        lines.filter(|line| line.contains("load")).collect()
    };
    assert_eq!(files(&read.requests), files(&requests));
    let json = serde_json::to_value(&requests[4]).unwrap();
    assert_eq!(json["set"]["paths"][1]["action"], "drop");
    assert_eq!(
        serde_json::from_value::<Request>(json).unwrap(),
        requests[4]
    );
    for (keys, message) in [
        (
            "paths = [{ via = 'x' }]",
            "5:18: route_file.paths.via: must be an IP address",
        ),
        ("paths = [{ vai = '192.0.2.1' }]", "did you mean 'via'?"),
        (
            "paths = [{}]",
            "leads nowhere: give one of via, interface, action, lookup_in",
        ),
        (
            "paths = [{ action = 'drop', via = '192.0.2.1' }]",
            "leads to several places",
        ),
        (
            "paths = [{ interface = 'pg9' }]",
            "there is no interface pg9 in this file",
        ),
        ("paths = ['via drop']", "must be a table, not a string"),
        ("paths = 'via drop'", "must be a list, not a string"),
        (
            "paths = [{ via = '192.0.2.1', weight = 0 }]",
            "must be a number from 1 to 255",
        ),
        (
            "paths = [{ via = '192.0.2.1', next_hop_table = 8 }]\nfamily = 'ip4'",
            "there is no table 8 ip4",
        ),
        (
            "table = 7\nfamily = 'ip4'",
            "there is no table 7 ip4 in this file",
        ),
    ] {
        let text = format!("[[table]]\nid = 9\n[[route_file]]\npath = '/a'\n{keys}\n");
        let found = volley_config::parse(&text).unwrap_err().to_string();
        assert!(found.contains(message), "{keys}: {found}");
    }
}

#[test]
fn the_files_of_a_table_are_removed_together() {
    let (a, b) = ("ip route load /a via pg1", "ip route load /b via \"lan\"");
    let other = "ip route load /c table 7 via pg1";
    let unload = "ip route unload";
    assert_eq!(steps(&with(&[a]), &[b]), [b]);
    // A command for the same file reads it again, without the others.
    assert_eq!(steps(&with(&[a, b]), &[a]), [a]);
    assert_eq!(steps(&with(&[a, b]), &[b]), [b]);
    assert_eq!(steps(&with(&[a]), &[a, other]), [unload, a, other]);
    let changed = "ip route load /a via \"lan\"";
    assert_eq!(
        steps(&with(&[a, b, other]), &[changed]),
        [unload, b, changed]
    );
    assert_eq!(
        steps(&with(&[a, b, other]), &["default route-file /a"]),
        [unload, b]
    );
    assert_eq!(steps(&with(&[a, b, other]), &[unload]), [unload]);
    assert_eq!(
        steps(&with(&[a, b, other]), &[unload, other]),
        ["ip route unload table 7", unload, other]
    );
    let (of, to) = (state(&with(&[a, b])), state(&with(&[b, a, other])));
    let difference = Core::difference(&of, &to);
    let wanted = [
        format!("- {a}"),
        format!("+ {a}"),
        format!("+ {other}"),
        "! the routes of table 0 that come from files are removed and loaded again".to_owned(),
    ];
    assert_eq!(difference, wanted);
    assert_eq!(
        Core::difference(&of, &state(&with(&[a, b, other]))),
        [wanted[2].clone()]
    );
    // Files come after the settings of interfaces, and before routes and setting interfaces up.
    let late = [
        "ip route add 10.0.0.0/8 via pg1",
        a,
        "set interface ip address pg1 192.0.2.1/24",
        "set interface state pg1 up",
    ];
    let order = volley_control::requests(&state(&with(&late)));
    let order: Vec<String> = order
        .iter()
        .skip(BED.len())
        .map(ToString::to_string)
        .collect();
    assert_eq!(order, [late[2], late[1], late[0], late[3]]);
}

#[test]
fn files_have_the_new_name_of_an_interface() {
    let mut core = Core::default();
    core.run(&all(&with(&[RANGE, PATHS])), &Nothing).unwrap();
    core.run(&all(&["set interface name lan wan0"]), &Nothing)
        .unwrap();
    let lines: Vec<String> = core
        .state()
        .objects_of("route_file")
        .map(Instance::set_command)
        .collect();
    assert_eq!(
        lines,
        [
            PATHS.replace("\"lan\"", "wan0"),
            RANGE.replace("\"lan\"", "wan0")
        ]
    );
}

/// The files of tables; one of them cannot be loaded.
#[derive(Default)]
struct Tables {
    loaded: std::cell::RefCell<Vec<String>>,
    broken: &'static str,
}

impl Probe for Tables {
    fn by_first_name(&self, _: &str) -> Vec<Instance> {
        Vec::new()
    }
}

impl Executor for Tables {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let line = request.to_string();
        match request {
            Request::Set(file) if file.class().name() == "route_file" => {
                if line == self.broken {
                    return Err(ModelError::invalid("the file", "it is broken"));
                }
                let mut loaded = self.loaded.borrow_mut();
                loaded.retain(|it| *it != line);
                loaded.push(line);
            }
            Request::Unset(_) => self.loaded.borrow_mut().clear(),
            _ => {}
        }
        Ok(Applied::one())
    }
}

#[test]
fn a_transaction_that_fails_loads_what_was_there() {
    let lines = ["ip route load /a via pg1", "ip route load /b via pg1"];
    let mut core = Core::default();
    let mut tables = Tables::default();
    core.run(&all(&with(&lines)), &tables).unwrap();
    tables.broken = "ip route load /d via pg1";
    let before: State = core.state().clone();
    for more in [
        &["ip route load /a via drop", "ip route load /d via pg1"][..],
        &["ip route load /c via pg1", "ip route load /d via pg1"],
        &["ip route unload", "ip route load /d via pg1"],
        &["default route-file /a", "ip route load /d via pg1"],
        &["ip route load /a via pg1", "ip route load /d via pg1"],
    ] {
        let failed = core.run(&all(more), &tables).unwrap_err().to_string();
        assert!(failed.contains("it is broken"), "{failed}");
        assert_eq!(
            (core.state(), &*tables.loaded.borrow()),
            (&before, &lines.map(str::to_owned).to_vec()),
            "{more:?}"
        );
    }
}
