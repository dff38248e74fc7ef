//! Definitions of classes.

use crate::instance::{Instance, ObjectKey};
use crate::kind::{FieldType, Kind};
use crate::pattern::Pattern;
use crate::place::{Place, Reference, Start, Strength};
use crate::table::name_of;
use crate::value::Value;
use crate::{DefinitionError, FieldError};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One field of a class.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// Its name in the file and in JSON, snake_case; on the command line with dashes.
    pub name: &'static str,
    /// What it means: the operator's text.
    pub doc: &'static str,
    /// Whether it is part of the key.
    pub key: bool,
    /// What it takes.
    pub kind: Kind,
    /// Whether it may have no value.
    pub optional: bool,
    /// Its default.
    pub default: Option<Value>,
    /// Unit of a number, or empty.
    pub unit: &'static str,
    /// An example, or empty.
    pub example: &'static str,
    /// The class of the objects that it names.
    pub reference: Option<Reference>,
    /// Of a key: the value of the object that is always there.
    pub built_in: Option<Value>,
    /// Of a key that takes one of several choices: an object in the file that does not give the field is there once for each
    /// of them.
    pub each: bool,
    /// Of a list: the order of its values says nothing, and none is there twice.
    pub set: bool,
    /// Of a list: the fewest values that it has.
    pub least: usize,
    /// What follows from the other fields where no value is given.
    pub derived: Option<Derived>,
    /// Part of the request that creates an object, not of the object: it is in no file, and is not kept.
    pub request: bool,
    /// Not shown to people.
    pub secret: bool,
    /// The value of an object whose interface is in the file without a key for it.
    pub in_file: Option<Value>,
    /// Of a parameter of a query: its value in a command that does not name it.
    pub typed: Option<Value>,
    /// Of a list: an object that is added joins its items to those of the object that is there.
    pub joined: bool,
    /// Number of consecutive keys that a request means, the first one included: part of requests and the file, not of the
    /// object.
    pub repeats: bool,
    /// Of a list of tables: in the file, the keys of one table may be beside those of the object.
    pub inline: bool,
    /// Of a key: objects with this value are not a part of a saved configuration, and no configuration replaces them.
    pub unsaved: Option<Value>,
}

/// The value of a field that follows from the others.
pub type Derived = fn(&Instance) -> Option<Value>;

impl FieldDef {
    /// A field of a type.
    pub fn new<T: FieldType>(name: &'static str, doc: &'static str, key: bool) -> FieldDef {
        FieldDef {
            name,
            doc,
            key,
            kind: T::kind(),
            optional: T::OPTIONAL,
            default: T::usual().filter(|_| !key),
            unit: "",
            example: "",
            reference: None,
            built_in: None,
            each: false,
            set: T::SET,
            least: 0,
            derived: None,
            request: false,
            secret: false,
            in_file: None,
            typed: None,
            joined: false,
            repeats: false,
            inline: false,
            unsaved: None,
        }
    }

    /// The fewest values of a list: an object must give them.
    pub fn at_least(&mut self, least: usize) {
        self.least = least;
        self.default = None;
    }

