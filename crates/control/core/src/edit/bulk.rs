//! Objects of bulk classes, and lists to which items are added or from which items are removed.

use super::{Done, Editor};
use crate::key::{Key, Set, Value};
use crate::state::instance;
use std::sync::Arc;
use volley_model::{ModelError, ObjectKind};
use volley_object::{Bulk, BulkKey, Instance, Left, Part};

/// The new value of one object; `None`: the object is removed.
type Becomes<'b> = &'b dyn Fn(&Key, Option<&Instance>) -> Result<Option<Instance>, ModelError>;

impl Editor<'_> {
    /// Sets the values of the objects with consecutive keys.
    pub(super) fn set_repeated(&mut self, object: &Instance) -> Done {
        self.each(object, &|_, _| Ok(Some(object.clone())))
    }

    /// Merges an object into the existing object.
    pub(super) fn add(&mut self, object: &Instance) -> Done {
        let joined = |key: &Key, before: Option<&Instance>| match before {
            Some(before) => {
                let joined = object.joined(before);
                let joined = joined.map_err(|error| ModelError::invalid(key, error));
                joined.map(Some)
            }
            None => Ok(Some(object.clone())),
        };
        if object.class().def().bulk {
            return self.each(object, &joined);
        }
        let key = object.key();
        let before = self.state.object(&key);
        match joined(&Key::object(key), before.as_ref())? {
            Some(object) => self.set_object(&object),
            None => Ok(()),
        }
    }

    /// Removes items from the lists of an object.
    pub(super) fn take_part(&mut self, part: &Part) -> Done {
        let left = |key: &Key, before: Option<&Instance>| {
            let none = || ModelError::not_found(ObjectKind::Object, key, [""; 0]);
            let before = before.ok_or_else(none)?;
            match part.of(before) {
                Left::Some(object) => Ok(Some(object)),
                Left::Nothing => Ok(None),
                Left::Missing(item) => {
                    let what = format!("{item} of {key}");
                    Err(ModelError::not_found(ObjectKind::Object, what, [""; 0]))
                }
            }
        };
        if part.class().def().bulk {
            return self.each(part.values(), &left);
        }
        let key = part.key();
        let before = self.state.object(&key);
        match left(&Key::object(key.clone()), before.as_ref())? {
            Some(object) => self.set_object(&object),
            None => self.unset_object(&key),
        }
    }

    /// Changes the objects with consecutive keys; the given object has the first key.
    fn each(&mut self, first: &Instance, becomes: Becomes<'_>) -> Done {
        let Some(mut key) = BulkKey::of(&first.key()) else {
            return Ok(());
        };
        let (start, count) = (key.item, first.repeats());
        // Consecutive objects often had the same values.
        let mut last: Option<(Option<Arc<Set>>, Option<Value>)> = None;
        for step in 0..count {
            let item = match step {
                0 => Some(start),
                _ => key.class().step(&start, step),
            };
            key.item = item.ok_or_else(|| {
                let what = format!("count {count} from {}", first.key());
                ModelError::invalid(what, "the keys run over the end of what there is")
            })?;
            let now = Key::Bulk(key.clone());
            let before = match self.state.get(&now) {
                Some(Value::Common(set)) => Some(set.clone()),
                _ => None,
            };
            let same = |(was, _): &&(Option<Arc<Set>>, _)| match (was, &before) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            let becomes = match last.as_ref().filter(same) {
                // If an object does not exist, the error names that object.
                Some((_, value)) if before.is_some() || value.is_some() => value.clone(),
                _ => {
                    let object = before.clone().map(Value::Common);
                    let object = object.and_then(|value| instance(&now, &value));
                    let object = becomes(&now, object.as_ref())?;
                    object.map(|it| Value::Common(self.state.share(&key, it.values())))
                }
            };
            last = Some((before, becomes.clone()));
            self.put_bulk(key.clone(), becomes);
        }
        Ok(())
    }

    /// Stores an object under a key with the group of its values, so that many keys share one group.
    fn put_bulk(&mut self, mut key: BulkKey, value: Option<Value>) {
        if let Some(Value::Common(set)) = &value {
            key.group = set.group.clone();
        }
        self.put(Key::Bulk(key), value);
    }

    /// Sets the values of many objects, or removes them.
    pub(super) fn set_bulk(&mut self, bulk: &Bulk) -> Done {
        let groups = [0, 4, 6].map(|version| bulk.group(version));
        let key = |item: volley_object::Packed| {
            let group = groups
                .iter()
                .find(|group| group.version() == item.version());
            group.unwrap_or(&groups[0]).key(item)
        };
        let mut shared: Vec<[Option<Value>; 3]> = vec![[const { None }; 3]; bulk.sets().len()];
        for (item, set) in bulk.puts() {
            let key = key(*item);
            let place = groups.iter().position(|group| *group == key.group);
            let (Some(values), Some(place)) = (bulk.sets().get(*set as usize), place) else {
                continue;
            };
            let slot = &mut shared[*set as usize][place];
            let state = &self.state;
            let value =
                slot.get_or_insert_with(|| Value::Common(state.share(&key, values.clone())));
            let value = value.clone();
            self.put_bulk(key, Some(value));
        }
        for item in bulk.removed() {
            let key = Key::Bulk(key(*item));
            self.exists(&key)?;
            self.put(key, None);
        }
        Ok(())
    }
}
