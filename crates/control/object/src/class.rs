//! Definitions of classes.

use crate::field::FieldDef;
use crate::instance::{Instance, ObjectKey};
use crate::pattern::Pattern;
use crate::place::{Brought, Place, Reference, Start, Strength};
use crate::value::Value;
use crate::{DefinitionError, FieldError};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Checks rules between the fields of an object. Returns the normal form of the object if it differs.
pub type Check = fn(&Instance) -> Result<Option<Instance>, FieldError>;

/// Registers the classes that an object brings, before other objects of the same configuration are read.
pub type Brings = fn(&Instance) -> Result<(), String>;

/// Reports references that are not the value of a field, but follow from fields.
pub type References = fn(&Instance, &mut dyn FnMut(Reference, Value));

/// The definition of a class.
#[derive(Clone, Default)]
pub struct ClassDef {
    /// Name of the class, snake_case.
    pub name: &'static str,
    /// Description of the objects: the text for operators.
    pub doc: &'static str,
    /// The fields; those of the key come first.
    pub fields: Vec<FieldDef>,
    /// Position in the file.
    pub file: Place,
    /// Commands, each with its effect on an object.
    pub commands: Vec<(Effect, &'static str)>,
    /// A complete command.
    pub example: &'static str,
    /// Rules between fields.
    pub check: Option<Check>,
    /// References that follow from fields.
    pub references: Option<References>,
    /// The group of classes of which an interface has at most one object; empty: no group.
    pub one_of: &'static str,
    /// A changed object is removed and created again: two objects may exchange values that must be unique.
    pub recreate: bool,
    /// Classes whose objects are created before an object of this class and removed after it, such as those named in its texts.
    /// When such an object is a setting of an interface to which the object refers, and changes, the object is removed before
    /// the change and created again after it.
    pub after: Vec<&'static str>,
    /// The only object is read when the daemon starts, and does not change while it runs: it is in the file and in commits, and
    /// no command or request concerns it. It has a separate table in the file, and every field is optional.
    pub startup: bool,
    /// The object depends on the machine: a check of a file without the machine omits these objects.
    pub machine: bool,
    /// Objects are created after everything else, such as routes and interfaces that are up, and removed before it. They are at
    /// most parts of an interface, which then is their key, and no object refers to them. Those that are parts of interfaces
    /// come before the others.
    pub last: bool,
    /// The creation order of the objects with the same first key value has a meaning, and is kept: to move an object, it is
    /// removed and created again behind the others. Objects have no fields besides the key.
    pub ordered: bool,
    /// The objects with the same first key value are removed together, because the effect of one cannot be undone alone: when
    /// one of them is removed or changes, all are removed, and those that stay are created again in their order. On removal the
    /// owner gets a key that has only this value. An object that is created again without a change is carried out again, and
    /// moves behind the others. These objects are created after all other settings.
    pub together: bool,
    /// An object is more than a setting of its interface, such as a device: it is removed by a separate step before the
    /// interface, and the removal of an object that does not exist is refused.
    pub separate: bool,
    /// An object is created once: a command that creates an existing object is refused.
    pub once: bool,
    /// The interruption of traffic when an object is created again, or, for classes whose objects change in place, when it
    /// changes; `<field>` is replaced by the value of a key field.
    pub interrupts: &'static str,
    /// The name of the request for objects of the class in earlier versions, then `old=new` for each renamed field, `old=` for
    /// each dropped field: commits of these versions contain such requests.
    pub formerly: &'static str,
    /// Converts a request of an earlier version to the current one, in JSON, where `formerly` does not suffice. The arguments
    /// are name and content of the request; the result is `None` for any other request.
    pub upgrade: Option<fn(&str, &Json) -> Option<Json>>,
    /// Very many objects are expected: they are stored compactly, and carried out many at a time. The first key field has a
    /// packed form, and keys that differ only in it form a group.
    pub bulk: bool,
    /// Returns the normal form of an object; `None` if the object is in normal form.
    pub normal: Option<fn(&Instance) -> Option<Instance>>,
    /// Objects that are created again when objects of another class, which are removed together, are: `class.field` is that
    /// class and the field that both have; `key=value` selects the objects.
    pub removed_with: &'static str,
    /// The name of the bulk request in earlier versions, then `name=` for each dropped field. The sets of values in it are
    /// upgraded under its name, see [`ClassDef::upgrade`].
    pub formerly_bulk: &'static str,
    /// The type of interface that each object is, by its name in the file; empty: objects are not interfaces. The only key is
    /// the name of the interface. An interface is created and deleted by separate requests, together with its initial settings.
    pub interface: &'static str,
    /// For a type of interface: a key of the file that starts a verb once the interface exists.
    pub starts: Option<Start>,
    /// Purposes of groups of commands: the first words of the commands of each group, and a text.
    pub groups: Vec<(&'static str, &'static str)>,
    /// First words of commands of other routers, each with a text that names the equivalent command.
    pub instead: Vec<(&'static str, &'static str)>,
    /// Registers the classes that an object of this class brings.
    pub brings: Option<Brings>,
    /// The object that brings the class: objects of the class need it, and are removed with it.
    pub brought: Option<Brought>,
}

impl ClassDef {
    /// Whether the key of an object is exactly the object of a class to which it belongs.
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

