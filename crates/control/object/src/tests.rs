use crate::Effect;
use crate::{
    Choice, FieldError, Instance, Object, Place, Value, classes, instances, of_today, register,
    text_field, unregister,
};
use proptest::prelude::*;
use serde_json::json;

/// How a lamp shines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
enum Shade {
    /// All of it.
    Full,
    /// Half of it.
    HalfLight,
}

/// A lamp of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_lamp", file = "interface.lamp.*", check = Lamp::check)]
#[object(
    set = "set lamp <interface> <number> (dark@shade=full | <shade>) {blink@blink=on | watts <watts> | name <name>}"
)]
#[object(
    unset = "set lamp <interface> <number> off",
    example = "set lamp pg0 3 dark watts 5"
)]
struct Lamp {
    /// The interface.
    #[object(key, part_of = "interface")]
    interface: String,
    /// The lamp's number.
    #[object(key, range = 1u8..=9)]
    number: u8,
    /// The shade.
    shade: Shade,
    /// Blink.
    #[object(default = false)]
    blink: bool,
    /// Power.
    #[object(default = 7, range = 1u32..=100, unit = "W")]
    watts: u32,
    /// Names of the lamp.
    name: Vec<String>,
    /// The address of its switch.
    switch: Option<std::net::IpAddr>,
}

impl Lamp {
    fn check(&self) -> Result<(), FieldError> {
        match (self.blink, self.watts) {
            (true, 100) => Err(FieldError {
                field: "watts",
                why: "must be below 100 where the lamp blinks".into(),
            }),
            _ => Ok(()),
        }
    }
}

fn lamp() -> Lamp {
    Lamp {
        interface: "pg0".into(),
        number: 3,
        shade: Shade::HalfLight,
        blink: true,
        watts: 5,
        name: vec!["a b".into(), "c1".into()],
        switch: None,
    }
}

#[test]
fn a_struct_becomes_an_object_and_returns() {
    let instance = lamp().instance().unwrap();
    assert_eq!(Lamp::of(&instance), Some(lamp()));
    assert_eq!(instance.key().to_string(), "test lamp pg0 3");
    assert_eq!(
        instance.set_command(),
        "set lamp pg0 3 half-light blink watts 5 name \"a b\" name c1"
    );
    assert_eq!(instance.key().unset_command(), "set lamp pg0 3 off");
    let class = instance.class();
    assert_eq!(class.def().file, Place::InterfaceMap("lamp"));
    assert_eq!(class.part_of(), Some("interface"));
    assert_eq!(instance.key().owner(), Some("pg0"));
    let renamed = instance.renamed("interface", "pg0", "up0");
    assert_eq!(Lamp::of(&renamed).unwrap().interface, "up0");
    assert_eq!(
        renamed.key(),
        instance.key().renamed("interface", "pg0", "up0")
    );
    // A value that no pattern contains causes no error: the switch is in no command.
    let switch = Some("192.0.2.1".parse().unwrap());
    let unsaid = Lamp { switch, ..lamp() }.instance().unwrap();
    assert_eq!(unsaid.set_command(), "set test lamp pg0 3");
}

