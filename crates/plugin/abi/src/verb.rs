//! Verbs of a plugin. Definitions and parameters cross the boundary as JSON: each side reads them by its own types.

use crate::class::describe_verb;
use crate::guarded::guarded;
use crate::plugin::RegisterError;
use serde_json::Value as Json;
use std::fmt::Display;
use volley_object::{Defined, Instance, Invocation, Verb, VerbClass, VerbDef};

/// Performs a verb, whose parameters are JSON.
type Perform = dyn FnMut(&str) -> Result<(), String>;

/// A verb, without its Rust type.
pub struct PluginVerb {
    definition: String,
    perform: Box<Perform>,
}

impl PluginVerb {
    /// The verb of `V`, on the plugin's side. No registry has it: the router's has a copy.
    pub(crate) fn new<V: Verb + 'static, E: Display>(
        mut perform: impl FnMut(V) -> Result<(), E> + 'static,
    ) -> Result<PluginVerb, RegisterError> {
        let definition = describe_verb(&V::definition())?.to_string();
        let verb = Defined::<VerbDef>::new(V::definition())?;
        let perform = move |parameters: &str| {
            guarded(|| {
                let verb = read::<V>(&verb, parameters)?;
                perform(verb).map_err(|why| why.to_string())
            })
        };
        Ok(PluginVerb {
            definition,
            perform: Box::new(perform),
        })
    }

    /// The definition in JSON, see [`describe_verb`].
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Perform it on the router's side with parameters of the router's class. An error is one sentence.
    pub fn perform(&mut self, parameters: &Instance) -> Result<(), String> {
        let json = serde_json::to_string(parameters).map_err(|why| why.to_string())?;
        (self.perform)(&json)
    }
}

/// The parameters, by the plugin's class.
fn read<V: Verb>(verb: &VerbClass, parameters: &str) -> Result<V, String> {
    let json: Json = serde_json::from_str(parameters).map_err(|why| why.to_string())?;
    let mut map = json.as_object().cloned().unwrap_or_default();
    // An object has the name of its class, which is the verb's.
    map.remove("class");
    let invocation: Invocation = verb.invoke_with(&map)?;
    let read = invocation.get::<V>();
    read.ok_or_else(|| format!("the parameters are not those of {}", verb.name()))
}
