//! Configurations to networks, and faults to sentences.

use volley_click_lang::{ClickError, Network, Shape, Source, flatten, parse, wire};

const CLASSES: [&str; 9] = [
    "Src", "Counter", "Queue", "Unqueue", "Tee", "Discard", "Strip", "Check", "Idle",
];

fn network(text: &str) -> Result<Network, ClickError> {
    let source = Source::new("t", text);
    flatten(&source, &parse(&source)?, &CLASSES)
}

fn shown(text: &str) -> String {
    network(text).map_or_else(|error| error.to_string(), |network| network.to_string())
}

fn shape(class: &str) -> Shape {
    match class {
        "Src" => Shape::new("0/1", "h/h"),
        "Queue" => Shape::new("1/1", "h/l"),
        "Unqueue" => Shape::new("1/1", "l/h"),
        "Tee" => Shape::new("1/1-", "h/h"),
        "Discard" => Shape::new("1/0", "a/a"),
        "Check" => Shape::new("1/1-2", "a/ah"),
        "Idle" => Shape::new("-/-", "a/a"),
        _ => Shape::new("1/1", "a/a"),
    }
}

fn wired(text: &str) -> String {
    let source = Source::new("t", text);
    let all = parse(&source).and_then(|program| flatten(&source, &program, &CLASSES));
    let all = all.and_then(|network| {
        let shapes: Vec<Shape> = network.elements.iter().map(|it| shape(&it.class)).collect();
        wire(&source, &network, &shapes).map(|wiring| (network, wiring))
    });
    let (network, wiring) = match all {
        Ok(all) => all,
        Err(error) => return error.to_string(),
    };
    let modes = |ports: &[volley_click_lang::Port]| {
        let all: Vec<&str> = ports.iter().map(|port| port.mode.name()).collect();
        all.join(",")
    };
    let row = |(i, it): (usize, &volley_click_lang::Element)| {
        format!(
            "{} {}/{}",
            it.name,
            modes(&wiring.inputs[i]),
            modes(&wiring.outputs[i])
        )
    };
    let all: Vec<String> = network.elements.iter().enumerate().map(row).collect();
    all.join("; ")
}

#[test]
fn declarations_and_chains_connect_ports() {
    let text = "// a comment\na, b :: Counter(x, \"y, z\");\nSrc -> a -> [1] t :: Tee [2] -> b -> Discard;\nt[0] -> Discard";
    let expected = "a :: Counter(x, \"y, z\");\nb :: Counter(x, \"y, z\");\nt :: Tee();\nSrc@4 :: Src();\nDiscard@5 :: Discard();\nDiscard@6 :: Discard();\nSrc@4 [0] -> [0] a;\na [0] -> [1] t;\nt [2] -> [0] b;\nb [0] -> [0] Discard@5;\nt [0] -> [0] Discard@6;\n";
    assert_eq!(shown(text), expected);
}

#[test]
fn a_group_connects_each_of_its_elements() {
    let text = "a, b :: Src; q :: Queue; a, b -> q => d :: Discard; a [0,1] => [2,3] q";
    let shown = shown(text);
    for line in [
        "a [0] -> [0] q",
        "b [0] -> [0] q",
        "q [0] -> [0] d",
        "a [0] -> [2] q",
        "a [1] -> [3] q",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("a [0] -> [3] q"));
}