    /// Whether a change in place of an object interrupts traffic. An object that is created once has no values that could
    /// change.
    pub fn interrupts_in_place(&self) -> bool {
        !self.interrupts.is_empty() && !self.recreate && !self.once
    }
}

/// The effect of a command on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Merges the object into the existing one, see [`FieldDef::joined`].
    Add,
    /// Creates or changes the object.
    Set,
    /// Changes fields of an existing object, or, without its key, of all objects of the class.
    Change,
    /// Removes items from the object's lists, or the object if the command names no items.
    Take,
    /// Removes the object.
    Unset,
    /// Removes the object, or the object with its key in another class of its group.
    UnsetAny,
}

impl Effect {
    /// All effects.
    pub const ALL: [Effect; 6] = [
        Effect::Add,
        Effect::Set,
        Effect::Change,
        Effect::Take,
        Effect::Unset,
        Effect::UnsetAny,
    ];
}

struct Inner {
    def: ClassDef,
    rank: u32,
    reaches: BTreeSet<&'static str>,
    /// The patterns of the commands, by effect.
    patterns: [Vec<Pattern>; Effect::ALL.len()],
}

/// A registered class. Cheap to clone; its objects keep it alive after it was unregistered.
#[derive(Clone)]
pub struct Class(Arc<Inner>);

impl Class {
    pub(crate) fn new(
        def: ClassDef,
        rank: u32,
        reaches: BTreeSet<&'static str>,
    ) -> Result<Class, DefinitionError> {
        let mut patterns = [const { Vec::new() }; Effect::ALL.len()];
        for (effect, text) in &def.commands {
            let read = Pattern::read(text, &def.fields);
            let read = read.map_err(|why| DefinitionError::new(def.name, why));
            patterns[*effect as usize].push(read?);
        }
        let inner = Inner {
            def,
            rank,
            reaches,
            patterns,
        };
        Ok(Class(Arc::new(inner)))
    }

    /// A class without registration, to read objects by.
    pub fn alone(def: ClassDef) -> Result<Class, DefinitionError> {
        Class::new(def, 0, BTreeSet::new())
    }

