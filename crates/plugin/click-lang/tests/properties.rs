//! Any text is parsed or refused, and a network that is written out is the same network.

use proptest::prelude::*;
use volley_click_lang::{Network, Shape, Source, flatten, parse, split, unquote, wire, words};

const CLASSES: [&str; 3] = ["A", "B", "C"];

fn network(text: &str) -> Option<Network> {
    let source = Source::new("t", text);
    let program = parse(&source).ok()?;
    flatten(&source, &program, &CLASSES).ok()
}

/// Pieces of configurations, so that many are nearly right.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "A",
        "B",
        "a",
        "b",
        " :: ",
        " -> ",
        ";",
        ",",
        "[0]",
        "[1]",
        "{",
        "}",
        "(",
        ")",
        "(x, $v)",
        "$v",
        "|",
        "||",
        "elementclass",
        " ",
        "input",
        "output",
        "define($v 1)",
        "\"",
        "'",
        "//",
        "/*",
        "*/",
        "\n",
        "...",
        "=>",
        "a :: A;",
        "a -> b;",
        "é",
        "\\<4",
        "#",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|all| all.concat())
}

fn names() -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0..CLASSES.len(), "[a-z0-9 ]{0,6}"), 1..12)
}

proptest! {
    #[test]
    fn any_text_ends_without_a_panic(text in text()) {
        if let Some(network) = network(&text) {
            let shapes: Vec<Shape> = network.elements.iter().map(|_| Shape::new("-/-", "a/a")).collect();
            let _ = wire(&Source::new("t", text.clone()), &network, &shapes);
        }
        let _ = (split(&text), unquote(&text), words(&text));
    }

    #[test]
    fn any_bytes_end_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(source) = Source::from_bytes("t", bytes) {
            let _ = parse(&source).and_then(|program| flatten(&source, &program, &CLASSES));
        }
    }

    #[test]
    fn a_network_that_is_written_out_is_the_same(
        elements in names(),
        hookups in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, any::<prop::sample::Index>(), 0usize..4), 0..20),
    ) {
        let mut text = String::new();
        for (i, (class, argument)) in elements.iter().enumerate() {
            text += &format!("e{i} :: {}({argument});\n", CLASSES[*class]);
        }
        for (from, output, to, input) in &hookups {
            let (from, to) = (from.index(elements.len()), to.index(elements.len()));
            text += &format!("e{from} [{output}] -> [{input}] e{to};\n");
        }
        let first = network(&text).ok_or_else(|| TestCaseError::fail(text.clone()))?;
        prop_assert_eq!(first.hookups.len(), hookups.len());
        let second = network(&first.to_string()).ok_or_else(|| TestCaseError::fail(first.to_string()))?;
        prop_assert_eq!(first.to_string(), second.to_string());
    }
}
