//! Requests that create, change or remove one object.

use crate::key::{Key, Set, Value};
use std::sync::Arc;
use volley_model::{InterfaceSpec, Request};
use volley_object::{BulkKey, Class, Effect, Instance, ObjectKey};

/// Looks up an object of the state.
pub(crate) type Get<'g, 'v> = &'g dyn Fn(&Key) -> Option<&'v Value>;

/// The request that creates an interface together with its settings.
pub(crate) fn create_interface(name: &str, kind: &Instance, get: Get<'_, '_>) -> Request {
    let mut spec = InterfaceSpec::of_object(kind.clone());
    let classes = volley_object::classes();
    let created_with = |class: &&Class| InterfaceSpec::is_created_with(class.name());
    for class in classes.iter().filter(created_with) {
        let key = Key::Setting(ObjectKey::first_of(class, name));
        if let Some(Value::Object(setting)) = get(&key) {
            spec.create_with(setting);
        }
    }
    Request::InterfaceCreate(spec)
}

/// Requests for an interface and all objects that are deleted with it.
pub(crate) fn interface_with_settings(name: &str, get: Get<'_, '_>) -> Vec<Request> {
    let Some(Value::Object(kind)) = get(&Key::Interface(name.to_owned())) else {
        return Vec::new();
    };
    let mut all = vec![create_interface(name, kind, get)];
    let classes = volley_object::classes();
    let parts = classes.parts_of("interface");
    for class in parts.filter(|class| class.def().last) {
        let key = Key::Last(ObjectKey::first_of(class, name));
        all.extend(get(&key).and_then(|value| change(&key, value)));
    }
    all
}

/// The requests that create an object that does not exist. [`create_interface`] is for interfaces.
pub(crate) fn create(key: &Key, value: &Value, get: Get<'_, '_>) -> Vec<Request> {
    match (key, value) {
        (Key::Interface(name), Value::Object(kind)) => vec![create_interface(name, kind, get)],
        (Key::Bulk(key), Value::Common(set)) => vec![bulk(key, None, Some(set))],
        _ => change(key, value).into_iter().collect(),
    }
}

/// The request that changes the values of an object of a bulk class.
pub(crate) fn bulk(key: &BulkKey, from: Option<&Arc<Set>>, to: Option<&Arc<Set>>) -> Request {
    let Some(to) = to else {
        return Request::Unset(key.object_key());
    };
    let object = key.instance(&to.values);
    match from.is_none() && !object.class().patterns(Effect::Add).is_empty() {
        true => Request::Add(object),
        false => Request::Set(object),
    }
}

/// The request that sets the value of an object that may exist; `None` if the object must be removed first.
pub(crate) fn change(key: &Key, value: &Value) -> Option<Request> {
    Some(match (key, value) {
        (Key::Interface(_), _) => return None,
        (_, Value::Object(object)) => Request::Set(object.as_ref().clone()),
        (Key::Bulk(key), Value::Common(set)) => bulk(key, Some(set), Some(set)),
        _ => return None,
    })
}

/// The request that removes an object.
pub(crate) fn remove(key: &Key) -> Request {
    match key {
        Key::Global(key) | Key::Setting(key) | Key::Last(key) => Request::Unset(key.clone()),
        Key::Interface(name) => Request::InterfaceDelete { name: name.clone() },
        Key::Bulk(key) => bulk(key, None, None),
    }
}
