//! Definitions of classes that a plugin brings, in JSON, without addresses of code or texts, so that they outlive the code that
//! wrote them.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use volley_object::{
    Brought, ClassDef, DefinitionError, Effect, FieldDef, FieldType, Kind, Place, Reference,
    Strength, Value, VerbDef,
};

/// The text for the lifetime of the process.
fn kept(text: &str) -> &'static str {
    volley_object::kept(text.to_owned())
}

fn all_kept(texts: &[String]) -> Vec<&'static str> {
    texts.iter().map(|text| kept(text)).collect()
}

fn pairs_kept(pairs: &[(String, String)]) -> Vec<(&'static str, &'static str)> {
    pairs.iter().map(|(a, b)| (kept(a), kept(b))).collect()
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    all.iter().map(own).collect()
}

#[derive(Serialize, Deserialize)]
struct ClassText {
    name: String,
    doc: String,
    file: String,
    set: Vec<String>,
    unset: Vec<String>,
    change: Vec<String>,
    example: String,
    after: Vec<String>,
    interrupts: String,
    once: bool,
    recreate: bool,
    separate: bool,
    groups: Vec<(String, String)>,
    instead: Vec<(String, String)>,
    fields: Vec<FieldText>,
}

#[derive(Serialize, Deserialize)]
struct FieldText {
    name: String,
    doc: String,
    key: bool,
    kind: KindText,
    optional: bool,
    default: Option<Json>,
    unit: String,
    example: String,
    reference: Option<(String, StrengthText)>,
    set: bool,
    least: usize,
    secret: bool,
}

#[derive(Serialize, Deserialize)]
enum KindText {
    Bool,
    Number { min: u64, max: u64, scaled: bool },
    Choice(Vec<(String, String)>),
    Text(String),
    List(Box<KindText>),
}

#[derive(Serialize, Deserialize)]
enum StrengthText {
    PartOf,
    Needs,
    Loses,
}

/// The types of texts that both sides have, by their nouns.
fn text_kinds() -> [Kind; 6] {
    [
        String::kind(),
        IpAddr::kind(),
        Ipv4Addr::kind(),
        Ipv6Addr::kind(),
        SocketAddr::kind(),
        PathBuf::kind(),
    ]
}

fn text_kind(noun: &str) -> Option<Kind> {
    let is_it = |kind: &Kind| matches!(kind, Kind::Text(text) if text.noun == noun);
    text_kinds().into_iter().find(is_it)
}

impl KindText {
    fn of(kind: &Kind) -> Result<KindText, String> {
        Ok(match kind {
            Kind::Bool => KindText::Bool,
            Kind::Number { min, max, scaled } => KindText::Number {
                min: *min,
                max: *max,
                scaled: *scaled,
            },
            Kind::Choice(all) => KindText::Choice(pairs(all)),
            Kind::Text(text) if text_kind(text.noun).is_some() => {
                KindText::Text(text.noun.to_owned())
            }
            Kind::Text(text) => {
                let noun = text.noun;
                return Err(format!(
                    "{noun} is a type of the plugin: use a String and a `check`"
                ));
            }
            Kind::List(inner) => KindText::List(Box::new(KindText::of(inner)?)),
        })
    }

    fn kind(&self) -> Result<Kind, String> {
        Ok(match self {
            KindText::Bool => Kind::Bool,
            KindText::Number { min, max, scaled } => Kind::Number {
                min: *min,
                max: *max,
                scaled: *scaled,
            },
            KindText::Choice(all) => Kind::Choice(pairs_kept(all).into()),
            KindText::Text(noun) => text_kind(noun).ok_or_else(|| format!("no type is {noun}"))?,
            KindText::List(inner) => Kind::List(Box::new(inner.kind()?)),
        })
    }
}

impl FieldText {
    fn of(field: &FieldDef) -> Result<FieldText, String> {
        let beyond = [
            (field.built_in.is_some(), "built_in"),
            (field.each, "each"),
            (field.derived.is_some(), "derived"),
            (field.request, "request"),
            (field.in_file.is_some(), "in_file"),
            (field.joined, "joined"),
            (field.repeats, "repeats"),
            (field.inline, "inline"),
            (field.unsaved.is_some(), "unsaved"),
        ];
        if let Some((_, word)) = beyond.iter().find(|(has, _)| *has) {
            return Err(not_there(word));
        }
        let strength = |reference: Reference| match reference.strength {
            Strength::PartOf => StrengthText::PartOf,
            Strength::Needs => StrengthText::Needs,
            Strength::Loses => StrengthText::Loses,
        };
        let default = field.default.as_ref().map(serde_json::to_value);
        Ok(FieldText {
            name: field.name.to_owned(),
            doc: field.doc.to_owned(),
            key: field.key,
            kind: KindText::of(&field.kind)?,
            optional: field.optional,
            default: default.transpose().map_err(|why| why.to_string())?,
            unit: field.unit.to_owned(),
            example: field.example.to_owned(),
            reference: field.reference.map(|r| (r.class.to_owned(), strength(r))),
            set: field.set,
            least: field.least,
            secret: field.secret,
        })
    }

