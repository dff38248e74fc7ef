//! Conversion from and to the struct of a feature.

use crate::class::{Class, ClassDef};
use crate::instance::{Instance, ObjectKey};
use crate::registry::{classes, register};
use crate::value::Value;
use crate::{DefinitionError, FieldError, refuse};

/// A class of configuration objects as a struct, by `#[derive(Object)]`.
///
/// Every doc comment is the text for operators in every interface: help, reference page, OpenAPI. Attributes of the struct:
///
/// - `class = "icmp"`: the name of the class, snake_case.
/// - `file = "[icmp]"`: the position in the configuration file, see [`crate::Place`].
/// - `set = "set ip icmp {fields}"`: the command that creates or changes an object, see [`crate::pattern`]; any number. An
///   object is written as the first of these commands that can express it.
/// - `unset = "..."`: the command that removes an object or resets a setting to its defaults; any number. A command that names
///   all fields removes an object only if all its values are equal.
/// - `change = "..."`: a command that changes fields of an existing object, or, if the command has no key, of all objects; any
///   number.
/// - `one_of = "l2"`: a group of classes. An interface, their only key, has at most one object of the group.
/// - `unset_any = "..."`: the command that removes the object of the group from an interface.
/// - `example = "set ip icmp rate 100"`: a complete command for the reference page.
/// - `startup`: the only object is read when the daemon starts, see [`crate::ClassDef::startup`] and [`crate::Startup`].
/// - `machine`: the object depends on the machine, such as a device that must exist.
/// - `last`: objects are created after everything else, see [`crate::ClassDef::last`].
/// - `recreate`: a changed object is removed and created again, all removals first.
/// - `after = "class"`: objects of that class are created before an object of this class and removed after it, see
///   [`crate::ClassDef::after`]; any number.
/// - `interrupts = "..."`: the interruption of traffic when an object is created again or, without `recreate`, when it changes;
///   differences of configurations show it.
/// - `formerly = "icmp-set name=interface"`: the request for an object in commits of earlier versions, and its renamed fields,
///   see [`crate::ClassDef::formerly`].
/// - `upgrade = path`: a function that converts requests of earlier versions to current ones, see [`crate::ClassDef::upgrade`].
/// - `bulk`: very many objects are expected, see [`crate::ClassDef::bulk`]; their owner gets many at a time.
/// - `add = "..."`: a command that merges an object into the existing one; `take = "..."`: a command that removes items from
///   the object's lists, or the object if it names no items; any number.
/// - `normal = path`: a function `fn(&Self) -> Option<Self>` for the normal form of an object; `None` if the object is in
///   normal form.
/// - `removed_with = "book.shelf kind=page"`: objects of kind `page` are created again when the objects of class `book` with
///   the same `shelf`, which are removed together, are; see [`crate::ClassDef::removed_with`].
/// - `formerly_bulk = "pages size="`: the bulk request of earlier versions, and its dropped fields.
/// - `group("bridge", "Bridge domains and their ports.")`: the purpose of the commands that begin with these words; any number.
/// - `instead("show vlan", "use `show interfaces`")`: a command of other routers, and the equivalent command; any number.
/// - `starts("capture", "pg-capture", "...")`: for a type of interface, see [`crate::ClassDef::starts`].
/// - `separate`: an object is more than a setting of its interface, see [`crate::ClassDef::separate`].
/// - `ordered`: the creation order of objects is kept, see [`crate::ClassDef::ordered`].
/// - `together`: objects with the same first key value are removed together, see [`crate::ClassDef::together`].
/// - `once`: a command that creates an existing object is refused.
/// - `interface = "lamp"`: each object is an interface of this type, its only key the name, see [`crate::ClassDef::interface`].
///   Its fields are keys of `[[interface]]`, or of an inline table there: `file = "interface.lamp"`. `Default` leaves required
///   fields empty.
/// - `references = path`: a function `fn(&Self, &mut dyn FnMut(Reference, Value))` that reports references which follow from
///   fields without being the value of one.
/// - `check = path`: a function `fn(&Self) -> Result<(), FieldError>` for rules between fields.
/// - `brings = path`: a function `fn(&Self) -> Result<(), String>` that registers the classes which an object brings, see
///   [`crate::ClassDef::brought`].
///
/// Attributes of a field:
///
/// - `key`: part of the key. A class without keys has one object: a setting of the router.
/// - `part_of = "interface"`: refers to an object with which this one is removed, in any field; `needs = "interface"`: refers
///   to an object that cannot be removed while this one exists; `loses = "interface"`, for a list: the list loses deleted
///   objects, see [`crate::Strength::Loses`].
/// - `derived = path`: a function `fn(&Self) -> Type` that computes the value from the other fields if none, or an empty text,
///   is given. `request`: part of the request, and not stored. `secret`: not shown to users.
/// - `joined`, for a list: a command or request that adds an object appends its items to the existing ones; `inline`, for a
///   list of tables: in the file, the keys of one table may be beside those of the object.
/// - `repeats`, for a number: the number of consecutive keys in a request, including the first one; not stored.
/// - `unsaved = VALUE`, for a key: objects with this value are not part of a saved configuration, and are not replaced by one.
/// - `least = 1`, for a list: the minimum number of values. A `BTreeSet` is a list whose order has no meaning.
/// - `default = VALUE`: a field without a default is required, unless its type is `Option` or `Vec`.
/// - `in_file = VALUE`, for the only field of a setting of an interface: the value for an interface in the file without the key
///   of the class. The file omits this value, and contains the default.
/// - `built_in = 0`, for a key: the object with this value always exists, and is neither created nor removed.
/// - `each`, for a key of type choice: an object in the file without it is created once for each choice.
/// - `range = MIN..=MAX` of a number; `scaled`: 250k, 1.5M or 1e6 are allowed; `unit = "ms"`, `example = "..."`.
pub trait Object: Sized {
    /// Name of the class.
    const CLASS: &'static str;

    /// The definition.
    fn definition() -> ClassDef;

    /// Converts from the values of all fields in order.
    fn from_slots(slots: &[Option<Value>]) -> Option<Self>;

    /// The values of all fields in order.
    fn slots(&self) -> Vec<Option<Value>>;

    /// Converts from an object; `None` when it belongs to another class.
    fn of(instance: &Instance) -> Option<Self> {
        let is_own = instance.class().name() == Self::CLASS;
        is_own.then(|| Self::from_slots(instance.slots()))?
    }

    /// The registered class; registers it if necessary.
    fn class() -> Result<Class, DefinitionError> {
        let known = || classes().any(Self::CLASS).cloned();
        let register = || register(Self::definition());
        // Another thread may register it at the same time.
        let registered = || register().or_else(|error| known().ok_or(error));
        known().map_or_else(registered, Ok)
    }

    /// Converts to an object, checked. Returns the first error if a value is out of its range.
    fn instance(&self) -> Result<Instance, FieldError> {
        let class = Self::class().or_else(|error| refuse(Self::CLASS, error.to_string()))?;
        class.instance(self.slots())
    }

    /// An object with these key values and all other fields at their defaults; `None` when a field has no default or a key
    /// value is invalid.
    fn defaults(key: impl IntoIterator<Item = Value>) -> Option<Self> {
        let key = Self::class().ok()?.key(key.into_iter().collect()).ok()?;
        Self::usual(&key)
    }

    /// An object with this key and all other fields at their defaults; `None` when a field has no default.
    fn usual(key: &ObjectKey) -> Option<Self> {
        Instance::usual(key).as_ref().and_then(Self::of)
    }
}
