//! Commands and their meaning: common commands, every request by its own command, the exact sentences of errors, and random
//! text.

use volley_cli::{Action, Builtin, Pipe, View, parse_line, reference};
use volley_log::{LogLevel, LogModule, ShowLog};
use volley_model::*;
use volley_object::Choice;

/// Registers the classes of the crates of interfaces and of the log.
fn register() {
    volley_iface::classes().unwrap();
    volley_log::classes().unwrap();
}

fn request(line: &str) -> Request {
    register();
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Request(request) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

fn log(line: &str) -> ShowLog {
    register();
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Query(asked, View::Table) => asked.get().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

fn error(line: &str) -> String {
    register();
    parse_line(line).expect_err(line).to_string()
}

const SPELLINGS: &[(&str, &str)] = &[
    ("set int state pg0 up", "set interface state pg0 up"),
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
    register();
    let piped = parse_line("show log | grep drop | count").unwrap();
    assert_eq!(piped.pipes, [Pipe::Grep("drop".into()), Pipe::Count]);
    assert_eq!(parse_line("show log json").unwrap().pipes, [Pipe::Json]);
    assert_eq!(
        parse_line("  # only a comment").unwrap().action,
        Action::Nothing
    );
    assert_eq!(
        parse_line("help set log").unwrap().action,
        Action::Builtin(Builtin::Help("set log".into()))
    );
}

const ERRORS: &[(&str, &str)] = &[
    (
        "shw run",
        "column 1: 'shw' is not understood here: did you mean 'show'? expected help, quit, exit",
    ),
    ("show", "column 5: the command is not complete: expected "),
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
        "set interface state { pg0",
        "column 21: this brace has no end: close it with }",
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
    let words = format!("show log{}", " level warn".repeat(50_000));
    assert!(error(&words).contains("more than 16384 words"));
    assert!(error(&"{".repeat(100_000)).starts_with("column 1: this brace has no end"));
    let deep = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
    assert!(parse_line(&deep).is_err());
    let line = format!("show log {}", "level warn ".repeat(5000));
    let _ = volley_cli::help(&line, &volley_cli::NoNames);
    let _ = volley_cli::complete(&line, &volley_cli::NoNames);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn the_reference_has_every_command_and_its_examples_parse() {
    register();
    let text = reference();
    let examples: Vec<_> = text
        .lines()
        .filter_map(|l| l.split_once(" Example: `"))
        .collect();
    // The commands that belong to no class, query or verb.
    assert!(examples.len() > 20, "{} examples", examples.len());
    for (_, example) in examples {
        let example = example.trim_end_matches('`');
        assert!(
            parse_line(example).is_ok(),
            "{example}: {:?}",
            parse_line(example)
        );
    }
    // `cargo xtask docs` compares the page as a whole; here few classes are registered.
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
