//! The classes that exist now.
//!
//! There is one set of classes for the process, because text that names a class (a command, a file, JSON) is read in many
//! places. A reader takes the set as it is ([`classes`]) and keeps it as long as it likes; registering makes a new set.

use crate::class::{Class, ClassDef, FieldDef, Place, Reference, Strength};
use crate::kind::Kind;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, RwLock};

/// A definition that contradicts itself or another one. One sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("class {class}: {why}")]
pub struct DefinitionError {
    /// The class.
    pub class: String,
    /// What is wrong.
    pub why: String,
}

impl DefinitionError {
    pub(crate) fn new(class: &str, why: impl Into<String>) -> Self {
        DefinitionError {
            class: class.to_owned(),
            why: why.into(),
        }
    }
}

/// Classes of objects that are not defined here yet: their names may be referred to.
const ELSEWHERE: [&str; 5] = ["interface", "node", "table", "arc", "arc_feature"];

/// Names that paths of the HTTP interface have: `/v1/NAME` is theirs.
const RESERVED: [&str; 7] = [
    "config",
    "events",
    "log",
    "requests",
    "show",
    "state",
    "transactions",
];

/// A set of classes.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    all: BTreeMap<&'static str, Class>,
    generation: u64,
}

impl Classes {
    /// A class by its name.
    pub fn get(&self, name: &str) -> Option<&Class> {
        self.all.get(name)
    }

    /// All classes by name.
    pub fn iter(&self) -> impl Iterator<Item = &Class> {
        self.all.values()
    }

    /// Differs between any two sets: what is made from a set can be kept as long as this is the same.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Classes with a field that says that an object is a part of an object of `class`.
    pub fn parts_of(&self, class: &'static str) -> impl Iterator<Item = &Class> {
        let part = Some(Reference::part_of(class));
        self.iter()
            .filter(move |c| c.fields().iter().any(|f| f.reference == part))
    }

    /// The classes that are in one group with a class, without the class itself.
    pub fn group_of<'c>(&'c self, class: &'c Class) -> impl Iterator<Item = &'c Class> {
        self.iter().filter(|other| class.excludes(other))
    }

    fn add(&mut self, def: ClassDef) -> Result<Class, DefinitionError> {
        let rank = self.check(&def)?;
        let class = Class::new(def, rank)?;
        self.all.insert(class.name(), class.clone());
        Ok(class)
    }

    /// The rank of a class as far as the classes that come first decide it.
    fn rank_behind(&self, def: &ClassDef) -> Result<u32, DefinitionError> {
        let refuse = |why: String| Err(DefinitionError::new(def.name, why));
        let mut rank = 0;
        for first in &def.after {
            match self.get(first) {
                Some(other) => rank = rank.max(other.rank() + 1),
                None => return refuse(format!("it comes after {first}: register that one first")),
            }
        }
        Ok(rank)
    }

    fn check(&self, def: &ClassDef) -> Result<u32, DefinitionError> {
        let refuse = |why: String| Err(DefinitionError::new(def.name, why));
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if RESERVED.contains(&def.name) {
            return refuse("its name is the name of a path of the HTTP interface".into());
        }
        if !is_name(def.name) {
            return refuse("its name must be lower-case letters, digits and _".into());
        }
        if self.all.contains_key(def.name) {
            return refuse("there is a class of this name already".into());
        }
        if let Some(other) = self.iter().find(|c| same_place(c.def().file, def.file)) {
            let why = format!("its place in the file is that of class {}", other.name());
            return refuse(why);
        }
        let of_interface = |f: &FieldDef| f.reference == Some(Reference::part_of("interface"));
        let mut keys = def.fields.iter().take_while(|f| f.key);
        let is_alone = keys.next().is_some_and(of_interface) && keys.next().is_none();
        if !(def.one_of.is_empty() && def.unset_any.is_empty() || is_alone) {
            return refuse("the key of a class of a group is an interface, nothing else".into());
        }
        let mut rank = self.rank_behind(def)?;
        let mut keys_end = false;
        for (at, field) in def.fields.iter().enumerate() {
            let name = field.name;
            if !is_name(name) || name == "class" {
                return refuse(format!("field {name}: choose another name"));
            }
            if def.fields[..at].iter().any(|f| f.name == name) {
                return refuse(format!("field {name} is defined twice"));
            }
            if field.key && keys_end {
                return refuse(format!("field {name}: fields of the key come first"));
            }
            keys_end |= !field.key;
            if field.key && (field.optional || matches!(field.kind, Kind::List(_))) {
                return refuse(format!("field {name}: a key has one value"));
            }
            if let Some(why) = fault(field) {
                return refuse(format!("field {name}: {why}"));
            }
            let Some(reference) = field.reference else {
                continue;
            };
            match self.get(reference.class) {
                Some(other) => rank = rank.max(other.rank() + 1),
                None if ELSEWHERE.contains(&reference.class) => {}
                None => {
                    let why = format!("field {name} refers to {}", reference.class);
                    return refuse(format!(
                        "{why}, which no class is called: register it first"
                    ));
                }
            }
        }
        Ok(rank)
    }
}