    fn field(&self) -> Result<FieldDef, String> {
        let kind = self.kind.kind()?;
        let default = self.default.as_ref().map(|it| {
            let value = Value::from_json(it).ok_or("no field has such a default")?;
            kind.check(&value)
        });
        let reference = self.reference.as_ref().map(|(class, strength)| Reference {
            class: kept(class),
            strength: match strength {
                StrengthText::PartOf => Strength::PartOf,
                StrengthText::Needs => Strength::Needs,
                StrengthText::Loses => Strength::Loses,
            },
        });
        Ok(FieldDef {
            default: default.transpose()?,
            kind,
            optional: self.optional,
            unit: kept(&self.unit),
            example: kept(&self.example),
            reference,
            set: self.set,
            least: self.least,
            secret: self.secret,
            ..FieldDef::new::<bool>(kept(&self.name), kept(&self.doc), self.key)
        })
    }
}

fn not_there(word: &str) -> String {
    format!("`{word}` is not available to plugins")
}

/// The text that [`Place::read`] reads.
fn place_text(place: Place) -> String {
    match place {
        Place::None => String::new(),
        Place::Table(name) => format!("[{name}]"),
        Place::List(name) => format!("[[{name}]]"),
        Place::Map(name) => format!("[{name}.*]"),
        Place::Interface(name) => format!("interface.{name}"),
        Place::InterfaceMap(name) => format!("interface.{name}.*"),
        Place::InterfaceList(name) => format!("interface.{name}[]"),
    }
}

/// A definition in JSON, without the code of `check`. An error when it has more than JSON can express.
pub fn describe(class: &ClassDef) -> Result<Json, DefinitionError> {
    let refuse = |why: String| DefinitionError::new(class.name, why);
    let commands = |effect| {
        let all = class.commands.iter().filter(|(of, _)| *of == effect);
        all.map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>()
    };
    let beyond = [
        (class.references.is_some(), "references"),
        (class.normal.is_some(), "normal"),
        (class.upgrade.is_some(), "upgrade"),
        (class.starts.is_some(), "starts"),
        (class.bulk, "bulk"),
        (class.startup, "startup"),
        (class.machine, "machine"),
        (class.last, "last"),
        (class.ordered, "ordered"),
        (class.together, "together"),
        (!class.one_of.is_empty(), "one_of"),
        (!commands(Effect::UnsetAny).is_empty(), "unset_any"),
        (!commands(Effect::Add).is_empty(), "add"),
        (!commands(Effect::Take).is_empty(), "take"),
        (!class.removed_with.is_empty(), "removed_with"),
        (!class.formerly.is_empty(), "formerly"),
        (!class.formerly_bulk.is_empty(), "formerly_bulk"),
        (!class.interface.is_empty(), "interface"),
    ];
    if let Some((_, word)) = beyond.iter().find(|(has, _)| *has) {
        return Err(refuse(not_there(word)));
    }
    let field = |field: &FieldDef| {
        let text = FieldText::of(field);
        text.map_err(|why| refuse(format!("field {}: {why}", field.name)))
    };
    let text = ClassText {
        name: class.name.to_owned(),
        doc: class.doc.to_owned(),
        file: place_text(class.file),
        set: commands(Effect::Set),
        unset: commands(Effect::Unset),
        change: commands(Effect::Change),
        example: class.example.to_owned(),
        after: texts(&class.after),
        interrupts: class.interrupts.to_owned(),
        once: class.once,
        recreate: class.recreate,
        separate: class.separate,
        groups: pairs(&class.groups),
        instead: pairs(&class.instead),
        fields: class.fields.iter().map(field).collect::<Result<_, _>>()?,
    };
    serde_json::to_value(text).map_err(|why| refuse(why.to_string()))
}

/// The definition of a class that an object brings, from JSON of [`describe`]. Objects of the class are created
/// after that object, need it, and are removed with it.
pub fn described(json: &Json, by: (&str, &str)) -> Result<ClassDef, DefinitionError> {
    let text = ClassText::deserialize(json);
    let text = text.map_err(|why| DefinitionError::new(by.1, why.to_string()))?;
    let refuse = |why: String| DefinitionError::new(&text.name, why);
    let brought = Brought {
        class: kept(by.0),
        name: kept(by.1),
    };
    let mut after = all_kept(&text.after);
    if !after.contains(&brought.class) {
        after.push(brought.class);
    }
    let fields = text.fields.iter().map(FieldText::field);
    let commands = [
        (Effect::Set, &text.set),
        (Effect::Unset, &text.unset),
        (Effect::Change, &text.change),
    ];
    let commands = commands
        .into_iter()
        .flat_map(|(effect, texts)| texts.iter().map(move |text| (effect, kept(text))));
    Ok(ClassDef {
        fields: fields.collect::<Result<_, _>>().map_err(refuse)?,
        file: Place::read(kept(&text.file)),
        commands: commands.collect(),
        example: kept(&text.example),
        after,
        interrupts: kept(&text.interrupts),
        once: text.once,
        recreate: text.recreate,
        separate: text.separate,
        groups: pairs_kept(&text.groups),
        instead: pairs_kept(&text.instead),
        brought: Some(brought),
        ..ClassDef::new(kept(&text.name), kept(&text.doc))
    })
}

