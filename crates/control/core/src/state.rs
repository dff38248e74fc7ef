//! The desired state: every configured object under its key, and the dependences between objects.

use crate::key::{Key, Set, Value, is_built_in, needs, parts_of};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use volley_model::{ModelError, ObjectKind};
use volley_object::{BulkKey, Class, Group, Instance, ObjectKey, Values};

/// The desired state.
#[derive(Clone, Debug, Default)]
pub struct State {
    objects: BTreeMap<Key, Value>,
    /// Positions of ordered objects: a greater number is behind a smaller one.
    places: HashMap<Key, u64>,
    /// The next free position.
    next_place: u64,
    /// How many objects need this one.
    users: HashMap<Key, u32>,
    /// Values of objects of bulk classes: one copy of equal values, and the number of objects that share it. A million objects
    /// have some hundred sets. What a set needs is counted once.
    sets: HashMap<(Group, Values), (Arc<Set>, u32)>,
}

/// Entries of a tree's node, and how many are used when keys arrive in their order.
const NODE_ENTRIES: usize = 11;
const USED_ENTRIES: usize = 6;
/// About what the value of an object takes that is not shared.
const OWN_BYTES: usize = 512;

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.objects == other.objects && self.in_order() == other.in_order()
    }
}

impl Eq for State {}

/// The effect of edits on a state: the previous value of each touched object; `None`: the object did not exist.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The touched objects with their previous values.
    ///
    /// The map is two blocks of memory, in the order of the requests, which often is that of the keys. The nodes of a tree
    /// would lie between those of the state, and leave holes there when they are freed.
    pub(crate) before: IndexMap<Key, Option<Value>>,
    /// Objects that a request sets again without a change: they are recreated.
    pub(crate) again: BTreeSet<Key>,
    /// Objects that their owners carry out again, although no value differs.
    pub(crate) repeated: BTreeSet<Key>,
    /// The previous positions of touched ordered objects.
    pub(crate) places: BTreeMap<Key, Option<u64>>,
}

impl Changes {
    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Whether an object that existed before and exists now has another position.
    pub(crate) fn has_moved(&self, key: &Key, now: &State) -> bool {
        let place = self.places.get(key).copied().flatten();
        place.is_some() && place != now.place(key)
    }

    /// The touched objects with their previous values.
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

    /// Whether an object exists (built-in objects always exist).
    pub fn has(&self, key: &Key) -> bool {
        is_built_in(key) || self.objects.contains_key(key)
    }

