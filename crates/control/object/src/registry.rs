//! The classes, queries and verbs that exist now.
//!
//! The process has one set of classes, because text that names a class (a command, a file, JSON) is parsed in many modules. A
//! reader takes a snapshot of the set ([`classes`]) and may keep it for any time; registering creates a new set.

use crate::call::{Defined, Definition};
use crate::class::{Class, ClassDef, Effect};
use crate::definition_error::DefinitionError;
use crate::field::FieldDef;
use crate::kind::Kind;
use crate::place::{Place, Reference, Strength};
use crate::query_class::{QueryClass, QueryDef};
use crate::verb_class::{VerbClass, VerbDef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// Referenced kinds of objects that are not defined as classes.
const ELSEWHERE: [&str; 4] = ["interface", "node", "arc", "arc_feature"];

/// Offset of the ranks of classes whose objects are removed together: they come after all others.
const LATE: u32 = 1 << 16;

/// Names reserved by the HTTP interface, which has a path `/v1/NAME` for each.
const RESERVED: [&str; 8] = [
    "config",
    "do",
    "events",
    "log",
    "requests",
    "show",
    "state",
    "transactions",
];

/// A set of classes, of queries and of verbs.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    all: BTreeMap<&'static str, Class>,
    startup: BTreeMap<&'static str, Class>,
    queries: BTreeMap<&'static str, QueryClass>,
    verbs: BTreeMap<&'static str, VerbClass>,
    generation: u64,
}

/// A kind of definitions that the registry lists by name.
pub trait Listed: Definition {
    /// The definitions of this kind.
    fn all(classes: &Classes) -> &BTreeMap<&'static str, Defined<Self>>;

    /// Like [`Listed::all`], to add and remove definitions.
    fn all_mut(classes: &mut Classes) -> &mut BTreeMap<&'static str, Defined<Self>>;
}

impl Listed for QueryDef {
    fn all(classes: &Classes) -> &BTreeMap<&'static str, QueryClass> {
        &classes.queries
    }

    fn all_mut(classes: &mut Classes) -> &mut BTreeMap<&'static str, QueryClass> {
        &mut classes.queries
    }
}

