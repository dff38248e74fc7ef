//! Verbs: definition, parameters, command, JSON, and refused definitions.

use crate::Effect;
use crate::{
    FieldError, Invocation, Parameters as _, Value, Verb, VerbDef, classes, define, undefine,
};
use schemars::generate::SchemaSettings;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Ring the gongs of a tower.
#[derive(Clone, Debug, PartialEq, Verb)]
#[verb(name = "test-ring", example = "ring tower 3 times 2", check = not_loud_at_night)]
#[verb(command = "ring [loud@loud=on] {tower <tower> | times <times> | into <file>}")]
struct Ring {
    /// Only this tower.
    #[verb(range = 1..=9)]
    tower: Option<u32>,
    /// How often.
    #[verb(default = 1)]
    times: u32,
    /// Rings louder.
    #[verb(default = false)]
    loud: bool,
    /// File that keeps the sound.
    #[verb(derived = sound)]
    file: PathBuf,
}

fn sound(ring: &Ring) -> PathBuf {
    format!("/tmp/{}.wav", ring.times).into()
}

fn not_loud_at_night(ring: &Ring) -> Result<(), FieldError> {
    match ring.loud && ring.times > 12 {
        false => Ok(()),
        true => Err(FieldError {
            field: "times",
            why: "must be 12 or fewer".into(),
        }),
    }
}

fn ring() -> Ring {
    Ring {
        tower: Some(3),
        times: 2,
        loud: true,
        file: "/tmp/a.wav".into(),
    }
}

fn read(json: Json) -> Result<Invocation, String> {
    serde_json::from_value(json).map_err(|error| error.to_string())
}

#[test]
fn parameters_become_an_invocation_and_return() {
    let invocation = ring().invocation().unwrap();
    assert!(invocation.is::<Ring>() && invocation == invocation.clone());
    assert_eq!(invocation.get::<Ring>(), Some(ring()));
    assert_eq!(
        invocation.command(),
        "ring loud tower 3 times 2 into /tmp/a.wav"
    );
    let of_fields = Invocation::of_fields("test-ring", &[("times", Value::Number(7))]).unwrap();
    let usual = Ring {
        tower: None,
        times: 7,
        loud: false,
        file: "/tmp/7.wav".into(),
    };
    assert_eq!(of_fields.get::<Ring>(), Some(usual));
    assert_ne!(of_fields, invocation);
    let wrong = Ring {
        tower: Some(10),
        ..ring()
    };
    let error = wrong.invocation().unwrap_err().to_string();
    assert_eq!(error, "tower must be a number from 1 to 9, not '10'");
    let wrong = Ring {
        times: 13,
        ..ring()
    };
    let error = wrong.invocation().unwrap_err().to_string();
    assert_eq!(error, "times must be 12 or fewer");
    let error = Invocation::of_fields("test-sing", &[]).unwrap_err();
    assert_eq!(error.to_string(), "verb must be registered: test-sing");
}

#[test]
fn json_is_one_flat_map_that_names_the_verb() {
    let verb = Ring::verb().unwrap();
    assert!(!verb.def().configure && !verb.def().for_all);
    assert_eq!(verb.class().doc(), "Ring the gongs of a tower.");
    let invocation = ring().invocation().unwrap();
    let json = serde_json::to_value(&invocation).unwrap();
    let whole = json!({
        "verb": "test-ring", "tower": 3, "times": 2, "loud": true, "file": "/tmp/a.wav",
    });
    assert_eq!(json, whole);
    assert_eq!(read(whole), Ok(invocation));
    let short = read(json!({ "verb": "test-ring" })).unwrap();
    assert_eq!(short.get::<Ring>().map(|it| it.times), Some(1));
    for (json, part) in [
        (json!({}), "`verb` must be the name of a verb"),
        (
            json!({ "verb": "test-sing" }),
            "there is no verb 'test-sing'; there are: ",
        ),
        (
            json!({ "verb": "test-ring", "bell": 1 }),
            "unknown field `bell`",
        ),
        (
            json!({ "verb": "test-ring", "class": "lamp" }),
            "unknown field `class`",
        ),
        (
            json!({ "verb": "test-ring", "tower": 0 }),
            "tower must be a number from 1 to 9",
        ),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.subschema_for::<Invocation>();
    assert_eq!(schema.to_value()["$ref"], "#/$defs/Verb");
    let schema = generator.definitions()["Verb"].to_string();
    assert!(schema.contains(r#""const":"test-ring""#), "{schema}");
    assert!(schema.contains("File that keeps the sound."), "{schema}");
}

/// A definition that differs from that of the gongs.
fn refused(change: impl FnOnce(&mut VerbDef)) -> String {
    let mut def = Ring::definition();
    def.class.name = "test-other-ring";
    change(&mut def);
    define(def).err().unwrap().to_string()
}

#[test]
fn definitions_that_contradict_themselves_are_refused() {
    Ring::verb().unwrap();
    for (change, why) in [
        (
            Box::new(|def: &mut VerbDef| def.class.name = "test-ring") as Box<dyn FnOnce(&mut _)>,
            "verb test-ring: there is a verb of this name already",
        ),
        (
            Box::new(|def: &mut VerbDef| def.class.name = "Ring"),
            "verb Ring: its name must be lower-case letters, digits and -",
        ),
        (
            Box::new(|def: &mut VerbDef| def.class.fields[0].key = true),
            "verb test-other-ring: a parameter is no key",
        ),
        (
            Box::new(|def: &mut VerbDef| def.class.fields[0].name = "verb"),
            "verb test-other-ring: field verb: choose another name",
        ),
        (
            Box::new(|def: &mut VerbDef| {
                def.class.commands = vec![(Effect::Set, "ring <nothing>")]
            }),
            "verb test-other-ring: pattern 'ring <nothing>': there is no field 'nothing'",
        ),
    ] {
        assert_eq!(refused(change), why);
    }
    assert!(classes().verb("test-other-ring").is_none());
}

#[test]
fn verbs_come_and_go() {
    let mut def = Ring::definition();
    def.class.name = "test-gone-ring";
    (def.configure, def.for_all) = (true, true);
    let before = classes().generation();
    define(def).unwrap();
    let all = classes();
    assert!(all.generation() > before);
    let verb = all.verb("test-gone-ring").unwrap();
    assert!(verb.def().configure && verb.def().for_all);
    let invocation = verb.call(Vec::new()).unwrap();
    assert_eq!(invocation.get::<Ring>(), None);
    undefine::<VerbDef>("test-gone-ring").unwrap();
    assert!(classes().verb("test-gone-ring").is_none());
    // An invocation keeps its verb.
    assert_eq!(invocation.command(), "ring into /tmp/1.wav");
    let again = undefine::<VerbDef>("test-gone-ring").err().unwrap();
    assert_eq!(
        again.to_string(),
        "verb test-gone-ring: there is no such verb"
    );
}
