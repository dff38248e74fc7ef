//! Commands of registered classes: their patterns, slots and helps, derived from the definitions.

use super::commands::{CommandDef, Id};
use super::names::NameKind;
use super::pattern::{Pattern, Word, read_with};
use super::slots::{Slot, Takes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use volley_object::pattern::spell;
use volley_object::{
    Change, Class, Classes, FieldDef, Instance, Kind, ObjectKey, Shape, TableField, Value,
};

/// What a command does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Creates or changes it, by this pattern of its class.
    Set(usize),
    /// Joins it to the one that is there, by this pattern.
    Add(usize),
    /// Takes items from its lists, or removes it, by this pattern.
    Take(usize),
    /// Removes it, by this pattern.
    Unset(usize),
    /// Removes it, or the object of its key in another class of its group, by this pattern.
    UnsetAny(usize),
    /// Changes fields of it, or of all objects of the class, by this pattern.
    Change(usize),
    /// Removes it or gives it its defaults back: a command that every class has.
    Default,
}

/// A command of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectCommand {
    pub(crate) class: &'static str,
    pub(crate) effect: Effect,
}

impl ObjectCommand {
    /// The pattern of the command in its class; none for `default`, which every class has.
    pub(crate) fn pattern(self, class: &Class) -> Option<&volley_object::pattern::Pattern> {
        match self.effect {
            Effect::Set(i) => class.set_patterns().get(i),
            Effect::Add(i) => class.add_patterns().get(i),
            Effect::Take(i) => class.take_patterns().get(i),
            Effect::Unset(i) => class.unset_patterns().get(i),
            Effect::UnsetAny(i) => class.unset_any_patterns().get(i),
            Effect::Change(i) => class.change_patterns().get(i),
            Effect::Default => None,
        }
    }
}

/// The commands of all classes with their patterns.
pub(super) fn commands(classes: &Classes) -> Vec<(CommandDef, Pattern)> {
    let mut all = Vec::new();
    for class in classes.iter() {
        type Patterns<'c> = (fn(usize) -> Effect, &'c [volley_object::pattern::Pattern]);
        let patterns: [Patterns<'_>; 6] = [
            (Effect::Add, class.add_patterns()),
            (Effect::Set, class.set_patterns()),
            (Effect::Change, class.change_patterns()),
            (Effect::Take, class.take_patterns()),
            (Effect::Unset, class.unset_patterns()),
            (Effect::UnsetAny, class.unset_any_patterns()),
        ];
        let patterns = patterns.into_iter().flat_map(|(effect, all)| {
            let numbers = all.iter().enumerate();
            numbers.map(move |(i, pattern)| (effect(i), pattern))
        });
        for (effect, pattern) in patterns {
            all.push(command(
                class,
                effect,
                pattern.show(class.fields()),
                converted((class, classes), effect, pattern),
            ));
        }
        if !class.is_interface() {
            let (text, pattern) = default_command(class);
            all.push(command(class, Effect::Default, text, pattern));
        }
    }
    all
}

fn command(class: &Class, effect: Effect, text: String, pattern: Pattern) -> (CommandDef, Pattern) {
    let example = example_of(class, effect);
    let doc = match effect {
        Effect::Set(_) => class.doc().to_owned(),
        Effect::Unset(_) if class.def().together => {
            format!("Remove all of: {}.", class.subject())
        }
        Effect::Unset(_) => format!("Remove: {}.", class.subject()),
        Effect::Add(_) => format!("Add {} to: {}.", joined(class), class.subject()),
        Effect::Take(_) => {
            let (fields, subject) = (joined(class), class.subject());
            format!("Remove {fields} of: {subject}; the whole object where none is given.")
        }
        Effect::UnsetAny(_) => {
            let all = volley_object::classes();
            let group = all.group_of(class).map(|c| c.noun());
            let nouns: Vec<String> = group.chain([class.noun()]).collect();
            format!("Remove what an interface has of: {}.", nouns.join(", "))
        }
        Effect::Change(i) => {
            let pattern = class.change_patterns().get(i);
            let given = pattern.map(|p| p.given()).unwrap_or_default();
            let value =
                |(at, value): (usize, Value)| format!("{} {value}", class.fields()[at].dashed());
            let values: Vec<String> = given.into_iter().map(value).collect();
            format!(
                "Change: {}: {}, of one or of all.",
                class.subject(),
                values.join(", ")
            )
        }
        Effect::Default => format!("Give the defaults back to: {}.", class.subject()),
    };
    let id = Id::Object(ObjectCommand {
        class: interned(class.name()),
        effect,
    });
    let definition = CommandDef {
        id,
        pattern: interned(&text),
        text: interned(&doc),
        example: interned(&example),
    };
    (definition, pattern)
}