    /// The normal form of a checked list.
    pub(crate) fn normal(&self, value: Value) -> Result<Value, FieldError> {
        let Value::List(all) = &value else {
            return Ok(value);
        };
        if all.len() < self.least {
            let why = format!("must have at least {}: {}", self.least, self.help());
            return Err(self.error(why));
        }
        if !self.set {
            return Ok(value);
        }
        let mut all = all.to_vec();
        all.sort();
        match all.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(self.error(format!("must not have {} twice", two[0]))),
            None => Ok(Value::List(all.into())),
        }
    }

    /// Bounds of a number, or of the numbers in a list. A negative bound makes the range empty, and the class is refused.
    pub fn limit<N: TryInto<u64>>(&mut self, (low, high): (N, N)) {
        let low = low.try_into().unwrap_or(u64::MAX);
        let high = high.try_into().unwrap_or(0);
        let kind = match &mut self.kind {
            Kind::List(inner) => inner,
            other => other,
        };
        if let Kind::Number { min, max, .. } = kind {
            (*min, *max) = (low, high);
        }
    }

    /// A number that may be written with a unit: 250k, 1.5M, 1e6.
    pub fn scale(&mut self) {
        if let Kind::Number { scaled, .. } = &mut self.kind {
            *scaled = true;
        }
    }

    /// The name on the command line.
    pub fn dashed(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Whether it is the IP version that distinguishes objects of a class.
    pub(crate) fn is_version(&self) -> bool {
        self.key && self.name == "family"
    }

    /// Whether every spelling of an object has the value: that of a key without a default.
    pub fn is_essential(&self) -> bool {
        self.key && self.default.is_none() && self.derived.is_none()
    }

    /// Whether an object must give a value.
    pub fn required(&self) -> bool {
        !self.optional && self.default.is_none() && self.derived.is_none()
    }

    /// What the field takes: of a reference the name of an object, of a text the field's own example.
    fn takes(&self) -> String {
        match (&self.reference, &self.kind) {
            (Some(Reference { class, .. }), Kind::Text(_)) => name_of(class),
            (Some(Reference { class, .. }), Kind::List(_)) => {
                format!("a list, each {}", name_of(class))
            }
            (_, Kind::Text(text)) if !self.example.is_empty() => {
                format!("{} such as {}", text.noun, self.example)
            }
            (_, kind) => kind.describe(),
        }
    }

    /// The classes of the objects that it names.
    pub(crate) fn named_classes(&self) -> Vec<&'static str> {
        let table = self.kind.table().map(|table| (table.fields)());
        let inner = table.into_iter().flatten().filter_map(|field| field.needs);
        inner.chain(self.reference.map(|r| r.class)).collect()
    }

    /// Meaning, what the field takes, and its default: one line of help.
    pub fn help(&self) -> String {
        let doc = self.doc.trim_end_matches('.');
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        let takes = self.takes();
        match self.default.as_ref().or(self.typed.as_ref()) {
            Some(default) if default.elements().is_empty() || default.as_text() == Some("") => {
                format!("{doc}: {takes}")
            }
            Some(default) => format!("{doc}: {takes}{unit} (default {default})"),
            None if self.each => format!("{doc}: {takes} (all of them)"),
            None => format!("{doc}: {takes}{unit}"),
        }
    }

    /// The same for a file, which has true and false where a command has on and off.
    pub fn file_help(&self) -> String {
        if let Some(value) = &self.in_file {
            let mut shown = self.clone();
            (shown.default, shown.in_file) = (Some(value.clone()), None);
            return shown.file_help();
        }
        let doc = self.doc.trim_end_matches('.');
        if let Some(table) = self.kind.table() {
            let names = table.names();
            return match self.kind {
                Kind::List(_) => format!("{doc}: a list, each a table with {names}"),
                _ => format!("{doc}: a table with {names}"),
            };
        }
        match (&self.kind, &self.default) {
            (Kind::Bool, Some(Value::Bool(default))) => {
                format!("{doc}: true or false (default {default})")
            }
            (Kind::Bool, _) => format!("{doc}: true or false"),
            _ => self.help(),
        }
    }
}

/// Rules between the fields of an object. Returns the normal form of the object where it is another one.
pub type Check = fn(&Instance) -> Result<Option<Instance>, FieldError>;

/// Tells references that no field has as its value, but that follow from fields.
pub type References = fn(&Instance, &mut dyn FnMut(Reference, Value));

