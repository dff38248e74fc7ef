//! What each request means for the desired state.

use crate::key::{Key, RouteKey, Value};
use crate::state::{Changes, State};
use std::sync::Arc;
use volley_model::{
    AdminState, InterfaceSpec, ModelError, ObjectKind, Path, PathTarget, Prefix, Request, Route,
    RouteBatch, RouteSource,
};
use volley_object::{Instance, Reference};

mod object;

type Done = Result<(), ModelError>;

/// One state with the changes made to it.
struct Editor<'a> {
    state: &'a mut State,
    changes: &'a mut Changes,
}

impl State {
    /// Does to the state what a request asks for. After an error the state is as the changes say: take them back.
    /// Whether what it names is there is told by [`State::check`] afterwards, where the order of requests matters not.
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

    fn take(&mut self, key: Key) -> Done {
        self.exists(&key)?;
        if self.state.is_needed(&key) {
            return Err(self.state.in_use(&key));
        }
        self.put(key, None);
        Ok(())
    }

    /// A setting of an interface that has to be there.
    fn setting(&mut self, name: &str, key: Key, value: Option<Value>) -> Done {
        self.exists(&Key::Interface(name.to_owned()))?;
        self.put(key, value);
        Ok(())
    }

    fn edit(&mut self, request: &Request) -> Done {
        match request {
            Request::InterfaceCreate(spec) => self.create(spec),
            Request::InterfaceDelete { name } => self.delete(name),
            Request::InterfaceRename { name, new_name } => self.rename(name, new_name),
            Request::InterfaceState { name, state } => {
                let up = (*state == AdminState::Up).then_some(Value::Present);
                self.setting(name, Key::Up(name.clone()), up)
            }
            other => self.edit_more(other),
        }
    }

