//! Keys of objects of the desired state, and their dependences.

use std::sync::Arc;
use volley_model::InterfaceSpec;
use volley_object::{BulkKey, Class, Group, Instance, ObjectKey, Strength, Values};

/// The key of an object. **The order of keys is the order of dependence**: an object needs only objects whose keys are smaller,
/// so creation follows ascending keys and removal follows descending keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// An object that refers to no interface, neither directly nor through other objects.
    Global(ObjectKey),
    /// An interface.
    Interface(String),
    /// An object that is a part of an interface, or refers to an interface.
    Setting(ObjectKey),
    /// An object of a bulk class.
    Bulk(BulkKey),
    /// An object of a class whose objects come last.
    Last(ObjectKey),
}

/// States, transactions and plans contain a key for each object, so its size matters.
const _: () = assert!(size_of::<Key>() == 32);

/// The value of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An object of a registered class; for an interface, its type and the settings of that type.
    Object(Arc<Instance>),
    /// Values that objects of a bulk class share.
    Common(Arc<Set>),
}

/// Values that the objects of a group share, and the objects that these values need.
#[derive(Clone, Debug)]
pub struct Set {
    pub(crate) group: Group,
    pub(crate) values: Values,
    pub(crate) needs: Vec<Key>,
}

impl Set {
    /// Creates the set of values for an object of a group.
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
            _ if key.class().is_interface() => Key::Interface(key.name()),
            _ if key.class().def().last => Key::Last(key),
            true => Key::Setting(key),
            false => Key::Global(key),
        }
    }

    /// A lower bound of the keys of a class.
    pub(crate) fn least_of(class: &Class) -> Key {
        match class.is_interface() {
            true => Key::Interface(String::new()),
            false if class.def().bulk => Key::Bulk(BulkKey::least_of(class)),
            false => Key::object(ObjectKey::least_of(class)),
        }
    }

    /// Whether objects of the class have keys of this sort: those of interfaces do not contain the class.
    pub(crate) fn may_be_of(&self, class: &Class) -> bool {
        match self {
            Key::Interface(_) => class.is_interface(),
            Key::Bulk(key) => key.class() == class,
            Key::Global(key) | Key::Setting(key) | Key::Last(key) => key.class() == class,
        }
    }

    /// The interface of which this object is a part, if any: the object is removed with the interface.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Key::Setting(it) | Key::Last(it) => it.owner(),
            _ => None,
        }
    }

    /// The key, if it is one of a registered class.
    pub(crate) fn of_class(&self) -> Option<&ObjectKey> {
        match self {
            Key::Global(key) | Key::Setting(key) | Key::Last(key) => Some(key),
            _ => None,
        }
    }

    /// Whether the class of the object is one that this object brings.
    pub(crate) fn is_brought_by(&self, by: &Key) -> bool {
        let brought = self.of_class().and_then(|key| key.class().def().brought);
        match (brought, by.of_class()) {
            (Some(brought), Some(by)) => {
                brought.class == by.class().name() && by.name() == brought.name
            }
            _ => false,
        }
    }

    /// Whether the object may bring classes.
    pub(crate) fn brings(&self) -> bool {
        let key = self.of_class();
        key.is_some_and(|key| key.class().def().brings.is_some())
    }

    /// Whether the object's class is one that another object brings.
    pub(crate) fn is_brought(&self) -> bool {
        let key = self.of_class();
        key.is_some_and(|key| key.class().def().brought.is_some())
    }

    /// The key, if its class is ordered.
    pub(crate) fn ordered(&self) -> Option<&ObjectKey> {
        self.of_class().filter(|key| key.class().def().ordered)
    }

    /// The key, if objects of its class with the same first value are removed together.
    pub(crate) fn together(&self) -> Option<&ObjectKey> {
        self.of_class().filter(|key| key.class().def().together)
    }

    /// True for a setting of an interface that is created and deleted with the interface.
    pub(crate) fn is_setting(&self) -> bool {
        match self {
            Key::Setting(it) => InterfaceSpec::is_created_with(it.class().name()),
            Key::Last(it) => it.owner().is_some(),
            _ => false,
        }
    }

    /// True for objects that other programs than the operator create: they are not part of a configuration that is saved or
    /// replaced.
    pub fn is_dynamic(&self) -> bool {
        match self {
            Key::Bulk(key) => key.group.is_unsaved(),
            other => other.of_class().is_some_and(ObjectKey::is_unsaved),
        }
    }
}

/// Passes the key of the object that a value names, in an object of this IP version, to `tell`. Built-in objects are skipped:
/// they always exist.
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

/// Passes the keys of the referenced objects to `tell`, for references of the given strengths.
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

/// Passes the keys of the objects that an object needs without being their part to `tell`: they cannot be removed while the
/// object exists.
pub(crate) fn needs(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    match value {
        Value::Object(object) => references(key, object, tell, &[Strength::Needs]),
        Value::Common(set) => set.needs.iter().cloned().for_each(tell),
    }
}

/// Passes the keys of the objects of which an object is a part, or which its lists may lose, to `tell`: when one of them is
/// removed, the object is removed or changed. The name of an interface that is a part begins with the owner's name, so its key
/// is larger.
pub(crate) fn parts_of(key: &Key, value: &Value, tell: &mut dyn FnMut(Key)) {
    if let Value::Object(object) = value {
        references(key, object, tell, &[Strength::PartOf, Strength::Loses]);
    }
}

/// Whether the object is built in and therefore always exists.
pub(crate) fn is_built_in(key: &Key) -> bool {
    key.of_class().is_some_and(ObjectKey::is_built_in)
}