#[test]
fn compound_elements_are_replaced_by_their_contents() {
    let text = "elementclass Two { $n | input -> a :: Strip($n) -> [1] output; input[1] -> Counter -> output }\nx :: Two(14); Src -> x; Src -> [1] x; x -> Discard; x[1] -> Discard;";
    let shown = shown(text);
    for line in [
        "x/a :: Strip(14);",
        "Src@5 [0] -> [0] x/a;",
        "x/a [0] -> [0] Discard@",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert_eq!(shown.matches("->").count(), 4);
}

#[test]
fn a_compound_element_may_pass_packets_through() {
    let text = "elementclass Wire { input -> output } Src -> Wire -> { -> Counter -> } -> Discard";
    let shown = shown(text);
    assert!(
        shown.contains("Src@1 [0] -> [0]") && shown.contains("Counter@"),
        "{shown}"
    );
    assert_eq!(shown.matches("->").count(), 2);
}

#[test]
fn arguments_select_the_body_of_a_compound_element() {
    let class = "elementclass X { $a | input -> Strip($a) -> output || $a, KEY $b, __REST__ $r | input -> Counter($a, $b, $r) -> output }";
    let with = |arguments: &str| shown(&format!("{class} Src -> X({arguments}) -> Discard"));
    assert!(with("3").contains(":: Strip(3)"));
    assert!(with("3, KEY 4, 5, 6").contains(":: Counter(3, 4, 5, 6)"));
    assert!(with("3, KEY 4").contains(":: Counter(3, 4)"));
    assert!(with("").contains("0 arguments do not fit the compound element X@2: its parameters are ($a) or ($a, KEY $b, __REST__ $r)"));
    let more = "elementclass X { $a, $b | input -> Counter($b) -> output || ... }";
    assert!(shown(&format!("{class} {more} Src -> X(1, 2) -> Discard")).contains(":: Counter(2)"));
}

#[test]
fn variables_are_replaced_where_they_are_known() {
    let text = "define($X 7, $Y a$X); elementclass C { $v | input -> Strip($v${X}, '$v', \"$Y\") -> output } Src -> C(1) -> Discard";
    assert!(
        shown(text).contains("Strip(17, '$v', \"a7\")"),
        "{}",
        shown(text)
    );
    let text = "define($speed 1); Src($sped) -> Discard";
    assert_eq!(
        shown(text),
        "t:1:23: the variable $sped is not defined: did you mean speed?"
    );
}

#[test]
fn faults_are_sentences_with_a_place() {
    let all = [
        (
            "Src ->\n Discrd",
            "t:2:2: there is no element and no class Discrd: did you mean Discard?",
        ),
        (
            "a :: Cuonter",
            "t:1:6: there is no element class Cuonter: did you mean Counter?",
        ),
        (
            "a :: Src; \n a :: Idle",
            "t:2:2: the element a is declared twice: rename it here or in line 1, column 1",
        ),
        (
            "input -> Discard",
            "t:1:1: input is known in compound elements only: name an element",
        ),
        (
            "Src [x] -> Discard",
            "t:1:6: 'x' is no port: ports are numbers from 0 to 1023",
        ),
        (
            "Src -> ; ",
            "t:1:8: output is known in compound elements only: name an element",
        ),
        (
            "a :: Src | b",
            "t:1:10: '|' is not expected here: write -> and an element, or ;",
        ),
        (
            "connectiontunnel a -> b",
            "t:1:1: the statement connectiontunnel is not supported: remove it",
        ),
        (
            "[1] Src -> Discard",
            "t:1:5: ports in front of an element need a connection there: write -> or remove them",
        ),
        (
            "elementclass A { input -> output } Src -> A -> A; ",
            "t:1:40: nothing is connected to output port 0 of A@4: connect it to an input",
        ),
        (
            "elementclass A { input -> output } Src -> [1] A -> Discard; Src -> A -> Discard",
            "t:1:40: the compound element A@2 has no input port 1: connect input to an element in its class",
        ),
        (
            "elementclass A { A -> output } A -> Discard",
            "t:1:18: compound elements contain each other more than 32 deep",
        ),
        (
            "elementclass W { input -> output } w :: W; w -> w; Src -> w",
            "t:1:56: the connections of w form a loop without an element: put one into it",
        ),
        (
            "12 :: Src",
            "t:1:1: '12' cannot be the name of an element: names contain a letter",
        ),
    ];
    for (text, expected) in all {
        let shown = shown(text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
}

#[test]
fn semicolons_are_optional() {
    let with = "a :: Src; elementclass W { input -> output; }; w :: W; a -> w; w [0] -> Discard; Idle -> d :: Discard;";
    let without = "a :: Src elementclass W { input -> output } w :: W\na -> w w [0] -> Discard Idle -> d :: Discard";
    assert_eq!(shown(with), shown(without));
    let chain = "a :: Src\nb :: Discard\na -> { input -> Counter -> output } -> b";
    assert!(shown(chain).contains(":: Counter()"), "{}", shown(chain));
}

#[test]
fn modes_pass_through_agnostic_elements() {
    assert_eq!(
        wired(
            "s :: Src -> c :: Counter -> q :: Queue -> d :: Check -> Strip -> u :: Unqueue -> e :: Discard; d[1] -> Discard"
        ),
        "s /push; c push/push; q push/pull; d pull/pull,push; u pull/push; e push/; Strip@7 pull/pull; Discard@8 push/"
    );
    assert_eq!(
        wired("q :: Queue -> d :: Discard; Src -> q"),
        "q push/pull; d pull/; Src@3 /push"
    );
}

#[test]
fn wrong_connections_are_refused() {
    let all = [
        (
            "Src -> Unqueue -> Discard",
            "t:1:5: output 0 of Src@1 is push, but input 0 of Unqueue@2 is pull: put a Queue between them",
        ),
        (
            "Src -> c :: Counter -> Unqueue -> Discard",
            "t:1:8: c (Counter) is connected to both push and pull: put a Queue in front of the pull side, or an Unqueue behind it",
        ),
        (
            "Src -> Queue -> Queue -> Discard",
            "t:1:14: output 0 of Queue@2 is pull, but input 0 of Queue@3 is push: put an Unqueue between them",
        ),
        (
            "s :: Src; s -> Discard; s -> Discard",
            "t:1:13: output 0 of s (Src) has 2 connections, but a push output has one: put a Tee or a Queue there",
        ),
        (
            "Src -> Counter",
            "t:1:8: output 0 of Counter@2 (Counter) is not connected: connect it, to Discard or Idle if no packets pass there",
        ),
        (
            "Src -> Discard [1] -> Discard",
            "t:1:20: Discard@2 (Discard) has no output ports, but port 1 is connected",
        ),
        (
            "Counter -> Discard",
            "t:1:1: input 0 of Counter@1 (Counter) is not connected",
        ),
    ];
    for (text, expected) in all {
        let shown = wired(text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
    assert_eq!(
        wired("Src, Src -> t :: Tee -> Discard; t[1] -> Discard")
            .matches(';')
            .count(),
        4
    );
}

#[test]
fn a_fault_that_quotes_the_file_is_one_line() {
    let text = "elementclass C { $a, KEY $b | input -> Counter($b) -> output }\n\
        define($v a\n\nb \x1b[2J)\nSrc -> C(1, KEY \"y, $v\") -> Discard; Sr\tc($v) -> \"$v";
    let source = Source::new("t", text);
    let faults = (1..=text.len()).filter_map(|end| {
        let part = Source::new("t", text.get(..end)?);
        let all = parse(&part).and_then(|it| flatten(&part, &it, &CLASSES));
        all.err()
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.len() > 20, "{}", source.text());
    for fault in faults {
        assert!(!fault.text.contains(char::is_control), "{fault:?}");
    }
}