/// A whole command.
fn example_of(class: &Class, effect: Effect) -> String {
    let sample = ObjectKey::sample(class, "pg0");
    match (effect, sample) {
        (Effect::Set(_), _) | (_, None) => class.def().example.to_owned(),
        (Effect::Unset(_), Some(key)) if class.def().together => key.group().unset_command(),
        (Effect::Unset(i), Some(key)) => {
            let pattern = class.unset_patterns().get(i);
            let whole = Instance::sample(class, "pg0");
            let spelled = pattern.and_then(|p| {
                let by_key = key.spelled_by(p);
                by_key.or_else(|| whole.and_then(|it| spell(p, &it)))
            });
            spelled.unwrap_or_else(|| key.unset_command())
        }
        (Effect::Add(_), Some(_)) => {
            let whole = Instance::sample(class, "pg0");
            whole.map(|it| it.add_command()).unwrap_or_default()
        }
        (Effect::Take(_), Some(key)) => key.unset_command(),
        (Effect::UnsetAny(_), Some(key)) => key.unset_any_command(),
        (Effect::Change(i), Some(key)) => {
            let pattern = class.change_patterns().get(i);
            let given = pattern.map(|p| p.given());
            let change = Change::new(class, key.slots_with(given.into_iter().flatten()));
            change.map(|it| it.to_string()).unwrap_or_default()
        }
        (Effect::Default, Some(key)) => key.default_command(),
    }
}

/// The names of lists of a class whose items are joined.
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
        let (name, value) = (field.dashed(), Pattern::Slot(slot(class, at)));
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
        all.push(Pattern::Many(Box::new(Pattern::OneOf(named))));
    }
    (text, Pattern::Seq(all))
}

fn word(text: &str, tail: &str) -> Pattern {
    Pattern::Word(Word {
        text: interned(text),
        tail: interned(tail),
        of: "",
        help: "",
    })
}

pub(super) fn converted(
    of: (&Class, &Classes),
    effect: Effect,
    pattern: &volley_object::pattern::Pattern,
) -> Pattern {
    use volley_object::pattern::Pattern as From;
    let each = |all: &[From]| all.iter().map(|p| converted(of, effect, p)).collect();
    let (class, classes) = of;
    match pattern {
        From::Word(it) => word(&it.text, &it.tail),
        From::Field(0) if class.is_interface() => {
            let takes = match effect {
                Effect::Set(_) => Takes::Any,
                _ => Takes::Name(NameKind::Interface),
            };
            let field = &class.fields()[0];
            Pattern::Slot(any_slot(field.dashed(), field.help(), takes))
        }
        From::Setting(name) => {
            let field = classes
                .get(name)
                .and_then(|setting| setting.values().first());
            let slot = field.map(|it| any_slot(interned(name).to_owned(), it.help(), takes(it)));
            slot.map_or(Pattern::OneOf(Vec::new()), Pattern::Slot)
        }
        From::Field(at) => {
            let field = &class.fields()[*at];
            match field.kind.parts() {
                "" => Pattern::Slot(slot(class, *at)),
                parts => {
                    let read = read_with(parts, &|part| part_of(field, part));
                    read.unwrap_or(Pattern::OneOf(Vec::new()))
                }
            }
        }
        From::Seq(all) => Pattern::Seq(each(all)),
        From::OneOf(all) => Pattern::OneOf(each(all)),
        From::Optional(inner) => Pattern::Optional(Box::new(converted(of, effect, inner))),
        From::Many(all) => Pattern::Many(Box::new(Pattern::OneOf(each(all)))),
    }
}

