//! Objects of registered classes as resources: `/v1/CLASS` and `/v1/CLASS/KEY...`.

use crate::answer::{Answer, Caller, internal, json};
use crate::control::{Api, Change};
use crate::error::Problem;
use crate::shows::given;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};
use std::rc::Rc;
use volley_model::{ModelError, ObjectKind, Request};
use volley_object::{Class, FieldDef, Instance, ObjectKey, Value, classes, shown};

/// Splits a path into the class and the words of the key.
fn split(uri: &Uri) -> Result<(Class, Vec<String>), Problem> {
    let path = uri.path().strip_prefix("/v1/").unwrap_or_default();
    let mut words = path.split('/').map(|word| {
        let decoded = percent_decode_str(word).decode_utf8();
        decoded
            .map(|text| text.into_owned())
            .map_err(|_| Problem::malformed(format!("'{word}' in the path is not UTF-8")))
    });
    let name = words.next().transpose()?.unwrap_or_default();
    let classes = classes();
    let Some(class) = classes.get(&name).cloned() else {
        let shown = shown(&name);
        let message = format!("there is no path /v1/{shown}; GET /v1/openapi.json lists them");
        return Err(Problem::no_such_path(message));
    };
    let words: Result<Vec<String>, Problem> = words.collect();
    Ok((class, words?))
}

fn one(class: &Class, words: &[String]) -> Result<ObjectKey, Problem> {
    let keys = class.keys();
    let least = keys.iter().filter(|key| key.is_essential()).count();
    if !(least..=keys.len()).contains(&words.len()) {
        let names: Vec<String> = keys.iter().map(|k| format!("{{{}}}", k.name)).collect();
        let path = std::iter::once(class.name().to_owned()).chain(names);
        let path: Vec<String> = path.collect();
        let message = format!(
            "the path of an object of this class is /v1/{}; a '/' in a name is written %2F",
            path.join("/")
        );
        return Err(Problem::no_such_path(message));
    }
    let read = |(field, word): (&FieldDef, &String)| {
        let value = field.kind.read(word);
        value.map_err(|why| Problem::malformed(format!("{} {why}", field.name)))
    };
    let values: Result<Vec<Value>, Problem> = keys.iter().zip(words).map(read).collect();
    class.key(values?).map_err(Problem::malformed)
}

/// The key of the object at a path.
#[cfg(fuzzing)]
pub(crate) fn key_of(uri: &Uri) -> Result<ObjectKey, Problem> {
    let (class, words) = split(uri)?;
    one(&class, &words)
}

fn absent(key: &ObjectKey) -> Problem {
    let none: [String; 0] = [];
    ModelError::not_found(ObjectKind::Object, key, none).into()
}

/// The current object of a key: configured, or the defaults of a class that always has a value.
async fn now(api: &dyn Api, key: &ObjectKey) -> Result<Option<Instance>, Problem> {
    let found = api.object(key.clone()).await?;
    let always = key.class().is_always();
    Ok(found.or_else(|| always.then(|| Instance::usual(key)).flatten()))
}

/// The objects of a class whose fields have the values in the query string.
fn filtered(all: Vec<Instance>, class: &Class, query: &str) -> Result<Vec<Instance>, Problem> {
    let path = format!("/v1/{}", class.name());
    let wanted = given(class, &path, query, |field| field.kind.element())?;
    let has = |object: &Instance, at: usize, value: &Value| {
        let slot = object.slot(at);
        slot.is_some_and(|slot| slot.elements().contains(value))
    };
    let mut all = all;
    all.retain(|object| wanted.iter().all(|(at, value)| has(object, *at, value)));
    Ok(all)
}

fn map(bytes: &[u8]) -> Result<Map<String, Json>, Problem> {
    match bytes.trim_ascii() {
        b"" => Ok(Map::new()),
        bytes => serde_json::from_slice(bytes)
            .map_err(|e| Problem::malformed(format!("the body is not a JSON object: {e}"))),
    }
}

/// An object from its key values and a body; `before` provides the fields that the body omits.
fn merged(
    key: &ObjectKey,
    before: Option<&Instance>,
    mut body: Map<String, Json>,
) -> Result<Instance, Problem> {
    let class = key.class();
    let written = |slot: &Value| serde_json::to_value(slot).unwrap_or_default();
    for (field, value) in class.keys().iter().zip(key.values()) {
        let value = written(value);
        match body.get(field.name) {
            Some(other) if *other != value => {
                let message = format!("{} must be {value}, as the path has it", field.name);
                return Err(Problem::malformed(message).at(field.name.to_owned()));
            }
            _ => _ = body.insert(field.name.to_owned(), value),
        }
    }
    for (at, field) in class.fields().iter().enumerate() {
        if let Some(value) = before.and_then(|object| object.slot(at)) {
            let entry = body.entry(field.name.to_owned());
            entry.or_insert_with(|| written(value));
        }
    }
    class.from_json(&body).map_err(Problem::malformed)
}

type Work = Result<Json, Problem>;

fn reported<T: serde::Serialize>(value: &T) -> Work {
    serde_json::to_value(value).map_err(internal)
}

