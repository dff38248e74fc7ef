//! Paths of queries and of actions on the configuration, from the schemas of the model.

use crate::answer;
use crate::error::Problem;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value as Json;
use std::sync::OnceLock;
use volley_model::ConfigAction;
use volley_object::{
    Asked, Call, Class, Defined, Definition, FieldDef, Kind, QueryClass, Value, Verb, VerbClass,
    classes, names,
};

/// One variant of an enumeration of the model.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Name of the variant, which is part of the path.
    pub name: String,
    /// Description.
    pub text: String,
    /// Schema of the fields.
    pub schema: Json,
}

/// A generator of schemas for OpenAPI 3.1.
pub(crate) fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
        s.meta_schema = None;
    });
    SchemaGenerator::new(settings)
}

/// The variants of an externally tagged enumeration, which all have fields.
pub(crate) fn variants<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Variant> {
    let schema = T::json_schema(generator).to_value();
    let text = |v: &Json| v["description"].as_str().unwrap_or_default().to_owned();
    let all = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let mut variants = Vec::new();
    for one in &all {
        let fields = one["properties"].as_object().into_iter().flatten();
        variants.extend(fields.map(|(name, schema)| Variant {
            name: name.clone(),
            text: text(one),
            schema: described(generator, schema),
        }));
    }
    variants
}

/// Resolves a reference to a schema: a variant with one type has that type's fields.
pub(crate) fn described(generator: &mut SchemaGenerator, schema: &Json) -> Json {
    let name = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next());
    let found = name.and_then(|name| generator.definitions().get(name));
    found.unwrap_or(schema).clone()
}

/// The actions on the configuration as a whole.
pub(crate) fn actions() -> &'static [Variant] {
    static ALL: OnceLock<Vec<Variant>> = OnceLock::new();
    ALL.get_or_init(|| variants::<ConfigAction>(&mut generator()))
}

/// Builds a query: the name comes from the path, the parameters from the query string.
pub fn read_query(name: &str, parameters: &str) -> Result<Asked, Problem> {
    let classes = classes();
    let query = classes.query(name).filter(|query| query.has_whole());
    let whole = classes.queries().filter(|query| query.has_whole());
    let query = query.ok_or_else(|| Problem::no_such("show", name, whole.map(QueryClass::name)));
    called(query?, &format!("/v1/show/{name}"), parameters)
}

/// Parameters of a path that has no query, as the struct of a verb outside the registry.
pub(crate) fn read_parameters<V: Verb>(path: &str, text: Option<&str>) -> Result<V, Problem> {
    let verb = VerbClass::new(V::definition()).map_err(answer::internal)?;
    let called = called(&verb, path, text.unwrap_or_default())?;
    called.get().ok_or_else(Problem::ending)
}

fn called<D: Definition>(
    of: &Defined<D>,
    path: &str,
    parameters: &str,
) -> Result<Call<D>, Problem> {
    let class = of.class();
    let mut slots = vec![None; class.fields().len()];
    for (at, value) in given(class, path, parameters, |field| &field.kind)? {
        if slots[at].replace(value).is_some() {
            let name = class.fields()[at].name;
            let message = format!("parameter '{name}' is given twice");
            return Err(Problem::malformed(message).at(name.to_owned()));
        }
    }
    of.call(slots).map_err(|error| {
        let place = error.field.to_owned();
        Problem::malformed(format!("{path}: {error}")).at(place)
    })
}

/// The values of fields of a class in the parameters of a path, each with the index of its field. `kind` is the type of the value
/// that a field takes here.
pub(crate) fn given(
    class: &Class,
    path: &str,
    parameters: &str,
    kind: impl Fn(&FieldDef) -> &Kind,
) -> Result<Vec<(usize, Value)>, Problem> {
    let read = |(name, text): (String, String)| {
        let Some((at, field)) = class.field(&name) else {
            let known = match class.fields() {
                [] => "it takes none".to_owned(),
                fields => format!("it takes: {}", names(fields)),
            };
            let message = format!("{path} has no parameter '{name}'; {known}");
            return Err(Problem::malformed(message).at(name));
        };
        let value = kind(field).read(&text).map_err(|why| {
            let message = format!("parameter '{name}' {why}");
            Problem::malformed(message).at(name)
        });
        Ok((at, value?))
    };
    let given = answer::parameters(Some(parameters))?;
    given.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_log::ShowLog;

    #[test]
    fn queries_are_read_from_paths() {
        volley_log::classes().unwrap();
        let log = read_query("log", "max=2").unwrap().get::<ShowLog>();
        assert_eq!(log.unwrap().max, Some(2));
        for (name, parameters, why) in [
            ("log", "max=x", "must be a number"),
            ("log", "max=1&max=2", "given twice"),
            ("log", "nome=pg0", "max, level, module, after"),
            ("log", "module=memiff", "memif, vhost"),
            ("nothing", "", "there are: log"),
        ] {
            let message = read_query(name, parameters).unwrap_err().message;
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn every_variant_has_a_path() {
        let names: Vec<&str> = actions().iter().map(|a| &a.name[..]).collect();
        assert_eq!(
            names,
            [
                "check", "show", "diff", "commit", "confirm", "rollback", "history"
            ]
        );
    }
}
