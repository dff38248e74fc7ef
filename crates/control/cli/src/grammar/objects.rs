//! Commands of registered classes: patterns, slots and help texts, derived from the definitions.

use super::commands::{CommandDef, Id, Of};
use super::pattern::{Eats, Pattern, Word};
use super::slots::{Slot, Takes};
use crate::own;
use volley_object::pattern::{Leaf, Tree, spell};
use volley_object::{
    Change, Class, Classes, Effect, FieldDef, Instance, Kind, ObjectKey, Shape, Value, kept,
};

/// All commands with their patterns.
pub(super) fn commands(classes: &Classes) -> Vec<(CommandDef, Pattern)> {
    let own = own::all().map(|verb| (Of::Own, verb.class()));
    let queries = classes.queries().map(|query| (Of::Query, query.class()));
    let verbs = classes.verbs().map(|verb| (Of::Verb, verb.class()));
    let objects = classes.iter().flat_map(|class| {
        let effects = Effect::ALL.into_iter().map(Of::Object);
        let default = (!class.is_interface()).then_some(Of::Default);
        effects.chain(default).map(move |of| (of, class))
    });
    let all = own.chain(queries).chain(verbs).chain(objects);
    all.flat_map(|(of, class)| of_class(of, class, classes))
        .collect()
}

/// The commands of one kind that a class has.
fn of_class(of: Of, class: &Class, classes: &Classes) -> Vec<(CommandDef, Pattern)> {
    let id = |at| Id {
        of,
        class: class.name(),
        at,
    };
    let patterns = match of {
        Of::Default => {
            let (text, pattern) = default_command(class);
            let (doc, example) = message(id(0), class, classes);
            return vec![(defined(id(0), text, doc, example), pattern)];
        }
        Of::Object(effect) => class.patterns(effect),
        Of::Own | Of::Query | Of::Verb => class.patterns(Effect::Set),
    };
    let command = |(at, pattern): (usize, &Tree<Leaf>)| {
        let (doc, example) = message(id(at), class, classes);
        let text = pattern.show(class.fields());
        let converted = pattern.map(&|leaf| converted((class, classes), of, leaf));
        (defined(id(at), text, doc, example), converted)
    };
    patterns.iter().enumerate().map(command).collect()
}

fn defined(id: Id, pattern: String, text: String, example: String) -> CommandDef {
    CommandDef {
        id,
        pattern: kept(pattern),
        text: kept(text),
        example: kept(example),
    }
}

/// The help of a command, and an example of it.
fn message(id: Id, class: &Class, classes: &Classes) -> (String, String) {
    let query = || Some((classes.query(id.class)?, id.pattern(class)?));
    match id.of {
        Of::Query if let Some((query, pattern)) = query() => {
            (query.doc_of(pattern).to_owned(), query.example_of(pattern))
        }
        Of::Object(effect) => (
            doc_of(class, effect, id.at),
            example_of(class, effect, id.at),
        ),
        Of::Default => {
            let key = ObjectKey::sample(class, "pg0");
            let example = key.map_or(class.def().example.to_owned(), |it| it.default_command());
            let doc = format!("Give the defaults back to: {}.", class.subject());
            (doc, example)
        }
        Of::Own | Of::Query | Of::Verb => (class.doc().to_owned(), class.def().example.to_owned()),
    }
}

/// The help of a command, by its effect on an object.
fn doc_of(class: &Class, effect: Effect, at: usize) -> String {
    let subject = class.subject();
    match effect {
        Effect::Set => class.doc().to_owned(),
        Effect::Unset if class.def().together => format!("Remove all of: {subject}."),
        Effect::Unset => format!("Remove: {subject}."),
        Effect::Add => format!("Add {} to: {subject}.", joined(class)),
        Effect::Take => {
            let fields = joined(class);
            format!("Remove {fields} of: {subject}; the whole object where none is given.")
        }
        Effect::UnsetAny => {
            let all = volley_object::classes();
            let group = all.group_of(class).map(|c| c.noun());
            let nouns: Vec<String> = group.chain([class.noun()]).collect();
            format!("Remove what an interface has of: {}.", nouns.join(", "))
        }
        Effect::Change => {
            let value =
                |(at, value): (usize, Value)| format!("{} {value}", class.fields()[at].dashed());
            let values: Vec<String> = given(class, at).into_iter().map(value).collect();
            match values.is_empty() {
                true => format!("Apply again: {subject}."),
                false => format!(
                    "Change: {subject}: {}, of one or of all.",
                    values.join(", ")
                ),
            }
        }
    }
}

/// The fields that words of a command set, and the values.
fn given(class: &Class, at: usize) -> Vec<(usize, Value)> {
    let pattern = class.patterns(Effect::Change).get(at);
    pattern.map(Tree::given).unwrap_or_default()
}

/// An example of the command.
fn example_of(class: &Class, effect: Effect, at: usize) -> String {
    let sample = ObjectKey::sample(class, "pg0");
    match (effect, sample) {
        (Effect::Set, _) | (_, None) => class.def().example.to_owned(),
        (Effect::Unset, Some(key)) if class.def().together => key.group().unset_command(),
        (Effect::Unset, Some(key)) => {
            let whole = Instance::sample(class, "pg0");
            let spelled = class.patterns(effect).get(at).and_then(|p| {
                let by_key = key.spelled_by(p);
                by_key.or_else(|| whole.and_then(|it| spell(p, &it)))
            });
            spelled.unwrap_or_else(|| key.unset_command())
        }
        (Effect::Add, Some(_)) => {
            let whole = Instance::sample(class, "pg0");
            whole.map(|it| it.add_command()).unwrap_or_default()
        }
        (Effect::Take, Some(key)) => key.unset_command(),
        (Effect::UnsetAny, Some(key)) => key.unset_any_command(),
        (Effect::Change, Some(key)) => {
            let change = Change::new(class, key.slots_with(given(class, at)));
            change.map(|it| it.to_string()).unwrap_or_default()
        }
    }
}

