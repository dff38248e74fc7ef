//! Objects of a class, and their keys.

use crate::class::{Class, Effect};
use crate::kind::FieldType;
use crate::pattern::{Pattern, spell};
use crate::place::Strength;
use crate::value::Value;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// An object: a class and the checked values of its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    class: Class,
    slots: Arc<[Option<Value>]>,
}

/// The key of an object: its class and the values of the key fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    class: Class,
    values: Arc<[Value]>,
}

impl ObjectKey {
    pub(crate) fn new(class: Class, values: Vec<Value>) -> ObjectKey {
        let values = values.into();
        ObjectKey { class, values }
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The values of the key's fields.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The values as one text.
    pub fn name(&self) -> String {
        let values: Vec<String> = self.values.iter().map(ToString::to_string).collect();
        values.join(" ")
    }

    /// The name of the object to which this one belongs.
    pub fn owner(&self) -> Option<&str> {
        self.class.part_of()?;
        self.values.first()?.as_text()
    }

    /// Whether the object is built in: it always exists, and is neither created nor removed.
    pub fn is_built_in(&self) -> bool {
        let mut fields = self.class.keys().iter().zip(self.values.iter());
        fields.any(|(field, value)| field.built_in.as_ref() == Some(value))
    }

    /// The smallest key with the same first value.
    pub fn group(&self) -> ObjectKey {
        let first = self.values.iter().take(1).cloned().collect();
        ObjectKey::new(self.class.clone(), first)
    }

    /// Whether the key is that of all objects with the same first value, see [`crate::ClassDef::together`].
    pub fn is_of_many(&self) -> bool {
        self.class.def().together && self.values.len() < self.class.keys().len()
    }

    /// Whether the object is not a part of a saved configuration, see [`crate::FieldDef::unsaved`].
    pub fn is_unsaved(&self) -> bool {
        let mut fields = self.class.keys().iter().zip(self.values.iter());
        fields.any(|(field, value)| field.unsaved.as_ref() == Some(value))
    }

    /// Whether another key has the same first value.
    pub fn is_of_group(&self, other: &ObjectKey) -> bool {
        self.class == other.class && self.values.first() == other.values.first()
    }

    /// The smallest key of a class whose first value is this name.
    pub fn first_of(class: &Class, owner: &str) -> ObjectKey {
        ObjectKey::new(class.clone(), vec![Value::text(owner)])
    }

    /// A lower bound of the keys of a class.
    pub fn least_of(class: &Class) -> ObjectKey {
        ObjectKey::new(class.clone(), Vec::new())
    }

    /// Renames an object of `class` in every reference of the key.
    pub fn renamed(&self, class: &str, from: &str, to: &str) -> ObjectKey {
        let values = self.class.keys().iter().zip(self.values.iter());
        let values = values.map(|(field, value)| field.renamed(value, class, from, to));
        ObjectKey::new(self.class.clone(), values.collect())
    }

    /// A key with sample values; references are to `owner`.
    pub fn sample(class: &Class, owner: &str) -> Option<ObjectKey> {
        let sample = |field: &crate::FieldDef| field.sample(owner);
        class.key_of_slots(class.keys().iter().map(sample)).ok()
    }

    /// The key with the same values in another class.
    pub fn of_class(&self, class: &Class) -> ObjectKey {
        let values = self.values.clone();
        let class = class.clone();
        ObjectKey { class, values }
    }

    /// The key as a command by a pattern; `None` when the pattern needs other fields.
    pub fn spelled_by(&self, pattern: &Pattern) -> Option<String> {
        let slots = self.values.iter().cloned().map(Some).collect();
        spell(pattern, &Instance::new(self.class.clone(), slots))
    }

    /// The interruption of traffic when the object changes or is created again, see [`crate::ClassDef::interrupts`].
    pub fn interruption(&self) -> String {
        let fields = self.class.keys().iter().zip(self.values.iter());
        fields.fold(
            self.class.def().interrupts.to_owned(),
            |text, (field, value)| text.replace(&format!("<{}>", field.name), &value.to_string()),
        )
    }

    /// The slots of an object with this key and some other values, by their indices.
    pub fn slots_with(
        &self,
        given: impl IntoIterator<Item = (usize, Value)>,
    ) -> Vec<Option<Value>> {
        let mut slots: Vec<Option<Value>> = self.values.iter().cloned().map(Some).collect();
        slots.resize(self.class.fields().len(), None);
        for (at, value) in given {
            slots[at] = Some(value);
        }
        slots
    }

    /// The command `default CLASS KEY...`, which every class has.
    pub fn default_command(&self) -> String {
        let mut words = vec!["default".to_owned(), self.class.name().replace('_', "-")];
        let mut named = Vec::new();
        for (field, value) in self.class.keys().iter().zip(self.values.iter()) {
            match &field.default {
                Some(default) if default == value => {}
                Some(_) => named.extend([field.dashed(), value.word()]),
                None => words.push(value.word()),
            }
        }
        words.extend(named);
        words.join(" ")
    }

    /// The command that removes the object.
    pub fn unset_command(&self) -> String {
        let patterns = self.class.patterns(Effect::Unset).iter();
        let patterns = patterns.chain(self.class.patterns(Effect::Take));
        let spelled = patterns.filter_map(|p| self.spelled_by(p)).next();
        spelled.unwrap_or_else(|| self.default_command())
    }
}

impl Display for ObjectKey {
    /// Key values with a default are written with their names, and omitted when they have the default.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.class.noun())?;
        let mut fields = self.class.keys().iter().zip(self.values.iter());
        fields.try_for_each(|(field, value)| match &field.default {
            None => write!(f, " {value}"),
            Some(default) if default == value => Ok(()),
            Some(_) => write!(f, " {} {value}", field.dashed()),
        })
    }
}

