//! The OpenAPI document of the interface, generated from the types.

use crate::control::{Change, RunningState};
use crate::error::Refusal;
use crate::events::Wanted;
use crate::paths::Export;
use crate::shows::{Variant, actions, described, generator, variants};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};
use volley_model::{ConfigAction, ConfigReply, Event, Request};
use volley_object::{FieldDef, Parameters};

/// The document as text, generated once for each set of classes.
pub(crate) fn text() -> String {
    static LAST: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let generation = volley_object::classes().generation();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((made_for, text)) if *made_for == generation => text.clone(),
        _ => last.insert((generation, document().to_string())).1.clone(),
    }
}

/// The OpenAPI document.
pub fn document() -> Value {
    let mut made = generator();
    let mut paths = Map::new();
    shows(&mut made, &mut paths);
    changes(&mut made, &mut paths);
    configuration(&mut made, &mut paths);
    rest(&mut made, &mut paths);
    let refusal = made.subschema_for::<Refusal>().to_value();
    let responses = json!({
        "Refused": {
            "description": "It was refused and changed nothing.",
            "content": { "application/json": { "schema": refusal } },
        },
    });
    let schemas = made.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Volley",
            "version": "1",
            "description": "Requests, transactions, state, events and metrics of a Volley router.",
        },
        "paths": paths,
        "components": { "schemas": schemas, "responses": responses },
    })
}

fn answer(text: &str, kind: &str, schema: Value) -> Value {
    json!({
        "200": { "description": text, "content": { kind: { "schema": schema } } },
        "default": { "$ref": "#/components/responses/Refused" },
    })
}

const JSON: &str = "application/json";

/// The query that also has a shorter path.
pub(crate) const LOG: &str = "log";
/// The schema of a log record, which is in that query's reply.
const RECORD: &str = "LogRecord";

/// The parameters of a path.
fn parameters(fields: &[FieldDef]) -> Vec<Value> {
    let fields = fields.iter();
    let one = |field: &FieldDef| json!({ "name": field.name, "in": "query", "required": field.required(), "schema": field.schema() });
    fields.map(one).collect()
}

fn shows(made: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let all = volley_object::classes();
    for query in all.queries().filter(|query| query.has_whole()) {
        let (name, class) = (query.name(), query.class());
        let schema = query.schema(made).to_value();
        let reply = described(made, &schema);
        let get = json!({
            "operationId": format!("show-{name}"),
            "summary": class.doc(),
            "parameters": parameters(&class.def().fields),
            "responses": answer("The answer.", JSON, reply),
        });
        if name == LOG {
            let mut get = get.clone();
            get["operationId"] = json!(LOG);
            paths.insert("/v1/log".into(), json!({ "get": get }));
        }
        paths.insert(format!("/v1/show/{name}"), json!({ "get": get }));
    }
}

fn posted(id: &str, summary: &str, schema: Value, responses: Value) -> Value {
    json!({ "post": {
        "operationId": id,
        "summary": summary,
        "requestBody": { "required": true, "content": { JSON: { "schema": schema } } },
        "responses": responses,
    } })
}

fn changes(made: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let one = made.subschema_for::<Request>().to_value();
    let many = made.subschema_for::<Vec<Request>>().to_value();
    let change = made.subschema_for::<Change>().to_value();
    let done = |text: &str| answer(text, JSON, change.clone());
    let text = "Carry out one request.";
    let responses = done("It is carried out, and every worker uses it.");
    paths.insert(
        "/v1/requests".into(),
        posted("request", text, one, responses),
    );
    let text = "Carry out several requests: all of them or none; an error names the index.";
    let responses = done("All of them are carried out, and every worker uses them.");
    paths.extend(crate::objects::paths(&change, answer));
    paths.insert(
        "/v1/transactions".into(),
        posted("transaction", text, many, responses),
    );
    verbs(&done("It is done, and every worker uses it."), paths);
}

fn verbs(responses: &Value, paths: &mut Map<String, Value>) {
    for verb in volley_object::classes().verbs() {
        let (name, class) = (verb.name(), verb.class());
        let id = format!("do-{name}");
        let mut path = posted(
            &id,
            class.doc(),
            class.schema(false, false),
            responses.clone(),
        );
        let is_needed = class.fields().iter().any(FieldDef::required);
        path["post"]["requestBody"]["required"] = is_needed.into();
        paths.insert(format!("/v1/do/{name}"), path);
    }
}