/// The definition of a verb in JSON, as [`describe`].
pub fn describe_verb(verb: &VerbDef) -> Result<Json, DefinitionError> {
    if verb.for_all {
        return Err(DefinitionError::new(verb.class.name, not_there("for_all")).of("verb"));
    }
    let class = describe(&verb.class).map_err(|why| why.of("verb"))?;
    Ok(json!({ "class": class, "configure": verb.configure }))
}

/// The definition of a verb that an object brings, from JSON of [`describe_verb`].
pub fn described_verb(json: &Json, by: (&str, &str)) -> Result<VerbDef, DefinitionError> {
    let mut class = described(&json["class"], by).map_err(|why| why.of("verb"))?;
    // Only objects have an order.
    class.after.clear();
    Ok(VerbDef {
        class,
        configure: json["configure"].as_bool().unwrap_or(true),
        for_all: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_object::{Class, Object};

    /// Guard: what it lets pass.
    #[derive(Clone, Debug, PartialEq, Object)]
    #[object(class = "brought_guard", file = "[brought_guard.*]")]
    #[object(
        set = "set brought-guard <name> {fields}",
        unset = "delete brought-guard <name>"
    )]
    #[object(example = "set brought-guard a low 2")]
    struct Guard {
        /// Name.
        #[object(key, example = "a")]
        name: String,
        /// Lowest value.
        #[object(default = 2, range = 1..=255)]
        low: u8,
        /// Sources.
        sources: Vec<IpAddr>,
    }

    fn described() -> ClassDef {
        let json = describe(&Guard::definition()).unwrap();
        super::described(&json, ("maker", "m")).unwrap()
    }

    #[test]
    fn a_definition_goes_through_json_and_back() {
        let def = described();
        assert_eq!(def.file, Place::Map("brought_guard"));
        assert_eq!(def.after, ["maker"]);
        assert_eq!(def.brought.unwrap().name, "m");
        let again = describe(&def).unwrap();
        let mut first = describe(&Guard::definition()).unwrap();
        first["after"] = serde_json::json!(["maker"]);
        assert_eq!(again, first);
        let class = Class::alone(def).unwrap();
        let map = serde_json::json!({"name": "a", "low": 0});
        let wrong = class.from_json(map.as_object().unwrap()).unwrap_err();
        assert!(wrong.contains("low must be"), "{wrong}");
    }

    #[test]
    fn what_json_cannot_express_is_refused() {
        let def = ClassDef {
            bulk: true,
            ..Guard::definition()
        };
        let refused = describe(&def).unwrap_err().to_string();
        assert!(
            refused.ends_with("`bulk` is not available to plugins"),
            "{refused}"
        );
    }

    #[test]
    fn an_object_is_carried_over_or_refused() {
        let old = Class::alone(described()).unwrap();
        let map = serde_json::json!({"name": "a", "low": 9});
        let object = old.from_json(map.as_object().unwrap()).unwrap();
        let mut def = described();
        let more = FieldDef {
            default: Some(Value::Bool(true)),
            ..FieldDef::new::<bool>("strict", "Strict.", false)
        };
        def.fields.push(more);
        let carried = object.carried_over(&Class::alone(def).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&carried).unwrap()["strict"], true);
        assert_eq!(serde_json::to_value(&carried).unwrap()["low"], 9);
        let mut def = described();
        def.fields.retain(|field| field.name != "low");
        def.commands = vec![(Effect::Set, "set brought-guard <name> {fields}")];
        let class = Class::alone(def).unwrap();
        let lost = object.carried_over(&class).unwrap_err();
        assert!(lost.contains("a value of low"), "{lost}");
        let map = serde_json::json!({"name": "a"});
        let usual = old.from_json(map.as_object().unwrap()).unwrap();
        assert!(usual.carried_over(&class).is_ok());
        let mut def = described();
        def.fields[1].limit((1_u8, 5_u8));
        let unfit = object
            .carried_over(&Class::alone(def).unwrap())
            .unwrap_err();
        assert!(unfit.contains("does not fit the new version"), "{unfit}");
    }
}