/// The definition of a class.
#[derive(Clone, Default)]
pub struct ClassDef {
    /// Its name, snake_case.
    pub name: &'static str,
    /// What its objects are: the operator's text.
    pub doc: &'static str,
    /// Its fields; those of the key come first.
    pub fields: Vec<FieldDef>,
    /// Its place in the file.
    pub file: Place,
    /// Commands that create or change an object.
    pub set: Vec<&'static str>,
    /// Commands that remove an object.
    pub unset: Vec<&'static str>,
    /// Commands that change fields of an object that is there, or without its key of all objects of the class.
    pub change: Vec<&'static str>,
    /// A whole command.
    pub example: &'static str,
    /// Rules between fields.
    pub check: Option<Check>,
    /// References that follow from fields.
    pub references: Option<References>,
    /// Commands that remove the object that has this key, of whichever class of the group.
    pub unset_any: Vec<&'static str>,
    /// The group of classes of which an interface has one object at most; empty = no group.
    pub one_of: &'static str,
    /// An object that changes is removed and created again: two objects may exchange values that only one of them can have.
    pub recreate: bool,
    /// Classes whose objects come first: they are created before and removed behind an object, such as those that its texts
    /// name. When one of them that is a setting of an interface to which the object refers changes, the object is removed
    /// before and created again behind.
    pub after: Vec<&'static str>,
    /// The only object is read when the daemon starts, and does not change while it runs: it is in the file and in commits, and
    /// no command or request is about it. It has a dedicated table in the file, and every field may be left out.
    pub startup: bool,
    /// The machine has a part in it: a check of a file without the machine leaves its objects out.
    pub machine: bool,
    /// Objects are created behind everything else, such as routes and interfaces that are up, and removed before it. They are
    /// parts of nothing but an interface, which is their key then, and nothing refers to them. Those that are parts of interfaces come
    /// before the others.
    pub last: bool,
    /// The order in which the objects with the same first value of the key were created says something, and is kept: to move
    /// one, it is removed and created again behind the others. Objects are keys alone.
    pub ordered: bool,
    /// The objects with the same first value of the key are removed together, because what one of them did cannot be undone
    /// alone: when one of them goes or changes, all are removed and those that stay are created again in their order. An owner
    /// gets a key that has this value alone when they are removed. An object that is created as it is there already is
    /// carried out again, and comes behind the others. They are created behind all other settings.
    pub together: bool,
    /// An object is more than a setting of the interface that it is a part of, such as a device: it is removed by a step of
    /// its own before the interface is, and the removal of one that is not there is refused.
    pub separate: bool,
    /// An object is created once: a command that creates one that is there is refused.
    pub once: bool,
    /// What traffic notices when an object is created again, or when it changes, of a class whose objects change in
    /// place; `<field>` is the value of a field of the key.
    pub interrupts: &'static str,
    /// The name of the request that earlier versions had for objects of the class, then `old=new` for each field that had
    /// another name, `old=` for one that is left out: commits that they wrote have such requests.
    pub formerly: &'static str,
    /// The request of today, in JSON, for one that earlier versions had about objects of the class: for what `formerly` cannot
    /// say. It gets the name of the request and what was in it, and returns none for any other request.
    pub upgrade: Option<fn(&str, &Json) -> Option<Json>>,
    /// There may be very many objects: they are kept in little memory, and carried out many at a time. The first field of the
    /// key has a packed form, and keys that differ in it alone are a group.
    pub bulk: bool,
    /// Commands that join an object to the one that is there, see [`FieldDef::joined`].
    pub add: Vec<&'static str>,
    /// Commands that take items from the lists of an object, or remove it when they name none.
    pub take: Vec<&'static str>,
    /// The normal form of an object; none where it is in its normal form.
    pub normal: Option<fn(&Instance) -> Option<Instance>>,
    /// Objects that are created again when objects of another class, which are removed together, are: `class.field` is that
    /// class and the field that both have, `key=value` the objects that this is about.
    pub removed_with: &'static str,
    /// The request that earlier versions had for many objects, then `name=` for each field that is left out. The sets of
    /// values in it are upgraded under its name, see [`ClassDef::upgrade`].
    pub formerly_bulk: &'static str,
    /// The kind of interface that each object is, as the file names it; empty = objects are no interfaces. The only key is
    /// the name of the interface. An interface is created and deleted by separate requests, with the settings that it has
    /// from the beginning.
    pub interface: &'static str,
    /// Of a kind of interfaces: a key of the file that starts a verb when the interface is there.
    pub starts: Option<Start>,
    /// Purposes of groups of commands: the words that the commands of each begin with, and a text.
    pub groups: Vec<(&'static str, &'static str)>,
    /// Beginnings of commands of other routers, each with a text that names the command to use here.
    pub instead: Vec<(&'static str, &'static str)>,
}

impl ClassDef {
    /// Whether the key of an object is the object of a class of which it is a part, and nothing else.
    pub(crate) fn is_part_alone(&self, class: &'static str) -> bool {
        let mut keys = self.fields.iter().take_while(|f| f.key);
        let part = Some(Reference::part_of(class));
        keys.next().is_some_and(|f| f.reference == part) && keys.next().is_none()
    }

    /// A class without fields.
    pub fn new(name: &'static str, doc: &'static str) -> ClassDef {
        ClassDef {
            name,
            doc,
            ..ClassDef::default()
        }
    }

    /// Whether traffic notices that an object changes, although it changes in place. One that is created once has nothing
    /// that could change.
    pub fn interrupts_in_place(&self) -> bool {
        !self.interrupts.is_empty() && !self.recreate && !self.once
    }
}

/// What a command does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Joins it to the one that is there.
    Add,
    /// Creates or changes it.
    Set,
    /// Changes fields of it, or of all objects of the class.
    Change,
    /// Takes items from its lists, or removes it.
    Take,
    /// Removes it.
    Unset,
    /// Removes it, or the object of its key in another class of its group.
    UnsetAny,
}