#[test]
fn json_holds_every_field_and_refuses_by_name() {
    let instance = lamp().instance().unwrap();
    let text = serde_json::to_string(&instance).unwrap();
    assert_eq!(serde_json::from_str::<Instance>(&text).unwrap(), instance);
    let least = r#"{"class":"test_lamp","interface":"pg0","number":1,"shade":"full"}"#;
    let least: Instance = serde_json::from_str(least).unwrap();
    assert_eq!(Lamp::of(&least).unwrap().watts, 7);
    for (wrong, sentence) in [
        (
            r#""number":10,"shade":"full""#,
            "number must be a number from 1 to 9, not '10'",
        ),
        (
            r#""number":1,"shade":"dim""#,
            "shade must be full or half-light, not 'dim'",
        ),
        (
            r#""number":1"#,
            "shade is missing: The shade: full or half-light",
        ),
        (r#""number":1,"shade":"full","x":1"#, "unknown field `x`"),
        (
            r#""number":1,"shade":"full","blink":true,"watts":100"#,
            "watts must be below 100",
        ),
        (
            r#""number":1,"shade":"full","switch":"x""#,
            "switch must be an IP address",
        ),
    ] {
        let text = format!("{{\"class\":\"test_lamp\",\"interface\":\"pg0\",{wrong}}}");
        let error = serde_json::from_str::<Instance>(&text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(sentence), "{error}");
    }
    let unknown = serde_json::from_str::<Instance>(r#"{"class":"nothing"}"#).unwrap_err();
    assert!(unknown.to_string().contains("there is no class 'nothing'"));
    let schema = instance.class().schema(false, true).to_string();
    assert!(schema.contains("\"maximum\":100") && schema.contains("Power. In W."));
}

proptest! {
    #[test]
    fn json_returns_any_object(instance in instances(&Lamp::class().unwrap(), &["pg0", "pg1"])) {
        let text = serde_json::to_string(&instance).unwrap();
        let read: Instance = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &instance);
        let key: crate::ObjectKey = serde_json::from_str(&serde_json::to_string(&instance.key()).unwrap()).unwrap();
        prop_assert_eq!(key, instance.key());
        prop_assert_eq!(Lamp::of(&read).unwrap().instance().unwrap(), instance);
    }
}

/// A class whose definition is changed by the test.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(
    class = "test_post",
    file = "[[test_post]]",
    set = "post <id> {fields}"
)]
struct Post {
    /// Number of the post.
    #[object(key)]
    id: u32,
    /// Height of the post.
    #[object(default = 1, range = 1u32..=5)]
    height: u32,
}

#[test]
fn contradictions_are_refused_with_one_sentence() {
    let refused = |name: &'static str, edit: &dyn Fn(&mut crate::ClassDef)| {
        let mut def = Post::definition();
        def.name = name;
        def.file = Place::None;
        edit(&mut def);
        register(def).unwrap_err().to_string()
    };
    let bad_name = refused("Test-Post", &|_| {});
    assert!(
        bad_name.starts_with("class Test-Post: its name"),
        "{bad_name}"
    );
    let default = refused("test_p1", &|def| {
        def.fields[1].default = Some(Value::Number(9))
    });
    assert_eq!(
        default,
        "class test_p1: field height: the default must be a number from 1 to 5, not '9'"
    );
    let empty = refused("test_p6", &|def| def.fields[1].limit((-1, 5)));
    assert_eq!(
        empty,
        "class test_p6: field height: no number is in its range"
    );
    let twice = refused("test_p2", &|def| {
        let field = def.fields[1].clone();
        def.fields.push(field);
    });
    assert!(twice.contains("field height is defined twice"), "{twice}");
    let unknown = refused("test_p3", &|def| {
        def.fields[1].reference = Some(crate::Reference::needs("test_nothing"));
    });
    assert!(
        unknown.contains("test_nothing, which no class is called"),
        "{unknown}"
    );
    let pattern = refused("test_p4", &|def| {
        def.commands = vec![(Effect::Set, "post <idd>")]
    });
    assert_eq!(
        pattern,
        "class test_p4: pattern 'post <idd>': there is no field 'idd'"
    );
    let order = refused("test_p5", &|def| def.fields.swap(0, 1));
    assert!(order.contains("fields of the key come first"), "{order}");
}

#[test]
fn classes_come_and_go_and_objects_outlive_them() {
    let class = Post::class().unwrap();
    let before = classes().generation();
    let object = Post { id: 7, height: 2 }.instance().unwrap();
    let again = register(Post::definition()).unwrap_err();
    assert!(again.to_string().contains("a class of this name already"));
    let mut leaner = Post::definition();
    (leaner.name, leaner.file) = ("test_leaner", Place::None);
    leaner.fields[1].reference = Some(crate::Reference::needs("test_post"));
    assert!(register(leaner).unwrap().rank() > class.rank());
    let used = unregister("test_post").unwrap_err();
    assert!(used.to_string().contains("class test_leaner refers to it"));
    unregister("test_leaner").unwrap();
    unregister("test_post").unwrap();
    assert!(classes().get("test_post").is_none() && classes().generation() > before);
    assert_eq!(object.set_command(), "post 7 height 2");
}

/// A rail.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_rail", recreate)]
#[object(set = "set rail {slots (<slots> | all) | name <name>}")]
struct Rail {
    /// Slots.
    #[object(range = 0u32..=63)]
    slots: Vec<u32>,
    /// Names.
    name: Vec<String>,
}