    /// Whether both values are the same registered class, and not two classes that had the same name at different times.
    pub fn is(&self, other: &Class) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Name of the class.
    pub fn name(&self) -> &'static str {
        self.0.def.name
    }

    /// Whether the objects of the class are interfaces.
    pub fn is_interface(&self) -> bool {
        !self.0.def.interface.is_empty()
    }

    /// Whether a command that creates an interface takes a setting of this class.
    pub fn is_created_with(&self, setting: &str) -> bool {
        self.patterns(Effect::Set)
            .iter()
            .any(|p| p.names_setting(setting))
    }

    /// The name with blanks, as used in sentences.
    pub fn noun(&self) -> String {
        self.0.def.name.replace('_', " ")
    }

    /// The first words of the class's text: `LCP tap` of `LCP tap: an interface of ...`.
    pub fn subject(&self) -> &'static str {
        let doc = self.0.def.doc.trim_end_matches('.');
        let ends = [": ", ". ", " ("].into_iter();
        let end = ends.filter_map(|end| doc.find(end)).min();
        &doc[..end.unwrap_or(doc.len())]
    }

    /// The description of the objects.
    pub fn doc(&self) -> &'static str {
        self.0.def.doc
    }

    /// The definition.
    pub fn def(&self) -> &ClassDef {
        &self.0.def
    }

    /// Rank by dependence: a class to which others refer has a smaller rank, so it is created first and removed last.
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// The classes to which its objects refer, directly or through other objects.
    pub(crate) fn reached(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.reaches.iter().copied()
    }

    /// Whether its objects refer to objects of a class, directly or through other objects.
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

    /// The fields that are not part of the key.
    pub fn values(&self) -> &[FieldDef] {
        &self.fields()[self.keys().len()..]
    }

    /// A field and its index, by its name in any interface.
    pub fn field(&self, name: &str) -> Option<(usize, &FieldDef)> {
        let snake = |b| if b == b'-' { b'_' } else { b };
        let is = |f: &FieldDef| f.name.bytes().eq(name.bytes().map(snake));
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

    /// The class to whose objects its objects belong, if the first key field defines that.
    pub fn part_of(&self) -> Option<&'static str> {
        let reference = self.keys().first()?.reference?;
        (reference.strength == Strength::PartOf).then_some(reference.class)
    }

    /// Whether a field other than the first key field makes an object a part of an object of `class`: such objects can be at
    /// any position among those of the class.
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

    /// Whether exactly one field refers to objects of `class`.
    pub fn names_once(&self, class: &str) -> bool {
        let names = |field: &&FieldDef| field.reference.is_some_and(|r| r.class == class);
        self.fields().iter().filter(names).count() == 1 && self.0.def.references.is_none()
    }

    /// Whether a list of its objects loses deleted objects of another class, see [`Strength::Loses`].
    pub fn loses(&self) -> bool {
        let loses = |r: Reference| r.strength == Strength::Loses;
        self.fields().iter().any(|f| f.reference.is_some_and(loses))
    }

    /// Whether its objects are separate things, and not settings of other objects: they have a table in the file and fields
    /// besides the key, or the definition says so. An object that has only a key is a switch.
    pub fn is_thing(&self) -> bool {
        let listed = matches!(self.0.def.file, Place::List(_) | Place::Map(_));
        self.0.def.separate || listed && !self.values().is_empty()
    }

    /// The patterns of the commands with this effect.
    pub fn patterns(&self, effect: Effect) -> &[Pattern] {
        &self.0.patterns[effect as usize]
    }

    /// Whether every object always has a value, because no command removes it.
    pub fn is_always(&self) -> bool {
        [Effect::Unset, Effect::Take]
            .into_iter()
            .all(|effect| self.patterns(effect).is_empty())
    }

    /// Whether objects can be merged into existing ones.
    pub fn joins(&self) -> bool {
        self.fields().iter().any(|field| field.joined)
    }

    /// The class with whose objects its objects are removed, the field that both have, and the field and value that select the
    /// objects.
    pub fn removed_with(&self) -> Option<[&'static str; 4]> {
        let (other, given) = self.0.def.removed_with.split_once(' ')?;
        let ((class, field), (key, value)) = (other.split_once('.')?, given.split_once('=')?);
        Some([class, field, key, value])
    }

    /// Whether a text could be read as a word of a command of the class, which may be abbreviated. The words that every command
    /// has are at fixed positions.
    pub(crate) fn has_word(&self, text: &str) -> bool {
        let set = self.patterns(Effect::Set).iter();
        let fixed = set.flat_map(Pattern::fixed_words).collect();
        let all = [Effect::Set, Effect::Unset, Effect::Add, Effect::Take];
        let mut all = all.into_iter().flat_map(|effect| self.patterns(effect));
        all.any(|p| p.has_word(text, &fixed))
    }

    /// Whether both classes are in one group, of which an interface has at most one object.
    pub fn excludes(&self, other: &Class) -> bool {
        let group = self.def().one_of;
        self != other && !group.is_empty() && group == other.def().one_of
    }

    /// An object from the values of its fields, in order; missing values get their defaults.
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

    /// Whether objects are distinguished by their IP version.
    pub fn has_versions(&self) -> bool {
        self.keys().iter().any(FieldDef::is_version)
    }

    /// The key of the object that a value of another object names. Objects with an IP version are referred to by objects of the
    /// same version. `None` when a value alone does not identify an object of the class.
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

    /// Computes the missing values of the fields at these indices from the other fields, in order.
    fn derive(&self, mut instance: Instance, at: &[usize]) -> Result<Instance, FieldError> {
        for at in at {
            let field = &self.fields()[*at];
            // Until the value is computed, an empty text is the placeholder.
            let empty = (!field.optional).then(|| Value::text(""));
            let value = field
                .derived
                .and_then(|it| it(instance.with(*at, empty).slots()));
            instance = instance.with(*at, field.checked(value)?);
        }
        Ok(instance)
    }

    /// The key of an object, or of all objects with the same first key value when their class removes them
    /// [`together`](ClassDef::together) and no other key value is given.
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

    /// The key of an object, from the values of the key fields in order; missing values at the end get their defaults.
    pub fn key(&self, values: Vec<Value>) -> Result<ObjectKey, FieldError> {
        self.key_of_slots(values.into_iter().map(Some))
    }

    /// Like [`Class::key`], but any value may be missing.
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
        // Classes with equal names are equal, whatever their ranks.
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
