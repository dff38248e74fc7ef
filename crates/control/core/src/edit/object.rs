//! Objects of registered classes.

use super::{Done, Editor};
use crate::key::{Key, Value};
use std::sync::Arc;
use volley_object::{Instance, ObjectKey};

impl Editor<'_> {
    /// Creates or changes an object. A class that has no command to remove its objects has a value always: one that says
    /// nothing is the same as none.
    pub(super) fn set_object(&mut self, object: &Instance) -> Done {
        let key = object.key();
        self.owner_exists(&key)?;
        let always = key.class().unset_patterns().is_empty();
        let says = !(always && object.is_usual());
        let value = says.then(|| Value::Object(Arc::new(object.clone())));
        self.put(Key::object(key), value);
        Ok(())
    }

    /// Removes an object. A part of an interface may be absent already.
    pub(super) fn unset_object(&mut self, key: &ObjectKey) -> Done {
        self.owner_exists(key)?;
        let is_setting = key.owner().is_some() || key.class().unset_patterns().is_empty();
        let key = Key::object(key.clone());
        if is_setting && !self.state.has(&key) {
            return Ok(());
        }
        self.take(key)
    }

    fn owner_exists(&self, key: &ObjectKey) -> Done {
        match (key.class().part_of(), key.owner()) {
            (Some("interface"), Some(name)) => self.exists(&Key::Interface(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// The objects that are parts of an interface.
    pub(super) fn objects_of(&self, interface: &str) -> Vec<Key> {
        let classes = volley_object::classes();
        let mut found = Vec::new();
        for class in classes.parts_of("interface") {
            let elsewhere = class.has_parts_elsewhere("interface");
            let first = match elsewhere {
                true => ObjectKey::least_of(class),
                false => ObjectKey::first_of(class, interface),
            };
            let near = |(key, _): &(&Key, &Value)| match key {
                Key::Setting(it) => {
                    it.class() == class && (elsewhere || it.owner() == Some(interface))
                }
                _ => false,
            };
            let of = |(_, value): &(&Key, &Value)| match value {
                Value::Object(it) => it.is_part_of("interface", interface),
                _ => false,
            };
            let near = self.state.from(Key::Setting(first)).take_while(near);
            found.extend(near.filter(of).map(|(key, _)| key.clone()));
        }
        found
    }

    /// All objects that may refer to interfaces.
    pub(super) fn objects_that_refer(&self) -> Vec<Key> {
        let setting = |(_, value): &(&Key, &Value)| matches!(value, Value::Object(_));
        let all = self.state.iter().filter(setting);
        let all = all.filter(|(key, _)| matches!(key, Key::Setting(_)));
        all.map(|(key, _)| key.clone()).collect()
    }
}