impl Listed for VerbDef {
    fn all(classes: &Classes) -> &BTreeMap<&'static str, VerbClass> {
        &classes.verbs
    }

    fn all_mut(classes: &mut Classes) -> &mut BTreeMap<&'static str, VerbClass> {
        &mut classes.verbs
    }
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

    /// The classes whose objects are read when the daemon starts, by name: see [`ClassDef::startup`]. The other lists do not
    /// contain them.
    pub fn startup(&self) -> impl Iterator<Item = &Class> {
        self.startup.values()
    }

    /// Any class by its name, startup classes included.
    pub(crate) fn any(&self, name: &str) -> Option<&Class> {
        self.get(name).or_else(|| self.startup.get(name))
    }

    /// The purpose of the commands that begin with these words, from the first class that defines it.
    pub fn group_of_commands(&self, words: &str) -> Option<&'static str> {
        let mut all = self.iter().flat_map(|class| &class.def().groups);
        all.find(|(begin, _)| *begin == words).map(|it| it.1)
    }

    /// First words of commands of other routers, each with a text that names the equivalent command.
    pub fn instead(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = self.iter().chain(self.startup());
        all.flat_map(|class| class.def().instead.iter().copied())
    }

    /// A query by its name.
    pub fn query(&self, name: &str) -> Option<&QueryClass> {
        self.queries.get(name)
    }

    /// All queries by name.
    pub fn queries(&self) -> impl Iterator<Item = &QueryClass> {
        self.queries.values()
    }

    /// A verb by its name.
    pub fn verb(&self, name: &str) -> Option<&VerbClass> {
        self.verbs.get(name)
    }

    /// All verbs by name.
    pub fn verbs(&self) -> impl Iterator<Item = &VerbClass> {
        self.verbs.values()
    }

    /// A number that differs between any two sets: what is derived from a set is valid as long as this number is the same.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The classes whose objects are interfaces, by the names of their types.
    pub fn interfaces(&self) -> Vec<&Class> {
        let mut all: Vec<&Class> = self.iter().filter(|c| c.is_interface()).collect();
        all.sort_by_key(|class| class.def().interface);
        all
    }

    /// The class of interfaces of this type, by its name in the file.
    pub fn interface(&self, kind: &str) -> Option<&Class> {
        self.iter()
            .find(|c| c.is_interface() && c.def().interface == kind)
    }

    /// Classes with a field that makes an object a part of an object of `class`.
    pub fn parts_of(&self, class: &'static str) -> impl Iterator<Item = &Class> {
        let part = Some(Reference::part_of(class));
        self.iter()
            .filter(move |c| c.fields().iter().any(|f| f.reference == part))
    }

    /// The classes whose objects come after those of a class, see [`ClassDef::after`].
    pub fn after<'c>(&'c self, class: &'c Class) -> impl Iterator<Item = &'c Class> {
        let comes_after = |other: &&Class| other.def().after.contains(&class.name());
        self.iter().filter(comes_after)
    }

    /// The other classes in the group of a class.
    pub fn group_of<'c>(&'c self, class: &'c Class) -> impl Iterator<Item = &'c Class> {
        self.iter().filter(|other| class.excludes(other))
    }

    fn add(&mut self, def: ClassDef) -> Result<Class, DefinitionError> {
        let rank = self.check(&def)?;
        let reaches = self.reached(&def);
        let class = Class::new(def, rank, reaches)?;
        let all = match class.def().startup {
            true => &mut self.startup,
            false => &mut self.all,
        };
        all.insert(class.name(), class.clone());
        Ok(class)
    }

    /// The classes to which objects of a class refer, directly or through other objects.
    fn reached(&self, def: &ClassDef) -> BTreeSet<&'static str> {
        let direct = def.fields.iter().flat_map(FieldDef::named_classes);
        let mut reached: BTreeSet<&'static str> = direct.collect();
        for name in reached.clone() {
            let further = self.get(name).map(Class::reached);
            reached.extend(further.into_iter().flatten());
        }
        reached
    }

    /// The rank of a class by the classes that come before it.
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

    /// Checks a class of interfaces, in addition to the checks for any class.
    fn interface_fault(&self, def: &ClassDef) -> Option<&'static str> {
        if def.interface.is_empty() {
            return None;
        }
        let named = |f: &FieldDef| f.key && matches!(f.kind, Kind::Text(_));
        let keys = def.fields.iter().filter(|f| f.key).count();
        if keys != 1 || !def.fields.first().is_some_and(named) {
            return Some("the key of an interface is its name, nothing else");
        }
        let known = self.interface(def.interface).is_some();
        known.then_some("there is a class of interfaces of this kind already")
    }

    /// Checks a class whose objects come last, or that refers to such a class.
    fn last_fault(&self, def: &ClassDef) -> Option<String> {
        let references = def.fields.iter().filter_map(|f| f.reference);
        let others = references.clone().map(|r| r.class);
        let mut others = others.chain(def.after.iter().copied());
        let is_last = |name: &&str| self.get(name).is_some_and(|it| it.def().last);
        if let Some(other) = others.find(is_last) {
            return Some(format!("it refers to {other}, whose objects come last"));
        }
        let mut references = references;
        let of_interface = def.is_part_alone("interface");
        let needs = references.all(|r| r.strength == Strength::Needs || of_interface);
        let wrong = def.last && (!needs || def.ordered || !def.one_of.is_empty());
        let why = "objects that come last are parts of nothing but an interface, which is their key, and have no order";
        wrong.then(|| why.to_owned())
    }

    fn check(&self, def: &ClassDef) -> Result<u32, DefinitionError> {
        let refuse = |why: String| Err(DefinitionError::new(def.name, why));
        // Startup classes have no path.
        if RESERVED.contains(&def.name) && !def.startup {
            return refuse("its name is the name of a path of the HTTP interface".into());
        }
        if !is_name(def.name) {
            return refuse("its name must be lower-case letters, digits and _".into());
        }
        if self.any(def.name).is_some() {
            return refuse("there is a class of this name already".into());
        }
        let mut others = self.iter().chain(self.startup());
        if let Some(other) = others.find(|c| same_place(c.def().file, def.file)) {
            let why = format!("its place in the file is that of class {}", other.name());
            return refuse(why);
        }
        let is_alone = def.is_part_alone("interface");
        let of_group = |(effect, _): &(Effect, &str)| *effect == Effect::UnsetAny;
        let is_of_group = !def.one_of.is_empty() || def.commands.iter().any(of_group);
        if is_of_group && !is_alone {
            return refuse("the key of a class of a group is an interface, nothing else".into());
        }
        let keys = def.fields.iter().filter(|f| f.key).count();
        if def.together && !(def.ordered && def.recreate && !def.once && keys > 1) {
            return refuse(
                "its objects go together: they have an order, several keys and are created again"
                    .into(),
            );
        }
        let faults = [
            self.interface_fault(def),
            startup_fault(def),
            bulk_fault(def),
        ];
        let fault = faults.into_iter().flatten().next().map(str::to_owned);
        if let Some(why) = fault.or_else(|| self.last_fault(def)) {
            return refuse(why);
        }
        if def.ordered && !def.together && !(def.once && keys == def.fields.len()) {
            return refuse("its objects have an order: they are keys alone, created once".into());
        }
        let rank = self.rank_behind(def)?.max(self.check_fields(def)?);
        // Objects that come last follow those that are parts of interfaces.
        let is_late = def.together || def.last && !def.is_part_alone("interface");
        Ok(if is_late { rank + LATE } else { rank })
    }

    /// Checks the fields of a class; returns its rank by their references.
    fn check_fields(&self, def: &ClassDef) -> Result<u32, DefinitionError> {
        let refuse = |why: String| Err(DefinitionError::new(def.name, why));
        let mut rank = 0;
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
            for class in field.named_classes() {
                match self.get(class) {
                    Some(other) => rank = rank.max(other.rank() + 1),
                    None if ELSEWHERE.contains(&class) => {}
                    None => {
                        let why = format!("field {name} refers to {class}");
                        return refuse(format!(
                            "{why}, which no class is called: register it first"
                        ));
                    }
                }
            }
        }
        Ok(rank)
    }

    /// Adds a query or a verb.
    fn define<D: Listed>(&mut self, def: D) -> Result<Defined<D>, DefinitionError> {
        let (class, kind) = (def.class(), D::KIND);
        let fault = if D::all(self).contains_key(class.name) {
            Some(format!("there is a {kind} of this name already"))
        } else if !is_name(&class.name.replace('-', "_")) {
            Some("its name must be lower-case letters, digits and -".to_owned())
        } else if class.fields.iter().any(|field| field.key) {
            Some("a parameter is no key".to_owned())
        } else {
            // In JSON, the name of a verb is beside its parameters.
            let is_taken = class.fields.iter().any(|field| field.name == kind);
            is_taken.then(|| format!("field {kind}: choose another name"))
        };
        let checked = match fault {
            Some(why) => Err(DefinitionError::new(class.name, why)),
            None => self.check_fields(class),
        };
        checked.map_err(|error| error.of(kind))?;
        let defined = Defined::new(def)?;
        D::all_mut(self).insert(defined.name(), defined.clone());
        Ok(defined)
    }

    /// The first class, query or verb with a reference to a class.
    fn refers_to(&self, name: &str) -> Option<String> {
        let classes = self.iter().map(|class| ("class", class));
        let queries = self.queries().map(|query| ("query", query.class()));
        let verbs = self.verbs().map(|verb| ("verb", verb.class()));
        let mut all = classes.chain(queries).chain(verbs);
        let has = |class: &Class| {
            let mut fields = class.fields().iter();
            class.def().after.contains(&name) || fields.any(|f| f.named_classes().contains(&name))
        };
        let (kind, class) = all.find(|(_, class)| has(class))?;
        Some(format!("{kind} {}", class.name()))
    }
}