/// What is wrong with a field by itself.
fn fault(field: &FieldDef) -> Option<String> {
    let loses = field.reference.map(|r| r.strength) == Some(Strength::Loses);
    if (loses || field.least > 0) && !matches!(field.kind, Kind::List(_)) {
        return Some("only a list loses values, or has a least number".to_owned());
    }
    if let Kind::Number { min, max } = field.kind
        && min > max
    {
        return Some("no number is in its range".to_owned());
    }
    let default = field.default.as_ref()?;
    let why = field.kind.check(default).err()?;
    Some(format!("the default {why}"))
}

fn same_place(a: Place, b: Place) -> bool {
    let name = |place: Place| match place {
        Place::None => None,
        Place::Table(name) | Place::List(name) | Place::Map(name) => Some((false, name)),
        Place::Interface(name) | Place::InterfaceMap(name) | Place::InterfaceList(name) => {
            Some((true, name))
        }
    };
    name(a).is_some_and(|a| name(b) == Some(a))
}

fn shared() -> &'static RwLock<Arc<Classes>> {
    static SHARED: OnceLock<RwLock<Arc<Classes>>> = OnceLock::new();
    SHARED.get_or_init(RwLock::default)
}

/// The classes that exist now.
pub fn classes() -> Arc<Classes> {
    match shared().read() {
        Ok(all) => all.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    }
}

fn change<T>(
    edit: impl FnOnce(&mut Classes) -> Result<T, DefinitionError>,
) -> Result<T, DefinitionError> {
    let mut all = match shared().write() {
        Ok(all) => all,
        Err(poisoned) => poisoned.into_inner(),
    };
    let mut next = Classes::clone(&all);
    let done = edit(&mut next)?;
    next.generation += 1;
    *all = Arc::new(next);
    Ok(done)
}

/// Adds a class. An error when the definition contradicts itself or another class; nothing has changed then.
pub fn register(def: ClassDef) -> Result<Class, DefinitionError> {
    change(|all| all.add(def))
}

/// Adds a class, or returns the one of this name: two threads may register the same class at once.
pub(crate) fn register_once(def: ClassDef) -> Result<Class, DefinitionError> {
    change(|all| {
        if let Some(class) = all.get(def.name) {
            return Ok(class.clone());
        }
        all.add(def)
    })
}

/// Removes a class that no other one refers to.
pub fn unregister(name: &str) -> Result<(), DefinitionError> {
    change(|all| {
        let refers = |c: &&Class| {
            let mut fields = c.fields().iter();
            c.def().after.contains(&name)
                || fields.any(|f| f.reference.is_some_and(|r| r.class == name))
        };
        if let Some(other) = all.iter().find(refers) {
            let why = format!("class {} refers to it: remove that one first", other.name());
            return Err(DefinitionError::new(name, why));
        }
        match all.all.remove(name) {
            Some(_) => Ok(()),
            None => Err(DefinitionError::new(name, "there is no such class")),
        }
    })
}
