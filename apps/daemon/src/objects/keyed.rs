//! Classes of objects with a key: spellings, files, order of dependence, requests of commits that earlier versions wrote.

use crate::EngineSettings;
use crate::objects;
use crate::stack::Stack;
use volley_cli::{Action, parse_line};
use volley_control::{Core, State};
use volley_graph::{Clock, RECEIVE_ARC};
use volley_model::Request;

pub(super) fn read(line: &str) -> Result<Request, String> {
    match parse_line(line).map_err(|e| e.to_string())?.action {
        Action::Request(request) => Ok(*request),
        other => panic!("{line}: {other:?}"),
    }
}

/// The requests of commands.
pub(super) fn all(lines: &[&str]) -> Vec<Request> {
    objects::register().unwrap();
    lines.iter().map(|line| read(line).unwrap()).collect()
}

pub(super) fn state(lines: &[&str]) -> State {
    Core::state_of(&all(lines)).unwrap_or_else(|e| panic!("{lines:?}: {e}"))
}

/// The steps for the commands `lines` after the commands `before`.
pub(super) fn steps(before: &[&str], lines: &[&str]) -> Vec<String> {
    let mut core = Core::default();
    core.run(&all(before), &Nothing).unwrap();
    let transaction = core.begin(&all(lines), &Nothing).unwrap();
    let steps = transaction.steps().iter();
    steps.map(|step| step.request.to_string()).collect()
}

pub(super) fn refusal(lines: &[&str]) -> String {
    Core::state_of(&all(lines)).unwrap_err().to_string()
}

pub(super) fn error(line: &str) -> String {
    objects::register().unwrap();
    read(line).expect_err(line)
}

/// A request of an older commit gives the object that a command creates.
pub(super) fn was(json: &str, line: &str) {
    let [now] = &all(&[line])[..] else {
        panic!("one request")
    };
    let request: Request = serde_json::from_str(json).expect(json);
    assert_eq!(request, *now, "{json}");
}

const EXAMPLE: &str = include_str!("../../../../crates/control/config/examples/router.toml");

const SOCKET: &str = "create memif socket id 1 filename /run/m.sock";
const MEMIF: &str = "create interface memif id 3 socket-id 1 slave name up0";