/// One word of a value of several words: `<value>` in a slot with the name of the field, or a keyword.
fn part_of(field: &FieldDef, part: &str) -> Option<Pattern> {
    let name = field.dashed();
    Some(match part.strip_prefix('<') {
        Some(part) => {
            let part = part.strip_suffix('>')?;
            let table = field.kind.table().map(|table| (table.fields)());
            let inner = table.into_iter().flatten().find(|it| it.name == part);
            let (takes, help) = match inner {
                Some(inner) => (takes_of(&inner.kind, inner.needs), inner.help()),
                None => (Takes::Any, field.help()),
            };
            Pattern::Slot(any_slot(format!("{name} {part}"), help, takes))
        }
        None => Pattern::Word(Word {
            text: interned(part),
            tail: "",
            of: interned(&format!("{name} '{part}'")),
            help: interned(&meaning_of(field, part)),
        }),
    })
}

/// What a word of a value means that is a table: a value of one of its fields, or a field that is on with it.
fn meaning_of(field: &FieldDef, word: &str) -> String {
    let table = field.kind.table().map(|table| (table.fields)());
    let meaning = |inner: &TableField| match &inner.kind {
        Kind::Choice(all) => all.iter().find(|(name, _)| *name == word).map(|it| it.1),
        Kind::Bool => (inner.name.replace('_', "-") == word).then_some(inner.doc),
        _ => None,
    };
    let found = table.into_iter().flatten().find_map(meaning);
    found.unwrap_or_default().to_owned()
}

/// The slot of a field of a class.
fn slot(class: &Class, at: usize) -> &'static Slot {
    let field = &class.fields()[at];
    let takes = match (at, field.key, takes(field)) {
        // Completion offers the objects that exist.
        (0, true, Takes::Any | Takes::Number) => Takes::Name(NameKind::Object(class.name())),
        (_, _, takes) => takes,
    };
    any_slot(field.dashed(), field.help(), takes)
}

fn any_slot(name: String, text: String, takes: Takes) -> &'static Slot {
    static SLOTS: Mutex<BTreeMap<(String, String, String), &'static Slot>> =
        Mutex::new(BTreeMap::new());
    let key = (name.clone(), text.clone(), format!("{takes:?}"));
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    slots.entry(key).or_insert_with(|| {
        Box::leak(Box::new(Slot {
            name: interned(&name),
            takes,
            text: interned(&text),
        }))
    })
}

fn takes(field: &FieldDef) -> Takes {
    takes_of(&field.kind, field.reference.map(|r| r.class))
}

/// What a value takes that names objects of a class, or none.
fn takes_of(kind: &Kind, class: Option<&'static str>) -> Takes {
    match (kind.element(), class) {
        (_, Some("interface")) => Takes::Name(NameKind::Interface),
        (_, Some("node")) => Takes::Name(NameKind::Node),
        (_, Some("arc")) => Takes::Name(NameKind::Arc),
        (_, Some("arc_feature")) => Takes::Name(NameKind::Feature),
        (_, Some(class)) => Takes::Name(NameKind::Object(class)),
        (Kind::Bool, _) => Takes::OneOf(&["on", "off", "enable", "disable"]),
        (Kind::Number { .. }, _) => Takes::Number,
        (Kind::Choice(all), _) => {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            Takes::OneOf(interned_list(&names))
        }
        (Kind::Text(text), _) => match text.shape {
            Shape::Any | Shape::Numbers | Shape::File => Takes::Any,
            Shape::Rest => Takes::Rest,
            Shape::Block => Takes::Block,
            Shape::Prefix => Takes::Prefix,
            Shape::Address => Takes::Address,
            Shape::Network => Takes::Network,
            Shape::Mac => Takes::Mac,
        },
        (Kind::List(_), _) => Takes::Any,
    }
}

/// The same text for as long as the process runs: classes come and go, and few texts differ.
pub(super) fn interned(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = texts.get(text) {
        return found;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(kept);
    kept
}

fn interned_list(all: &[&str]) -> &'static [&'static str] {
    static LISTS: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    let kept: Vec<&'static str> = all.iter().map(|text| interned(text)).collect();
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lists.get(&kept[..]) {
        return found;
    }
    let kept: &'static [&'static str] = Box::leak(kept.into_boxed_slice());
    lists.insert(kept);
    kept
}