#[test]
fn a_list_of_numbers_is_one_word_with_commas() {
    let rail = Rail {
        slots: vec![0, 2],
        name: vec!["b=1".into(), "ip4".into()],
    };
    let instance = rail.instance().unwrap();
    assert_eq!(
        instance.set_command(),
        "set rail slots 0,2 name b=1 name \"ip4\""
    );
    assert_eq!(instance.summary(), "slots 0,2, name b=1,ip4");
    assert!(instance.class().def().recreate);
    let kind = &instance.class().fields()[0].kind;
    assert_eq!(Some(&kind.read("0,2").unwrap()), instance.slot(0));
    for bad in ["", "0,", "0,64", "a"] {
        assert!(kind.read(bad).is_err(), "{bad}");
    }
    let empty = Rail::defaults([]).unwrap().instance().unwrap();
    assert_eq!(empty.set_command(), "set rail");
    assert_eq!(empty.summary(), "defaults");
}

/// A way to a stop: words of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way(String);

text_field!(Way, "a way", Any, ["3 b1 back"], "<miles> <stop> [back]");

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [_, _] | [_, _, "back"] => Ok(Way(words.join(" "))),
            _ => Err("write miles and a stop".to_owned()),
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_stop", formerly = "test-stop-add", after = "test_rail")]
#[object(set = "set stop <id> {way~s <ways>}", unset = "set stop <id> off")]
struct Stop {
    /// Number.
    #[object(key, built_in = 0)]
    id: u32,
    /// Ways to other stops.
    ways: Vec<Way>,
}

#[test]
fn a_text_of_several_words_is_spelled_word_by_word() {
    Rail::class().unwrap();
    let stop = Stop {
        id: 1,
        ways: vec!["3 b1 back".parse().unwrap(), "4 c".parse().unwrap()],
    };
    let instance = stop.instance().unwrap();
    assert_eq!(instance.set_command(), "set stop 1 way 3 b1 back way 4 c");
    let class = instance.class();
    let shown = class.patterns(Effect::Set)[0].show(class.fields());
    assert_eq!(shown, "set stop <id> {way[s] <miles> <stop> [back]}");
}

#[test]
fn what_is_built_in_is_neither_created_nor_removed() {
    let rail = Rail::class().unwrap();
    let stop = |id| Stop {
        id,
        ways: Vec::new(),
    };
    let refused = stop(0).instance().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "id must be another one: this object is built in"
    );
    let instance = stop(1).instance().unwrap();
    assert!(!instance.key().is_built_in());
    let key = |id| instance.class().key(vec![Value::Number(id)]).unwrap();
    assert!(key(0).is_built_in());
    assert!(instance.class().rank() > rail.rank());
    let used = unregister("test_rail").unwrap_err().to_string();
    assert!(used.contains("class test_stop refers to it"), "{used}");
}

#[test]
fn a_request_of_an_older_commit_is_an_object() {
    Rail::class().unwrap();
    Stop::class().unwrap();
    let read = |name: &str, json| of_today(name, &json);
    let stop = read("test-stop-add", json!({"id": 2, "ways": ["3 b1"]}));
    let stop = stop.unwrap().unwrap()["set"].take();
    let stop: Instance = serde_json::from_value(stop).unwrap();
    assert_eq!(stop.set_command(), "set stop 2 way 3 b1");
    let wrong = read("test-stop-add", json!({"id": 2, "way": []}));
    let wrong = wrong.unwrap().unwrap_err();
    assert!(
        wrong.contains("unknown field `way` of test stop"),
        "{wrong}"
    );
    assert_eq!(read("test-stop-del", json!({"id": 2})), None);
}

/// A wire from some interfaces to others.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_wire", file = "[[test_wire]]", check = Wire::check)]
#[object(
    set = "(wire@v4 | wire6@v6) add <to> {color <color> | ends <ends> {<ends>} | via <via> {<via>}}"
)]
#[object(unset = "(wire@v4 | wire6@v6) del <to> {color <color>}")]
#[object(example = "wire add 192.0.2.1 ends pg0 pg1")]
struct Wire {
    /// Where the wire goes.
    #[object(key)]
    to: std::net::IpAddr,
    /// The wire's color.
    #[object(key, default = 1, range = 0u8..=9)]
    color: u8,
    /// Interfaces at the ends.
    #[object(loses = "interface", least = 1)]
    ends: std::collections::BTreeSet<String>,
    /// Interfaces between.
    #[object(loses = "interface")]
    via: std::collections::BTreeSet<String>,
}

