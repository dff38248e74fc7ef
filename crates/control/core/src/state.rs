//! The desired state: every configured object under its key, and who needs whom.

use crate::key::{Key, Value, is_built_in, needs, parts_of};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use volley_model::{IfAddress, ModelError, ObjectKind, Path};
use volley_object::{Class, Instance, ObjectKey};

/// The desired state.
#[derive(Clone, Debug, Default)]
pub struct State {
    objects: BTreeMap<Key, Value>,
    /// How many objects need this one.
    users: HashMap<Key, u32>,
    /// Paths of routes, one copy of those that are equal: a million routes have some hundred next hops.
    paths: HashSet<Arc<Vec<Path>>>,
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.objects == other.objects
    }
}

impl Eq for State {}

/// What edits did to a state: what each object touched was before, none = not there.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    ///
    /// The map is two blocks of memory, in the order of the requests, which often is that of the keys. The nodes of a tree
    /// would lie between those of the state, and leave holes there when they are freed.
    pub(crate) before: IndexMap<Key, Option<Value>>,
    /// Objects that were asked for again, as they are: they are made anew.
    pub(crate) again: BTreeSet<Key>,
    /// Addresses of interfaces that are added to, so that each is found at once.
    pub(crate) addresses: BTreeMap<Key, HashSet<IfAddress>>,
}

impl Changes {
    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// The objects touched, in order of dependence, with what they were.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Option<Value>)> {
        let mut all: Vec<_> = self.before.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter()
    }
}

impl State {
    /// An object.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Whether an object is there (or always there).
    pub fn has(&self, key: &Key) -> bool {
        is_built_in(key) || self.objects.contains_key(key)
    }

