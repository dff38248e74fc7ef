//! Every request is spelled as a command and parsed back to the same request; random text causes no panic.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use volley_cli::{Action, parse_line};
use volley_fib::path::{Path, PathTarget};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_log::{LogLevel, LogModule, SetLogLevel};
use volley_model::*;
use volley_object::Choice;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("pg0".to_string()),
        Just("via".to_string()),
        Just("del".to_string()),
        Just("weight".to_string()),
        Just("any".to_string()),
        Just("d".to_string()),
        "[a-z][a-z0-9-]{0,8}",
        "[a-z]{1,4}[0-9]{1,3}/[0-9]",
    ]
}

fn addr4() -> impl Strategy<Value = std::net::IpAddr> {
    (1u32..0xdfff_ffff).prop_map(|n| std::net::IpAddr::V4(n.into()))
}

fn target() -> impl Strategy<Value = PathTarget> {
    prop_oneof![
        (addr4(), proptest::option::of(name())).prop_map(|(addr, interface)| {
            PathTarget::Via {
                addr,
                interface,
                table: None,
            }
        }),
        (addr4(), any::<u32>()).prop_map(|(addr, t)| PathTarget::Via {
            addr,
            interface: None,
            table: Some(t)
        }),
        name().prop_map(PathTarget::Interface),
        Just(PathTarget::Drop),
        Just(PathTarget::Unreachable),
        Just(PathTarget::Prohibit),
        Just(PathTarget::Local),
        any::<u32>().prop_map(PathTarget::LookupIn),
    ]
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let path = (target(), 1u32..=255, any::<u8>(), any::<bool>());
    let path = path.prop_map(|(target, weight, preference, onlink)| Path {
        onlink: onlink
            && matches!(
                &target,
                PathTarget::Via {
                    interface: Some(_),
                    ..
                }
            ),
        target,
        weight,
        preference,
    });
    proptest::collection::vec(path, 1..4)
}

fn interface_life() -> impl Strategy<Value = Request> {
    prop_oneof![
        (name(), name()).prop_map(|(name, new_name)| Request::InterfaceRename { name, new_name }),
        (
            proptest::option::of(0..LogModule::ALL.len()),
            proptest::option::of(0..LogLevel::ALL.len())
        )
            .prop_map(|(module, level)| {
                let module = module.map(|at| LogModule::ALL[at].2);
                let level = level.map(|at| LogLevel::ALL[at].2);
                Request::of(&SetLogLevel { level, module }).unwrap()
            }),
    ]
}

fn interface_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        name().prop_map(|name| Request::InterfaceDelete { name }),
        name().prop_map(|name| Admin::request(name, AdminState::Up).unwrap()),
        interface_life(),
    ]
}

/// Some requests of every kind, even if the other tests run few cases: a kind without a command is found at once.
#[test]
fn some_of_every_kind_come_back() {
    let (mut runner, any) = (TestRunner::deterministic(), interface_request());
    for _ in 0..3000 {
        let request = any.new_tree(&mut runner).unwrap().current();
        let line = request.to_string();
        let back = parse_line(&line).map(|command| command.action);
        assert_eq!(back, Ok(Action::Request(Box::new(request))), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_request_comes_back_from_its_spelling(request in interface_request()) {
        prop_assert_eq!(request.validate(), Ok(()));
        let line = request.to_string();
        let back = parse_line(&line).map_err(|e| TestCaseError::fail(format!("{line}\n{e}")))?;
        prop_assert_eq!(back.action, Action::Request(Box::new(request.clone())), "{}", line);
        let json = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request, "{}", json);
    }

    #[test]
    fn every_path_comes_back_from_its_text(paths in paths()) {
        for path in paths {
            let text = path.to_string();
            prop_assert_eq!(text.parse::<Path>(), Ok(path), "{}", text);
        }
    }

    #[test]
    fn any_line_is_read_or_refused(line in "(?s).{0,120}") {
        if let Err(e) = parse_line(&line) {
            prop_assert!(e.column >= 1 && e.column <= line.chars().count() + 1, "{e}");
        }
        let _ = volley_cli::help(&line, &volley_cli::NoNames);
    }

    #[test]
    fn mutations_of_valid_lines_are_read_or_refused(
        request in interface_request(), at in 0.0f64..1.0, cut in 0usize..12, insert in "[ -~]{0,6}",
    ) {
        let line = request.to_string();
        let at = line.floor_char_boundary((line.len() as f64 * at) as usize);
        let end = line.floor_char_boundary((at + cut).min(line.len()));
        let line = format!("{}{insert}{}", &line[..at], &line[end..]);
        match parse_line(&line) {
            Ok(command) => if let Action::Request(r) = command.action {
                prop_assert_eq!(r.validate(), Ok(()));
            },
            Err(e) => prop_assert!(e.column >= 1 && !e.message.is_empty() && !e.message.contains('\n')),
        }
        let _ = volley_cli::complete(&line, &volley_cli::NoNames);
    }

    #[test]
    fn words_of_the_grammar_in_any_order(words in proptest::collection::vec(prop::sample::select(vec![
        "show", "set", "ip", "ip6", "route", "add", "via", "10.0.0.0/8", "192.0.2.1", "pg0", "weight", "7", "interface",
        "packet-generator", "new", "name", "template", "{ eth }", "{", "}", "edit", "ip4.dst", "fixed", "list", "|", "count",
        "json", "\"", "pcap", "trace", "rx", "filter", "offset", "size", "data", "load", "next-hops", "-1", "del",
    ]), 0..14)) {
        let _ = parse_line(&words.join(" "));
    }
}