impl Wire {
    fn check(&self) -> Result<(), FieldError> {
        match self.ends.contains("pg9") {
            true => Err(FieldError {
                field: "ends",
                why: "must not be pg9".into(),
            }),
            false => Ok(()),
        }
    }
}

fn wire(to: &str, color: u8, ends: &[&str], via: &[&str]) -> Instance {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    let it = Wire {
        to: to.parse().unwrap(),
        color,
        ends: names(ends),
        via: names(via),
    };
    it.instance().unwrap()
}

#[test]
fn keys_may_have_defaults() {
    let plain = wire("192.0.2.1", 1, &["pg0"], &[]);
    assert_eq!(plain.key().to_string(), "test wire 192.0.2.1");
    assert_eq!(plain.set_command(), "wire add 192.0.2.1 ends pg0");
    assert_eq!(plain.key().unset_command(), "wire del 192.0.2.1");
    assert_eq!(plain.key().default_command(), "default test-wire 192.0.2.1");
    let red = wire("2001:db8::1", 7, &["pg0"], &[]);
    assert_eq!(red.key().to_string(), "test wire 2001:db8::1 color 7");
    assert_eq!(red.key().unset_command(), "wire6 del 2001:db8::1 color 7");
    assert_eq!(
        red.key().default_command(),
        "default test-wire 2001:db8::1 color 7"
    );
    let class = plain.class();
    let short = class.key(vec!["192.0.2.1".into()]).unwrap();
    assert_eq!(short, plain.key());
    let json = serde_json::from_str(r#"{"to":"192.0.2.1"}"#).unwrap();
    assert_eq!(class.key_from_json(&json).unwrap(), plain.key());
    assert!(class.key(Vec::new()).is_err());
}

#[test]
fn a_set_is_in_order_and_has_nothing_twice() {
    let it = wire("192.0.2.1", 1, &["pg1", "pg0"], &["b1", "a"]);
    assert_eq!(
        it.set_command(),
        "wire add 192.0.2.1 ends pg0 pg1 via \"a\" b1"
    );
    assert_eq!(it, wire("192.0.2.1", 1, &["pg0", "pg1"], &["a", "b1"]));
    let of = |text: &str| serde_json::from_str::<Instance>(text).map_err(|e| e.to_string());
    let swapped = r#"{"class":"test_wire","to":"192.0.2.1","ends":["pg1","pg0"],"via":["b1","a"]}"#;
    assert_eq!(of(swapped), Ok(it.clone()));
    let twice = of(r#"{"class":"test_wire","to":"192.0.2.1","ends":["pg0","pg0"]}"#);
    assert!(twice.unwrap_err().contains("ends must not have pg0 twice"));
    for few in ["", r#","ends":[]"#] {
        let message = of(&format!(r#"{{"class":"test_wire","to":"192.0.2.1"{few}}}"#)).unwrap_err();
        assert!(
            message.contains("ends is missing") || message.contains("ends must have at least 1"),
            "{message}"
        );
    }
    let renamed = it.renamed("interface", "pg0", "z");
    assert_eq!(renamed, wire("192.0.2.1", 1, &["pg1", "z"], &["a", "b1"]));
}

#[test]
fn lists_lose_what_goes() {
    let it = wire("192.0.2.1", 1, &["pg0", "pg1"], &["pg0"]);
    let goes = |gone: &'static str| {
        move |class: &'static str, name: &Value| {
            class == "interface" && name.as_text() == Some(gone)
        }
    };
    let left = it.losing(&goes("pg0"));
    assert_eq!(left, Some(wire("192.0.2.1", 1, &["pg1"], &[])));
    assert_eq!(left.unwrap().losing(&goes("pg1")), None);
    assert!(it.class().loses() && !lamp().instance().unwrap().class().loses());
    assert!(it.refers_to("interface", "pg0") && !it.is_part_of("interface", "pg0"));
}

/// A list of a field that is no list.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_loses_one")]
struct LosesOne {
    /// The interface.
    #[object(loses = "interface")]
    interface: String,
}

#[test]
fn only_a_list_loses() {
    let message = LosesOne::class().unwrap_err().to_string();
    assert!(message.contains("only a list loses values"), "{message}");
}
