//! The effect of each request on the desired state.

use crate::key::{Key, Set, Value};
use crate::state::{Changes, State};
use std::collections::HashMap;
use std::sync::Arc;
use volley_model::{InterfaceSpec, ModelError, Request};
use volley_object::{Instance, Reference};

mod bulk;
mod object;

type Done = Result<(), ModelError>;

/// A state and the changes that were made to it.
struct Editor<'a> {
    state: &'a mut State,
    changes: &'a mut Changes,
}

impl State {
    /// Applies a request to the state. After an error, `changes` lists what was changed: the caller undoes it. [`State::check`]
    /// verifies afterwards that referenced objects exist, so the order of requests does not matter.
    pub fn edit(&mut self, request: &Request, changes: &mut Changes) -> Done {
        let state = self;
        Editor { state, changes }.edit(request)
    }
}

impl Editor<'_> {
    fn put(&mut self, key: Key, value: impl Into<Option<Value>>) {
        self.state.put(self.changes, key, value.into());
    }

    fn exists(&self, key: &Key) -> Done {
        if self.state.has(key) {
            return Ok(());
        }
        Err(self.state.not_found(key))
    }

    fn is_new(&self, key: &Key) -> Done {
        if self.state.has(key) {
            let (kind, name) = key.called();
            return Err(ModelError::exists(kind, name));
        }
        Ok(())
    }

    /// Refuses to remove an object that does not exist or is needed.
    fn may_go(&self, key: &Key) -> Done {
        self.exists(key)?;
        match self.state.is_needed(key) {
            true => Err(self.state.in_use(key)),
            false => Ok(()),
        }
    }

    fn take(&mut self, key: Key) -> Done {
        self.may_go(&key)?;
        self.put(key, None);
        Ok(())
    }

    fn edit(&mut self, request: &Request) -> Done {
        match request {
            Request::InterfaceCreate(spec) => self.create(spec),
            Request::InterfaceDelete { name } => self.delete(name),
            Request::InterfaceRename { name, new_name } => self.rename(name, new_name),
            Request::Set(object) => self.set_object(object),
            Request::Unset(key) => self.unset_object(key),
            Request::UnsetExact(object) => self.unset_exact(object),
            Request::UnsetAny(key) => self.unset_any(key),
            Request::Change(change) => self.change(change),
            Request::Add(object) => self.add(object),
            Request::Take(part) => self.take_part(part),
            Request::Bulk(bulk) => self.set_bulk(bulk),
            other => Err(ModelError::invalid(
                format!("`{other}` in a transaction"),
                "it changes no configuration: give it by itself",
            )),
        }
    }

    fn create(&mut self, spec: &InterfaceSpec) -> Done {
        let name = || spec.name.clone();
        if spec.name.is_empty() {
            let why = "give it a name: a number is only given to one made by itself";
            let kind = spec.kind.class().def().interface;
            return Err(ModelError::invalid(format!("{kind} interface"), why));
        }
        self.is_new(&Key::Interface(name()))?;
        // Fields that are only part of the request are not part of the configuration.
        let kind = spec.kind.kept();
        self.put(Key::Interface(name()), Value::Object(Arc::new(kind)));
        for (class, value) in spec.settings() {
            let setting = Instance::of_value(class, &spec.name, value);
            let setting = setting.map_err(|e| ModelError::invalid(class, e))?;
            let key = Key::object(setting.key());
            self.put(key, Value::Object(Arc::new(setting)));
        }
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Done {
        let key = Key::Interface(name.to_owned());
        self.may_go(&key)?;
        for sub in self.subs(name) {
            self.delete(&sub)?;
        }
        for part in self.objects_of(name) {
            self.put(part, None);
        }
        self.lose(name);
        self.put(key, None);
        Ok(())
    }

    /// Names of an interface's sub-interfaces: they begin with the name of the interface.
    fn subs(&self, parent: &str) -> Vec<String> {
        let first = format!("{parent}.");
        let name = |(key, value): (&Key, &Value)| match (key, value) {
            (Key::Interface(name), Value::Object(kind)) if name.starts_with(&first) => {
                Some((name.clone(), kind.clone()))
            }
            _ => None,
        };
        let near = self
            .state
            .from(Key::Interface(first.clone()))
            .map_while(name);
        let own = |kind: &Instance| kind.is_part_of("interface", parent);
        near.filter(|(_, kind)| own(kind))
            .map(|(name, _)| name)
            .collect()
    }

    /// Refuses to rename an interface that has sub-interfaces: their names contain the name of the parent.
    fn keeps_name(&self, name: &str) -> Done {
        let kind = self.state.get(&Key::Interface(name.to_owned()));
        let is_sub = matches!(kind, Some(Value::Object(kind)) if is_part(kind));
        let why = match (is_sub, self.subs(name).first()) {
            (true, _) => "a sub-interface is called after its parent and its number".to_owned(),
            (false, None) => return Ok(()),
            (false, Some(sub)) => {
                format!("its sub-interfaces, such as {sub}, are called after it: delete them first")
            }
        };
        let what = format!("another name for {name}");
        Err(ModelError::invalid(what, why))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> Done {
        let interface = Key::Interface(name.to_owned());
        self.exists(&interface)?;
        if name == new_name {
            return Ok(());
        }
        self.is_new(&Key::Interface(new_name.to_owned()))?;
        self.keeps_name(name)?;
        let refers = |(it, value): &(&Key, &Value)| match value {
            Value::Common(set) => set.needs.contains(&interface),
            Value::Object(object) => **it == interface || object.refers_to("interface", name),
        };
        let touched = self.state.iter().filter(refers).map(|(key, _)| key.clone());
        let mut touched: Vec<Key> = touched.collect();
        // Ordered objects keep their order under their new names.
        touched.sort_by_key(|key| self.state.place(key));
        let mut sets: HashMap<*const Set, Value> = HashMap::new();
        for key in touched {
            let Some(value) = self.state.get(&key).cloned() else {
                continue;
            };
            if let (Key::Bulk(of), Value::Common(set)) = (&key, &value) {
                let renamed = sets.entry(Arc::as_ptr(set));
                let renamed = renamed.or_insert_with(|| {
                    let object = of
                        .instance(&set.values)
                        .renamed("interface", name, new_name);
                    Value::Common(self.state.share(of, object.normal().values()))
                });
                let renamed = renamed.clone();
                self.put(key, renamed);
                continue;
            }
            let Value::Object(object) = &value else {
                continue;
            };
            let renamed = match key == interface {
                true => object.named(new_name),
                false => object.renamed("interface", name, new_name),
            };
            let to = Key::object(renamed.key());
            if to != key {
                self.put(key, None);
            }
            self.put(to, Value::Object(Arc::new(renamed)));
        }
        Ok(())
    }
}

/// Whether an interface is a part of another interface.
fn is_part(kind: &Instance) -> bool {
    let part = Some(Reference::part_of("interface"));
    kind.class().fields().iter().any(|f| f.reference == part)
}