    fn edit_more(&mut self, request: &Request) -> Done {
        match request {
            Request::Set(object) => self.set_object(object),
            Request::Unset(key) => self.unset_object(key),
            Request::UnsetExact(object) => self.unset_exact(object),
            Request::UnsetAny(key) => self.unset_any(key),
            Request::Change(change) => self.change(change),
            Request::RouteAdd(route) => self.routes(route, Editor::route_add),
            Request::RouteReplace(route) => self.routes(route, |e, key, paths| {
                e.put(key, paths_value(paths.to_vec()));
                Ok(())
            }),
            Request::RouteDel(route) => self.routes(route, Editor::route_del),
            Request::Routes(batch) => self.route_batch(batch),
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
        // What is a part of the request is not of the configuration.
        let kind = spec.kind.kept();
        self.put(Key::Interface(name()), Value::Kind(Arc::new(kind)));
        for (class, value) in spec.settings() {
            let setting = Instance::of_value(class, &spec.name, value);
            let setting = setting.map_err(|e| ModelError::invalid(class, e))?;
            let key = Key::object(setting.key());
            self.put(key, Value::Object(Arc::new(setting)));
        }
        Ok(())
    }

    /// Everything that is a part of an interface.
    fn parts(&self, name: &str) -> Vec<Key> {
        let own = || name.to_owned();
        let mut parts = vec![Key::Up(own())];
        parts.extend(self.objects_of(name));
        parts.retain(|k| self.state.has(k));
        parts
    }

    fn delete(&mut self, name: &str) -> Done {
        let key = Key::Interface(name.to_owned());
        self.exists(&key)?;
        if self.state.is_needed(&key) {
            return Err(self.state.in_use(&key));
        }
        for sub in self.subs(name) {
            self.delete(&sub)?;
        }
        for part in self.parts(name) {
            self.put(part, None);
        }
        self.lose(name);
        self.put(key, None);
        Ok(())
    }

    /// Names of an interface's sub-interfaces: they begin with its own.
    fn subs(&self, parent: &str) -> Vec<String> {
        let first = format!("{parent}.");
        let name = |(key, value): (&Key, &Value)| match (key, value) {
            (Key::Interface(name), Value::Kind(kind)) if name.starts_with(&first) => {
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

    /// Sub-interfaces are called after their parent, which therefore keeps its name as long as it has some.
    fn keeps_name(&self, name: &str) -> Done {
        let kind = self.state.get(&Key::Interface(name.to_owned()));
        let is_sub = matches!(kind, Some(Value::Kind(kind)) if is_part(kind));
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
        let key = Key::Interface(name.to_owned());
        self.exists(&key)?;
        if name == new_name {
            return Ok(());
        }
        self.is_new(&Key::Interface(new_name.to_owned()))?;
        self.keeps_name(name)?;
        let mut touched = self.parts(name);
        touched.extend(self.losing(name));
        if self.state.is_needed(&key) {
            touched.extend(self.objects_that_refer());
            let later = |key: &&Key| matches!(key, Key::Route(_) | Key::Last(_));
            let all = self.state.iter().map(|(key, _)| key);
            touched.extend(all.filter(later).cloned());
        }
        touched.push(key);
        // Objects that have an order keep it under their new names.
        touched.sort_by_key(|key| self.state.place(key));
        for key in touched {
            let Some(value) = self.state.get(&key).cloned() else {
                continue;
            };
            let (to, renamed) = (
                renamed_key(&key, name, new_name),
                renamed_value(&value, name, new_name),
            );
            if to != key {
                self.put(key, None);
                self.put(to, renamed);
            } else if renamed != value {
                self.put(key, renamed);
            }
        }
        Ok(())
    }

    /// Many routes of one source: each has a set of paths from now on, or is gone.
    fn route_batch(&mut self, batch: &RouteBatch) -> Done {
        own_source(batch.source)?;
        let sets = batch.sets.iter();
        let sets: Vec<Value> = sets
            .map(|paths| paths_value(normal(batch.table, paths.clone())))
            .map(|paths| self.state.share_paths(paths))
            .collect();
        let key = |prefix: Prefix| {
            Key::Route(RouteKey {
                source: batch.source,
                table: batch.table,
                prefix,
            })
        };
        for (prefix, set) in &batch.put {
            self.put(key(*prefix), sets.get(*set as usize).cloned());
        }
        for prefix in &batch.gone {
            self.route_del(key(*prefix), &[])?;
        }
        Ok(())
    }

    fn routes(&mut self, route: &Route, each: impl Fn(&mut Self, Key, &[Path]) -> Done) -> Done {
        own_source(route.source)?;
        let paths = normal(route.table, route.paths.clone());
        for step in 0..route.count {
            let prefix = route.prefix.step(step).ok_or_else(|| {
                let what = format!("count {} from {}", route.count, route.prefix);
                ModelError::invalid(what, "the prefixes run over the end of the address space")
            })?;
            let (source, table) = (route.source, route.table);
            let key = Key::Route(RouteKey {
                source,
                table,
                prefix,
            });
            each(self, key, &paths)?;
        }
        Ok(())
    }

    fn paths_of(&self, key: &Key) -> Option<Arc<Vec<Path>>> {
        match self.state.get(key) {
            Some(Value::Paths(paths)) => Some(paths.clone()),
            _ => None,
        }
    }

    fn route_add(&mut self, key: Key, paths: &[Path]) -> Done {
        let mut all = self.paths_of(&key).map_or(Vec::new(), |p| p.to_vec());
        all.extend_from_slice(paths);
        self.put(key, paths_value(all));
        Ok(())
    }

    fn route_del(&mut self, key: Key, paths: &[Path]) -> Done {
        let none = || {
            let (kind, name) = key.called();
            ModelError::not_found(kind, name, [""; 0])
        };
        let mut all = self.paths_of(&key).ok_or_else(none)?.to_vec();
        for path in paths {
            let at = all.iter().position(|p| p.target == path.target);
            let at = at.ok_or_else(|| {
                let what = format!("{path} of {}", key.called().1);
                ModelError::not_found(ObjectKind::Path, what, [""; 0])
            })?;
            all.remove(at);
        }
        let gone = paths.is_empty() || all.is_empty();
        self.put(key, (!gone).then(|| Value::Paths(Arc::new(all))));
        Ok(())
    }
}

/// Checks that routes of a source are configured, not made by the FIB.
fn own_source(source: RouteSource) -> Done {
    if source.is_own() {
        return Ok(());
    }
    let why = "the FIB makes these routes itself; use static";
    Err(ModelError::invalid(
        format!("source {}", source.name()),
        why,
    ))
}

/// A path that names its route's own table says nothing by it.
fn normal(table: u32, mut paths: Vec<Path>) -> Vec<Path> {
    for path in &mut paths {
        if let PathTarget::Via { table: other, .. } = &mut path.target {
            *other = other.filter(|t| *t != table);
        }
    }
    paths
}

/// Paths in order; of two to the same target the later one counts.
fn paths_value(paths: Vec<Path>) -> Value {
    let mut kept: Vec<Path> = Vec::with_capacity(paths.len());
    for path in paths {
        match kept.iter_mut().find(|k| k.target == path.target) {
            Some(k) => *k = path,
            None => kept.push(path),
        }
    }
    kept.sort();
    Value::Paths(Arc::new(kept))
}

fn other_name(name: &str, from: &str, to: &str) -> String {
    if name == from { to } else { name }.to_owned()
}

fn renamed_key(key: &Key, from: &str, to: &str) -> Key {
    let new = |name: &String| other_name(name, from, to);
    match key {
        Key::Setting(it) => Key::Setting(it.renamed("interface", from, to)),
        Key::Last(it) => Key::Last(it.renamed("interface", from, to)),
        Key::Interface(n) => Key::Interface(new(n)),
        Key::Up(n) => Key::Up(new(n)),
        other => other.clone(),
    }
}

fn renamed_paths(paths: &mut [Path], from: &str, to: &str) {
    for path in paths {
        if let PathTarget::Via {
            interface: Some(name),
            ..
        }
        | PathTarget::Interface(name) = &mut path.target
        {
            *name = other_name(name, from, to);
        }
    }
}

/// Whether an interface is a part of another one.
fn is_part(kind: &Instance) -> bool {
    let part = Some(Reference::part_of("interface"));
    kind.class().fields().iter().any(|f| f.reference == part)
}

fn renamed_value(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::Object(it) => Value::Object(Arc::new(it.renamed("interface", from, to))),
        Value::Kind(kind) if kind.name() == from => Value::Kind(Arc::new(kind.named(to))),
        Value::Paths(paths) => {
            let mut paths = paths.to_vec();
            renamed_paths(&mut paths, from, to);
            paths_value(paths)
        }
        other => other.clone(),
    }
}