impl crate::FieldDef {
    /// A sample value: the example, or another value; for a reference, `owner`.
    fn sample(&self, owner: &str) -> Option<Value> {
        match self.reference {
            _ if !self.example.is_empty() => self.kind.read(self.example).ok(),
            Some(_) => self.kind.read(owner).ok(),
            None => self.kind.samples().into_iter().next(),
        }
    }
}

impl crate::FieldDef {
    /// Renames an object of `class` in a value of the field.
    fn renamed(&self, value: &Value, class: &str, from: &str, to: &str) -> Value {
        let refers = self.reference.is_some_and(|it| it.class == class);
        match (value, self.kind.table()) {
            (Value::Text(text), Some(table)) => Value::text(table.renamed(text, class, from, to)),
            (Value::Text(text), None) if refers && &**text == from => Value::text(to),
            (Value::List(all), table) if refers || table.is_some() => {
                let rename = |one| self.renamed(one, class, from, to);
                Value::List(all.iter().map(rename).collect())
            }
            _ => value.clone(),
        }
    }
}

impl Instance {
    pub(crate) fn new(class: Class, slots: Vec<Option<Value>>) -> Instance {
        let slots = slots.into();
        Instance { class, slots }
    }

    /// An object with sample values; references are to `owner`.
    pub fn sample(class: &Class, owner: &str) -> Option<Instance> {
        let sample = |field: &crate::FieldDef| field.sample(owner);
        class
            .instance(class.fields().iter().map(sample).collect())
            .ok()
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The object with other values of all fields, without a check.
    pub fn with_slots(&self, slots: Vec<Option<Value>>) -> Instance {
        Instance::new(self.class.clone(), slots)
    }

    /// The values of all fields in order.
    pub(crate) fn into_slots(self) -> Vec<Option<Value>> {
        self.slots.to_vec()
    }

    /// The object with another value of a field, without a check.
    pub(crate) fn with(&self, at: usize, value: Option<Value>) -> Instance {
        let mut slots = self.slots.to_vec();
        if let Some(slot) = slots.get_mut(at) {
            *slot = value;
        }
        Instance::new(self.class.clone(), slots)
    }

    /// The object with another value of the first field of its key.
    pub fn named(&self, name: &str) -> Instance {
        self.with(0, Some(Value::text(name)))
    }

    /// The first key value, if it is a text: the name of an interface.
    pub fn name(&self) -> &str {
        self.slot(0).and_then(Value::as_text).unwrap_or_default()
    }

    /// The object without the fields that are only part of the request, see [`crate::FieldDef::request`].
    pub fn kept(&self) -> Instance {
        let fields = self.class.fields().iter().zip(self.slots.iter());
        let kept = fields.map(|(field, slot)| match field.request {
            true => field.default.clone(),
            false => slot.clone(),
        });
        let kept = self.class.instance(kept.collect());
        kept.unwrap_or_else(|_| self.clone())
    }

    /// The object with every secret replaced by a text.
    pub fn hiding(&self, text: &str) -> Instance {
        let fields = self.class.fields().iter().enumerate();
        let secret = fields.filter(|(at, field)| field.secret && self.slot(*at).is_some());
        secret.fold(self.clone(), |it, (at, _)| {
            it.with(at, Some(Value::text(text)))
        })
    }

    /// The value of a field.
    pub fn slot(&self, at: usize) -> Option<&Value> {
        self.slots.get(at).and_then(Option::as_ref)
    }

    /// The key field that makes the object a built-in one.
    pub(crate) fn built_in(&self) -> Option<&crate::FieldDef> {
        let mut fields = self.class.keys().iter().zip(self.slots.iter());
        let found =
            fields.find(|(field, slot)| field.built_in.is_some() && field.built_in == **slot);
        found.map(|(field, _)| field)
    }

    /// The values of all fields in order.
    pub fn slots(&self) -> &[Option<Value>] {
        &self.slots
    }

    /// The value of a field, as its Rust type.
    pub fn field<T: FieldType>(&self, at: usize) -> Option<T> {
        T::from_slot(self.slot(at))
    }

    /// The key.
    pub fn key(&self) -> ObjectKey {
        let keys = self.class.keys().len();
        let values = self.slots.iter().take(keys).flatten().cloned().collect();
        ObjectKey::new(self.class.clone(), values)
    }

    /// Whether a field differs from its default. For a key, and for fields that are not stored, a derived value counts as the
    /// default.
    pub fn is_set(&self, at: usize) -> bool {
        let Some(field) = self.class.fields().get(at) else {
            return false;
        };
        match field.derived {
            Some(derived) if field.key || field.request => {
                self.slot(at) != derived(&self.slots).as_ref()
            }
            _ => self.slot(at) != field.default.as_ref(),
        }
    }

    /// Whether all fields besides the key have their defaults.
    pub fn is_usual(&self) -> bool {
        let keys = self.class.keys().len();
        (keys..self.class.fields().len()).all(|at| !self.is_set(at))
    }

    /// The object with this key and all defaults; `None` when a field besides the key has no default.
    pub fn usual(key: &ObjectKey) -> Option<Instance> {
        let slots = key.values.iter().cloned().map(Some).collect();
        key.class.instance(slots).ok()
    }

    /// Calls `tell` with class, name and strength of every reference to another object.
    pub fn references(&self, tell: &mut dyn FnMut(&'static str, &Value, Strength)) {
        for (at, field) in self.class.fields().iter().enumerate() {
            if let (Some(reference), Some(value)) = (field.reference, self.slot(at)) {
                for element in value.elements() {
                    tell(reference.class, element, reference.strength);
                }
            }
            if let (Some(table), Some(value)) = (field.kind.table(), self.slot(at)) {
                let texts = value.elements().iter().filter_map(Value::as_text);
                for (class, named) in texts.flat_map(|text| table.references(text)) {
                    tell(class, &named, Strength::Needs);
                }
            }
        }
        if let Some(by) = self.class.def().brought {
            tell(by.class, &Value::text(by.name), Strength::Needs);
        }
        if let Some(more) = self.class.def().references {
            more(self, &mut |reference, value| {
                tell(reference.class, &value, reference.strength);
            });
        }
    }

    /// Whether the object is a part of the object of `class` with this name.
    pub fn is_part_of(&self, class: &str, name: &str) -> bool {
        let mut found = false;
        self.references(&mut |of, value, strength| {
            let is_it = of == class && value.as_text() == Some(name);
            found |= is_it && strength == Strength::PartOf;
        });
        found
    }

    /// Whether a field refers to the object of `class` with this name.
    pub fn refers_to(&self, class: &str, name: &str) -> bool {
        let mut found = false;
        self.references(&mut |of, value, _| found |= of == class && value.as_text() == Some(name));
        found
    }

    /// The object without lost references, see [`Strength::Loses`]; `goes` returns whether the object with a class and name is
    /// deleted. `None` when the definition refuses the result.
    pub fn losing(&self, goes: &dyn Fn(&'static str, &Value) -> bool) -> Option<Instance> {
        let fields = self.class.fields().iter().zip(self.slots.iter());
        let left = |(field, slot): (&crate::FieldDef, &Option<Value>)| match (field.reference, slot)
        {
            (Some(reference), Some(Value::List(all))) if reference.strength == Strength::Loses => {
                let stays = all.iter().filter(|name| !goes(reference.class, name));
                Some(Value::List(stays.cloned().collect()))
            }
            (_, slot) => slot.clone(),
        };
        self.class.instance(fields.map(left).collect()).ok()
    }

    /// The IP version of the object: that of its field `family`, else of its first address or prefix.
    pub fn ip_version(&self) -> Option<u8> {
        let texts = || {
            let fields = self.class.fields().iter().zip(self.slots.iter());
            fields.filter_map(|(field, slot)| Some((field, slot.as_ref()?.as_text()?)))
        };
        let family = texts().find(|(field, _)| field.name == "family");
        match family.map(|(_, text)| text) {
            Some("ip4") => Some(4),
            Some("ip6") => Some(6),
            Some(_) => None,
            None => texts().find_map(|(field, text)| field.kind.ip_version(text)),
        }
    }

    /// Renames an object of `class` in every reference.
    pub fn renamed(&self, class: &str, from: &str, to: &str) -> Instance {
        let fields = self.class.fields().iter();
        let rename = |(field, slot): (&crate::FieldDef, &Option<Value>)| {
            let value = field.renamed(slot.as_ref()?, class, from, to);
            // A set has sorted values. A duplicate name is kept: the new name is in the set already.
            Some(field.normal(value.clone()).unwrap_or(value))
        };
        let slots = fields.zip(self.slots.iter()).map(rename).collect();
        Instance::new(self.class.clone(), slots)
    }

    /// The fields besides the key that differ from their defaults, for tables of `show`.
    pub fn summary(&self) -> String {
        let fields = self.class.fields().iter().enumerate();
        let set = fields.filter(|(at, field)| !field.key && self.is_set(*at));
        let texts: Vec<String> = set
            .filter_map(|(at, field)| Some(format!("{} {}", field.dashed(), self.slot(at)?)))
            .collect();
        match texts.is_empty() {
            true => "defaults".to_owned(),
            false => texts.join(", "),
        }
    }

    /// The command with this effect, by the first pattern that can express the whole object.
    pub(crate) fn spelled(&self, effect: Effect) -> Option<String> {
        let mut patterns = self.class.patterns(effect).iter();
        patterns.find_map(|pattern| spell(pattern, self))
    }

    /// The command that removes exactly this object, by the first pattern that can express it.
    pub fn unset_command(&self) -> String {
        let spelled = self.spelled(Effect::Unset);
        spelled.unwrap_or_else(|| self.key().unset_command())
    }

    /// The command that merges this object into the existing one, by the first pattern that can express it.
    pub fn add_command(&self) -> String {
        let spelled = self.spelled(Effect::Add);
        spelled.unwrap_or_else(|| format!("add to {}: {}", self.key(), self.summary()))
    }

    /// The command that creates this object, by the first pattern that can express it.
    pub fn set_command(&self) -> String {
        let spelled = self.spelled(Effect::Set);
        spelled.unwrap_or_else(|| format!("set {}", self.key()))
    }
}
