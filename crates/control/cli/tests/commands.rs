//! Lines and what they mean: the well-known spellings, every request through its own spelling, the exact sentences of
//! errors, and lines that mean nothing.

use volley_cli::{Action, Builtin, Pipe, View, parse_line, reference};
use volley_log::{LogModule, ShowLog};
use volley_model::*;
use volley_object::Choice;

fn request(line: &str) -> Request {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Request(request) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

fn log(line: &str) -> ShowLog {
    volley_log::classes().unwrap();
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Query(asked, View::Table) => asked.get().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

fn error(line: &str) -> String {
    volley_log::classes().unwrap();
    parse_line(line).expect_err(line).to_string()
}

const SPELLINGS: &[(&str, &str)] = &[
    ("set int state pg0 up", "set interface state pg0 up"),
    (
        "ip route add 10.0.0.0/24 via 192.0.2.1 pg1 weight 2 count 1000",
        "ip route add 10.0.0.0/24 count 1000 via 192.0.2.1 pg1 weight 2",
    ),
    (
        "ip route add table 7 10.0.0.0/8 drop",
        "ip route add 10.0.0.0/8 table 7 via drop",
    ),
    ("ip route add 10.0.0.0/8 via pg1", ""),
    ("ip route add ::/0 via 2001:db8::1 next-hop-table 3", ""),
    (
        "ip route add 10.0.0.0/8 via ip4-lookup-in-table 7",
        "ip route add 10.0.0.0/8 via lookup-in-table 7",
    ),
    (
        "ip route add 10.0.0.0/8 via 192.0.2.1 pg1 via 192.0.2.2 pg2 weight 3",
        "",
    ),
    ("ip route delete 10.0.0.0/8", "ip route del 10.0.0.0/8"),
    ("delete interface pg0 # gone", "delete interface pg0"),
];

#[test]
fn well_known_spellings_and_their_canonical_form() {
    for &(line, canonical) in SPELLINGS {
        let canonical = if canonical.is_empty() {
            line
        } else {
            canonical
        };
        assert_eq!(request(line).to_string(), canonical, "{line}");
    }
}

#[test]
fn pipes() {
    volley_log::classes().unwrap();
    let piped = parse_line("show log | grep drop | count").unwrap();
    assert_eq!(piped.pipes, [Pipe::Grep("drop".into()), Pipe::Count]);
    assert_eq!(parse_line("show log json").unwrap().pipes, [Pipe::Json]);
    assert_eq!(
        parse_line("  # only a comment").unwrap().action,
        Action::Nothing
    );
    assert_eq!(
        parse_line("help ip route").unwrap().action,
        Action::Builtin(Builtin::Help("ip route".into()))
    );
}

const ERRORS: &[(&str, &str)] = &[
    (
        "shw run",
        "column 1: 'shw' is not understood here: did you mean 'show'? expected help, quit, exit",
    ),
    (
        "show",
        "column 5: the command is not complete: expected log",
    ),
    (
        "config co",
        "column 8: 'co' is ambiguous: it could be commit, confirm",
    ),
    (
        "set interface state pg0",
        "column 24: the command is not complete: expected up or down",
    ),
    (
        "set interface state pg0 sideways",
        "column 25: 'sideways' is not understood here: expected up or down",
    ),
    (
        "ip route add 10.0.0.1/8 via drop",
        "column 14: '10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8",
    ),
    (
        "ip route add 10.0.0.0/33 via drop",
        "column 14: '10.0.0.0/33' has a bad prefix length: IPv4 allows /0 to /32",
    ),
    (
        "ip route add 10.0.0.0/8 via 192.0.2.300",
        "column 29: '192.0.2.300' is not an IP address: write one such as 192.0.2.1 or 2001:db8::1",
    ),
    (
        "ip route add 10.0.0.0/8 via 192.0.2.1 weight 0",
        "column 46: weight 0 is not valid: it must be 1 to 255",
    ),
    (
        "ip route add 10.0.0.0/8 weight 3",
        "column 25: 'weight' belongs to a path: give the path first, such as 'via 192.0.2.1'",
    ),
    (
        "ip route add 10.0.0.0/8",
        "column 14: route 10.0.0.0/8 is not valid: it leads nowhere",
    ),
    (
        "ip route add 10.0.0.0/8 table 1 table 2 drop",
        "column 33: 'table' is given twice",
    ),
    (
        "ip route add 255.0.0.0/8 count 2 drop",
        "column 32: count 2 is not valid: 255.0.0.0/8 has fewer prefixes behind it",
    ),
    (
        "ip route add ::/0 via 10.0.0.1",
        "column 23: next hop 10.0.0.1 for IPv6 is not supported; give an IPv6 next hop",
    ),
    (
        "ip route add { 10.0.0.0/8",
        "column 14: this brace has no end: close it with }",
    ),
    (
        "show log | frobnicate",
        "column 12: expected a pipe: grep TEXT (or include TEXT), grep -v TEXT (or exclude TEXT), begin TEXT",
    ),
    ("| count", "column 1: a command is missing before the pipe"),
    (
        "set interface state \"pg0 up",
        "column 21: this quote has no end: close it with \"",
    ),
];

#[test]
fn errors_are_one_sentence_with_the_column() {
    for &(line, expected) in ERRORS {
        let found = error(line);
        assert!(
            found.starts_with(expected),
            "{line}\n  found    {found}\n  expected {expected}"
        );
    }
}

#[test]
fn lines_that_never_end_are_refused_quickly() {
    let begun = std::time::Instant::now();
    let long = "x".repeat(volley_cli::MAX_LINE + 1);
    assert!(error(&long).starts_with("column 1: the line has"));
    let words = format!("ip route add 10.0.0.0/8{}", " via pg1".repeat(50_000));
    assert!(error(&words).contains("more than 16384 words"));
    assert!(error(&"{".repeat(100_000)).starts_with("column 1: this brace has no end"));
    let deep = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
    assert!(parse_line(&deep).is_err());
    let line = format!("ip route add {}", "via 10.0.0.1 ".repeat(5000));
    let _ = volley_cli::help(&line, &volley_cli::NoNames);
    let _ = volley_cli::complete(&line, &volley_cli::NoNames);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn the_reference_has_every_command_and_its_examples_parse() {
    volley_log::classes().unwrap();
    let text = reference();
    let examples: Vec<_> = text
        .lines()
        .filter_map(|l| l.split_once(" Example: `"))
        .collect();
    // Those of the commands that no class, query or verb defines.
    assert!(examples.len() > 20, "{} examples", examples.len());
    for (_, example) in examples {
        // No class of objects is registered here, and of queries and verbs only those of the log.
        let example = example.replace("show interfaces", "show log");
        let example = example.trim_end_matches('`');
        assert!(
            parse_line(example).is_ok(),
            "{example}: {:?}",
            parse_line(example)
        );
    }
    // `cargo xtask docs` compares the page as a whole; here no class of objects is registered.
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/generated/commands.md"
    );
    let page = std::fs::read_to_string(path).unwrap_or_default();
    for section in text.split("\n#").skip(1) {
        let section = section.trim_start_matches('#').trim();
        assert!(page.contains(section), "commands.md has no `{section}`");
    }
}

#[test]
fn the_log_is_shown_whole_or_in_part() {
    let all = ShowLog {
        max: None,
        level: None,
        module: None,
        after: None,
    };
    assert_eq!(log("show log"), all);
    let module = LogModule::ALL.iter().find(|it| it.0 == "interface");
    let part = ShowLog {
        max: Some(20),
        level: Some(LogLevel::Warn),
        module: module.map(|it| it.2),
        after: None,
    };
    assert_eq!(log("show log 20 level warn module interface"), part);
    assert_eq!(log("show log module interface 20 level warn"), part);
    for bad in [
        "show log level loud",
        "show log module memiff",
        "show log level",
        "show log level warn level info",
        "set log level",
        "set log level info module",
    ] {
        assert!(error(bad).len() > 10, "{bad}");
    }
}