/// Whether a text is lower-case letters, digits and _.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Checks a field alone.
fn fault(field: &FieldDef) -> Option<String> {
    let loses = field.reference.map(|r| r.strength) == Some(Strength::Loses);
    if (loses || field.least > 0) && !matches!(field.kind, Kind::List(_)) {
        return Some("only a list loses values, or has a least number".to_owned());
    }
    if let Kind::Number { min, max, .. } = field.kind
        && min > max
    {
        return Some("no number is in its range".to_owned());
    }
    let default = field.default.as_ref()?;
    let why = field.kind.check(default).err()?;
    Some(format!("the default {why}"))
}

/// Checks a class whose object is read at start.
fn startup_fault(def: &ClassDef) -> Option<&'static str> {
    let may_be_missing = |field: &FieldDef| !field.key && !field.required();
    let right = matches!(def.file, Place::Table(_))
        && def.commands.is_empty()
        && def.fields.iter().all(may_be_missing);
    (def.startup && !right).then_some(
        "its object is read at start: it has a table in the file, no key, no commands, and a default for every field",
    )
}

/// Checks a bulk class.
fn bulk_fault(def: &ClassDef) -> Option<&'static str> {
    if !def.bulk {
        let repeats = def.fields.iter().any(|field| field.repeats);
        return repeats.then_some("only a bulk class has a field that repeats");
    }
    let packed = def
        .fields
        .first()
        .is_some_and(|field| field.kind.packing().is_some());
    let needs = |field: &FieldDef| {
        field
            .reference
            .is_none_or(|r| r.strength == Strength::Needs)
    };
    let plain = !(def.ordered || def.together || def.once || def.recreate || def.last)
        && def.one_of.is_empty()
        && def.interface.is_empty()
        && def.references.is_none();
    match packed && plain && def.fields.iter().all(needs) {
        true => None,
        false => Some(
            "objects of a bulk class have a packed first value of the key, are parts of nothing, have no order, and change in place",
        ),
    }
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