/// The type of the answer to an action.
pub(crate) fn reply_to(action: &str) -> &str {
    match action {
        "check" => "checked",
        "show" => "text",
        "diff" => "difference",
        "commit" | "rollback" => "committed",
        "confirm" => "confirmed",
        other => other,
    }
}

fn configuration(made: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let replies = variants::<ConfigReply>(made);
    let tagged = |action: &Variant| {
        let name = reply_to(&action.name);
        let inner = replies.iter().find(|r| r.name == name);
        let schema = inner.map_or(json!(true), |r| r.schema.clone());
        json!({ "type": "object", "required": [name], "properties": { name: schema } })
    };
    for action in variants::<ConfigAction>(made) {
        let responses = answer("It is done.", JSON, tagged(&action));
        let id = format!("config-{}", action.name);
        let path = posted(&id, &action.text, action.schema, responses);
        paths.insert(format!("/v1/config/{}", action.name), path);
    }
    if let Some(history) = actions().iter().find(|a| a.name == "history") {
        paths["/v1/config/history"]["get"] = json!({
            "operationId": "get-history",
            "summary": history.text,
            "responses": answer("The commits, newest first.", JSON, tagged(history)),
        });
    }
    let export = Export::definition().class;
    let get = json!({
        "operationId": "export",
        "summary": export.doc,
        "parameters": parameters(&export.fields),
        "responses": answer("The text.", "text/plain", json!({ "type": "string" })),
    });
    paths.insert("/v1/config/export".into(), json!({ "get": get }));
}

/// What `/v1/events` sends.
const EVENTS: &str = "What happens from now on: `start`, then `change` (what transactions change), `log` (records of the log) and, when the reader is too slow, `lost`. JSON lines when `application/x-ndjson` is accepted, else server-sent events.";

fn rest(made: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let state = made.subschema_for::<RunningState>().to_value();
    let event = made.subschema_for::<Event>().to_value();
    let record = match made.definitions().contains_key(RECORD) {
        true => json!({ "$ref": format!("#/components/schemas/{RECORD}") }),
        false => json!({ "type": "object" }),
    };
    let line = json!({
        "type": "object",
        "properties": {
            "start": { "type": "object", "properties": { "next_event": { "type": "integer" } } },
            "change": event,
            "log": record,
            "lost": {
                "type": "object",
                "properties": { "events": { "type": "integer" }, "records": { "type": "integer" } },
            },
        },
    });
    let (object, text) = (json!({ "type": "object" }), json!({ "type": "string" }));
    let figures = "Figures for Prometheus, in the text format 0.0.4.";
    for (path, id, summary, kind, schema) in [
        (
            "/v1/state",
            "state",
            "The desired state that runs.",
            JSON,
            state,
        ),
        ("/v1/events", "events", EVENTS, "application/x-ndjson", line),
        (
            "/v1/openapi.json",
            "openapi",
            "This document.",
            JSON,
            object,
        ),
        ("/metrics", "metrics", figures, "text/plain", text),
    ] {
        let responses = answer(summary, kind, schema);
        let get = json!({ "operationId": id, "summary": summary, "responses": responses });
        paths.insert(path.to_owned(), json!({ "get": get }));
    }
    let events = parameters(&Wanted::definition().class.fields);
    paths["/v1/events"]["get"]["parameters"] = events.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    into.push(to.clone());
                }
                map.values().for_each(|v| references(v, into));
            }
            Value::Array(all) => all.iter().for_each(|v| references(v, into)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_answer_has_a_type() {
        volley_log::classes().unwrap();
        let document = document();
        let level = &document["paths"]["/v1/do/log-level"]["post"];
        assert_eq!(level["operationId"], "do-log-level");
        assert!(document["paths"]["/v1/log"]["get"].is_object());
        let mut all = Vec::new();
        references(&document, &mut all);
        assert!(all.len() > 50, "{}", all.len());
        for to in all {
            let pointer = to.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{to}");
        }
        let made = &mut generator();
        let replies = variants::<ConfigReply>(made);
        for action in variants::<ConfigAction>(made) {
            let name = reply_to(&action.name);
            assert!(replies.iter().any(|r| r.name == name), "{}", action.name);
        }
    }
}
