//! Classes of objects of a plugin. Definitions and objects cross the boundary as JSON: each side reads them by its own types.

use crate::class::describe;
use crate::guarded::guarded;
use crate::plugin::RegisterError;
use serde_json::{Map, Value as Json, json};
use std::fmt::Display;
use volley_object::{Class, Instance, Object, ObjectKey};

/// Carries out a change, in JSON.
type Apply = dyn FnMut(&str) -> Result<(), String>;

/// A class of objects, without its Rust type.
pub struct PluginClass {
    definition: String,
    apply: Box<Apply>,
}

impl PluginClass {
    /// The class of `T`, on the plugin's side. No registry has it: the router's has a copy.
    pub(crate) fn new<T: Object + 'static, E: Display>(
        mut apply: impl FnMut(&ObjectKey, Option<T>) -> Result<(), E> + 'static,
    ) -> Result<PluginClass, RegisterError> {
        let definition = describe(&T::definition())?.to_string();
        let class = Class::alone(T::definition())?;
        let apply = move |change: &str| {
            guarded(|| {
                let (key, now) = read::<T>(&class, change)?;
                apply(&key, now).map_err(|why| why.to_string())
            })
        };
        Ok(PluginClass {
            definition,
            apply: Box::new(apply),
        })
    }

    /// The definition in JSON, see [`describe`].
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Carry out a change on the router's side: the key and the new value of an object; `None`: it is removed. An error, one
    /// sentence, changes nothing.
    pub fn apply(&mut self, key: &ObjectKey, now: Option<&Instance>) -> Result<(), String> {
        (self.apply)(&json!({ "key": key, "now": now }).to_string())
    }
}

/// The key and the value of a change, by the plugin's class.
fn read<T: Object>(class: &Class, change: &str) -> Result<(ObjectKey, Option<T>), String> {
    let change: Json = serde_json::from_str(change).map_err(|why| why.to_string())?;
    let nothing = Map::new();
    let key = class.key_from_json(change["key"].as_object().unwrap_or(&nothing))?;
    let now = match change["now"].as_object() {
        Some(map) => T::of(&class.from_json(map)?),
        // A class without a command for removal always has a value.
        None if class.is_always() => T::usual(&key),
        None => None,
    };
    Ok((key, now))
}
