//! LCP taps: spellings, files, order of dependence, requests of commits that earlier versions wrote.

use super::keyed::{all, error, refusal, state, steps, was};
use volley_control::Core;
use volley_model::Request;

const PG: &str = "create packet-generator interface pg0";
const SUB: &str = "create sub-interfaces pg0 7";
const TAP: &str = "lcp create pg0 host-if w netns frr";
const DEVICE: &str = "lcp create pg0.7 host-if e7 vlan netns frr";

#[test]
fn they_keep_their_spellings() {
    let json = r#"{"lcp-create":{"interface":"pg0.7","host":"e7","namespace":"frr","vlan":true}}"#;
    was(json, DEVICE);
    let json = r#"{"lcp-create":{"interface":"pg0","host":"w","namespace":null,"vlan":false}}"#;
    was(json, "lcp create pg0 host-if w");
    for line in [DEVICE, TAP, "lcp create pg0 host-if w", "lcp delete pg0"] {
        assert_eq!(all(&[line])[0].to_string(), line);
    }
    let swapped = "lcp create pg0.7 host-if e7 netns frr vlan";
    assert_eq!(all(&[swapped])[0].to_string(), DEVICE);
    let message = error("lcp create pg0 host-if a-name-that-is-too-long");
    assert!(
        message.contains("column 24") && message.contains("1 to 15 characters"),
        "{message}"
    );
    let message = error("lcp create pg0 host-if w vlan");
    assert!(message.contains("vlan is for a sub-interface"), "{message}");
}

#[test]
fn the_file_has_one_key_for_them() {
    let text = |tap: &str| {
        format!("[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nstate = \"down\"\n{tap}\n")
    };
    for (tap, line) in [
        ("lcp = \"w\"", "lcp create pg0 host-if w"),
        ("lcp = { host_if = \"w\", netns = \"frr\" }", TAP),
    ] {
        let wanted = all(&[PG, line]);
        let read = volley_config::parse(&text(tap)).unwrap().requests;
        let read: Vec<Request> = read.into_iter().take(2).collect();
        assert_eq!(read, wanted, "{tap}");
        let written = volley_config::write(&read);
        assert!(written.contains(&format!("\n{tap}\n")), "{written}");
    }
    let same = volley_config::parse(&text("lcp = { host_if = \"w\" }")).unwrap();
    assert_eq!(same.requests[1], all(&["lcp create pg0 host-if w"])[0]);
    let message = volley_config::parse(&text("lcp = { netns = \"frr\" }")).unwrap_err();
    assert!(
        message.to_string().contains("'host_if' is missing"),
        "{message}"
    );
    let message = volley_config::parse(&text("lcp = \"a b\"")).unwrap_err();
    assert!(
        message.to_string().contains("volley.toml:5:7")
            && message.to_string().contains("host_if 'a b'"),
        "{message}"
    );
}

#[test]
fn a_device_needs_the_tap_of_its_parent() {
    let message = refusal(&[PG, SUB, DEVICE]);
    assert!(message.contains("there is no lcp pg0"), "{message}");
    let message = refusal(&[PG, SUB, TAP, DEVICE, "lcp delete pg0"]);
    assert!(
        message.contains("lcp pg0 is in use by lcp pg0.7"),
        "{message}"
    );
    let message = refusal(&[PG, "lcp delete pg0"]);
    assert!(message.contains("there is no lcp pg0"), "{message}");
    // The order of commands does not matter, and removal is in the opposite order.
    let both = state(&[PG, SUB, DEVICE, TAP]);
    let lines: Vec<String> = volley_control::requests(&both)
        .iter()
        .map(ToString::to_string)
        .filter(|line| line.starts_with("lcp"))
        .collect();
    assert_eq!(lines, [TAP, DEVICE]);
    let lines = steps(&[PG, SUB, TAP, DEVICE], &["delete interface pg0"]);
    let wanted = [
        "lcp delete pg0.7",
        "lcp delete pg0",
        "delete interface pg0.7",
        "delete interface pg0",
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn a_tap_that_changes_is_created_again_with_its_devices() {
    let other = "lcp create pg0 host-if x netns frr";
    let lines = steps(&[PG, TAP], &[other]);
    assert_eq!(lines, ["lcp delete pg0", other]);
    let lines = steps(&[PG, SUB, TAP, DEVICE], &[other]);
    let wanted = ["lcp delete pg0.7", "lcp delete pg0", other, DEVICE];
    assert_eq!(lines, wanted);
    assert_eq!(steps(&[PG, TAP], &[TAP]), [TAP]);
    let lines = Core::difference(&state(&[PG, TAP]), &state(&[PG, other]));
    let again = "! the kernel interface of pg0 is deleted and created again: the control plane loses its routes there";
    assert!(lines.iter().any(|line| line == again), "{lines:?}");
}

#[test]
fn a_tap_has_the_new_name_of_its_interface() {
    let renamed = state(&[PG, TAP, "set interface name pg0 up0"]);
    let wanted = [
        "create packet-generator interface up0",
        "lcp create up0 host-if w netns frr",
    ];
    assert_eq!(Core::difference(&state(&wanted), &renamed), [""; 0]);
    assert_eq!(
        steps(&[PG, TAP], &["delete interface pg0"]),
        ["lcp delete pg0", "delete interface pg0"]
    );
}
