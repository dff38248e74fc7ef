//! Verbs (`clear ...`, `pcap trace ...`): each is a struct with `#[derive(Verb)]` in the crate of its feature.

use crate::call::Call;
use crate::class::{Class, Effect};
use crate::json::{of_json, unknown};
use crate::parameters::Parameters;
use crate::registry::{Classes, classes};
use crate::value::Value;
use crate::verb_class::{VerbClass, VerbDef};
use crate::{DefinitionError, FieldError, refuse};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

/// A verb as a struct, by `#[derive(Verb)]`: an action that the router performs once, and that is not configuration: neither
/// files nor commits contain it. Its fields are the parameters. Its doc comment is the text for operators in every interface:
/// help, reference page, OpenAPI. Attributes of the struct:
///
/// - `name = "l2-fib-flush"`: the name of the verb, which is `verb` in JSON.
/// - `command = "l2fib flush-mac {interface <interface> | bridge-domain <domain>}"`: the command, see [`crate::pattern`]; any
///   number. The verb is written as the first of these commands that can express all parameters.
/// - `example = "l2fib flush-mac bridge-domain 10"`: a complete command for the reference page.
/// - `check = path`: a function `fn(&Self) -> Result<(), FieldError>` for rules between parameters.
/// - `formerly = "lamp-switch"`: the request of earlier versions that became the verb, with the same fields: `{"lamp-switch":
///   {...}}`.
/// - `configure`: a client needs the role `configure` instead of `operate`.
/// - `for_all`: the verb has any number of owners, and each of them does its part.
/// - `machine`: the verb depends on the machine, such as on a file: a check of a configuration omits the verb.
///
/// Attributes of a field are those of [`crate::Object`], except those of keys.
pub trait Verb: Parameters<Def = VerbDef> {
    /// The registered verb; registers it if necessary.
    fn verb() -> Result<VerbClass, DefinitionError> {
        Self::defined()
    }

    /// The verb with its parameters, checked. Returns the first error if a value is out of its range.
    fn invocation(&self) -> Result<Invocation, FieldError> {
        self.call()
    }
}

/// A verb and its checked parameters. In JSON one flat map: `{"verb": "l2-fib-flush", "domain": 10}`.
pub type Invocation = Call<VerbDef>;

impl VerbClass {
    /// Builds the verb with parameters from a JSON map without the verb's name. An error is one sentence.
    pub fn invoke_with(&self, parameters: &Map<String, Json>) -> Result<Invocation, String> {
        let slots = self
            .class()
            .slots_of(None, parameters, self.class().fields())?;
        self.call(slots).map_err(|error| error.to_string())
    }
}

impl Invocation {
    /// The verb of this name, with some of its parameters by name; the others get their defaults.
    pub fn of_fields(verb: &str, fields: &[(&str, Value)]) -> Result<Invocation, FieldError> {
        let all = classes();
        let found = all
            .verb(verb)
            .map_or_else(|| refuse("verb", format!("must be registered: {verb}")), Ok);
        let verb = found?;
        verb.call(verb.class().slots(fields))
    }

    /// The verb.
    pub fn verb(&self) -> &VerbClass {
        &self.of
    }

    /// The command, by the first pattern that can express all parameters.
    pub fn command(&self) -> String {
        let spelled = self.parameters.spelled(Effect::Set);
        spelled.unwrap_or_else(|| self.of.name().to_owned())
    }
}

impl Serialize for Invocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parameters.serialize_as("verb", serializer)
    }
}

/// The verb that a map names.
fn verb_of<'c>(all: &'c Classes, map: &Map<String, Json>) -> Result<&'c VerbClass, String> {
    let Some(Json::String(name)) = map.get("verb") else {
        return Err("`verb` must be the name of a verb".to_owned());
    };
    all.verb(name).ok_or_else(|| {
        let known: Vec<&str> = all.verbs().map(VerbClass::name).collect();
        unknown(("verb", ""), name, &known)
    })
}

of_json!(
    Invocation,
    "Verb",
    |map| {
        let all = classes();
        let verb = verb_of(&all, map)?;
        let slots = verb
            .class()
            .slots_of(Some("verb"), map, verb.class().fields())?;
        verb.call(slots).map_err(|error| error.to_string())
    },
    || {
        let all = classes();
        let classes = all.verbs().map(VerbClass::class);
        let schema = |class: &Class| class.schema_of(class.fields(), Some("verb"));
        classes.map(schema).collect()
    }
);
