//! Answers as text: tables for people, or JSON.

mod config;
mod log;

pub(crate) use config::text as config;
use volley_model::{Applied, Reply};
pub use volley_object::View;

/// An answer as text; ends with a newline unless empty.
pub fn text(reply: &Reply, view: View) -> String {
    match (reply, view) {
        (Reply::Registered(answer), view) => answer.text(view),
        (Reply::Log(r), _) => log::log(r),
    }
}

/// An answer as JSON, without the name of the query around it.
pub fn json(reply: &Reply) -> serde_json::Value {
    if let Reply::Registered(answer) = reply {
        return answer.json();
    }
    match serde_json::to_value(reply) {
        Ok(serde_json::Value::Object(map)) => map
            .into_iter()
            .next()
            .map_or(serde_json::Value::Null, |(_, v)| v),
        Ok(other) => other,
        Err(_) => serde_json::Value::Null,
    }
}

/// What a change did, as text: nothing when all is said by its success.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    for note in &applied.notes {
        out += &format!("{note}\n");
    }
    out
}