    /// All objects in order of dependence.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter()
    }

    /// The state without what other programs put there.
    pub fn lasting(&self) -> State {
        let mut state = State::default();
        for (key, value) in self.iter().filter(|(k, _)| !k.is_dynamic()) {
            state.swap(key, Some(value.clone()));
        }
        state
    }

    /// The objects of a registered class.
    pub fn objects_of(&self, class: &str) -> impl Iterator<Item = &Instance> {
        let all = self.objects.values().filter_map(|value| match value {
            Value::Object(object) => Some(object.as_ref()),
            _ => None,
        });
        all.filter(move |object| object.class().name() == class)
    }

    /// The keys of the objects of a class that refer to an interface.
    pub(crate) fn referring(&self, class: &Class, interface: &str) -> impl Iterator<Item = &Key> {
        let all = self.from(Key::Setting(ObjectKey::least_of(class)));
        let same = move |(key, _): &(&Key, &Value)| match key {
            Key::Setting(it) => it.class() == class,
            _ => false,
        };
        let refers = move |(_, value): &(&Key, &Value)| match value {
            Value::Object(it) => it.refers_to("interface", interface),
            _ => false,
        };
        all.take_while(same).filter(refers).map(|(key, _)| key)
    }

    /// The first values of the keys of a registered class.
    pub fn names_of(&self, class: &str) -> Vec<String> {
        let keys = self.objects_of(class).map(Instance::key);
        keys.filter_map(|key| key.values().first().map(ToString::to_string))
            .collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Objects from a key on.
    pub(crate) fn from(&self, key: Key) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.range((Bound::Included(key), Bound::Unbounded))
    }

    /// Whether another object that is no part of it needs an object.
    pub(crate) fn is_needed(&self, key: &Key) -> bool {
        self.users.get(key).is_some_and(|n| *n > 0)
    }

    /// The first object that needs another one.
    pub(crate) fn user_of(&self, key: &Key) -> Option<&Key> {
        let uses = |(k, v): &(&Key, &Value)| {
            let mut found = false;
            needs(k, v, &mut |needed| found |= needed == *key);
            found
        };
        self.objects.iter().find(uses).map(|(k, _)| k)
    }

    fn count(&mut self, key: &Key, value: &Value, up: bool) {
        let users = &mut self.users;
        needs(key, value, &mut |needed| {
            if up {
                *users.entry(needed).or_default() += 1;
            } else if let Some(n) = users.get_mut(&needed) {
                *n -= 1;
                if *n == 0 {
                    users.remove(&needed);
                }
            }
        });
    }

    /// Puts an object there (none: takes it away) and returns what was there.
    pub(crate) fn swap(&mut self, key: &Key, value: Option<Value>) -> Option<Value> {
        let before = match value {
            Some(value) => {
                self.count(key, &value, true);
                let value = self.share_paths(value);
                self.objects.insert(key.clone(), value)
            }
            None => self.objects.remove(key),
        };
        if let Some(before) = &before {
            self.count(key, before, false);
            self.drop_paths(before);
        }
        before
    }

    /// The value, with the copy of its paths that other routes have.
    pub(crate) fn share_paths(&mut self, value: Value) -> Value {
        let Value::Paths(paths) = value else {
            return value;
        };
        if let Some(shared) = self.paths.get(&*paths) {
            return Value::Paths(shared.clone());
        }
        if self.paths.len() == self.paths.capacity() {
            // Copies of a state, and changes that are not done, kept some of them longer than their last route.
            self.paths.retain(|paths| Arc::strong_count(paths) > 1);
        }
        self.paths.insert(paths.clone());
        Value::Paths(paths)
    }

    /// Forgets paths that only this value, which left the state, and the state itself still have.
    fn drop_paths(&mut self, value: &Value) {
        if let Value::Paths(paths) = value
            && Arc::strong_count(paths) == 2
        {
            self.paths.remove(&**paths);
        }
    }

    /// [`State::swap`], remembered.
    pub(crate) fn put(&mut self, changes: &mut Changes, key: Key, value: Option<Value>) {
        let before = self.swap(&key, value);
        changes.before.entry(key).or_insert(before);
    }

    /// Takes changes back.
    pub fn undo(&mut self, changes: Changes) {
        for (key, before) in changes.before {
            self.swap(&key, before);
        }
    }

    /// Makes this state the other one; dynamic objects stay. Returns what changed.
    pub fn become_like(&mut self, wanted: &State) -> Changes {
        let mut changes = Changes::default();
        let gone = |(k, _): &(&Key, &Value)| !k.is_dynamic() && !wanted.objects.contains_key(*k);
        let gone: Vec<Key> = self
            .objects
            .iter()
            .filter(gone)
            .map(|(k, _)| k.clone())
            .collect();
        for key in gone {
            self.put(&mut changes, key, None);
        }
        for (key, value) in &wanted.objects {
            if self.objects.get(key) != Some(value) {
                self.put(&mut changes, key.clone(), Some(value.clone()));
            }
        }
        changes
    }

    /// Checks that what changed needs nothing that is not there.
    pub fn check(&self, changes: &Changes) -> Result<(), ModelError> {
        // Routes of a table with the same paths need the same: one of them is checked.
        let mut checked = HashSet::new();
        for (key, before) in changes.iter() {
            match (before, self.objects.get(key)) {
                (_, Some(Value::Paths(paths)))
                    if let Key::Route(route) = key
                        && !checked.insert((
                            Arc::as_ptr(paths),
                            route.table,
                            route.prefix.family(),
                        )) => {}
                (_, Some(value)) => self.check_one(key, value)?,
                (Some(_), None) if self.is_needed(key) => return Err(self.in_use(key)),
                _ => {}
            }
        }
        Ok(())
    }

    fn check_one(&self, key: &Key, value: &Value) -> Result<(), ModelError> {
        let mut missing = None;
        let mut look = |needed: Key| {
            if missing.is_none() && !self.has(&needed) {
                missing = Some(needed);
            }
        };
        needs(key, value, &mut look);
        parts_of(key, value, &mut look);
        missing.map_or(Ok(()), |key| Err(self.not_found(&key)))
    }

    pub(crate) fn in_use(&self, key: &Key) -> ModelError {
        let by = self
            .user_of(key)
            .map_or_else(String::new, |k| k.to_string());
        let (kind, name) = key.called();
        ModelError::in_use(kind, name, by)
    }

    pub(crate) fn not_found(&self, key: &Key) -> ModelError {
        let (kind, name) = key.called();
        let like = |k: &&Key| std::mem::discriminant(*k) == std::mem::discriminant(key);
        let mut known: Vec<String> = Vec::new();
        if matches!(
            kind,
            ObjectKind::Interface | ObjectKind::Stream | ObjectKind::Table
        ) {
            known = self
                .objects
                .keys()
                .filter(like)
                .map(|k| k.called().1)
                .collect();
        }
        if let Key::Global(it) | Key::Setting(it) = key
            && let [_] = it.class().keys()
        {
            known = self.names_of(it.class().name());
        }
        ModelError::not_found(kind, name, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_kept_once_and_go_with_their_last_route() {
        let mut state = State::default();
        let mut edit = |line: &str| {
            let request = crate::tests::request(line);
            state.edit(&request, &mut Changes::default()).unwrap();
            state.paths.len()
        };
        assert_eq!(edit("create pg pg0"), 0);
        let lines = ["route 10.1.0.0/16 pg0", "route 10.2.0.0/16 pg0"];
        assert_eq!(lines.map(&mut edit), [1, 1]);
        let copies: HashSet<_> = state
            .objects
            .values()
            .filter_map(|v| match v {
                Value::Paths(paths) => Some(Arc::as_ptr(paths)),
                _ => None,
            })
            .collect();
        assert_eq!(copies.len(), 1);
        let routes: Vec<Key> = state
            .objects
            .keys()
            .filter(|k| matches!(k, Key::Route(_)))
            .cloned()
            .collect();
        for key in routes {
            state.swap(&key, None);
        }
        assert!(state.paths.is_empty());
    }

    /// Changes that are not done hold what was before: the state forgets those paths later.
    #[test]
    fn paths_that_were_held_elsewhere_are_forgotten() {
        let mut state = State::default();
        let mut edit = |n: u32, held: &mut Vec<Value>| {
            let line = format!("route 10.1.0.0/16 pg{n}");
            let (mut changes, request) = (Changes::default(), crate::tests::request(&line));
            state.edit(&request, &mut changes).unwrap();
            let keys: Vec<Key> = state.objects.keys().cloned().collect();
            for key in keys {
                held.extend(state.get(&key).cloned());
                state.swap(&key, None);
            }
            state.paths.len()
        };
        let mut held = Vec::new();
        let kept = (0..200).map(|n| edit(n, &mut held)).max();
        assert_eq!(kept, Some(200));
        held.clear();
        let most = (200..2000).map(|n| edit(n, &mut Vec::new())).max();
        assert!(most < Some(400), "{most:?} paths of at most one route");
    }

    #[test]
    fn users_are_counted_and_changes_taken_back() {
        let mut state = State::default();
        let mut changes = Changes::default();
        let request = |line: &str| crate::tests::request(line);
        for line in [
            "create pg pg0",
            "address pg0 10.0.0.1/24",
            "route 10.1.0.0/16 pg0",
        ] {
            state.edit(&request(line), &mut changes).unwrap();
        }
        state.check(&changes).unwrap();
        let interface = Key::Interface("pg0".into());
        assert!(state.is_needed(&interface));
        let refused = state.edit(&request("delete pg0"), &mut Changes::default());
        assert!(refused.unwrap_err().to_string().contains("in use by"));
        state.undo(changes);
        assert!(state.is_empty() && !state.is_needed(&interface));
    }
}