static SHARED: LazyLock<RwLock<Arc<Classes>>> = LazyLock::new(RwLock::default);

/// The classes that exist now.
pub fn classes() -> Arc<Classes> {
    let all = SHARED.read().unwrap_or_else(PoisonError::into_inner);
    all.clone()
}

fn change<T>(
    edit: impl FnOnce(&mut Classes) -> Result<T, DefinitionError>,
) -> Result<T, DefinitionError> {
    let mut all = SHARED.write().unwrap_or_else(PoisonError::into_inner);
    let mut next = Classes::clone(&all);
    let done = edit(&mut next)?;
    next.generation += 1;
    *all = Arc::new(next);
    Ok(done)
}

/// Adds a class. An error when the definition contradicts itself or another class; the registry is unchanged then.
pub fn register(def: ClassDef) -> Result<Class, DefinitionError> {
    change(|all| all.add(def))
}

/// Removes a class. An error when it does not exist, or when another class, a query or a verb refers to it.
pub fn unregister(name: &str) -> Result<(), DefinitionError> {
    exchange(&[name], Vec::new()).map(drop)
}

/// Removes classes and adds others in one step. An error when a class to remove does not exist, another class, a query or a verb
/// refers to one that is only removed, or a definition contradicts itself or another class; the registry is unchanged then.
pub fn exchange(gone: &[&str], new: Vec<ClassDef>) -> Result<Vec<Class>, DefinitionError> {
    change(|all| {
        for name in gone {
            let removed = all.all.remove(*name);
            removed.ok_or_else(|| DefinitionError::new(name, "there is no such class"))?;
        }
        let added: Result<Vec<Class>, DefinitionError> =
            new.into_iter().map(|def| all.add(def)).collect();
        let gone = gone.iter().filter(|name| all.get(name).is_none());
        let used = gone.filter_map(|name| Some((*name, all.refers_to(name)?)));
        match used.into_iter().next() {
            Some((name, other)) => {
                let why = format!("{other} refers to it: remove that one first");
                Err(DefinitionError::new(name, why))
            }
            None => added,
        }
    })
}

/// Undoes an exchange: removes classes and adds those that were registered before.
pub fn put_back(gone: &[&str], old: Vec<Class>) -> Result<(), DefinitionError> {
    change(|all| {
        for name in gone {
            all.all.remove(*name);
        }
        all.all
            .extend(old.into_iter().map(|class| (class.name(), class)));
        Ok(())
    })
}

/// Adds a query or a verb. An error when the definition contradicts itself or another one; the registry is unchanged then.
pub fn define<D: Listed>(def: D) -> Result<Defined<D>, DefinitionError> {
    change(|all| all.define(def))
}

/// Removes the query or the verb of this name.
pub fn undefine<D: Listed>(name: &str) -> Result<(), DefinitionError> {
    change(|all| match D::all_mut(all).remove(name) {
        Some(_) => Ok(()),
        None => {
            let why = format!("there is no such {}", D::KIND);
            Err(DefinitionError::new(name, why).of(D::KIND))
        }
    })
}