#[test]
fn memif_sockets_keep_their_spellings() {
    let same = [
        SOCKET,
        "create memif socket id 2 filename @volley",
        "delete memif socket id 2",
    ];
    for (line, request) in same.iter().zip(all(&same)) {
        assert_eq!(request.to_string(), *line);
    }
    let json = r#"{"memif-socket-add":{"id":1,"filename":"/run/m.sock"}}"#;
    was(json, SOCKET);
    for wrong in [
        r#"{"memif-socket-add":{"id":1}}"#,
        r#"{"no-such-request":{}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn memif_socket_0_is_built_in() {
    let message = error("create memif socket id 0 filename /x");
    assert!(
        message.contains("id must be another one: this object is built in"),
        "{message}"
    );
    let message = error("delete memif socket id 0");
    assert!(
        message.contains("always there and cannot be deleted"),
        "{message}"
    );
    let message = volley_config::parse("[[memif_socket]]\nid = 0\nfilename = \"/x\"\n");
    assert!(message.unwrap_err().to_string().contains("built in"));
    state(&["create interface memif id 3 master"]);
    let message = error(&format!(
        "create memif socket id 2 filename /{}",
        "x".repeat(107)
    ));
    assert!(message.contains("107 bytes at most, not 108"), "{message}");
}

#[test]
fn memif_sockets_come_before_their_interfaces_and_go_behind_them() {
    let text = "[[interface]]\nname = \"up0\"\nkind = \"memif\"\nmemif = { id = 3, socket = 1, role = \"slave\" }\nstate = \"down\"\n\
                [[memif_socket]]\nid = 1\nfilename = \"/run/m.sock\"\n";
    objects::register().unwrap();
    let requests = volley_config::parse(text).unwrap().requests;
    let lines: Vec<String> = requests.iter().take(2).map(Request::to_string).collect();
    assert_eq!(lines, [SOCKET, MEMIF]);
    let message = refusal(&[MEMIF]);
    assert!(message.contains("there is no memif socket 1"), "{message}");
    let message = refusal(&[SOCKET, MEMIF, "delete memif socket id 1"]);
    assert!(
        message.contains("memif socket 1 is in use by interface up0"),
        "{message}"
    );
    assert_eq!(
        Core::difference(&state(&[]), &state(&[SOCKET, MEMIF])),
        [format!("+ {SOCKET}"), format!("+ {MEMIF}")]
    );
}

#[test]
fn an_interface_is_created_again_with_its_socket() {
    let other = "create memif socket id 1 filename /run/n.sock";
    let (from, to) = (state(&[SOCKET, MEMIF]), state(&[other, MEMIF]));
    let lines = Core::difference(&from, &to);
    let again = "! interface up0 is deleted and created again: its traffic stops meanwhile";
    assert_eq!(
        lines,
        [
            format!("- {SOCKET}"),
            format!("+ {other}"),
            again.to_owned()
        ]
    );
    // One command does the same.
    let steps = steps(&[SOCKET, MEMIF], &[other]);
    let wanted = [
        "delete interface up0",
        "delete memif socket id 1",
        other,
        MEMIF,
    ];
    assert_eq!(steps, wanted);
}

#[test]
fn the_start_of_dpdk_keeps_its_spellings() {
    let line = "set dpdk eal lcores 0-1 memory 128 no-huge-pages option --log-level=8";
    let json = r#"{"dpdk-eal":{"lcores":"0-1","memory":128,"huge_pages":"no","options":["--log-level=8"]}}"#;
    was(json, line);
    let [request] = &all(&[line])[..] else {
        panic!("one request")
    };
    assert_eq!(request.to_string(), line);
    let text = "[dpdk]\nlcores = \"0-1\"\nmemory = 128\nhuge_pages = \"no\"\noptions = [\"--log-level=8\"]\n";
    let config = volley_config::parse(text).unwrap();
    assert_eq!(config.requests, all(&[line]));
    assert_eq!(volley_config::write(&config.requests).trim(), text.trim());
    // A number alone is one core.
    let config = volley_config::parse("[dpdk]\nlcores = 0\n").unwrap();
    assert_eq!(config.requests, all(&["set dpdk eal lcores 0"]));
    let message = volley_config::parse("[dpdk]\nhuge_pages = \"some\"\n").unwrap_err();
    assert!(message.to_string().contains("volley.toml:2"), "{message}");
    // An object with all defaults is the same as no object.
    assert!(state(&[line, "set dpdk eal"]).is_empty());
}

#[test]
fn the_example_reads_in_dependency_order() {
    objects::register().unwrap();
    let config = volley_config::parse(EXAMPLE).unwrap_or_else(|e| panic!("{e}"));
    let engine: crate::EngineSettings = config.startup.get();
    assert_eq!(engine.vector_size, 256);
    let lines: Vec<String> = config.requests.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "ip table add 7",
            "ip6 table add 7",
            "create packet-generator interface pg0 mac 02:fe:00:00:00:01",
            "set interface ip address pg0 192.0.2.1/24",
            "set interface ip address pg0 2001:db8::1/64",
            "create packet-generator interface pg1 mtu 1500",
            "set interface ip address pg1 198.51.100.1/24",
            "set interface ip address pg1 2001:db8:1::1/64",
            "create packet-generator interface pg2",
            "set interface ip table pg2 7",
            "set interface ip address pg2 203.0.113.1/24",
            "set ip neighbor pg1 198.51.100.2 02:fe:00:00:00:02",
            "set ip neighbor pg1 198.51.100.3 02:fe:00:00:00:03",
            "set ip neighbor pg1 2001:db8:1::2 02:fe:00:00:00:02",
            "ip route add 10.0.0.0/8 via 198.51.100.2 pg1",
            "ip route add 172.16.0.0/12 via 198.51.100.2 pg1 weight 3 via 198.51.100.3 pg1",
            "ip route add 20.0.0.0/24 count 1000 via 172.16.0.1",
            "ip route add 192.168.0.0/16 via drop",
            "ip route add ::/0 via 2001:db8:1::2",
            "ip route add 0.0.0.0/0 table 7 via lookup-in-table 0",
            "set interface state pg0 up",
            "set interface state pg1 up",
            "set interface state pg2 down",
            "packet-generator new name s0 interface pg0 limit 1000000 rate 100000 \
             size imix 64:7,594:4,1518:1 seed 42 edit ip4.dst increment 10.0.0.0 10.0.255.255 \
             edit udp.sport random 1024 65535 template { eth src 02:00:00:00:00:99 \
             dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.0 / udp sport 1024 dport 53 / \
             payload size 20 } enable",
        ]
    );
}

