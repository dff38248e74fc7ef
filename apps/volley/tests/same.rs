//! Commands and files of an earlier version still have the same meaning. `tests/same` has the record.

use serde::Deserialize;
use volley_cli::{Action, parse_line};
use volley_control::{Core, State};
use volley_model::Request;

/// The input of an operator of an earlier version, and the commands in which that version wrote its meaning.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// The page or test of the input.
    from: String,
    command: Option<String>,
    file: Option<String>,
    spelled: Vec<String>,
}

/// Words of commands that were replaced since: they are refused now.
const REPLACED: [(&str, &str); 1] = [(
    "ra-send", "prefix", // `ip6 nd prefix`: now the class `advertised_prefix`
)];

/// Keys of files that were replaced since: `timeout` of the path batcher has its unit in the definition.
const REPLACED_KEYS: [&str; 1] = ["timeout_us"];

fn record() -> Vec<Recorded> {
    volley_daemon::objects::register().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/same/before.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn is_replaced(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has = |(one, other): &(&str, &str)| words.contains(one) && words.contains(other);
    REPLACED.iter().any(has)
}

/// The change that a command makes, without parts that only the request has.
fn meaning(command: &str) -> Result<Request, String> {
    match parse_line(command) {
        Ok(line) => match line.action {
            Action::Request(request) => Ok(match *request {
                Request::InterfaceCreate(mut spec) => {
                    spec.kind = spec.kind.kept();
                    Request::InterfaceCreate(spec)
                }
                other => other,
            }),
            other => Err(format!("`{command}` is no change: {other:?}")),
        },
        Err(error) => Err(format!("`{command}`: {error}")),
    }
}

fn state(requests: &[Request]) -> Result<State, String> {
    Core::state_of(requests).map_err(|error| error.to_string())
}

fn report(count: usize, least: usize, faults: &[String]) {
    assert!(count >= least, "only {count} are in the record");
    assert!(
        faults.is_empty(),
        "{} of {count} differ:\n{}",
        faults.len(),
        faults.join("\n")
    );
    println!("{count} compared");
}

#[test]
fn every_command_means_what_it_meant() {
    let (mut count, mut replaced, mut faults) = (0, 0, Vec::new());
    for it in record() {
        let Some(command) = &it.command else {
            continue;
        };
        count += 1;
        let now = meaning(command);
        if is_replaced(command) {
            replaced += 1;
            assert!(
                now.is_err(),
                "{command} is read again: take it out of the list"
            );
            continue;
        }
        let then: Result<Vec<Request>, String> = it.spelled.iter().map(|c| meaning(c)).collect();
        let same =
            matches!((&now, &then), (Ok(now), Ok(then)) if std::slice::from_ref(now) == then);
        if !same {
            faults.push(format!(
                "{}: `{command}`\n   now {now:?}\n  then {then:?}",
                it.from
            ));
        }
    }
    assert_eq!(replaced, 2, "commands that were replaced");
    report(count, 220, &faults);
}

#[test]
fn every_file_leads_to_the_state_that_it_led_to() {
    let (mut count, mut replaced, mut faults) = (0, 0, Vec::new());
    for it in record() {
        let Some(file) = &it.file else {
            continue;
        };
        count += 1;
        let requests = volley_config::parse(file).map_err(|errors| errors.to_string());
        if let Some(key) = REPLACED_KEYS.iter().find(|key| file.contains(**key)) {
            replaced += 1;
            let error = requests.unwrap_err();
            assert!(error.contains(&format!("unknown key '{key}'")), "{error}");
            continue;
        }
        let now = requests.and_then(|config| {
            let all = config.requests.into_iter();
            state(&all.filter(Request::is_configuration).collect::<Vec<_>>())
        });
        let spelled: Result<Vec<Request>, String> = it.spelled.iter().map(|c| meaning(c)).collect();
        let then = spelled.and_then(|all| state(&all));
        let difference = match (&now, &then) {
            (Ok(now), Ok(then)) => Core::difference(then, now).join("\n"),
            (now, then) => format!(
                "   now {:?}\n  then {:?}",
                now.as_ref().err(),
                then.as_ref().err()
            ),
        };
        if !difference.is_empty() {
            faults.push(format!("{}:\n{file}\n{difference}", it.from));
        }
    }
    assert_eq!(replaced, 2, "files with keys that were replaced");
    report(count, 26, &faults);
}
