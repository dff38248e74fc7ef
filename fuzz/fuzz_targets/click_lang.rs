//! Graphs in Click's language: a configuration that is written out without compound elements is the same, and errors have a
//! place in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_click_lang::{ClickError, Network, Shape, Source, flatten, parse, split, wire};

const CLASSES: [&str; 6] = [
    "Counter",
    "Discard",
    "InfiniteSource",
    "Queue",
    "Tee",
    "Unqueue",
];

fuzz_target!(|bytes: &[u8]| {
    let source = match Source::from_bytes("t", bytes.to_vec()) {
        Ok(source) => source,
        Err(error) => return check(&error, bytes),
    };
    match network(&source) {
        Ok(first) => both_ways(&source, &first),
        Err(error) => check(&error, bytes),
    }
});

fn network(source: &Source) -> Result<Network, ClickError> {
    flatten(source, &parse(source)?, &CLASSES)
}

fn check(error: &ClickError, bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!(
        (1..=lines).contains(&error.line) && error.column > 0,
        "{error}"
    );
    assert!(!error.text.is_empty() && !error.text.contains(char::is_control));
}

fn both_ways(source: &Source, first: &Network) {
    let shapes: Vec<Shape> = first.elements.iter().map(|it| shape(&it.class)).collect();
    if let Ok(wiring) = wire(source, first, &shapes) {
        let peers = wiring.outputs.iter().flatten().map(|port| port.peers.len());
        assert_eq!(peers.sum::<usize>(), first.hookups.len());
    }
    // An argument whose quotes were put together from variables may read differently.
    if source.text().contains(['$', '"', '\'', '/', '(']) {
        return;
    }
    let again = network(&Source::new("again", first.to_string()));
    let same = again.as_ref().map(|again| again.to_string());
    assert_eq!(same, Ok(first.to_string()));
    let arguments = first.elements.iter().flat_map(|it| &it.arguments);
    assert!(arguments.into_iter().all(|it| split(it).len() <= 1));
}

fn shape(class: &str) -> Shape {
    match class {
        "InfiniteSource" => Shape::new("0/1", "h/h"),
        "Queue" => Shape::new("1/1", "h/l"),
        "Unqueue" => Shape::new("1/1", "l/h"),
        "Tee" => Shape::new("1/1-", "h/h"),
        "Discard" => Shape::new("1/0", "a/a"),
        _ => Shape::new("1/1", "a/a"),
    }
}
