//! Objects of registered classes.

use super::{Done, Editor};
use crate::key::{Key, Value};
use crate::state::instance;
use std::sync::Arc;
use volley_model::{ModelError, ObjectKind};
use volley_object::{Change, Instance, ObjectKey};

impl Editor<'_> {
    /// Creates or changes an object. An object of a class without a command for removal always has a value: an object without
    /// fields means the default.
    pub(super) fn set_object(&mut self, object: &Instance) -> Done {
        if object.class().def().bulk {
            return self.set_repeated(object);
        }
        let key = object.key();
        match key.class().def().once {
            // The interface of the object may follow in the same transaction.
            true => self.is_new(&Key::object(key.clone()))?,
            false => self.owner_exists(&key)?,
        }
        self.is_alone(&key)?;
        let always = key.class().is_always();
        let says = !(always && object.is_usual());
        let value = says.then(|| Value::Object(Arc::new(object.clone())));
        let key = Key::object(key);
        if object.class().def().brings.is_some() && self.state.get(&key) == value.as_ref() {
            // What the object brings may have changed, such as the file of a plugin.
            self.changes.repeated.insert(key.clone());
        }
        if let Some(of) = key.together()
            && self.state.has(&key)
        {
            let is_last = self.state.sequence(of).last() == Some(&&key);
            let is_same = self.state.get(&key) == value.as_ref();
            if is_same {
                self.changes.again.insert(key.clone());
            }
            if !(is_same && is_last) {
                // The object moves behind the others.
                self.put(key.clone(), None);
            }
        }
        self.put(key, value);
        Ok(())
    }

    /// Refuses an object if the interface has an object of another class of the same group.
    fn is_alone(&self, key: &ObjectKey) -> Done {
        if key.class().def().one_of.is_empty() {
            return Ok(());
        }
        let classes = volley_object::classes();
        for other in classes.group_of(key.class()) {
            let other = Key::object(key.of_class(other));
            if let Some(Value::Object(object)) = self.state.get(&other) {
                let by = format!("{other} ({})", object.summary());
                let name = key.owner().unwrap_or_default();
                return Err(ModelError::in_use(ObjectKind::Interface, name, by));
            }
        }
        Ok(())
    }

    /// Changes fields of an object, or of all objects of a class. The owner carries the change out even if no value differs:
    /// the action that the object started may have ended already.
    pub(super) fn change(&mut self, change: &Change) -> Done {
        let keys: Vec<Key> = match change.key() {
            Some(key) => vec![Key::object(key)],
            None => {
                let all = self.state.keys_of(change.class().name()).into_iter();
                all.map(Key::object).collect()
            }
        };
        for key in keys {
            self.exists(&key)?;
            let Some(object) = self.state.get(&key).and_then(|it| instance(&key, it)) else {
                continue;
            };
            let wrong = |error| ModelError::invalid(&key, error);
            let changed = change.of(&object).map_err(wrong)?;
            if changed == object {
                self.changes.repeated.insert(key.clone());
            }
            if changed.class().def().bulk {
                self.set_repeated(&changed)?;
                continue;
            }
            self.put(key, Value::Object(Arc::new(changed)));
        }
        Ok(())
    }

    /// Removes an object if all its values are equal to these.
    pub(super) fn unset_exact(&mut self, object: &Instance) -> Done {
        let key = object.key();
        self.owner_exists(&key)?;
        match self.state.object(&key) {
            Some(now) if now != *object => {
                let why = format!("it has {}, not {}", now.summary(), object.summary());
                Err(ModelError::invalid(key, why))
            }
            _ => self.unset_object(&key),
        }
    }

    /// Removes the object of an interface that belongs to any class of the group.
    pub(super) fn unset_any(&mut self, key: &ObjectKey) -> Done {
        self.owner_exists(key)?;
        let classes = volley_object::classes();
        let mut nouns = vec![key.class().noun()];
        if self.state.has(&Key::object(key.clone())) {
            return self.unset_object(key);
        }
        for class in classes.group_of(key.class()) {
            let other = key.of_class(class);
            if self.state.has(&Key::object(other.clone())) {
                return self.unset_object(&other);
            }
            nouns.push(class.noun());
        }
        nouns.sort();
        let what = format!("interface {}", key.owner().unwrap_or_default());
        let why = format!("it has none of: {}", nouns.join(", "));
        Err(ModelError::invalid(what, why))
    }

    /// Removes an object. A part of an interface may be absent already, unless it is a separate object or belongs to a group.
    pub(super) fn unset_object(&mut self, key: &ObjectKey) -> Done {
        self.owner_exists(key)?;
        if key.is_of_many() {
            return self.unset_together(key);
        }
        let class = key.class();
        let def = class.def();
        let is_alone = class.is_thing() || def.once || !def.one_of.is_empty();
        let is_part = key.owner().is_some() && !is_alone;
        let is_setting = is_part || class.is_always();
        let key = Key::object(key.clone());
        if is_setting && !self.state.has(&key) {
            return Ok(());
        }
        if def.brings.is_some() {
            self.take_brought(&key)?;
        }
        self.take(key)
    }

    /// Removes the objects of the classes that an object brings: those that need others first.
    fn take_brought(&mut self, by: &Key) -> Done {
        let all: Vec<Key> = self.state.brought_by(by).cloned().collect();
        all.into_iter().rev().try_for_each(|key| self.take(key))
    }

    /// Removes the objects that share the only value of this key.
    fn unset_together(&mut self, key: &ObjectKey) -> Done {
        let all: Vec<Key> = self.state.sequence(key).into_iter().cloned().collect();
        if all.is_empty() {
            return Err(self.state.not_found(&Key::object(key.clone())));
        }
        all.into_iter().try_for_each(|key| self.take(key))
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
            let near = !class.has_parts_elsewhere("interface");
            let all = self.state.near(class, near.then_some(interface));
            let all = all.filter(|(_, it)| it.is_part_of("interface", interface));
            found.extend(all.map(|(key, _)| key.clone()));
        }
        found
    }

    /// The objects whose lists lose an interface when the interface is deleted.
    pub(super) fn losing(&self, interface: &str) -> Vec<Key> {
        let classes = volley_object::classes();
        let mut found = Vec::new();
        for class in classes.iter().filter(|class| class.loses()) {
            found.extend(self.state.referring(class, interface).cloned());
        }
        found
    }

    /// Deletes references to an interface: lists lose it, and objects that cannot exist without it are removed.
    pub(super) fn lose(&mut self, interface: &str) {
        for key in self.losing(interface) {
            let Some(Value::Object(object)) = self.state.get(&key) else {
                continue;
            };
            let left = object
                .losing(&|class, name| class == "interface" && name.as_text() == Some(interface));
            self.put(key, left.map(|it| Value::Object(Arc::new(it))));
        }
    }
}