#[test]
fn headers_of_the_path_batcher_keep_their_spellings() {
    let line = "set path-batcher header tag length 4 length-at 0 length-mask 240 length-scale 4 next-at 2 \
                next 0x800 ip4 next 0x1 ethernet inner after 0x88b5 ethernet field color 8 8 field size 16 4";
    let json = r#"{"path-header-set":{"name":"tag","length":4,"length_at":0,"length_mask":240,"length_scale":4,"next_at":2,
        "next_bytes":null,"next":["0x800 ip4","0x1 ethernet inner"],"after":["0x88b5 ethernet"],"fields":["color 8 8","size 16 4"]}}"#;
    was(json, line);
    let [request] = &all(&[line])[..] else {
        panic!("one request")
    };
    assert_eq!(request.to_string(), line);
    let text = volley_config::write(std::slice::from_ref(request));
    assert!(
        text.contains("next = [\"0x800 ip4\", \"0x1 ethernet inner\"]"),
        "{text}"
    );
    assert_eq!(volley_config::parse(&text).unwrap().requests, all(&[line]));
    let message = error("set path-batcher header tag length 4 next-at 2 next x ip4");
    assert!(
        message.contains("column 53") && message.contains("0x894f ethernet"),
        "{message}"
    );
    assert_eq!(
        all(&["delete path-batcher header tag"])[0].to_string(),
        "delete path-batcher header tag"
    );
}

#[test]
fn rules_and_learning_come_behind_the_headers_that_they_name() {
    let header = "set path-batcher header tag length 4 field color 8 8";
    let lines = [
        "set path-batcher defaults learn 2 learn-field tag.color",
        "set path-batcher queue 1",
        "set path-batcher rule r queue 1 match tag.color=7",
        header,
    ];
    let steps = volley_control::requests(&state(&lines));
    assert_eq!(steps.len(), 4);
    let at = |part: &str| {
        steps
            .iter()
            .position(|r| r.to_string().contains(part))
            .unwrap()
    };
    assert!(
        at(header) < at("learn-field") && at(header) < at("rule r"),
        "{steps:?}"
    );
}

#[test]
fn static_neighbours_keep_their_spellings() {
    let line = "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:01";
    let json =
        r#"{"neighbor-add":{"interface":"pg1","address":"192.0.2.2","mac":"02:fe:00:00:00:01"}}"#;
    was(json, line);
    for other in [
        "set ip neighbor static pg1 192.0.2.2 02fe.0000.0001",
        "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:01 static",
        "set ip6 neighbor pg1 192.0.2.2 02:fe:00:00:00:01",
    ] {
        assert_eq!(all(&[other])[0].to_string(), line, "{other}");
    }
    // Names that could be read as words of the command.
    for line in [
        "set ip neighbor \"del\" 192.0.2.2 02:fe:00:00:00:01",
        "set ip neighbor \"st\" 192.0.2.2 02:fe:00:00:00:01",
        "set ip neighbor del \"static\" 192.0.2.2",
        "set ip neighbor del pg1 192.0.2.2",
    ] {
        assert_eq!(all(&[line])[0].to_string(), line);
    }
    let message = error("set ip neighbor pg0 10.0.0.1 01:00:00:00:00:01");
    assert!(
        message.contains("column 30: mac must be a unicast address"),
        "{message}"
    );
    assert!(error("set ip neighbor pg0 224.0.0.1 02:00:00:00:00:01").contains("of one host"));
    assert!(error("set ip neighbor pg0 10.0.0.1 02:00:00:00:01").contains("column 30"));
}

