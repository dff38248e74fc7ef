//! Objects of the desired state: what each is called, and what it needs.

use std::sync::Arc;
use volley_model::InterfaceSpec;
use volley_object::{BulkKey, Group, Instance, ObjectKey, Strength, Values};

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
    /// An object of a bulk class.
    Bulk(BulkKey),
    /// An object of a class whose objects come last.
    Last(ObjectKey),
}

/// A state, a transaction and its plan have a key of each object.
const _: () = assert!(size_of::<Key>() == 32);

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An object of a registered class; of an interface, what it is.
    Object(Arc<Instance>),
    /// Values that objects of a bulk class have in common.
    Common(Arc<Set>),
}

/// Values that objects of a group have behind their keys, and what they need.
#[derive(Clone, Debug)]
pub struct Set {
    pub(crate) group: Group,
    pub(crate) values: Values,
    pub(crate) needs: Vec<Key>,
}

impl Set {
    /// The values of an object of a group.
    pub(crate) fn new(key: &BulkKey, values: Values) -> Set {
        let mut needs = Vec::new();
        let version = Some(key.group.version()).filter(|it| *it != 0);
        key.instance(&values).references(&mut |class, value, _| {
            tell_reference(class, value, version, &mut |key| needs.push(key));
        });
        let group = key.group.clone();
        Set {
            group,
            values,
            needs,
        }
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        self.group == other.group && self.values == other.values
    }
}

impl Eq for Set {}

impl Key {
    /// The key of an object of a registered class.
    pub fn object(key: ObjectKey) -> Key {
        if let Some(key) = BulkKey::of(&key) {
            return Key::Bulk(key);
        }
        match key.class().reaches("interface") {
            _ if key.class().def().last => Key::Last(key),
            true => Key::Setting(key),
            false => Key::Global(key),
        }
    }

    /// The interface that this object is a part of, when it is one: it goes with the interface.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Key::Setting(it) | Key::Last(it) => it.owner(),
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
            Key::Last(it) => it.owner().is_some(),
            _ => false,
        }
    }

    /// True for what other programs than the operator put there: not part of a configuration that is saved or replaced.
    pub fn is_dynamic(&self) -> bool {
        match self {
            Key::Bulk(key) => key.group.is_unsaved(),
            other => other.of_class().is_some_and(ObjectKey::is_unsaved),
        }
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

/// Tells what an object refers to so firmly.
fn references(key: &Key, object: &Instance, tell: &mut dyn FnMut(Key), strength: &[Strength]) {
    let version = match key {
        Key::Interface(_) => None,
        _ => object.ip_version(),
    };
    object.references(&mut |class, value, it| {
        if strength.contains(&it) {
            tell_reference(class, value, version, tell);
        }
    });
}

/// Tells the objects that an object needs and is no part of: they cannot go while it is there.
pub(crate) fn needs(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    match value {
        Value::Object(object) => references(key, object, tell, &[Strength::Needs]),
        Value::Common(set) => set.needs.iter().cloned().for_each(tell),
    }
}

/// Tells what an object is a part of, or loses: when that goes, the object goes or changes. The name of an interface that is
/// a part begins with the owner's, so its key is larger.
pub(crate) fn parts_of(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    if let Value::Object(object) = value {
        references(key, object, tell, &[Strength::PartOf, Strength::Loses]);
    }
}

/// What is always there: objects that are built in.
pub(crate) fn is_built_in(key: &Key) -> bool {
    key.of_class().is_some_and(ObjectKey::is_built_in)
}
