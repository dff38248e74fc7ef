//! Every configuration change as one typed value.

use crate::error::ModelError;
use crate::interface::{AdminState, InterfaceSpec};
use crate::route::Route;
use crate::route_batch::RouteBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::{Change, FieldError, Instance, Invocation, Object, ObjectKey, Verb};

/// One change. `Display` gives its command-line spelling; [`Request::validate`] checks what needs no state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Create an interface.
    InterfaceCreate(InterfaceSpec),
    /// Delete an interface with its addresses, neighbours and bindings.
    InterfaceDelete {
        /// Interface.
        name: String,
    },
    /// Set it up or down.
    InterfaceState {
        /// Interface.
        name: String,
        /// New state.
        state: AdminState,
    },
    /// Give it another name.
    InterfaceRename {
        /// Interface.
        name: String,
        /// New name, which nobody has.
        new_name: String,
    },
    /// Add paths to a route, making it when it is not there.
    RouteAdd(Route),
    /// Make a route have exactly these paths.
    RouteReplace(Route),
    /// Take paths away from a route, or the whole route when no path is given.
    RouteDel(Route),
    /// Set and remove many routes of one source.
    Routes(RouteBatch),
    /// Perform a registered verb. It is no configuration.
    Do(Invocation),
    /// Create or change an object of a registered class.
    Set(Instance),
    /// Remove an object of a registered class, or give a setting its defaults back.
    Unset(ObjectKey),
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

    /// Whether it makes or changes an object of a class that comes behind all other objects.
    pub fn is_of_last(&self) -> bool {
        matches!(self, Request::Set(object) if object.class().def().last)
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

    /// A request that an earlier version wrote, from its JSON; none where it is none that is known.
    pub fn formerly(json: &[u8]) -> Option<Result<Request, String>> {
        if let Some(object) = volley_object::formerly(json) {
            return Some(object.map(Request::Set));
        }
        let now = volley_object::upgraded(json)?;
        Some(serde_json::from_value(now).map_err(|error| error.to_string()))
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
