//! The questions and actions, from the model's own description of itself: the one place that maps them to paths.

use crate::error::Problem;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use std::sync::OnceLock;
use volley_model::{ConfigAction, Query};
use volley_object::{Classes, QueryClass, classes};

/// One variant of an enumeration of the model.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Its name, which is part of the path.
    pub name: String,
    /// What it means.
    pub text: String,
    /// It has no fields.
    pub is_unit: bool,
    /// The description of its fields.
    pub schema: Value,
}

impl Variant {
    /// Its fields: name, description, and whether it must be there.
    pub fn fields(&self) -> Vec<(&str, &Value, bool)> {
        let required = |name: &str| {
            let all = self.schema["required"].as_array();
            all.is_some_and(|all| all.iter().any(|n| n == name))
        };
        let all = self.schema["properties"].as_object().into_iter().flatten();
        all.map(|(name, schema)| (&name[..], schema, required(name)))
            .collect()
    }
}

/// Descriptions as OpenAPI 3.1 has them.
pub(crate) fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
        s.meta_schema = None;
    });
    SchemaGenerator::new(settings)
}

/// The variants of an externally tagged enumeration.
pub(crate) fn variants<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Variant> {
    let schema = T::json_schema(generator).to_value();
    let text = |v: &Value| v["description"].as_str().unwrap_or_default().to_owned();
    let all = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let mut variants = Vec::new();
    for one in &all {
        let unit = |name: &Value| Variant {
            name: name.as_str().unwrap_or_default().to_owned(),
            text: text(one),
            is_unit: true,
            schema: Value::Null,
        };
        variants.extend(one.get("const").map(unit));
        variants.extend(one["enum"].as_array().into_iter().flatten().map(unit));
        let fields = one["properties"].as_object().into_iter().flatten();
        variants.extend(fields.map(|(name, schema)| Variant {
            name: name.clone(),
            text: text(one),
            is_unit: false,
            schema: described(generator, schema),
        }));
    }
    variants
}

/// A description itself where another only names it: a variant that holds one type has that type's fields.
pub(crate) fn described(generator: &mut SchemaGenerator, schema: &Value) -> Value {
    let name = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next());
    let found = name.and_then(|name| generator.definitions().get(name));
    found.unwrap_or(schema).clone()
}

/// What can be asked.
pub(crate) fn questions() -> &'static [Variant] {
    static ALL: OnceLock<Vec<Variant>> = OnceLock::new();
    ALL.get_or_init(|| variants::<Query>(&mut generator()))
}

/// What can be done with the configuration as a whole.
pub(crate) fn actions() -> &'static [Variant] {
    static ALL: OnceLock<Vec<Variant>> = OnceLock::new();
    ALL.get_or_init(|| variants::<ConfigAction>(&mut generator()))
}

/// A question: the name is of the path, its fields are parameters. A field that is a choice with a value is written with a
/// dot: `select.match=192.0.2.1`.
pub fn read_query(name: &str, parameters: &str) -> Result<Query, Problem> {
    let classes = classes();
    let given: Result<Vec<(String, String)>, _> = serde_urlencoded::from_str(parameters);
    let given =
        given.map_err(|e| Problem::malformed(format!("the parameters are not readable: {e}")));
    let Some(question) = questions().iter().find(|q| q.name == name) else {
        return match classes.query(name).filter(|query| query.has_whole()) {
            Some(query) => registered(query, given?),
            None => Err(no_such_query(&classes, name)),
        };
    };
    let given = given?;
    let fields = question.fields();
    let mut values = Map::new();
    for (key, text) in given {
        let (field, inner) = match key.split_once('.') {
            Some((field, inner)) => (field, Some(inner)),
            None => (&key[..], None),
        };
        let Some((_, schema, _)) = fields.iter().find(|(name, _, _)| *name == field) else {
            let names: Vec<&str> = fields.iter().map(|(name, _, _)| *name).collect();
            return Err(no_such_parameter(name, field, &names));
        };
        let mut value = typed(field, schema, text)?;
        if let Some(inner) = inner {
            value = Value::Object(Map::from_iter([(inner.to_owned(), value)]));
        }
        if values.insert(field.to_owned(), value).is_some() {
            return Err(twice(field));
        }
    }
    let name = Value::String(question.name.clone());
    let query = match (question.is_unit, name) {
        (true, name) => name,
        (false, _) => Value::Object(Map::from_iter([(
            question.name.clone(),
            Value::Object(values),
        )])),
    };
    serde_json::from_value(query)
        .map_err(|e| Problem::malformed(format!("/v1/show/{}: {e}", question.name)))
}