impl Effect {
    /// All of them.
    pub const ALL: [Effect; 6] = [
        Effect::Add,
        Effect::Set,
        Effect::Change,
        Effect::Take,
        Effect::Unset,
        Effect::UnsetAny,
    ];

    /// The commands of a definition that do it.
    fn texts(self, def: &ClassDef) -> &[&'static str] {
        match self {
            Effect::Add => &def.add,
            Effect::Set => &def.set,
            Effect::Change => &def.change,
            Effect::Take => &def.take,
            Effect::Unset => &def.unset,
            Effect::UnsetAny => &def.unset_any,
        }
    }
}

struct Inner {
    def: ClassDef,
    rank: u32,
    reaches: BTreeSet<&'static str>,
    /// The patterns of the commands, by what they do.
    patterns: [Vec<Pattern>; Effect::ALL.len()],
}

/// A registered class. Cheap to clone; its objects keep it alive when it is unregistered.
#[derive(Clone)]
pub struct Class(Arc<Inner>);

impl Class {
    pub(crate) fn new(
        def: ClassDef,
        rank: u32,
        reaches: BTreeSet<&'static str>,
    ) -> Result<Class, DefinitionError> {
        let mut patterns = [const { Vec::new() }; Effect::ALL.len()];
        for effect in Effect::ALL {
            for text in effect.texts(&def) {
                let read = Pattern::read(text, &def.fields);
                let read = read.map_err(|why| DefinitionError::new(def.name, why));
                patterns[effect as usize].push(read?);
            }
        }
        let inner = Inner {
            def,
            rank,
            reaches,
            patterns,
        };
        Ok(Class(Arc::new(inner)))
    }

