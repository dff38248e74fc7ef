//! Objects of the desired state: what each is called, and what it needs.

use std::cell::RefCell;
use std::sync::Arc;
use volley_model::{Family, InterfaceSpec, Mac, Path, PathTarget, Prefix, RouteSource};
use volley_object::{Instance, ObjectKey, Strength};

/// What an object is called. **The order of keys is the order of dependence**: an object needs only objects whose keys
/// are smaller, so creation goes up and removal goes down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// An object that does not refer to an interface, not even by other objects.
    Global(ObjectKey),
    /// An interface.
    Interface(String),
    /// An object that is a part of an interface, or refers to one.
    Setting(ObjectKey),
    /// A source's route.
    Route(RouteKey),
    /// An interface is administratively up.
    Up(String),
    /// An object of a class whose objects come last.
    Last(ObjectKey),
}

/// What a route is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteKey {
    /// Who says so.
    pub source: RouteSource,
    /// Table of the prefix's family.
    pub table: u32,
    /// Prefix.
    pub prefix: Prefix,
}

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An object of a registered class.
    Object(Arc<Instance>),
    /// It is there, and that is all.
    Present,
    /// What stands behind an interface.
    Kind(Arc<Instance>),
    /// MAC address.
    Mac(Mac),
    /// Paths, sorted, no two to the same target.
    Paths(Arc<Vec<Path>>),
}

impl Key {
    /// The key of an object of a registered class.
    pub fn object(key: ObjectKey) -> Key {
        match key.class().reaches("interface") {
            _ if key.class().def().last => Key::Last(key),
            true => Key::Setting(key),
            false => Key::Global(key),
        }
    }

    /// The interface that this object is a part of, when it is one: it goes with the interface.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Key::Up(name) => Some(name),
            Key::Setting(it) => it.owner(),
            _ => None,
        }
    }

    /// The key as that of an object of a registered class.
    pub(crate) fn of_class(&self) -> Option<&ObjectKey> {
        match self {
            Key::Global(key) | Key::Setting(key) | Key::Last(key) => Some(key),
            _ => None,
        }
    }

    /// The key of an object of a class whose objects have an order.
    pub(crate) fn ordered(&self) -> Option<&ObjectKey> {
        self.of_class().filter(|key| key.class().def().ordered)
    }

    /// The key as that of an object of a class whose objects with the same first value are removed together.
    pub(crate) fn together(&self) -> Option<&ObjectKey> {
        self.of_class().filter(|key| key.class().def().together)
    }

    /// True for a setting of an interface that is created and deleted with it.
    pub(crate) fn is_setting(&self) -> bool {
        match self {
            Key::Setting(it) => InterfaceSpec::is_created_with(it.class().name()),
            other => matches!(other, Key::Up(_)),
        }
    }

    /// True for what other programs than the operator put there: not part of a configuration that is saved or replaced.
    pub fn is_dynamic(&self) -> bool {
        matches!(self, Key::Route(route) if route.source == RouteSource::Dynamic)
    }
}

fn path_needs(family: Family, path: &Path, tell: &mut dyn FnMut(Key)) {
    match &path.target {
        PathTarget::Via {
            interface, table, ..
        } => {
            if let Some(name) = interface {
                tell(Key::Interface(name.clone()));
            }
            if let Some(table) = table {
                tell_table(family, *table, tell);
            }
        }
        PathTarget::Interface(name) => tell(Key::Interface(name.clone())),
        PathTarget::LookupIn(table) => tell_table(family, *table, tell),
        _ => {}
    }
}

/// Tells the key of the object of a class that a value names, in an object of this IP version. An object that is built in is
/// not told: it is always there.
fn tell_reference(
    class: &str,
    value: &volley_object::Value,
    version: Option<u8>,
    tell: &mut dyn FnMut(Key),
) {
    if let ("interface", Some(name)) = (class, value.as_text()) {
        return tell(Key::Interface(name.to_owned()));
    }
    let classes = volley_object::classes();
    let key = classes
        .get(class)
        .and_then(|it| it.key_named(value, version));
    if let Some(key) = key.filter(|key| !key.is_built_in()) {
        tell(Key::object(key));
    }
}

/// The key of the last table, valid as long as the classes are the same: many routes in a row have the same table.
type LastTable = (u64, Family, u32, Key);

/// Tells the key of the table of a route or a path. Table 0 is always there.
fn tell_table(family: Family, number: u32, tell: &mut dyn FnMut(Key)) {
    thread_local! {
        static LAST: RefCell<Option<LastTable>> = const { RefCell::new(None) };
    }
    if number == 0 {
        return;
    }
    let classes = volley_object::classes();
    let now = (classes.generation(), family, number);
    let same = |it: &&LastTable| (it.0, it.1, it.2) == now;
    let last = LAST.with_borrow(|last| last.as_ref().filter(same).map(|it| it.3.clone()));
    if let Some(key) = last {
        return tell(key);
    }
    let version = Some(family.version());
    let number = volley_object::Value::Number(number.into());
    tell_reference("table", &number, version, &mut |key| {
        LAST.set(Some((now.0, now.1, now.2, key.clone())));
        tell(key);
    });
}

/// Tells the objects that an object needs and is no part of: they cannot go while it is there.
pub(crate) fn needs(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    match (key, value) {
        (Key::Global(_) | Key::Setting(_) | Key::Last(_), Value::Object(object)) => {
            object.references(&mut |class, value, strength| {
                if strength != Strength::Needs {
                    return;
                }
                tell_reference(class, value, object.ip_version(), tell);
            });
        }
        (Key::Interface(_), Value::Kind(kind)) => {
            kind.references(&mut |class, value, strength| {
                if strength == Strength::Needs {
                    tell_reference(class, value, None, tell);
                }
            });
        }
        (Key::Route(route), Value::Paths(paths)) => {
            let family = route.prefix.family();
            tell_table(family, route.table, tell);
            paths.iter().for_each(|p| path_needs(family, p, tell));
        }
        _ => {}
    }
}

/// Tells what an object is a part of, or loses: when that goes, the object goes or changes.
pub(crate) fn parts_of(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    if let Value::Object(object) = value {
        return object.references(&mut |class, value, strength| {
            if strength != Strength::Needs {
                tell_reference(class, value, object.ip_version(), tell);
            }
        });
    }
    if let Some(owner) = key.owner() {
        tell(Key::Interface(owner.to_owned()));
    }
    if let (Key::Interface(_), Value::Kind(kind)) = (key, value) {
        // The name of a part begins with the owner's, so its key is larger.
        kind.references(&mut |class, value, strength| {
            if strength == Strength::PartOf {
                tell_reference(class, value, None, tell);
            }
        });
    }
}

/// What is always there: objects that are built in.
pub(crate) fn is_built_in(key: &Key) -> bool {
    match key {
        Key::Global(it) | Key::Setting(it) | Key::Last(it) => it.is_built_in(),
        _ => false,
    }
}
