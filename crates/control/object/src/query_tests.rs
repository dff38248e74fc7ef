//! Queries: definition, parameters, reply, metrics, and refused definitions.

use crate::Effect;
use crate::{
    Answer, Instance, Parameters as _, Query, QueryDef, Value, View, classes, define, undefine,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use volley_show::{GAUGE, Page, table};

/// Gongs that rang.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Gongs {
    /// How often each rang.
    rang: Vec<u64>,
}

/// Gongs of a tower, and how often they rang.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "test-gongs", example = "show test-gongs tower 3 detail")]
#[query(show = "show test-gongs [tower <tower>] [interface <interface>] [detail | sum]")]
#[query(show = "show test-sum")]
#[query(reply = Gongs, text = brief, detail = whole, detail_by = "interface", figures = figures)]
#[query(view(sum = sum, "How often all gongs rang."), view(test_sum = sum, "The sum alone."))]
struct ShowGongs {
    /// Number of the tower.
    #[query(range = 1u32..=9)]
    tower: Option<u32>,
    /// Interface with the gongs.
    #[query(needs = "interface")]
    interface: Option<String>,
}

fn brief(gongs: &Gongs) -> String {
    format!("{} gongs\n", gongs.rang.len())
}

fn whole(gongs: &Gongs) -> String {
    let rows: Vec<_> = gongs.rang.iter().map(|n| vec![n.to_string()]).collect();
    table(&[">Rang"], &rows)
}

fn sum(gongs: &Gongs) -> String {
    format!("{}\n", gongs.rang.iter().sum::<u64>())
}

fn figures(gongs: &Gongs, page: &mut Page) {
    page.family("test_gongs", GAUGE, "Gongs.");
    page.sample("test_gongs", &[], gongs.rang.len());
}

fn gongs() -> Gongs {
    Gongs { rang: vec![2, 70] }
}

#[test]
fn parameters_become_a_query_and_return() {
    let asked = ShowGongs {
        tower: Some(3),
        interface: Some("pg0".into()),
    };
    let instance = asked.asked().unwrap();
    assert_eq!(
        (instance.get(), instance.name()),
        (Some(asked), "test-gongs")
    );
    assert!(instance.is::<ShowGongs>() && !instance.is_stream());
    let wrong = ShowGongs {
        tower: Some(10),
        interface: None,
    };
    let error = wrong.asked().unwrap_err().to_string();
    assert_eq!(error, "tower must be a number from 1 to 9, not '10'");
    let class = ShowGongs::query().unwrap();
    assert_eq!(class.class().patterns(Effect::Set).len(), 2);
    assert_eq!(
        class.class().doc(),
        "Gongs of a tower, and how often they rang."
    );
    let without = class.for_figures();
    assert_eq!(
        without.and_then(|it| it.parameters().slot(0).cloned()),
        None::<Value>
    );
}

#[test]
fn a_reply_is_text_json_and_figures() {
    let answer = Answer::new::<ShowGongs>(gongs()).unwrap();
    assert_eq!(answer.text(View::Table), "2 gongs\n");
    assert_eq!(answer.text(View::Verbose), "Rang\n   2\n  70\n");
    assert_eq!(answer.text(View::Named("sum")), "72\n");
    assert_eq!(answer.json(), serde_json::json!({ "rang": [2, 70] }));
    assert_eq!(answer.get::<Gongs>(), Some(&gongs()));
    assert_eq!(answer.get::<String>(), None);
    assert_eq!(answer, answer.clone());
    let other = Answer::new::<ShowGongs>(Gongs { rang: Vec::new() }).unwrap();
    assert_ne!(answer, other);
    let mut page = Page::default();
    answer.figures(&mut page);
    assert!(page.text().ends_with("test_gongs 2\n"));
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    ShowGongs::query().unwrap().schema(&mut generator);
    assert!(generator.definitions().contains_key("Gongs"));
}

#[test]
fn words_and_parameters_select_a_text() {
    let query = ShowGongs::query().unwrap();
    let view = |word: &str, given: [bool; 2]| {
        let given = given.map(|given| given.then_some(Value::Number(1)));
        query.view(|it| it == word, &given)
    };
    assert_eq!(view("", [true, false]), View::Table);
    assert_eq!(view("detail", [false, false]), View::Verbose);
    assert_eq!(view("", [false, true]), View::Verbose);
    assert_eq!(view("sum", [false, true]), View::Named("sum"));
    let [all, sum] = query.class().patterns(Effect::Set) else {
        panic!("two commands");
    };
    assert_eq!(query.doc_of(all), query.class().doc());
    assert_eq!(query.doc_of(sum), "The sum alone.");
    assert_eq!(query.example_of(all), query.class().def().example);
    assert_eq!(query.example_of(sum), "show test-sum");
}

/// A definition that differs from that of the gongs.
fn refused(change: impl FnOnce(&mut QueryDef)) -> String {
    let mut def = ShowGongs::definition();
    def.class.name = "test-other-gongs";
    change(&mut def);
    define(def).unwrap_err().to_string()
}

#[test]
fn definitions_that_contradict_themselves_are_refused() {
    ShowGongs::query().unwrap();
    for (change, why) in [
        (
            Box::new(|def: &mut QueryDef| def.class.name = "test-gongs") as Box<dyn FnOnce(&mut _)>,
            "query test-gongs: there is a query of this name already",
        ),
        (
            Box::new(|def: &mut QueryDef| def.class.name = "Gongs"),
            "query Gongs: its name must be lower-case letters, digits and -",
        ),
        (
            Box::new(|def: &mut QueryDef| def.class.fields[0].key = true),
            "query test-other-gongs: a parameter is no key",
        ),
        (
            Box::new(|def: &mut QueryDef| def.detail_by = vec!["nothing"]),
            "query test-other-gongs: there is no parameter 'nothing'",
        ),
        (
            Box::new(|def: &mut QueryDef| def.views[0].word = "nothing"),
            "query test-other-gongs: no command has the word 'nothing'",
        ),
        (
            Box::new(|def: &mut QueryDef| {
                def.class.commands = vec![(Effect::Set, "show <nothing>")]
            }),
            "query test-other-gongs: pattern 'show <nothing>': there is no field 'nothing'",
        ),
    ] {
        assert_eq!(refused(change), why);
    }
    assert!(classes().query("test-other-gongs").is_none());
}

#[test]
fn queries_come_and_go() {
    let mut def = ShowGongs::definition();
    def.class.name = "test-gone-gongs";
    let before = classes().generation();
    define(def).unwrap();
    let all = classes();
    assert!(all.generation() > before);
    let query = all.query("test-gone-gongs").unwrap();
    let asked: Instance = query.class().instance(Vec::new()).unwrap();
    assert_eq!(ShowGongs::of(&asked), None);
    undefine::<QueryDef>("test-gone-gongs").unwrap();
    assert!(classes().query("test-gone-gongs").is_none());
    let again = undefine::<QueryDef>("test-gone-gongs").unwrap_err();
    assert_eq!(
        again.to_string(),
        "query test-gone-gongs: there is no such query"
    );
}
