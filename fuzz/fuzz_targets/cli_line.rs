//! Command lines: no panic; an error has a sentence and a column inside the line; completion and help reply; and a parsed
//! request, written as a command, parses to the same request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_cli::{Action, NoNames, complete, help, parse_line};

fuzz_target!(|line: &str| {
    let _ = complete(line, &NoNames);
    let _ = help(line, &NoNames);
    match parse_line(line) {
        Ok(command) => {
            let Action::Request(request) = command.action else {
                return;
            };
            let spelling = request.to_string();
            let again = parse_line(&spelling).map(|c| c.action);
            assert!(
                matches!(again, Ok(Action::Request(same)) if same == request),
                "{line:?} -> {spelling:?}"
            );
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.column <= line.chars().count() + 1, "{error:?}");
        }
    }
});
