//! Sub-interfaces in the configuration file.

use volley_config::{parse, write};

const TEXT: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
[[interface]]
name = "pg0.100"
kind = "sub-interface"
parent = "pg0"
addresses = ["192.0.2.1/24"]
[[interface]]
name = "pg0.7"
kind = "sub-interface"
parent = "pg0"
dot1ad = 200
inner_dot1q = 4094
mtu = 1400
"#;

#[test]
fn they_are_read_and_written() {
    volley_iface::classes().unwrap();
    volley_fib::classes().unwrap();
    let requests = parse(TEXT).unwrap().requests;
    let created = |requests: &[volley_model::Request]| -> Vec<String> {
        let lines = requests.iter().map(|r| r.to_string());
        lines.filter(|l| l.starts_with("create sub")).collect()
    };
    let wanted = [
        "create sub-interfaces pg0 100 dot1q 100 exact-match",
        "create sub-interfaces pg0 7 dot1ad 200 inner-dot1q 4094 exact-match mtu 1400",
    ];
    assert_eq!(created(&requests), wanted);
    let again = parse(&write(&requests)).unwrap().requests;
    assert_eq!(created(&again), wanted, "{}", write(&requests));
}

#[test]
fn errors_name_their_place() {
    volley_iface::classes().unwrap();
    let error = |more: &str, name: &str| {
        let text = format!(
            "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"{name}\"\nkind = \"sub-interface\"\n{more}\n"
        );
        parse(&text).unwrap_err().to_string()
    };
    for (more, name, want) in [
        ("", "pg0.1", "parent"),
        ("parent = \"pg0\"", "pg0", "ends with a number"),
        ("parent = \"pg0\"", "pg0.5000", "add `dot1q` or `dot1ad`"),
        ("parent = \"pg0\"\ndot1q = 4095", "pg0.1", "4094"),
        (
            "parent = \"pg0\"\ndot1q = 1\ndot1ad = 2",
            "pg0.1",
            "one outer tag",
        ),
        ("parent = \"pg1\"", "pg1.1", "pg1"),
        ("parent = \"pg0\"", "pg1.1", "called after its parent"),
        (
            "parent = \"pg0\"\nmac = \"02:fe:00:00:00:01\"",
            "pg0.1",
            "that of its parent",
        ),
    ] {
        let error = error(more, name);
        assert!(
            error.contains(want) && error.contains("volley.toml:"),
            "{name} {more}: {error}"
        );
    }
    let error = parse("[[interface]]\nname = \"a\"\nkind = \"pg\"\ndot1q = 1\n").unwrap_err();
    assert!(
        error.to_string().contains("is for kind sub-interface only"),
        "{error}"
    );
}