fn no_such_query(classes: &Classes, name: &str) -> Problem {
    let names = questions().iter().map(|q| &q.name[..]);
    let whole = classes.queries().filter(|query| query.has_whole());
    let mut names: Vec<&str> = names.chain(whole.map(QueryClass::name)).collect();
    names.sort_unstable();
    let known = names.join(", ");
    Problem::no_such_path(format!("there is no /v1/show/{name}; there are: {known}"))
}

fn no_such_parameter(query: &str, parameter: &str, names: &[&str]) -> Problem {
    let known = match names {
        [] => "it takes none".to_owned(),
        names => format!("it takes: {}", names.join(", ")),
    };
    let message = format!("/v1/show/{query} has no parameter '{parameter}'; {known}");
    Problem::malformed(message).at(parameter.to_owned())
}

fn twice(parameter: &str) -> Problem {
    let message = format!("parameter '{parameter}' is given twice");
    Problem::malformed(message).at(parameter.to_owned())
}

/// A query of the registry.
fn registered(query: &QueryClass, given: Vec<(String, String)>) -> Result<Query, Problem> {
    let class = query.class();
    let mut slots = vec![None; class.fields().len()];
    for (name, text) in given {
        let Some((at, field)) = class.field(&name) else {
            let names: Vec<&str> = class.fields().iter().map(|f| f.name).collect();
            return Err(no_such_parameter(query.name(), &name, &names));
        };
        let value = field.kind.read(&text);
        let value = value.map_err(|why| {
            Problem::malformed(format!("parameter '{name}' {why}")).at(name.clone())
        })?;
        if slots[at].replace(value).is_some() {
            return Err(twice(&name));
        }
    }
    let asked = class.instance(slots);
    let asked = asked.map_err(|error| {
        let place = error.field.to_owned();
        Problem::malformed(format!("/v1/show/{}: {error}", query.name())).at(place)
    });
    asked.map(Query::Registered)
}

/// A parameter's text as the type that its field has.
fn typed(field: &str, schema: &Value, text: String) -> Result<Value, Problem> {
    let is = |kind: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|k| k == kind),
        one => one == kind,
    };
    if !is("integer") {
        return Ok(Value::String(text));
    }
    let number: Result<u64, _> = text.parse();
    number.map(Value::from).map_err(|_| {
        let message = format!("parameter '{field}' is '{text}', it must be a number");
        Problem::malformed(message).at(field.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_from_paths() {
        let log = Query::Log {
            max: Some(2),
            level: None,
            module: None,
            after: None,
        };
        assert_eq!(read_query("log", "max=2"), Ok(log));
        for (name, parameters) in [
            ("log", "max=x"),
            ("log", "max=1&max=2"),
            ("log", "nome=pg0"),
            ("nothing", ""),
        ] {
            let problem = read_query(name, parameters).unwrap_err();
            assert!(!problem.message.contains('\n'), "{}", problem.message);
        }
    }

    #[test]
    fn every_variant_has_a_path() {
        assert!(questions().iter().all(|q| !q.text.is_empty()));
        let names: Vec<&str> = actions().iter().map(|a| &a.name[..]).collect();
        assert_eq!(
            names,
            [
                "check", "show", "diff", "commit", "confirm", "rollback", "history"
            ]
        );
    }
}