    /// Whether both are one registered class, and not two that had one name one after the other.
    pub(crate) fn is(&self, other: &Class) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.0.def.name
    }

    /// Whether its objects are interfaces.
    pub fn is_interface(&self) -> bool {
        !self.0.def.interface.is_empty()
    }

    /// Whether a command that creates an interface takes a setting of this class.
    pub fn is_created_with(&self, setting: &str) -> bool {
        self.patterns(Effect::Set)
            .iter()
            .any(|p| p.names_setting(setting))
    }

    /// The name as sentences have it: with blanks.
    pub fn noun(&self) -> String {
        self.0.def.name.replace('_', " ")
    }

    /// What an object is, in the words at the beginning of its text: `LCP tap` of `LCP tap: an interface of ...`.
    pub fn subject(&self) -> &'static str {
        let doc = self.0.def.doc.trim_end_matches('.');
        let ends = [": ", ". ", " ("].into_iter();
        let end = ends.filter_map(|end| doc.find(end)).min();
        &doc[..end.unwrap_or(doc.len())]
    }

    /// What its objects are.
    pub fn doc(&self) -> &'static str {
        self.0.def.doc
    }

    /// The definition.
    pub fn def(&self) -> &ClassDef {
        &self.0.def
    }

    /// A class that others refer to has a smaller rank: it is created first and removed last.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// The classes to which its objects refer, directly or by other objects.
    pub(crate) fn reached(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.reaches.iter().copied()
    }

    /// Whether its objects refer to objects of a class, or to objects that do.
    pub fn reaches(&self, class: &str) -> bool {
        self.0.reaches.contains(class)
    }

    /// All fields.
    pub fn fields(&self) -> &[FieldDef] {
        &self.0.def.fields
    }

    /// The fields of the key.
    pub fn keys(&self) -> &[FieldDef] {
        let keys = self.fields().iter().take_while(|f| f.key).count();
        &self.fields()[..keys]
    }

    /// The fields behind the key.
    pub fn values(&self) -> &[FieldDef] {
        &self.fields()[self.keys().len()..]
    }

    /// A field and its place, by its name in any face.
    pub fn field(&self, name: &str) -> Option<(usize, &FieldDef)> {
        let is = |f: &FieldDef| {
            f.name.len() == name.len()
                && f.name
                    .bytes()
                    .zip(name.bytes())
                    .all(|(a, b)| a == b || (a == b'_' && b == b'-'))
        };
        self.fields().iter().enumerate().find(|(_, f)| is(f))
    }

    /// The values of all fields in order, from some of them by name.
    pub fn slots(&self, given: &[(&str, Value)]) -> Vec<Option<Value>> {
        let value = |field: &FieldDef| {
            let found = given.iter().find(|(name, _)| *name == field.name);
            found.map(|(_, value)| value.clone())
        };
        self.fields().iter().map(value).collect()
    }

    /// The class whose objects its own are parts of, when the first field of the key says so.
    pub fn part_of(&self) -> Option<&'static str> {
        let reference = self.keys().first()?.reference?;
        (reference.strength == Strength::PartOf).then_some(reference.class)
    }

    /// Whether another field than the first one of the key says that an object is a part of an object of `class`: such
    /// objects are anywhere among those of the class.
    pub fn has_parts_elsewhere(&self, class: &'static str) -> bool {
        let part = Some(Reference::part_of(class));
        self.fields()
            .iter()
            .enumerate()
            .any(|(at, field)| field.reference == part && !(field.key && at == 0))
    }

    /// Whether a field names objects of other classes.
    pub fn refers(&self) -> bool {
        self.fields().iter().any(|f| !f.named_classes().is_empty())
    }

    /// Whether one field alone refers to objects of `class`, and nothing else does.
    pub fn names_once(&self, class: &str) -> bool {
        let names = |field: &&FieldDef| field.reference.is_some_and(|r| r.class == class);
        self.fields().iter().filter(names).count() == 1 && self.0.def.references.is_none()
    }

    /// Whether a list of its objects loses objects of another class that go, see [`Strength::Loses`].
    pub fn loses(&self) -> bool {
        let loses = |r: Reference| r.strength == Strength::Loses;
        self.fields().iter().any(|f| f.reference.is_some_and(loses))
    }

    /// Whether its objects are things of their own, and no settings of other objects: they have a table in the file and
    /// values behind their keys, or the definition says so. An object that is a key alone is a switch.
    pub fn is_thing(&self) -> bool {
        let listed = matches!(self.0.def.file, Place::List(_) | Place::Map(_));
        self.0.def.separate || listed && !self.values().is_empty()
    }

    /// The patterns of the commands that do this with an object.
    pub fn patterns(&self, effect: Effect) -> &[Pattern] {
        &self.0.patterns[effect as usize]
    }

    /// Whether every object has a value always, because no command removes it.
    pub fn is_always(&self) -> bool {
        [Effect::Unset, Effect::Take]
            .into_iter()
            .all(|effect| self.patterns(effect).is_empty())
    }

    /// Whether objects can be joined to those that are there.
    pub fn joins(&self) -> bool {
        self.fields().iter().any(|field| field.joined)
    }

    /// The class with whose objects its own are removed, the field that both have, and the field and value of those that this is
    /// about.
    pub fn removed_with(&self) -> Option<[&'static str; 4]> {
        let (other, given) = self.0.def.removed_with.split_once(' ')?;
        let ((class, field), (key, value)) = (other.split_once('.')?, given.split_once('=')?);
        Some([class, field, key, value])
    }

    /// Whether a text could be read as a word of a command of the class, which may be shortened. The words that every
    /// command has are in places of their own.
    pub(crate) fn has_word(&self, text: &str) -> bool {
        let set = self.patterns(Effect::Set).iter();
        let fixed = set.flat_map(Pattern::fixed_words).collect();
        let all = [Effect::Set, Effect::Unset, Effect::Add, Effect::Take];
        let mut all = all.into_iter().flat_map(|effect| self.patterns(effect));
        all.any(|p| p.has_word(text, &fixed))
    }

    /// Whether both classes are in one group, of which an interface has one object at most.
    pub fn excludes(&self, other: &Class) -> bool {
        let group = self.def().one_of;
        self != other && !group.is_empty() && group == other.def().one_of
    }

    /// An object from the values of its fields, in order; what is missing gets its default.
    pub fn instance(&self, slots: Vec<Option<Value>>) -> Result<Instance, FieldError> {
        let mut filled = Vec::with_capacity(self.fields().len());
        let mut slots = slots.into_iter();
        let mut derived = Vec::new();
        for (at, field) in self.fields().iter().enumerate() {
            let given = slots.next().flatten();
            let value = match given {
                Some(Value::Text(none)) if none.is_empty() && field.derived.is_some() => None,
                Some(value) => match field.checked(Some(value))? {
                    Some(checked) => Some(field.normal(checked)?),
                    None => None,
                },
                None => field.default.clone(),
            };
            if value.is_none() && field.required() {
                return Err(field.missing());
            }
            if value.is_none() && field.derived.is_some() {
                derived.push(at);
            }
            filled.push(value);
        }
        let instance = self.derive(Instance::new(self.clone(), filled), &derived)?;
        if let Some(field) = instance.built_in() {
            return Err(field.error("must be another one: this object is built in"));
        }
        if let Some(check) = self.0.def.check {
            let normal = check(&instance)?;
            return Ok(normal.unwrap_or(instance));
        }
        Ok(instance.normal())
    }

    /// Whether its objects are distinguished by their IP version.
    pub fn has_versions(&self) -> bool {
        self.keys().iter().any(FieldDef::is_version)
    }

    /// The key of the object that a value of another object names. Objects that have an IP version are named by objects of
    /// the same version. None when a value alone does not name an object of the class.
    pub fn key_named(&self, value: &Value, version: Option<u8>) -> Option<ObjectKey> {
        let mut names = self.keys().iter().filter(|field| !field.is_version());
        if names.next().is_none() || names.next().is_some() {
            return None;
        }
        let slot = |field: &FieldDef| match (field.is_version(), version) {
            (false, _) => Some(value.clone()),
            (true, Some(4)) => Some(Value::text("ip4")),
            (true, Some(_)) => Some(Value::text("ip6")),
            (true, None) => None,
        };
        self.key_of_slots(self.keys().iter().map(slot)).ok()
    }

    /// Gives the fields at these places, which have no values, those that follow from the others, in order.
    fn derive(&self, mut instance: Instance, at: &[usize]) -> Result<Instance, FieldError> {
        for at in at {
            let field = &self.fields()[*at];
            // Until the value is known, an empty text is in its place.
            let empty = (!field.optional).then(|| Value::text(""));
            let value = field.derived.and_then(|it| it(&instance.with(*at, empty)));
            instance = instance.with(*at, field.checked(value)?);
        }
        Ok(instance)
    }

    /// The key of an object, or of all objects that have the same first value of the key when their class removes them
    /// [`together`](ClassDef::together) and no other value of the key is given.
    pub fn key_or_group(
        &self,
        slots: impl IntoIterator<Item = Option<Value>>,
    ) -> Result<ObjectKey, FieldError> {
        let slots: Vec<Option<Value>> = slots.into_iter().take(self.keys().len()).collect();
        let only_first = slots.iter().skip(1).all(Option::is_none);
        match self.keys().first() {
            Some(first) if self.0.def.together && only_first => {
                let value = first.value_of(slots.into_iter().next().flatten())?;
                Ok(ObjectKey::new(self.clone(), vec![value]))
            }
            _ => self.key_of_slots(slots),
        }
    }

    /// The key of an object, from the values of the key's fields in order; what is missing at the end gets its default.
    pub fn key(&self, values: Vec<Value>) -> Result<ObjectKey, FieldError> {
        self.key_of_slots(values.into_iter().map(Some))
    }

    /// The same, where any value may be missing.
    pub fn key_of_slots(
        &self,
        slots: impl IntoIterator<Item = Option<Value>>,
    ) -> Result<ObjectKey, FieldError> {
        let mut slots = slots.into_iter();
        let value = |field: &FieldDef| field.value_of(slots.next().flatten());
        let values = self.keys().iter().map(value).collect::<Result<_, _>>()?;
        Ok(ObjectKey::new(self.clone(), values))
    }
}

impl FieldDef {
    /// A value that is given for the field, checked.
    pub(crate) fn checked(&self, given: Option<Value>) -> Result<Option<Value>, FieldError> {
        let checked = given.map(|value| self.kind.check(&value)).transpose();
        checked.map_err(|why| self.error(why))
    }

    /// A value that is given for the field, checked, or the default. An error where there is neither.
    pub(crate) fn value_of(&self, given: Option<Value>) -> Result<Value, FieldError> {
        let value = self.checked(given)?;
        let value = value.or_else(|| self.default.clone());
        value.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> FieldError {
        self.error(format!("is missing: {}", self.help()))
    }

    /// An error of this field.
    pub fn error(&self, why: impl Into<String>) -> FieldError {
        FieldError {
            field: self.name,
            why: why.into(),
        }
    }
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Class) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.name() == other.name()
    }
}

impl Eq for Class {}

impl PartialOrd for Class {
    fn partial_cmp(&self, other: &Class) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Class {
    fn cmp(&self, other: &Class) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let name = self.name().cmp(other.name());
        // Equal names are equal classes, whatever their ranks.
        match name {
            Ordering::Equal => Ordering::Equal,
            _ => self.rank().cmp(&other.rank()).then(name),
        }
    }
}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
