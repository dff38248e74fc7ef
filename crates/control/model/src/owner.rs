//! Owners of classes: each class of objects has one, which carries out what happens to its objects.

use crate::error::ModelError;
use crate::handler::Applied;
use crate::request::Request;
use std::collections::BTreeMap;
use volley_object::{Class, Classes, DefinitionError, FieldType, Instance, Object, ObjectKey};

type Owner = Box<dyn FnMut(&ObjectKey, Option<&Instance>) -> Result<Applied, ModelError>>;

/// The owner of each class. Runs on the control thread only.
#[derive(Default)]
pub struct Owners {
    all: BTreeMap<&'static str, Owner>,
}

impl Owners {
    /// Registers a class, when it is not registered, and its owner. `apply` gets the key of an object and what the object
    /// is to be from now on; none = it is removed. A class without a command to remove its objects has a value always:
    /// its owner gets the defaults in place of none.
    pub fn own<T: Object + 'static>(
        &mut self,
        mut apply: impl FnMut(&ObjectKey, Option<T>) -> Result<Applied, ModelError> + 'static,
    ) -> Result<Class, DefinitionError> {
        let class = T::class()?;
        let name = class.name();
        if self.all.contains_key(name) {
            return Err(DefinitionError {
                class: name.to_owned(),
                why: "it has two owners".to_owned(),
            });
        }
        let always = class.unset_patterns().is_empty();
        let owner = move |key: &ObjectKey, now: Option<&Instance>| {
            let usual = || always.then(|| T::usual(key)).flatten();
            apply(key, now.map_or_else(usual, T::of))
        };
        self.all.insert(name, Box::new(owner));
        Ok(class)
    }

    /// Removes the owner of a class; the class is removed by its name.
    pub fn disown(&mut self, class: &str) {
        self.all.remove(class);
    }

    /// The first class that has no owner.
    pub fn unowned(&self, classes: &Classes) -> Option<&'static str> {
        let mut names = classes.iter().map(Class::name);
        names.find(|name| !self.all.contains_key(name))
    }

    /// Carries out a request about an object; none = it is about none.
    pub fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let (key, now) = match request {
            Request::Set(object) => (object.key(), Some(object)),
            Request::Unset(key) => (key.clone(), None),
            _ => return None,
        };
        let done = match self.all.get_mut(key.class().name()) {
            Some(owner) => owner(&key, now),
            None => {
                let why = "nothing in this daemon carries it out: load what defines it";
                Err(ModelError::invalid(key.class().noun(), why))
            }
        };
        Some(done)
    }
}

/// A value of a key as its type; the default of the type when the key has no such value, which its class rules out.
pub fn key_value<T: FieldType + Default>(key: &ObjectKey, at: usize) -> T {
    let value = key.values().get(at);
    value.and_then(T::from_value).unwrap_or_default()
}
