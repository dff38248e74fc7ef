//! Removes secrets from commands before they are shown.

use std::borrow::Cow;
use volley_model::Request;

/// The keyword before a secret in a command.
const BEFORE: &str = " secret ";
/// The replacement of a secret. No command can set it as a secret: `<` begins no plain word of the command line.
const HIDDEN: &str = "<hidden>";

/// A command with `<hidden>` in place of a secret.
pub fn hidden(command: &str) -> Cow<'_, str> {
    let Some(at) = command.find(BEFORE) else {
        return command.into();
    };
    let (head, value) = command.split_at(at + BEFORE.len());
    let rest = &value[length(value)..];
    format!("{head}{HIDDEN}{}", hidden(rest)).into()
}

/// Requests with `<hidden>` in place of secrets.
pub fn without_secrets(mut requests: Vec<Request>) -> Vec<Request> {
    for request in &mut requests {
        if let Request::InterfaceCreate(spec) = request {
            spec.kind = spec.kind.hiding(HIDDEN);
        }
    }
    requests
}

/// Length in bytes of the first word of a text: up to a blank, or in quotation marks.
fn length(text: &str) -> usize {
    let Some(quoted) = text.strip_prefix('"') else {
        return text.find(char::is_whitespace).unwrap_or(text.len());
    };
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            '"' if !escaped => return at + 2,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_model::{InterfaceSpec, Request, quote};
    use volley_object::Object;

    /// Lamp with a secret.
    #[derive(Object)]
    #[object(class = "test_lamp", interface = "test-lamp")]
    #[object(set = "create lamp <name> {secret <secret> | mtu <+mtu>}")]
    struct Lamp {
        /// Name.
        #[object(key)]
        name: String,
        /// Secret.
        #[object(secret)]
        secret: Option<String>,
    }

    #[test]
    fn secrets_of_any_text_are_hidden_and_the_rest_stays() {
        for secret in [
            "psst",
            "a b",
            "\"",
            "\\",
            "\\\" secret \"",
            "é",
            "' secret x",
        ] {
            let lamp = Lamp {
                name: "m0".into(),
                secret: Some(secret.into()),
            };
            let mut spec = InterfaceSpec::of(&lamp).unwrap();
            spec.mtu = Some(1400);
            let request = Request::InterfaceCreate(spec);
            let with = request.to_string();
            let without = without_secrets(vec![request])[0].to_string();
            assert_eq!(hidden(&without), hidden(&with));
            assert!(without.contains(HIDDEN), "{without}");
            let shown = hidden(&with);
            let wanted = with.replace(&quote(secret), "<hidden>");
            assert_eq!(shown, wanted);
            assert!(wanted.contains(" secret <hidden>") && wanted.contains("mtu 1400"));
        }
        assert_eq!(
            hidden("set interface state pg0 up"),
            "set interface state pg0 up"
        );
    }
}
