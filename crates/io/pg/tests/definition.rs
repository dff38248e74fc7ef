//! Streams in commands, in JSON and in the configuration file: parsing, and the exact sentences of errors.

use proptest::prelude::*;
use volley_cli::{Action, parse_line};
use volley_model::Request;
use volley_pg::{Edit, Sizes, StreamSpec};

fn read(line: &str) -> Result<Request, String> {
    volley_pg::classes().unwrap();
    match parse_line(line).map_err(|e| e.to_string())?.action {
        Action::Request(request) => Ok(*request),
        other => panic!("{line}: {other:?}"),
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("name".to_string()),
        Just("s".to_string()),
        "[a-z][a-z0-9-]{0,8}",
        "[a-z]{1,4}[0-9]{1,3}/[0-9]",
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = prop_oneof![
        Just("ip4.dst increment 10.0.0.0 10.0.255.255 step 256"),
        Just("udp.sport random 1024 65535"),
        Just("ip4.ttl list 1 2 3"),
        Just("offset 30 size 4 fixed 7"),
        Just("eth.src file macs.txt"),
        Just("eth.src file \"a b\\\"c\""),
    ];
    text.prop_map(|t| t.parse().unwrap())
}

fn stream() -> impl Strategy<Value = Request> {
    let sizes = prop_oneof![
        Just(None),
        (64u32..1500).prop_map(|n| Some(Sizes::Fixed(n))),
        Just(Some(Sizes::simple_imix())),
        Just(Some(Sizes::Increment { min: 64, max: 99 })),
        Just(Some(Sizes::Random { min: 64, max: 99 })),
    ];
    let file = "[a-z /|{}\"\\\\#]{1,12}".prop_map(std::path::PathBuf::from);
    let option = |range| proptest::option::of(range);
    (
        name(),
        option(0u64..9),
        sizes,
        proptest::option::of(file),
        proptest::collection::vec(edit(), 0..3),
        proptest::option::of(name()),
        any::<bool>(),
    )
        .prop_map(|(name, n, size, pcap, edits, node, enabled)| {
            let template = "eth / ip4 dst 10.0.0.1 options 0x0101 / udp / payload 20";
            let stream = StreamSpec {
                node,
                edits,
                size,
                rate: n.map(|n| n + 1),
                limit: n.map_or(0, |n| n + 7),
                max_frame: n.map(|_| 9),
                seed: n,
                worker: n.map(|_| 0),
                enabled,
                ..StreamSpec::new(&name, "pg0", template.parse().unwrap())
            };
            let template = stream.template.clone().filter(|_| pcap.is_none());
            Request::set(&StreamSpec {
                template,
                pcap,
                ..stream
            })
            .unwrap()
        })
}

/// One stream, or all, are enabled or disabled.
fn switch() -> impl Strategy<Value = Request> {
    (proptest::option::of(name()), any::<bool>()).prop_map(|(stream, on)| {
        volley_pg::classes().unwrap();
        let mut fields = vec![("enabled", volley_object::Value::Bool(on))];
        fields.extend(stream.as_deref().map(|name| ("name", name.into())));
        Request::Change(volley_object::Change::of_fields("stream", &fields).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_request_comes_back_from_its_spelling_and_from_json(
        request in prop_oneof![stream(), switch()],
    ) {
        volley_pg::classes().unwrap();
        let line = request.to_string();
        prop_assert_eq!(read(&line), Ok(request.clone()), "{}", line);
        let json = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request, "{}", json);
    }
}

const SPELLINGS: &[(&str, &str)] = &[
    ("pa en", "packet-generator enable"),
    (
        "packet-generator enable-stream s0",
        "packet-generator enable s0",
    ),
    ("packet-generator disable", ""),
    (
        "packet-generator disable-stream \"s 0\"",
        "packet-generator disable \"s 0\"",
    ),
    ("packet-generator delete s0", ""),
    (
        "packet-generator new pcap /tmp/in.pcap source pg0 name pcap0-sw_if_index-1 maxframe 32 limit 9",
        "packet-generator new name pcap0-sw_if_index-1 interface pg0 limit 9 maxframe 32 pcap /tmp/in.pcap",
    ),
    (
        "packet-generator new name s0 node ip4-input rate 1.5M limit 0 size ran 64-99 edit offset 20 size 2 list 1 2 lim 7 \
         edit udp.sport inc 1 9 step 2 size imix template \"eth/ ip4\"",
        "column 113: 'limit' is given twice",
    ),
    (
        "packet-generator new name s0 node ip4-input rate 1.5M size imix edit offset 20 size 2 list 1 2 lim 7 \
         edit udp.sport inc 1 9 step 2 template { eth  / ip4 / udp }",
        "packet-generator new name s0 node ip4-input limit 7 rate 1500000 size imix 64:7,594:4,1518:1 \
         edit offset 20 size 2 list 1 2 edit udp.sport increment 1 9 step 2 template { eth / ip4 / udp }",
    ),
    (
        "packet-generator new {\n name s0\n limit 100\n node ethernet-input\n size 64-64\n no-recycle\n interface pg0\n \
         data {\n IP4: 1.2.3 -> 4.5.6\n UDP: 192.0.2.1 - 192.0.2.9 -> 10.0.0.1\n UDP: 1234 -> 2345\n incrementing 30\n }\n }",
        "packet-generator new name s0 interface pg0 node ethernet-input limit 100 size 64 \
         data { IP4: 1.2.3 -> 4.5.6 UDP: 192.0.2.1 - 192.0.2.9 -> 10.0.0.1 UDP: 1234 -> 2345 incrementing 30 }",
    ),
    (
        "packet-generator new interface pg0 template { eth }",
        "column 52: name is missing: Name of the stream: a text such as s0",
    ),
    (
        "packet-generator new name s interface pg0 template { eth srv 1 }",
        "column 58: 'srv' is not a field of eth: there are dst, src, type",
    ),
    (
        "packet-generator new name s interface pg0 template { eth",
        "column 52: this brace has no end: close it with }",
    ),
    (
        "packet-generator new name s interface pg0 edit ip4.dst   random 9 8",
        "column 65: '9' is not an IPv4 address: write one such as 192.0.2.1",
    ),
    (
        "packet-generator new name s interface pg0 data { UDP: 1 }",
        "column 55: '1' is neither a MAC nor an IP address",
    ),
    (
        "packet-generator new name s interface pg0 pcap a template { eth }",
        "column 48: pcap is one kind of packets too many: there is template already",
    ),
    (
        "packet-generator new name s interface pg0",
        "column 42: template is missing, as data and pcap are: give one of them",
    ),
    (
        "packet-generator new name s template { eth }",
        "column 45: interface is missing, as node is: give an interface, a node to enter at, or both",
    ),
    (
        "packet-generator new name s interface pg0 size 9 template { eth }",
        "column 48: size must be lengths from 14 to 65535, not 9",
    ),
    (
        "packet-generator new name s interface pg0 rate 2G template { eth }",
        "column 48: rate must be a number from 1 to 1000000000 such as 250k, 1.5M or 1e6, not '2G'",
    ),
    (
        "packet-generator new name s interface pg0 edit ip4.ttl fixed 9 template { eth }",
        "column 48: edits must fit the template: for ip4.ttl it has 0 such layers",
    ),
];

#[test]
fn commands_mean_what_they_say() {
    for &(line, canonical) in SPELLINGS {
        let canonical = if canonical.is_empty() {
            line
        } else {
            canonical
        };
        let found = read(line).map_or_else(|error| error, |request| request.to_string());
        assert_eq!(found, canonical, "{line}");
    }
}

#[test]
fn the_file_has_a_table_for_each_stream() {
    volley_pg::classes().unwrap();
    let text = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\n[[stream]]\nname = \"s0\"\ninterface = \"pg0\"\n\
                data = \"UDP: 192.0.2.1 -> 10.0.0.1\"\nedits = [\"udp.sport random 1 9\"]\nsize = \"64-128\"\nrate = 250000\n\
                limit = 7\nenabled = true\n";
    let config = volley_config::parse(text).unwrap();
    assert_eq!(volley_config::write(&config.requests), text);
    let other = text
        .replace("rate = 250000", "rate = \"250k\"")
        .replace("\"64-128\"", "80");
    let config = volley_config::parse(&other).unwrap();
    let written = text.replace("64-128", "80");
    assert_eq!(volley_config::write(&config.requests), written);
}

#[test]
fn json_has_numbers_and_texts() {
    volley_pg::classes().unwrap();
    let json = r#"{"set":{"class":"stream","name":"s0","node":"ip4-input","template":"ip4 / udp","rate":"1.5M","size":64}}"#;
    let request: Request = serde_json::from_str(json).unwrap();
    let spelled =
        "packet-generator new name s0 node ip4-input rate 1500000 size 64 template { ip4 / udp }";
    assert_eq!(request.to_string(), spelled);
    let json = r#"{"change":{"class":"stream","enabled":true}}"#;
    let request: Request = serde_json::from_str(json).unwrap();
    assert_eq!(request.to_string(), "packet-generator enable");
    for (json, error) in [
        (
            r#"{"set":{"class":"stream","name":"s0","node":"n","template":"eth src 1"}}"#,
            "template column 9: ",
        ),
        (
            r#"{"change":{"class":"stream","name":7,"enabled":true}}"#,
            "name must be a text",
        ),
        (
            r#"{"change":{"class":"strea","enabled":true}}"#,
            "there is no class 'strea' of objects",
        ),
    ] {
        let found = serde_json::from_str::<Request>(json)
            .unwrap_err()
            .to_string();
        assert!(found.starts_with(error), "{found}");
    }
}
