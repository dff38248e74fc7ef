//! Every configuration change as one typed value.

use crate::error::ModelError;
use crate::interface::InterfaceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{
    Bulk, Change, Class, FieldError, Instance, Invocation, Object, ObjectKey, Part, Verb, refuse,
};

/// One change. `Display` gives its command-line spelling; [`Request::validate`] checks what needs no state.
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
    /// Give it another name.
    InterfaceRename {
        /// Interface.
        name: String,
        /// New name, which nobody has.
        new_name: String,
    },
    /// Perform a registered verb. It is no configuration.
    Do(Invocation),
    /// Create or change an object of a registered class.
    Set(Instance),
    /// Remove an object of a registered class, or give a setting its defaults back.
    Unset(ObjectKey),
    /// Join an object to the one that is there, or create it.
    Add(Instance),
    /// Take items from the lists of an object, or remove the object where no item is given.
    Take(Part),
    /// Set and remove many objects of a class.
    Bulk(Box<Bulk>),
    /// Remove an object that is exactly this one; an error when another one has its key.
    UnsetExact(Instance),
    /// Change fields of an object that is there, or of all objects of a class.
    Change(Change),
    /// Remove the object that has this key in whichever class of the group of the key's class.
    UnsetAny(ObjectKey),
}

impl Request {
    /// Creates or changes an object; an error when a value is out of its range.
    pub fn set(object: &impl Object) -> Result<Request, FieldError> {
        object.instance().map(Request::Set)
    }

    /// Whether it makes or changes an object that comes behind all other objects, and is no part of an interface.
    pub fn is_of_last(&self) -> bool {
        let is_last = |class: &Class| class.def().last && class.part_of().is_none();
        matches!(self, Request::Set(object) if is_last(object.class()))
    }

    /// Joins an object to the one that is there, or creates it; an error when a value is out of its range.
    pub fn add(object: &impl Object) -> Result<Request, FieldError> {
        object.instance().map(Request::Add)
    }

    /// Takes items from the lists of an object, or removes it where it gives no item.
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

    /// The verb of this name, with some of its parameters by name.
    pub fn of_verb(
        verb: &str,
        parameters: &[(&str, volley_object::Value)],
    ) -> Result<Request, FieldError> {
        Invocation::of_fields(verb, parameters).map(Request::Do)
    }

    /// As the struct of a verb; none when it is another request.
    pub fn verb<V: Verb>(&self) -> Option<V> {
        match self {
            Request::Do(invocation) => invocation.get(),
            _ => None,
        }
    }

    /// Changes fields of an object of the class of this name, by the names of the fields; without the key of all its objects.
    pub fn change_fields(
        class: &str,
        fields: &[(&str, volley_object::Value)],
    ) -> Result<Request, FieldError> {
        Change::of_fields(class, fields).map(Request::Change)
    }

    /// Removes an object, or gives a setting its defaults back.
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

    /// The key of the object that a request creates, changes or removes, when it is of the class of this name.
    pub fn object_of(&self, class: &str) -> Option<ObjectKey> {
        let key = match self {
            Request::Set(object) if object.class().name() == class => object.key(),
            Request::Unset(key) if key.class().name() == class => key.clone(),
            _ => return None,
        };
        Some(key)
    }

    /// True when it changes configuration; false when it only starts, stops or clears an observation.
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Request::Do(_))
    }
}