    /// All objects in order of dependence.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter()
    }

    /// The state without the objects that other programs created.
    pub fn lasting(&self) -> State {
        let mut state = State::default();
        for (key, value) in self.iter().filter(|(k, _)| !k.is_dynamic()) {
            state.swap(key, Some(value.clone()));
        }
        state.places.clone_from(&self.places);
        state.next_place = self.next_place;
        state
    }

    /// An object.
    pub fn object(&self, key: &ObjectKey) -> Option<Instance> {
        let (class, key) = (key.class(), Key::object(key.clone()));
        instance(&key, self.get(&key)?).filter(|object| object.class() == class)
    }

    /// The objects of a class. The time does not depend on the number of objects of other classes: a state may have a million.
    pub(crate) fn of_class(&self, class: &Class) -> impl Iterator<Item = (&Key, &Value)> {
        self.of_class_from(class, Key::least_of(class))
    }

    /// The objects of a class from a key on.
    fn of_class_from(&self, class: &Class, first: Key) -> impl Iterator<Item = (&Key, &Value)> {
        let (near, class) = (class.clone(), class.clone());
        let all = self.from(first);
        let all = all.take_while(move |(key, _)| key.may_be_of(&near));
        all.filter(move |(_, value)| match value {
            Value::Object(object) => *object.class() == class,
            Value::Common(_) => true,
        })
    }

    /// All objects of a registered class; objects of an ordered class in their order.
    pub fn all_of(&self, class: &Class) -> Vec<Instance> {
        let all = self.placed(class).into_iter();
        all.filter_map(|(k, v)| instance(k, v)).collect()
    }

    /// The objects of a class; those of an ordered class in their order.
    fn placed(&self, class: &Class) -> Vec<(&Key, &Value)> {
        let mut all: Vec<(&Key, &Value)> = self.of_class(class).collect();
        by_place(&mut all, |it| it.0, |key| self.place(key));
        all
    }

    /// The keys of all objects of a registered class that is not one of interfaces.
    pub fn keys_of(&self, class: &str) -> Vec<ObjectKey> {
        let classes = volley_object::classes();
        let class = classes.get(class).filter(|class| !class.is_interface());
        let all = class.into_iter().flat_map(|class| self.of_class(class));
        all.filter_map(|(key, _)| match key {
            Key::Bulk(key) => Some(key.object_key()),
            other => other.of_class().cloned(),
        })
        .collect()
    }

    /// The objects of a registered class that is not a bulk class; objects of an ordered class in their order.
    pub fn objects_of(&self, class: &str) -> impl Iterator<Item = &Instance> {
        let classes = volley_object::classes();
        let all = classes
            .get(class)
            .map_or(Vec::new(), |class| self.placed(class));
        all.into_iter().filter_map(|(_, value)| match value {
            Value::Object(object) => Some(&**object),
            Value::Common(_) => None,
        })
    }

    /// The position of an ordered object.
    pub(crate) fn place(&self, key: &Key) -> Option<u64> {
        self.places.get(key).copied()
    }

    /// The touched objects in order of dependence; ordered objects in their order: existing ones by their new position, the
    /// others by their previous position.
    pub(crate) fn with_places<'c>(
        &self,
        changes: &'c Changes,
    ) -> Vec<(&'c Key, &'c Option<Value>)> {
        let mut all: Vec<_> = changes.iter().collect();
        let old = |key: &Key| changes.places.get(key).copied().flatten();
        let place = |key: &Key| self.place(key).or_else(|| old(key));
        by_place(&mut all, |it| it.0, place);
        all
    }

    /// The keys of all ordered objects, in their order.
    pub(crate) fn in_order(&self) -> Vec<&Key> {
        let mut all: Vec<&Key> = self.places.keys().collect();
        all.sort_unstable();
        by_place(&mut all, |key| key, |key| self.place(key));
        all
    }

    /// The keys of the objects in the same ordered sequence, in their order.
    pub(crate) fn sequence(&self, of: &ObjectKey) -> Vec<&Key> {
        let near = self.from(Key::object(of.group())).map(|(key, _)| key);
        let same = |key: &&Key| key.of_class().is_some_and(|it| it.is_of_group(of));
        let mut all: Vec<&Key> = near.take_while(same).collect();
        all.sort_by_key(|key| self.place(key));
        all
    }

    /// The objects of a class that is neither a bulk class nor one of interfaces; with an owner, only those that belong to it by
    /// the first value of their keys.
    pub(crate) fn near(
        &self,
        class: &Class,
        owner: Option<&str>,
    ) -> impl Iterator<Item = (&Key, &Instance)> {
        let first = owner.map_or_else(
            || Key::least_of(class),
            |owner| Key::object(ObjectKey::first_of(class, owner)),
        );
        let same = move |key: &Key| match key.of_class() {
            Some(it) => owner.is_none() || it.owner() == owner,
            None => false,
        };
        let all = self.of_class_from(class, first);
        let all = all.take_while(move |(key, _)| same(key));
        all.filter_map(|(key, value)| match value {
            Value::Object(it) => Some((key, &**it)),
            _ => None,
        })
    }

    /// The keys of the objects of a class that refer to an interface.
    pub(crate) fn referring(&self, class: &Class, interface: &str) -> impl Iterator<Item = &Key> {
        // If the first value of the key is the only reference, the objects of an interface are adjacent.
        let near = class.part_of() == Some("interface") && class.names_once("interface");
        let all = self.near(class, near.then_some(interface));
        let all = all.filter(move |(_, it)| it.refers_to("interface", interface));
        all.map(|(key, _)| key)
    }

    /// The first values of the keys of a registered class that is not a bulk class.
    pub fn names_of(&self, class: &str) -> Vec<String> {
        let keys = self.objects_of(class).map(Instance::key);
        keys.filter_map(|key| key.values().first().map(ToString::to_string))
            .collect()
    }

    /// The keys of the objects of the classes that an object brings, in order of dependence.
    pub(crate) fn brought_by<'s>(&'s self, by: &'s Key) -> impl Iterator<Item = &'s Key> {
        let all = self.without_bulk().map(|(key, _)| key);
        all.filter(|key| key.is_brought_by(by))
    }

    /// Converts objects to the classes that are registered now: another version of what brings them may have replaced the
    /// classes. An object that does not fit stays as it is; the owner of what brings it has refused the version then.
    pub(crate) fn renew<'k>(&mut self, keys: impl Iterator<Item = &'k Key>) {
        let classes = volley_object::classes();
        let mut renewed = Vec::new();
        for key in keys {
            let Some(Value::Object(object)) = self.objects.get(key) else {
                continue;
            };
            let class = classes.get(object.class().name());
            if let Some(class) = class.filter(|class| !class.is(object.class()))
                && let Ok(object) = object.carried_over(class)
            {
                renewed.push((key.clone(), object));
            }
        }
        // The ranks of the classes may differ: the map has no key of both at any time.
        for (key, _) in &renewed {
            self.swap(key, None);
        }
        for (_, object) in renewed {
            let key = Key::object(object.key());
            self.swap(&key, Some(Value::Object(Arc::new(object))));
        }
    }

    /// About how many bytes the objects take: nodes of the tree as full as those of a tree that grew in order, and one value
    /// for each object that shares none.
    pub fn bytes(&self) -> usize {
        let bulk: usize = self.sets.values().map(|(_, users)| *users as usize).sum();
        let own = self.objects.len().saturating_sub(bulk) + self.sets.len();
        self.objects.len() * size_of::<(Key, Value)>() * NODE_ENTRIES / USED_ENTRIES
            + own * OWN_BYTES
    }

    /// Number of objects of a class. The time does not depend on the number of objects of bulk classes.
    pub fn count_of(&self, class: &Class) -> usize {
        if !class.def().bulk {
            return self.of_class(class).count();
        }
        let of_class = self
            .sets
            .iter()
            .filter(|((group, _), _)| group.class() == class);
        of_class.map(|(_, (_, users))| *users as usize).sum()
    }

    /// Names of the interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let all = self.from(Key::Interface(String::new()));
        all.map_while(|(key, _)| match key {
            Key::Interface(name) => Some(&name[..]),
            _ => None,
        })
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the state has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects from a key on.
    pub(crate) fn from(&self, key: Key) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.range((Bound::Included(key), Bound::Unbounded))
    }

    /// The objects that are not of a bulk class, in order of dependence. The time does not depend on the number of the others.
    pub fn without_bulk(&self) -> impl Iterator<Item = (&Key, &Value)> {
        let classes = volley_object::classes();
        let least = |of: fn(&Class) -> bool| {
            let all = classes.iter().filter(|class| of(class));
            all.map(Key::least_of).min()
        };
        let bulk = least(|class| class.def().bulk);
        let last = bulk.as_ref().and(least(|class| class.def().last));
        let end = bulk.map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.objects.range((Bound::Unbounded, end));
        let behind = last.into_iter().flat_map(|key| self.from(key));
        before.chain(behind)
    }

    /// Whether an object is needed by another object that is not its part.
    pub(crate) fn is_needed(&self, key: &Key) -> bool {
        self.users.get(key).is_some_and(|n| *n > 0)
    }

    /// The first object that needs the given one.
    pub(crate) fn user_of(&self, key: &Key) -> Option<&Key> {
        let uses = |(k, v): &(&Key, &Value)| {
            let mut found = false;
            needs(k, v, &mut |needed| found |= needed == *key);
            found
        };
        let first = self.without_bulk().find(uses);
        let shared = || {
            let sets = self.sets.values().map(|(set, _)| set);
            let sets: HashSet<_> = sets
                .filter(|set| set.needs.contains(key))
                .map(Arc::as_ptr)
                .collect();
            let has = |(_, v): &(&Key, &Value)| match v {
                Value::Common(set) => sets.contains(&Arc::as_ptr(set)),
                Value::Object(_) => false,
            };
            // Without such a set, no object of a million is compared.
            (!sets.is_empty()).then(|| self.iter().find(has)).flatten()
        };
        match first {
            Some((key, _)) if !matches!(key, Key::Last(_)) => Some(key),
            later => shared().or(later).map(|(key, _)| key),
        }
    }

    fn count(&mut self, key: &Key, value: &Value, up: bool) {
        let mut all = Vec::new();
        needs(key, value, &mut |needed| all.push(needed));
        self.count_all(&all, up);
    }

    fn count_all(&mut self, needed: &[Key], up: bool) {
        for key in needed {
            if up {
                *self.users.entry(key.clone()).or_default() += 1;
            } else if let Some(n) = self.users.get_mut(key) {
                *n -= 1;
                if *n == 0 {
                    self.users.remove(key);
                }
            }
        }
    }

    /// Stores an object (`None`: removes it) and returns the previous value.
    pub(crate) fn swap(&mut self, key: &Key, value: Option<Value>) -> Option<Value> {
        if key.ordered().is_some() {
            self.take_place(key, value.is_some());
        }
        let before = match value {
            Some(value) => {
                match &value {
                    Value::Common(set) => self.hold(set),
                    other => self.count(key, other, true),
                }
                self.objects.insert(key.clone(), value)
            }
            None => self.objects.remove(key),
        };
        if let Some(before) = &before {
            match before {
                Value::Common(set) => self.release(set),
                other => self.count(key, other, false),
            }
        }
        before
    }

    /// A new object gets the last position; a removed object releases its position.
    fn take_place(&mut self, key: &Key, there: bool) {
        if !there {
            self.places.remove(key);
        } else if !self.places.contains_key(key) {
            self.places.insert(key.clone(), self.next_place);
            self.next_place += 1;
        }
    }

    /// Returns the shared copy of the values of an object.
    pub(crate) fn share(&self, key: &BulkKey, values: Values) -> Arc<Set> {
        let of = (key.group.clone(), values);
        match self.sets.get(&of) {
            Some((set, _)) => set.clone(),
            None => Arc::new(Set::new(key, of.1)),
        }
    }

    /// Counts one more object with these values.
    fn hold(&mut self, set: &Arc<Set>) {
        let of = (set.group.clone(), set.values.clone());
        let held = self.sets.entry(of).or_insert_with(|| (set.clone(), 0));
        held.1 += 1;
        if held.1 == 1 {
            self.count_all(&set.needs, true);
        }
    }

    /// Counts one object less with these values.
    fn release(&mut self, set: &Arc<Set>) {
        let of = (set.group.clone(), set.values.clone());
        if let Some(held) = self.sets.get_mut(&of) {
            held.1 -= 1;
            if held.1 == 0 {
                self.sets.remove(&of);
                self.count_all(&set.needs, false);
            }
        }
    }

    /// [`State::swap`] that records the change.
    pub(crate) fn put(&mut self, changes: &mut Changes, key: Key, value: Option<Value>) {
        if key.ordered().is_some() {
            let place = self.place(&key);
            changes.places.entry(key.clone()).or_insert(place);
        }
        let before = self.swap(&key, value);
        changes.before.entry(key).or_insert(before);
    }

    /// Undoes changes.
    pub fn undo(&mut self, changes: Changes) {
        for (key, before) in changes.before {
            self.swap(&key, before);
        }
        for (key, place) in changes.places {
            if let Some(place) = place {
                self.places.insert(key, place);
            }
        }
    }

    /// Makes this state equal to another one; dynamic objects stay. Returns the changes.
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
            let is_placed = key.ordered().is_none() || self.has(key);
            if is_placed && self.objects.get(key) != Some(value) {
                self.put(&mut changes, key.clone(), Some(value.clone()));
            }
        }
        self.order_like(wanted, &mut changes);
        changes
    }

    /// Puts ordered objects in the order of another state; objects that are out of position move behind the others.
    fn order_like(&mut self, wanted: &State, changes: &mut Changes) {
        let all = wanted.in_order();
        let one = |a: &&Key, b: &&Key| match (a.of_class(), b.of_class()) {
            (Some(a), Some(b)) => a.is_of_group(b),
            _ => false,
        };
        for new in all.chunk_by(one) {
            let Some(first) = new.first().and_then(|key| key.of_class()) else {
                continue;
            };
            let kept = kept(&self.sequence(first), new);
            for key in &new[kept..] {
                if self.has(key) {
                    self.put(changes, (*key).clone(), None);
                }
                self.put(changes, (*key).clone(), wanted.get(key).cloned());
            }
        }
    }

    /// Checks that changed objects need only existing objects.
    pub fn check(&self, changes: &Changes) -> Result<(), ModelError> {
        // Objects that share values need the same objects: one of them is checked.
        let mut checked = HashSet::new();
        for (key, before) in changes.iter() {
            match (before, self.objects.get(key)) {
                (_, Some(Value::Common(set))) if !checked.insert(Arc::as_ptr(set)) => {}
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
        let mut known: Vec<String> = Vec::new();
        if kind == ObjectKind::Interface {
            known = self.interfaces().map(str::to_owned).collect();
        }
        if let Some(it) = key.of_class()
            && (it.class().keys().len() == 1 || it.class().part_of().is_none())
        {
            let all = self.objects_of(it.class().name());
            known = all.map(|object| object.key().name()).collect();
        }
        ModelError::not_found(kind, name, known)
    }
}

/// The value as an object of a registered class.
pub(crate) fn instance(key: &Key, value: &Value) -> Option<Instance> {
    match (key, value) {
        (Key::Bulk(key), Value::Common(set)) => Some(key.instance(&set.values)),
        (_, Value::Object(object)) => Some(object.as_ref().clone()),
        _ => None,
    }
}

/// Length of the longest prefix of the new order that the old order has already.
pub(crate) fn kept<K: PartialEq>(old: &[K], new: &[K]) -> usize {
    let mut rest = old.iter();
    new.iter().take_while(|a| rest.any(|o| o == *a)).count()
}

/// Sorts keys by the order of their objects, if the class is ordered.
pub(crate) fn by_place<T>(
    all: &mut [T],
    key: impl Fn(&T) -> &Key,
    place: impl Fn(&Key) -> Option<u64>,
) {
    let one = |a: &T, b: &T| match (key(a).ordered(), key(b).ordered()) {
        (Some(a), Some(b)) => a.is_of_group(b),
        _ => false,
    };
    for run in all.chunk_by_mut(one).filter(|run| run.len() > 1) {
        run.sort_by_key(|it| place(key(it)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_tests::sender;
    use crate::tests::{Reported, all};

    #[test]
    fn equal_values_are_kept_once_and_go_with_their_last_object() {
        let mut state = State::default();
        let mut edit = |line: &str| {
            let request = crate::tests::request(line);
            state.edit(&request, &mut Changes::default()).unwrap();
            state.sets.len()
        };
        assert_eq!(edit("create pg pg0"), 0);
        let lines = ["route 10.1.0.0/16 pg0", "route 10.2.0.0/16 pg0"];
        assert_eq!(lines.map(&mut edit), [1, 1]);
        let copies: HashSet<_> = state
            .objects
            .values()
            .filter_map(|v| match v {
                Value::Common(set) => Some(Arc::as_ptr(set)),
                _ => None,
            })
            .collect();
        assert_eq!(copies.len(), 1);
        let routes: Vec<Key> = state
            .objects
            .keys()
            .filter(|k| matches!(k, Key::Bulk(_)))
            .cloned()
            .collect();
        for key in routes {
            state.swap(&key, None);
        }
        assert!(state.sets.is_empty());
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

    #[test]
    fn objects_of_a_class_and_those_of_no_bulk_class_are_those_of_the_whole_state() {
        let mut core = crate::Core::default();
        let lines = [
            "create pg a",
            "create pg b",
            "up b",
            "table 5",
            "address a 10.0.0.1/24",
            "route 10.1.0.0/16 a",
            "route 2001:db8::/32 b",
        ];
        let mut requests = all(&lines);
        requests.extend([sender("s", "a"), sender("r", "b")]);
        core.run(&requests, &Reported::default()).unwrap();
        let state = core.state();
        let text = |(key, _): (&Key, &Value)| key.to_string();
        let classes = volley_object::classes();
        let mut found = 0;
        for class in classes.iter() {
            let is_it = |(key, value): &(&Key, &Value)| {
                let object = instance(key, value);
                object.is_some_and(|object| object.class() == class)
            };
            let whole: Vec<String> = state.iter().filter(is_it).map(text).collect();
            let of_class: Vec<String> = state.of_class(class).map(text).collect();
            assert_eq!(of_class, whole, "{}", class.name());
            assert_eq!(state.count_of(class), whole.len(), "{}", class.name());
            let keys = state.keys_of(class.name()).len();
            assert!(keys == whole.len() || class.is_interface(), "{keys}");
            found += whole.len();
        }
        assert_eq!(found, state.len());
        assert_eq!(state.interfaces().collect::<Vec<_>>(), ["a", "b"]);
        let whole = state.iter().filter(|(key, _)| !matches!(key, Key::Bulk(_)));
        let whole: Vec<String> = whole.map(text).collect();
        assert_eq!(whole.len(), state.len() - 2);
        assert_eq!(state.without_bulk().map(text).collect::<Vec<_>>(), whole);
    }
}