#[test]
fn static_neighbours_are_parts_of_their_interface() {
    let pg = "create packet-generator interface pg1";
    let line = "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:01";
    assert!(refusal(&[line]).contains("there is no interface pg1"));
    let renamed = state(&[pg, line, "set interface name pg1 up0"]);
    let wanted = [
        "create packet-generator interface up0",
        "set ip neighbor up0 192.0.2.2 02:fe:00:00:00:01",
    ];
    assert_eq!(Core::difference(&state(&wanted), &renamed), [""; 0]);
    assert!(state(&[pg, line, "delete interface pg1"]).is_empty());
    let message = refusal(&[pg, "set ip neighbor del pg1 192.0.2.2"]);
    assert!(
        message.contains("there is no neighbor pg1 192.0.2.2"),
        "{message}"
    );
    let message = refusal(&[
        pg,
        line,
        "set ip neighbor del pg1 192.0.2.2 02:fe:00:00:00:02",
    ]);
    assert!(
        message.contains("it has mac 02:fe:00:00:00:01"),
        "{message}"
    );
    assert_eq!(
        state(&[
            pg,
            line,
            "set ip neighbor del pg1 192.0.2.2 02:fe:00:00:00:01"
        ]),
        state(&[pg])
    );
}

#[test]
fn features_keep_their_spellings() {
    let line = "set interface feature pg0 ip4-not-enabled arc ip4-unicast";
    let json = r#"{"feature":{"interface":"pg0","arc":"ip4-unicast","feature":"ip4-not-enabled","switch":"on"}}"#;
    was(json, line);
    let off = format!("{line} disable");
    for same in [line, &off] {
        assert_eq!(all(&[same])[0].to_string(), same);
        let short = same.replace("interface ", "");
        assert_eq!(all(&[&short]), all(&[same]));
    }
    for (name, part) in [
        ("ip4-rx-urpf-strict", "`set urpf` switches it"),
        ("ip4-redirect", "`set interface ip redirects` switches it"),
        ("a*b", "use ASCII letters"),
    ] {
        let message = error(&line.replace("ip4-not-enabled", name));
        assert!(
            message.contains("column 27") && message.contains(part),
            "{message}"
        );
    }
    let text = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nstate = \"down\"\n\n\
                [[feature]]\ninterface = \"pg0\"\narc = \"ip4-unicast\"\nfeature = \"ip4-not-enabled\"\n";
    let read = volley_config::parse(text).unwrap().requests;
    let pg = "create packet-generator interface pg0";
    assert_eq!(Core::state_of(&read).unwrap(), state(&[pg, line]));
    assert_eq!(volley_config::write(&read), text);
}

#[test]
fn settings_own_the_built_in_features_of_received_packets() {
    let (stack, _workers) = Stack::new(&EngineSettings::default(), Clock::manual()).unwrap();
    let arcs = stack.engine.borrow().arcs();
    let arc = arcs.iter().find(|arc| arc.name == RECEIVE_ARC).unwrap();
    assert!(arc.features.len() > 3);
    for (feature, _) in &arc.features {
        let message = error(&format!(
            "set interface feature pg0 {feature} arc {RECEIVE_ARC}"
        ));
        assert!(message.contains("switch them"), "{feature}: {message}");
    }
    let of_a_plugin = format!("set interface feature pg0 ip-in-ip-one arc {RECEIVE_ARC}");
    assert_eq!(all(&[&of_a_plugin])[0].to_string(), of_a_plugin);
}

#[test]
fn features_are_switches_of_their_interface() {
    let pg = "create packet-generator interface pg0";
    let line = "set interface feature pg0 ip4-not-enabled arc ip4-unicast";
    assert!(refusal(&[line]).contains("there is no interface pg0"));
    assert!(state(&[pg, line, "delete interface pg0"]).is_empty());
    let renamed = state(&[pg, line, "set interface name pg0 up0"]);
    let wanted = [pg, line].map(|line| line.replace("pg0", "up0"));
    let wanted = state(&[&wanted[0], &wanted[1]]);
    assert_eq!(Core::difference(&wanted, &renamed), [""; 0]);
    // A feature that is off may be switched off again.
    let off = format!("{line} disable");
    assert_eq!(state(&[pg, &off]), state(&[pg]));
    assert_eq!(state(&[pg, line, &off]), state(&[pg]));
}

/// A handler that accepts everything and does nothing.
pub(super) struct Nothing;

impl volley_control::Probe for Nothing {
    fn by_first_name(&self, _: &str) -> Vec<volley_object::Instance> {
        Vec::new()
    }
}

impl volley_control::Executor for Nothing {
    fn apply(&self, _: &Request) -> Result<volley_model::Applied, volley_model::ModelError> {
        Ok(volley_model::Applied::one())
    }
}
