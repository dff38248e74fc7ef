//! Commands of queries: parameters, texts, help, the reference.

mod support;

use support::ShowLamps;
use volley_cli::{Action, View, parse_line, reference};
use volley_object::{Asked, Query as _};

fn query(line: &str) -> (Asked, View) {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Query(query, view) => (query, view),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn queries_and_their_texts() {
    ShowLamps::query().unwrap();
    let lamps = |room: Option<&str>, max| {
        let room = room.map(str::to_owned);
        ShowLamps { room, max }.asked().unwrap()
    };
    for line in ["show lamps", "show lamp", "sh la"] {
        assert_eq!(query(line), (lamps(None, Some(7)), View::Table), "{line}");
    }
    for (line, room, max, view) in [
        ("show lamps hall", Some("hall"), 7, View::Verbose),
        ("show lamps detail", None, 7, View::Verbose),
        ("show lamps hall dot", Some("hall"), 7, View::Named("dot")),
        ("show lamps colours", None, 7, View::Named("colour")),
        ("sh la col max 9", None, 9, View::Named("colour")),
    ] {
        assert_eq!(query(line), (lamps(room, Some(max)), view), "{line}");
    }
    assert_eq!(
        parse_line("show lamps colours max 0")
            .unwrap_err()
            .to_string(),
        "column 24: max must be a number from 1 to 1000000, not '0'"
    );
    assert_eq!(
        volley_cli::help("show lamps colours ", &volley_cli::NoNames),
        "  max      followed by <max>: Most lamps to show: a number from 1 to 1000000 (default 7)\n  <enter>  run it\n"
    );
    assert!(reference().contains("Colours of lamps. Example: `show lamp colour`"));
}