async fn changed(api: &dyn Api, requests: Vec<Request>) -> Work {
    let change: Change = api.change(requests).await?;
    reported(&change)
}

/// Carries out a request for a resource on the control thread.
async fn work(
    api: Rc<dyn Api>,
    method: Method,
    (class, words): (Class, Vec<String>),
    query: String,
    body: Map<String, Json>,
) -> Work {
    let is_list = words.is_empty() && !class.keys().is_empty();
    if is_list {
        if method != Method::GET {
            let message = format!("{method} is for one object; GET lists all");
            return Err(Problem::method(message));
        }
        let all = api.objects(class.name().to_owned()).await?;
        return reported(&filtered(all, &class, &query)?);
    }
    let key = one(&class, &words)?;
    if method == Method::GET {
        let found = now(&*api, &key).await?;
        return reported(&found.ok_or_else(|| absent(&key))?);
    }
    // Before the body is read: a client without the right must not learn about the object.
    api.allow(Request::without(key.clone()).role())?;
    let is_interface = class.is_interface();
    let before = match is_interface || class.def().once || method == Method::PATCH {
        true => now(&*api, &key).await?,
        false => None,
    };
    if method == Method::DELETE {
        // An interface of another class may have this name.
        let missing = is_interface && before.is_none();
        return match missing {
            true => Err(absent(&key)),
            false => changed(&*api, vec![Request::without(key.clone())]).await,
        };
    }
    let kept = match method == Method::PATCH {
        true => Some(before.as_ref().ok_or_else(|| absent(&key))?),
        false => None,
    };
    let object = merged(&key, kept, body)?;
    // The command that creates the object would be refused: request only the difference.
    let requests = match before {
        Some(before) if before == object.kept() => return reported(&Change::default()),
        Some(_) if is_interface => return Err(has_other_values(&key)),
        Some(_) if class.def().once => {
            vec![Request::without(key.clone()), Request::of_object(object)]
        }
        _ => vec![Request::of_object(object)],
    };
    changed(&*api, requests).await
}

/// Refuses to change fields that require deletion: an interface is never deleted implicitly, because its traffic would stop.
fn has_other_values(key: &ObjectKey) -> Problem {
    let what = format!("{} {}", key.class().noun(), key.name());
    let why =
        "it is there with other values, and an interface is created with them: DELETE it first";
    ModelError::invalid(what, why).into()
}

/// Answers a request for a resource.
pub(crate) async fn answer(
    caller: Caller,
    method: Method,
    uri: Uri,
    RawQuery(query): RawQuery,
    content: Body,
) -> Answer {
    let place = split(&uri)?;
    let content = match method {
        Method::PUT | Method::PATCH => caller.value(content, map).await?,
        _ => Map::new(),
    };
    let query = query.unwrap_or_default();
    let asked = caller.ask(move |api| Box::pin(work(api, method, place, query, content)));
    json(&asked.await?)
}

/// The paths of all classes, for the OpenAPI document.
pub(crate) fn paths(change: &Json, answer: impl Fn(&str, &str, Json) -> Json) -> Map<String, Json> {
    const JSON: &str = "application/json";
    let mut paths = Map::new();
    for class in classes().iter() {
        let (name, doc) = (class.name(), class.doc());
        let object = class.schema(false, true);
        let mut bare = class.schema(false, false);
        bare["required"] = Json::Array(Vec::new());
        let parameter = |place: &str, field: &FieldDef| {
            serde_json::json!({
                "name": field.name, "in": place, "required": place == "path", "schema": field.schema(),
            })
        };
        let keys: Vec<Json> = class.keys().iter().map(|f| parameter("path", f)).collect();
        let path = class
            .keys()
            .iter()
            .fold(format!("/v1/{name}"), |path, field| {
                format!("{path}/{{{}}}", field.name)
            });
        let operation = |verb: &str, text: &str, body: Option<&Json>, schema: Json| {
            let mut operation = serde_json::json!({
                "operationId": format!("{verb}-{name}"),
                "summary": text,
                "description": doc,
                "parameters": keys,
                "responses": answer(text, JSON, schema),
            });
            if let Some(body) = body {
                let content = serde_json::json!({ "content": { JSON: { "schema": body } } });
                operation["requestBody"] = content;
            }
            operation
        };
        let operations = serde_json::json!({
            "get": operation("get", "Read the object.", None, object.clone()),
            "put": operation("put", "Create or replace the object; a field that is left out gets its default.",
                Some(&bare), change.clone()),
            "patch": operation("patch", "Change the fields that are given.", Some(&bare), change.clone()),
            "delete": operation("delete", "Remove the object, or give the setting its defaults back.", None, change.clone()),
        });
        paths.insert(path, operations);
        if !class.keys().is_empty() {
            let filters: Vec<Json> = class
                .fields()
                .iter()
                .map(|f| parameter("query", f))
                .collect();
            let list = serde_json::json!({ "type": "array", "items": object });
            let text = "List the objects, those with the given values only.";
            let get = serde_json::json!({ "get": {
                "operationId": format!("list-{name}"),
                "summary": text,
                "description": doc,
                "parameters": filters,
                "responses": answer(text, JSON, list),
            } });
            paths.insert(format!("/v1/{name}"), get);
        }
    }
    paths
}
