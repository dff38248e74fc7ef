//! Removes secrets from requests before they are shown.

use volley_model::Request;

/// The replacement of a secret.
const HIDDEN: &str = "<hidden>";

/// A request with `<hidden>` in place of secrets.
pub fn without_secrets(request: Request) -> Request {
    match request {
        Request::InterfaceCreate(mut spec) => {
            spec.kind = spec.kind.hiding(HIDDEN);
            Request::InterfaceCreate(spec)
        }
        Request::Set(object) => Request::Set(object.hiding(HIDDEN)),
        Request::Add(object) => Request::Add(object.hiding(HIDDEN)),
        Request::UnsetExact(object) => Request::UnsetExact(object.hiding(HIDDEN)),
        other => other,
    }
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
            let shown = without_secrets(request).to_string();
            let wanted = with.replace(&quote(secret), HIDDEN);
            assert_eq!(shown, wanted);
            assert!(wanted.contains(" secret <hidden>") && wanted.contains("mtu 1400"));
        }
        let up = Request::unset_key("test_lamp", ["m0".into()]).unwrap();
        assert_eq!(without_secrets(up.clone()), up);
    }
}
