//! From and to the struct of a feature.

use crate::class::{Class, ClassDef};
use crate::instance::{Instance, ObjectKey};
use crate::registry::{classes, register_once};
use crate::value::Value;
use crate::{DefinitionError, FieldError};

/// A class of configuration objects as a struct, by `#[derive(Object)]`.
///
/// Every doc comment is the operator's text in every face: help, reference page, OpenAPI. Attributes of the struct:
///
/// - `class = "icmp"`: the name of the class, snake_case.
/// - `file = "[icmp]"`: its place in the configuration file, see [`crate::Place`].
/// - `set = "set ip icmp {fields}"`: the command that creates or changes an object, see [`crate::pattern`]; any number of
///   them: every object is spelled by the first one that can say it.
/// - `unset = "..."`: the command that removes an object or gives a setting its defaults back; any number.
///   One that names all fields removes an object that is exactly this one, and no other.
/// - `change = "..."`: a command that changes fields of an object that is there, or of all objects where the command has no
///   key; any number.
/// - `one_of = "l2"`: a group of classes. An interface, their only key, has one object of the group at most.
/// - `unset_any = "..."`: the command that removes what an interface has of the group.
/// - `example = "set ip icmp rate 100"`: a whole command for the reference page.
/// - `startup`: the only object is read when the daemon starts, see [`crate::ClassDef::startup`] and [`crate::Startup`].
/// - `machine`: whether an object can be carried out is for the machine to say, such as a device that must be there.
/// - `last`: objects are created behind everything else, see [`crate::ClassDef::last`].
/// - `recreate`: an object that changes is removed and created again, all removals first.
/// - `after = "class"`: objects of that class are created before and removed behind an object, see
///   [`crate::ClassDef::after`]; any number.
/// - `interrupts = "..."`: what traffic notices when an object is created again or, without `recreate`, when it changes;
///   differences of configurations show it.
/// - `formerly = "icmp-set name=interface"`: the request that commits of earlier versions have for an object, and its fields
///   that had other names, see [`crate::ClassDef::formerly`].
/// - `upgrade = path`: a function that makes requests of today from those of earlier versions, see [`crate::ClassDef::upgrade`].
/// - `bulk`: there may be very many objects, see [`crate::ClassDef::bulk`]; their owner gets many at a time.
/// - `add = "..."`: a command that joins an object to the one that is there; `take = "..."`: one that takes items from its
///   lists, or removes it when it names none; any number.
/// - `normal = path`: a function `fn(&Self) -> Option<Self>` for the normal form of an object, none where it is normal.
/// - `removed_with = "book.shelf kind=page"`: objects of kind `page` are created again when the objects of class `book`, which
///   are removed together, with the same `shelf` are, see [`crate::ClassDef::removed_with`].
/// - `formerly_bulk = "pages size="`: the request that earlier versions had for many objects, and its fields that are left out.
/// - `group("bridge", "Bridge domains and their ports.")`: the purpose of the commands that begin with these words; any number.
/// - `instead("show vlan", "use `show interfaces`")`: a command of other routers, and the command to use here; any number.
/// - `starts("capture", "pg-capture", "...")`: of a kind of interfaces, see [`crate::ClassDef::starts`].
/// - `separate`: an object is more than a setting of the interface that it is a part of, see [`crate::ClassDef::separate`].
/// - `ordered`: the order in which objects were created is kept, see [`crate::ClassDef::ordered`].
/// - `together`: objects with the same first value of the key are removed together, see [`crate::ClassDef::together`].
/// - `once`: a command that creates an object that is there is refused.
/// - `interface = "lamp"`: each object is an interface of this kind, its only key the name, see
///   [`crate::ClassDef::interface`]. Its fields are keys of `[[interface]]`, or in a table there: `file = "interface.lamp"`.
///   `Default` leaves fields empty that must be given.
/// - `references = path`: a function `fn(&Self, &mut dyn FnMut(Reference, Value))` that tells references which follow from
///   fields, where no field has them as its value.
/// - `check = path`: a function `fn(&Self) -> Result<(), FieldError>` for rules between fields.
///
/// Attributes of a field:
///
/// - `key`: part of the key. A class without keys has one object: a setting of the router.
/// - `part_of = "interface"`: names an object that this one goes with, whichever field says so; `needs = "interface"`: names an object that cannot
///   go while this one is there; `loses = "interface"`, of a list: the list loses objects that go, see [`crate::Strength::Loses`].
/// - `derived = path`: a function `fn(&Self) -> Type` for the value that follows from the other fields where none, or an empty
///   text, is given. `request`: part of the request, and not kept. `secret`: not shown to people.
/// - `joined`, of a list: a command or request that adds an object joins its items to those that are there; `inline`, of a list of
///   tables: in the file, the keys of one table may be beside those of the object.
/// - `repeats`, of a number: consecutive keys, the first one included, that a request is about; it is not kept.
/// - `unsaved = VALUE`, of a key: objects with this value are in no saved configuration, and none replaces them.
/// - `least = 1`, of a list: the fewest values that it has. A `BTreeSet` is a list in which the order says nothing.
/// - `default = VALUE`: without one, and unless its type is `Option` or `Vec`, a field must be given.
/// - `in_file = VALUE`, of the only field of a setting of an interface: the value of an interface that is in the file without the
///   key of the class. It is not written, and the default is.
/// - `built_in = 0`, of a key: the object with this value is always there, and neither created nor removed.
/// - `each`, of a key that takes one of several choices: in the file, an object without it is there once for each choice.
/// - `range = MIN..=MAX` of a number; `scaled`: it may be written as 250k, 1.5M or 1e6; `unit = "ms"`, `example = "..."`.
pub trait Object: Sized {
    /// Name of the class.
    const CLASS: &'static str;

    /// The definition.
    fn definition() -> ClassDef;

    /// From an object; none when it is of another class.
    fn of(instance: &Instance) -> Option<Self>;

    /// The values of all fields in order.
    fn slots(&self) -> Vec<Option<Value>>;

    /// The class as it is registered; registers it when it is not.
    fn class() -> Result<Class, DefinitionError> {
        match classes().any(Self::CLASS) {
            Some(class) => Ok(class.clone()),
            None => register_once(Self::definition()),
        }
    }

    /// As an object, checked. The first error when a value is out of its range.
    fn instance(&self) -> Result<Instance, FieldError> {
        let class = Self::class().map_err(|error| FieldError {
            field: Self::CLASS,
            why: error.to_string(),
        })?;
        class.instance(self.slots())
    }

    /// An object with these key values, all other fields at their defaults; none when a field has no default or a value of
    /// the key is wrong.
    fn defaults(key: impl IntoIterator<Item = Value>) -> Option<Self> {
        let key = Self::class().ok()?.key(key.into_iter().collect()).ok()?;
        Self::usual(&key)
    }

    /// An object with this key, all other fields at their defaults; none when a field has no default.
    fn usual(key: &ObjectKey) -> Option<Self> {
        Instance::usual(key).as_ref().and_then(Self::of)
    }
}
