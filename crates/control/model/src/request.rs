//! Changes of the configuration as typed values.

use crate::error::ModelError;
use crate::interface::InterfaceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{
    Bulk, Change, Class, FieldError, Instance, Invocation, Object, ObjectKey, Part, Verb, refuse,
};

/// One change. `Display` gives its command; [`Request::validate`] makes the checks that need no state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum Request {
    /// Create an interface.
    InterfaceCreate(InterfaceSpec),
    /// Delete an interface with its addresses, neighbours and bindings.
    InterfaceDelete {
        /// Interface.
        name: String,
    },
    /// Rename an interface.
    InterfaceRename {
        /// Interface.
        name: String,
        /// New name, which no other interface has.
        new_name: String,
    },
    /// Perform a registered verb. A verb is not configuration.
    Do(Invocation),
    /// Create or change an object of a registered class.
    Set(Instance),
    /// Remove an object of a registered class, or reset a setting to its defaults.
    Unset(ObjectKey),
    /// Merge an object into the existing one, or create it.
    Add(Instance),
    /// Remove items from the lists of an object, or the object if no item is given.
    Take(Part),
    /// Set and remove many objects of a class.
    Bulk(Box<Bulk>),
    /// Remove an object if all its values are equal to these; an error when the key's object has other values.
    UnsetExact(Instance),
    /// Change fields of an existing object, or of all objects of a class.
    Change(Change),
    /// Remove the object with this key in any class of the group of the key's class.
    UnsetAny(ObjectKey),
}

impl Request {
    /// Creates or changes an object; an error when a value is out of its range.
    pub fn set(object: &impl Object) -> Result<Request, FieldError> {
        object.instance().map(Request::Set)
    }

    /// Creates an interface, or creates or changes another object.
    pub fn of_object(object: Instance) -> Request {
        match object.class().is_interface() {
            true => Request::InterfaceCreate(InterfaceSpec::of_object(object)),
            false => Request::Set(object),
        }
    }

    /// Deletes an interface, or removes another object or resets it to its defaults.
    pub fn without(key: ObjectKey) -> Request {
        match key.class().is_interface() {
            true => Request::InterfaceDelete { name: key.name() },
            false => Request::Unset(key),
        }
    }

    /// Whether the request creates or changes an object that comes after all other objects, and is not part of an interface.
    pub fn is_of_last(&self) -> bool {
        let is_last = |class: &Class| class.def().last && class.part_of().is_none();
        matches!(self, Request::Set(object) if is_last(object.class()))
    }

    /// Merges an object into the existing one, or creates it; an error when a value is out of its range.
    pub fn add(object: &impl Object) -> Result<Request, FieldError> {
        object.instance().map(Request::Add)
    }

    /// Removes items from the lists of an object, or the object if it has no items.
    pub fn take<T: Object>(object: &T) -> Result<Request, FieldError> {
        let class = T::class().or_else(|error| refuse("class", error.to_string()))?;
        Part::new(&class, object.slots()).map(Request::Take)
    }

    /// Creates or changes an object of the class of this name, by the names of its fields.
    pub fn set_fields(
        class: &str,
        fields: &[(&str, volley_object::Value)],
    ) -> Result<Request, FieldError> {
        Instance::of_fields(class, fields).map(Request::Set)
    }

    /// A verb with its parameters; an error when a value is out of its range.
    pub fn of<V: Verb>(verb: &V) -> Result<Request, ModelError> {
        let invocation = verb.invocation();
        invocation
            .map(Request::Do)
            .map_err(|error| ModelError::invalid(V::NAME, error))
    }

    /// The parameters as the struct of a verb; `None` when this is another request.
    pub fn verb<V: Verb>(&self) -> Option<V> {
        match self {
            Request::Do(invocation) => invocation.get(),
            _ => None,
        }
    }

    /// Removes an object, or resets a setting to its defaults.
    pub fn unset(object: &impl Object) -> Result<Request, FieldError> {
        object.instance().map(|object| Request::Unset(object.key()))
    }

    /// Removes the object of the class of this name that has these values in its key.
    pub fn unset_key(
        class: &str,
        values: impl IntoIterator<Item = volley_object::Value>,
    ) -> Result<Request, FieldError> {
        ObjectKey::of_values(class, values).map(Request::Unset)
    }

    /// The key of the object that a request creates, changes or removes, if the object belongs to the class of this name.
    pub fn object_of(&self, class: &str) -> Option<ObjectKey> {
        let key = match self {
            Request::Set(object) if object.class().name() == class => object.key(),
            Request::Unset(key) if key.class().name() == class => key.clone(),
            _ => return None,
        };
        Some(key)
    }

    /// Whether the request changes configuration; false if it only starts, stops or clears an observation.
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Request::Do(_))
    }
}
