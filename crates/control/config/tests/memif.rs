//! memif in the configuration file.

use volley_config::parse;

#[test]
fn settings_are_those_of_the_command() {
    let config = parse(
        r#"
        [[interface]]
        name = "up0"
        kind = "memif"
        memif = { id = 3, socket = 1, role = "slave", ring_size = 512, secret = "psst" }
        [[interface]]
        name = "memif0/0"
        kind = "memif"
        "#,
    );
    let config = config.unwrap();
    let lines: Vec<String> = config.requests.iter().map(|r| r.to_string()).collect();
    assert_eq!(
        lines[..2],
        [
            "create interface memif id 3 socket-id 1 slave ring-size 512 secret psst name up0",
            "create interface memif id 0 socket-id 0 master",
        ]
    );
}

#[test]
fn errors_name_their_place() {
    let error =
        parse("[[interface]]\nname = \"a\"\nkind = \"pg\"\nmemif = { id = 1 }\n").unwrap_err();
    assert!(error.to_string().contains("volley.toml:4"), "{error}");
    assert!(
        error.to_string().contains("is for kind memif only"),
        "{error}"
    );
    let text =
        "[[interface]]\nname = \"a\"\nkind = \"memif\"\nmemif = { ring_size = 3, rol = 1 }\n";
    let error = parse(text).unwrap_err().to_string();
    assert!(error.contains("did you mean 'role'"), "{error}");
    assert!(error.contains("power of two"), "{error}");
}