/// The names of the lists of a class whose items are merged.
fn joined(class: &Class) -> String {
    let joined = class.fields().iter().filter(|field| field.joined);
    let names: Vec<String> = joined.map(FieldDef::dashed).collect();
    names.join(" and ")
}

/// `default CLASS KEYS`.
fn default_command(class: &Class) -> (String, Pattern) {
    let noun = class.name().replace('_', "-");
    let mut text = format!("default {noun}");
    let mut all = vec![word("default", ""), word(&noun, "")];
    let (mut named, mut texts) = (Vec::new(), Vec::new());
    for (at, field) in class.keys().iter().enumerate() {
        let (name, value) = (field.dashed(), Tree::Leaf(Eats::Slot(slot(class, at))));
        if field.is_essential() {
            text += &format!(" <{name}>");
            all.push(value);
        } else {
            texts.push(format!("{name} <{name}>"));
            named.push(Pattern::Seq(vec![word(&name, ""), value]));
        }
    }
    if !named.is_empty() {
        text += &format!(" {{{}}}", texts.join(" | "));
        all.push(Pattern::Many(named));
    }
    (text, Pattern::Seq(all))
}

fn word(text: &str, tail: &str) -> Pattern {
    Tree::Leaf(Eats::Word(Word {
        text: kept(text.to_owned()),
        tail: kept(tail.to_owned()),
        of: "",
        help: "",
    }))
}

/// Converts a word of a pattern into what matches it.
fn converted((class, classes): (&Class, &Classes), of: Of, leaf: &Leaf) -> Pattern {
    let slot = |slot| Tree::Leaf(Eats::Slot(slot));
    match leaf {
        Leaf::Word(it) => word(&it.text, &it.tail),
        Leaf::Field(0) if class.is_interface() => {
            let takes = match of {
                Of::Object(Effect::Set) => Takes::Text(Shape::Any),
                _ => Takes::Name("interface"),
            };
            let field = &class.fields()[0];
            slot(any_slot(field.dashed(), field.help(), takes))
        }
        Leaf::Setting(name) => {
            let setting = classes.get(name);
            let field = setting.and_then(|setting| setting.values().first());
            let found = field.map(|it| any_slot(name.clone(), it.help(), takes(it)));
            found.map_or(Pattern::OneOf(Vec::new()), slot)
        }
        Leaf::Field(at) => {
            let field = &class.fields()[*at];
            match field.kind.parts() {
                "" => slot(self::slot(class, *at)),
                parts => {
                    let read = Tree::parse(parts, &|part| Ok(part_of(field, part)));
                    read.unwrap_or(Pattern::OneOf(Vec::new()))
                }
            }
        }
    }
}

/// One word of a value of several words: a `<value>` in a slot with the name of the field, or a keyword.
fn part_of(field: &FieldDef, part: &'static str) -> Eats {
    let name = field.dashed();
    let table = field.kind.table().map(|table| (table.fields)());
    let Some(part) = part.strip_prefix('<') else {
        return Eats::Word(Word {
            text: part,
            tail: "",
            of: kept(format!("{name} '{part}'")),
            help: kept(meaning_of(field, part)),
        });
    };
    let part = part.trim_end_matches('>');
    let inner = table.into_iter().flatten().find(|it| it.name == part);
    let (takes, help) = match inner {
        Some(inner) => (takes(inner), inner.help()),
        None => (Takes::Text(Shape::Any), field.help()),
    };
    Eats::Slot(any_slot(format!("{name} {part}"), help, takes))
}

/// The help of a word of a value that is a table: a value of one of its fields, or a boolean field that the word switches on.
fn meaning_of(field: &FieldDef, word: &str) -> String {
    let table = field.kind.table().map(|table| (table.fields)());
    let meaning = |inner: &FieldDef| match &inner.kind {
        Kind::Choice(all) => all.iter().find(|(name, _)| *name == word).map(|it| it.1),
        Kind::Bool => (inner.dashed() == word).then_some(inner.doc),
        _ => None,
    };
    let found = table.into_iter().flatten().find_map(meaning);
    found.unwrap_or_default().to_owned()
}

/// The slot of a field of a class.
fn slot(class: &Class, at: usize) -> &'static Slot {
    let field = &class.fields()[at];
    let takes = match (at, field.key, takes(field)) {
        // Completion offers the existing objects.
        (0, true, Takes::Number)
        | (0, true, Takes::Text(Shape::Any | Shape::Numbers | Shape::File)) => {
            Takes::Name(class.name())
        }
        (_, _, takes) => takes,
    };
    any_slot(field.dashed(), field.help(), takes)
}

fn any_slot(name: String, text: String, takes: Takes) -> &'static Slot {
    kept(Slot {
        name: kept(name),
        takes,
        text: kept(text),
    })
}

/// What a value of a field accepts.
fn takes(field: &FieldDef) -> Takes {
    match (field.kind.element(), field.reference) {
        (_, Some(reference)) => Takes::Name(reference.class),
        (Kind::Bool, _) => Takes::OneOf(&["on", "off", "enable", "disable"]),
        (Kind::Number { .. }, _) => Takes::Number,
        (Kind::Choice(all), _) => {
            let names: Vec<&'static str> = all.iter().map(|(name, _)| *name).collect();
            Takes::OneOf(kept(names))
        }
        (Kind::Text(text), _) => Takes::Text(text.shape),
        (Kind::List(_), _) => Takes::Text(Shape::Any),
    }
}
