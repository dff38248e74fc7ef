//! Plans requests from changes: removals in descending order of dependence, then everything else in ascending order.

use crate::batch::Steps;
use crate::key::{Key, Set, Value, needs, parts_of};
use crate::make::{self, create_interface};
use crate::state::{Changes, State, by_place, kept};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volley_model::{ModelError, Request};
use volley_object::{BulkKey, Class, Classes, Group, Instance, ObjectKey};

/// One request to the handlers, and the requests that undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The request.
    pub request: Request,
    /// The requests that undo it, in order.
    pub undo: Vec<Request>,
}

impl Step {
    /// Whether the step covers many objects.
    pub(crate) fn is_bulk(&self) -> bool {
        matches!(self.request, Request::Bulk(_))
    }
}

/// Facts about interfaces that are not in the desired state.
pub trait Probe {
    /// Settings that follow from the interface's first name, and that the interface keeps under a new name.
    fn by_first_name(&self, _interface: &str) -> Vec<Instance> {
        Vec::new()
    }

    /// Adds what the implementation knows to an error of the desired state.
    fn explain(&self, _request: &Request, error: ModelError) -> ModelError {
        error
    }
}

/// A probe without facts.
impl Probe for () {}

/// The steps from one state to another.
pub(crate) struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Objects whose change interrupts traffic, as in [`interrupted`].
    pub interrupted: Vec<Key>,
}

/// Objects whose change interrupts traffic: those that are deleted and created again, because they cannot be changed in place,
/// and those of classes that declare an interruption for a change in place.
///
/// An object that is deleted with an interface, such as its addresses, is not listed beside the interface.
pub(crate) fn interrupted(now: &State, changes: &Changes) -> Vec<Key> {
    Planner::new(now, changes).interrupted()
}

/// The interruptions, each sentence once: many objects of an interface have the same one.
pub(crate) fn interruptions(interrupted: &[Key]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = interrupted.iter().map(Key::interruption);
    all.filter(|line| seen.insert(line.clone())).collect()
}

/// Plans the steps from the state before `changes` to `now`.
pub(crate) fn plan(now: &State, changes: &Changes) -> Plan {
    let planner = Planner::new(now, changes);
    let mut steps = Steps::default();
    let mut undone_last: Option<&ObjectKey> = None;
    let old = planner.in_order(|key| planner.old_place(key));
    for (key, before) in old.into_iter().rev() {
        let made = steps.count();
        if let Some(of) = key.together() {
            let is_next = undone_last.is_some_and(|it| it.is_of_group(of));
            if !is_next && before.is_some() && planner.goes(key) {
                steps.push(planner.remove_together(of));
                undone_last = Some(of);
            }
            continue;
        }
        planner.remove(key, before, &mut steps);
        if steps.count() > made
            && let Some(of) = key.ordered()
            && !undone_last.is_some_and(|it| it.is_of_group(of))
        {
            steps.undo_last(planner.back_in_order(of));
            undone_last = Some(of);
        }
    }
    for (key, before) in planner.in_order(|key| now.place(key)) {
        if !planner.early.contains(key) {
            planner.change(key, before, &mut steps);
        }
    }
    Plan {
        steps: steps.finish(),
        interrupted: planner.interrupted(),
    }
}

/// A touched object and its previous value.
type Touched<'p> = (&'p Key, Option<&'p Value>);

struct Planner<'a> {
    now: &'a State,
    /// The previous value of every touched object; for objects that are only recreated, their current value.
    touched: BTreeMap<Key, Option<&'a Value>>,
    /// Objects that are removed and created again.
    again: BTreeSet<Key>,
    /// The previous positions of touched ordered objects.
    places: &'a BTreeMap<Key, Option<u64>>,
    /// Objects that are removed and created again because they moved behind others.
    moved: BTreeSet<Key>,
    /// Objects that change before removals, because they no longer need an object that is removed.
    early: BTreeSet<Key>,
}

impl<'a> Planner<'a> {
    fn new(now: &'a State, changes: &'a Changes) -> Self {
        let differs = |k: &Key, v: &Option<Value>| now.get(k) != v.as_ref();
        let touched = changes.before.iter().filter(|(k, v)| {
            differs(k, v) || changes.again.contains(*k) || changes.repeated.contains(*k)
        });
        let mut planner = Planner {
            now,
            touched: touched.map(|(k, v)| (k.clone(), v.as_ref())).collect(),
            again: BTreeSet::new(),
            places: &changes.places,
            moved: BTreeSet::new(),
            early: BTreeSet::new(),
        };
        planner.find_moved(changes);
        planner.find_again(&changes.again);
        planner.find_together();
        planner.find_early();
        planner.find_together();
        planner
    }

    fn before(&self, key: &Key) -> Option<&'a Value> {
        match self.touched.get(key) {
            Some(before) => *before,
            None => self.now.get(key),
        }
    }

    /// The previous position of an ordered object.
    fn old_place(&self, key: &Key) -> Option<u64> {
        let changed = self.places.get(key).copied();
        changed.unwrap_or_else(|| self.now.place(key))
    }

    /// All touched objects in order of dependence; ordered objects in the order of their places.
    fn in_order(&self, place: impl Fn(&Key) -> Option<u64>) -> Vec<Touched<'_>> {
        let mut all: Vec<Touched<'_>> = self.touched.iter().map(|(k, v)| (k, *v)).collect();
        by_place(&mut all, |(key, _)| key, place);
        all
    }

    /// The previous objects of an ordered sequence, in their previous order.
    fn old_sequence(&self, of: &ObjectKey) -> Vec<&Key> {
        let gone = self.touched.range(Key::object(of.group())..);
        let gone = gone.take_while(|(key, _)| key.of_class().is_some_and(|it| it.is_of_group(of)));
        let gone = gone.filter(|(key, before)| before.is_some() && !self.now.has(key));
        let stays = self.now.sequence(of).into_iter();
        let stays = stays.filter(|key| self.before(key).is_some());
        let mut all: Vec<&Key> = stays.chain(gone.map(|(key, _)| key)).collect();
        all.sort_by_key(|key| self.old_place(key));
        all
    }

    /// Finds the ordered objects that moved behind others.
    fn find_moved(&mut self, changes: &Changes) {
        let of_order = |a: &&Key, b: &&Key| match (a.of_class(), b.of_class()) {
            (Some(a), Some(b)) => a.is_of_group(b),
            _ => false,
        };
        let touched: Vec<&Key> = changes.places.keys().collect();
        let mut moved: Vec<Key> = Vec::new();
        for group in touched.chunk_by(of_order) {
            let Some(of) = group.first().and_then(|key| key.of_class()) else {
                continue;
            };
            // Objects that were removed and created again do not count as touched, because their values are equal.
            let was = |key: &&Key| match changes.before.get(*key) {
                Some(before) => before.is_some(),
                None => true,
            };
            let new = self.now.sequence(of);
            let mut old: Vec<&Key> = new.iter().copied().filter(was).collect();
            old.sort_by_key(|key| self.old_place(key));
            let kept = kept(&old, &new);
            let behind = new[kept..].iter().filter(|key| was(key));
            moved.extend(behind.map(|key| (*key).clone()));
        }
        for key in moved {
            let before = self.now.get(&key);
            self.touched.entry(key.clone()).or_insert(before);
            self.moved.insert(key);
        }
    }

    /// Whether an object is removed and created again.
    fn is_again(&self, key: &Key) -> bool {
        self.again.contains(key) || self.moved.contains(key)
    }

    /// Whether the object existed before, exists now, and has changed.
    fn differs(&self, key: &Key) -> bool {
        matches!(
            (self.touched.get(key), self.now.get(key)),
            (Some(Some(_)), Some(_))
        )
    }

    fn interrupted(&self) -> Vec<Key> {
        let with_its_interface = |key: &Key| {
            let owner = key.owner().map(|name| Key::Interface(name.to_owned()));
            owner.is_some_and(|owner| owner != *key && self.again.contains(&owner))
        };
        let carries = |key: &&Key| match key {
            Key::Interface(_) => true,
            Key::Setting(it) => {
                let def = it.class().def();
                !def.one_of.is_empty() || !def.interrupts.is_empty()
            }
            _ => false,
        };
        let listed = self.again.iter().filter(carries);
        let listed = listed.filter(|key| !with_its_interface(key));
        let in_place = self.touched.keys().filter(|key| self.in_place(key));
        listed.chain(in_place).cloned().collect()
    }

    /// Whether a setting changes in place while its interface stays, but interrupts traffic nevertheless.
    fn in_place(&self, key: &Key) -> bool {
        let Key::Setting(it) = key else { return false };
        let stays = |name: &str| {
            let owner = Key::Interface(name.to_owned());
            self.before(&owner).is_some() && self.now.has(&owner) && !self.again.contains(&owner)
        };
        it.class().def().interrupts_in_place() && it.owner().is_some_and(stays)
    }

    /// Marks an object as recreated, if it existed before and exists now.
    fn make_again(&mut self, key: Key) {
        let (Some(before), Some(_)) = (self.before(&key), self.now.get(&key)) else {
            return;
        };
        self.touched.entry(key.clone()).or_insert(Some(before));
        self.again.insert(key);
    }

    /// Finds the objects that cannot be changed in place, and the objects that depend on them.
    fn find_again(&mut self, asked: &BTreeSet<Key>) {
        let mut first: Vec<Key> = asked.iter().cloned().collect();
        let classes = volley_object::classes();
        for key in self.touched.keys() {
            if let Key::Setting(it) = key {
                first.extend(self.behind(it, &classes));
            }
            match key {
                Key::Global(it) | Key::Setting(it) | Key::Last(it)
                    if it.class().def().recreate && self.differs(key) =>
                {
                    first.push(key.clone());
                }
                Key::Interface(_) if self.differs(key) => {
                    first.push(key.clone());
                }
                // All required objects are removed: nothing can be kept.
                Key::Setting(it)
                    if it.class().loses() && self.differs(key) && self.nothing_left_of(key) =>
                {
                    first.push(key.clone());
                }
                _ => {}
            }
        }
        first.into_iter().for_each(|key| self.make_again(key));
        self.find_leaning();
    }

    /// Finds the objects that depend on recreated or removed objects.
    fn find_leaning(&mut self) {
        let mut moved: BTreeSet<Key> = self.again.clone();
        moved.extend(self.touched.keys().filter(|k| !self.now.has(k)).cloned());
        moved.retain(|k| match k {
            Key::Global(it) | Key::Setting(it) | Key::Last(it) => it.class().def().recreate,
            _ => matches!(k, Key::Interface(_)),
        });
        if moved.is_empty() {
            return;
        }
        // One pass suffices: an object needs only smaller keys, so recreated ones are known when the object is visited.
        let mut leaning: Vec<Key> = Vec::new();
        for (key, _) in self.now.iter() {
            let Some(before) = self.before(key) else {
                continue;
            };
            let mut leans = false;
            let mut look = |needed: Key| leans |= moved.contains(&needed);
            needs(key, before, &mut look);
            // An object whose lists lose a removed interface stays: see `left_of`.
            let parts = match key {
                Key::Setting(it) if it.class().loses() => self.now.get(key).unwrap_or(before),
                _ => before,
            };
            parts_of(key, parts, &mut look);
            if leans {
                leaning.push(key.clone());
                moved.insert(key.clone());
            }
        }
        leaning.into_iter().for_each(|key| self.make_again(key));
    }

    /// Finds the objects that stay and no longer need an object that is removed: they change first. An object that also needs a
    /// new object is removed and created again.
    fn find_early(&mut self) {
        let goes =
            |it: &Self, key: &Key| matches!(it.touched.get(key), Some(Some(_))) && !it.now.has(key);
        let mut gone = self.touched.keys().filter(|key| goes(self, key));
        if gone.all(|key| matches!(key, Key::Bulk(_))) {
            return;
        }
        let (mut early, mut again) = (BTreeSet::new(), Vec::new());
        for (key, before) in &self.touched {
            let (Some(before), Some(now)) = (before, self.now.get(key)) else {
                continue;
            };
            let mut leaves = false;
            needs(key, before, &mut |needed| leaves |= goes(self, &needed));
            // An object that loses interfaces gets an intermediate value: see `left_of`.
            if !leaves || self.is_again(key) || self.left_of(key, before).is_some() {
                continue;
            }
            let mut ready = true;
            needs(key, now, &mut |needed| {
                ready &= self.before(&needed).is_some() && !self.is_again(&needed);
            });
            match ready {
                true => _ = early.insert(key.clone()),
                false => again.push(key.clone()),
            }
        }
        self.early = early;
        if !again.is_empty() {
            again.into_iter().for_each(|key| self.make_again(key));
            self.find_leaning();
        }
    }

    /// Objects that cannot exist while a setting of an interface changes: objects of classes that declare so and refer to the
    /// interface.
    fn behind(&self, setting: &ObjectKey, classes: &Classes) -> Vec<Key> {
        let mut found = Vec::new();
        let Some(name) = setting.owner() else {
            return found;
        };
        for class in classes.after(setting.class()) {
            found.extend(self.now.referring(class, name).cloned());
        }
        found
    }

    fn nothing_left_of(&self, key: &Key) -> bool {
        let left = self.before(key).and_then(|it| self.left_of(key, it));
        left.is_none()
    }

    /// Finds the objects that are created again because an object with which they are removed together is removed.
    fn find_together(&mut self) {
        let touched = self.touched.keys().filter(|key| self.goes(key));
        let mut groups: Vec<ObjectKey> = touched
            .filter(|key| matches!(self.touched.get(*key), Some(Some(_))))
            .filter_map(|key| Some(key.together()?.group()))
            .collect();
        groups.dedup();
        for of in groups {
            let stays: Vec<Key> = self.now.sequence(&of).into_iter().cloned().collect();
            stays.into_iter().for_each(|key| self.make_again(key));
            self.find_behind(&of);
        }
    }

    /// Finds the objects of bulk classes that are removed with a group of objects.
    fn find_behind(&mut self, of: &ObjectKey) {
        let classes = volley_object::classes();
        for class in classes.iter().filter(|class| class.def().bulk) {
            let goes = |group: &Group| goes_with(class, group, of);
            let is_it = |key: &&Key| matches!(key, Key::Bulk(key) if goes(&key.group));
            let keys = self.now.of_class(class).map(|(key, _)| key).filter(is_it);
            let keys: Vec<Key> = keys.cloned().collect();
            keys.into_iter().for_each(|key| self.make_again(key));
        }
    }

    /// Whether an object is removed, permanently or to be created again.
    fn goes(&self, key: &Key) -> bool {
        !self.now.has(key) || self.is_again(key)
    }

    /// The step that removes all objects that are removed together with one.
    fn remove_together(&self, of: &ObjectKey) -> Step {
        let all = self.old_sequence(of).into_iter();
        let undo = all.filter_map(|key| make::change(key, self.before(key)?));
        Step {
            request: Request::Unset(of.group()),
            undo: undo.collect(),
        }
    }

    /// The requests that undo the creation of an object that is removed together with others: the objects before it are created
    /// again.
    fn without(&self, of: &ObjectKey, key: &Key) -> Vec<Request> {
        let before = self
            .now
            .sequence(of)
            .into_iter()
            .take_while(|it| *it != key);
        let again = before.filter_map(|key| make::change(key, self.now.get(key)?));
        [Request::Unset(of.group())]
            .into_iter()
            .chain(again)
            .collect()
    }

    /// Whether the interface of a setting is created or deleted together with it.
    fn interface_is_made(&self, name: &str) -> bool {
        let key = Key::Interface(name.to_owned());
        self.again.contains(&key)
            || self
                .touched
                .get(&key)
                .is_some_and(|b| b.is_none() == self.now.has(&key))
    }

    /// Adds the steps that remove an object, as far as necessary.
    fn remove(&self, key: &Key, before: Option<&Value>, steps: &mut Steps) {
        let Some(before) = before else {
            return;
        };
        if self.now.has(key) && !self.is_again(key) {
            if let Some(kept) = self.left_of(key, before) {
                steps.extend(Self::losing_step(before, &kept));
            } else if self.early.contains(key) {
                self.change(key, Some(before), steps);
            }
            return;
        }
        // The settings of an interface are deleted and created with it.
        if key.is_setting()
            && let Some(name) = key.owner()
            && self.interface_is_made(name)
        {
            return;
        }
        if let Key::Bulk(it) = key {
            return steps.bulk(it, common(Some(before)), None);
        }
        if self.goes_with_what_brings_it(key) {
            return;
        }
        let get = |key: &Key| self.before(key);
        let mut undo = match key {
            Key::Interface(name) => make::interface_with_settings(name, &get),
            other => make::create(other, before, &get),
        };
        if key.brings() {
            let brought = self.touched.iter().filter(|(it, _)| it.is_brought_by(key));
            undo.extend(brought.filter_map(|(key, before)| make::change(key, (*before)?)));
        }
        let request = make::remove(key);
        steps.push(Step { request, undo });
    }

    /// Whether what brings the object's class is removed: its owner removes the objects as well, if it is not refused.
    fn goes_with_what_brings_it(&self, key: &Key) -> bool {
        key.is_brought()
            && self
                .touched
                .iter()
                .any(|(by, before)| before.is_some() && !self.now.has(by) && key.is_brought_by(by))
    }

    /// The intermediate value of an object that changes and loses interfaces, before interfaces are deleted and others are
    /// created: members that stay remain in the object all the time.
    fn left_of(&self, key: &Key, before: &Value) -> Option<Value> {
        let (Value::Object(before), Some(Value::Object(now))) = (before, self.now.get(key)) else {
            return None;
        };
        if !before.class().loses() {
            return None;
        }
        let gone = |class: &'static str, name: &volley_object::Value| {
            !name
                .as_text()
                .is_some_and(|name| now.refers_to(class, name))
        };
        Some(Value::Object(Arc::new(before.losing(&gone)?)))
    }

    fn losing_step(from: &Value, to: &Value) -> Option<Step> {
        match (from, to) {
            (Value::Object(from), Value::Object(to)) if from != to => Some(Step {
                request: Request::Set(to.as_ref().clone()),
                undo: vec![Request::Set(from.as_ref().clone())],
            }),
            _ => None,
        }
    }

    /// Requests that complete an undo when all removed objects of an order exist again: objects that were never removed are
    /// first now, so those that are out of position move behind.
    fn back_in_order(&self, of: &ObjectKey) -> Vec<Request> {
        let is_gone = |key: &&Key| !self.now.has(key) || self.is_again(key);
        let old = self.old_sequence(of);
        let (gone, stays): (Vec<&Key>, Vec<&Key>) = old.iter().copied().partition(is_gone);
        let found: Vec<&Key> = stays.into_iter().chain(gone).collect();
        let at = old.iter().zip(&found).take_while(|(a, b)| a == b).count();
        let again = |key: &&Key| {
            let created = make::change(key, self.before(key)?);
            Some([make::remove(key)].into_iter().chain(created))
        };
        old[at..].iter().filter_map(again).flatten().collect()
    }

    /// Adds the steps that create or change an object.
    fn change(&self, key: &Key, was: Option<&Value>, steps: &mut Steps) {
        let before = was.filter(|_| !self.is_again(key));
        let Some(now) = self.now.get(key) else {
            return;
        };
        let get = |key: &Key| self.now.get(key);
        match (key, now) {
            (Key::Interface(name), Value::Object(kind)) => {
                let request = create_interface(name, kind, &get);
                let undo = vec![Request::InterfaceDelete { name: name.clone() }];
                steps.push(Step { request, undo });
            }
            (Key::Setting(it), _) if key.is_setting() => {
                if !self.interface_is_made(it.owner().unwrap_or_default()) {
                    self.bring_plain(key, before, now, steps);
                }
            }
            (_, Value::Object(object)) if let Some(of) = key.together() => {
                let request = Request::Set(object.as_ref().clone());
                let undo = self.without(of, key);
                steps.push(Step { request, undo });
            }
            (Key::Bulk(it), _) => steps.bulk(it, common(before), common(Some(now))),
            (Key::Setting(it), _) if it.class().loses() => {
                match before.map(|before| self.left_of(key, before)) {
                    Some(Some(kept)) => steps.extend(Self::losing_step(&kept, now)),
                    _ => self.bring_plain(key, before, now, steps),
                }
            }
            _ => self.bring_plain(key, before, now, steps),
        }
    }

    fn bring_plain(&self, key: &Key, before: Option<&Value>, now: &Value, steps: &mut Steps) {
        let get = |key: &Key| self.before(key);
        let undo = match before {
            None => vec![make::remove(key)],
            Some(before) => make::change(key, before)
                .map_or_else(|| make::create(key, before, &get), |request| vec![request]),
        };
        let request = match before {
            None => make::create(key, now, &|k| self.now.get(k))
                .into_iter()
                .next(),
            Some(_) => make::change(key, now),
        };
        steps.extend(request.map(|request| Step { request, undo }));
    }
}

fn common(value: Option<&Value>) -> Option<&Arc<Set>> {
    match value {
        Some(Value::Common(set)) => Some(set),
        _ => None,
    }
}

/// Whether objects of a group are removed with those of a key, see [`Class::removed_with`].
fn goes_with(class: &Class, group: &Group, of: &ObjectKey) -> bool {
    let Some([other, shared, key, value]) = class.removed_with() else {
        return false;
    };
    let own = |name: &str| {
        class
            .keys()
            .iter()
            .skip(1)
            .position(|field| field.name == name)
    };
    let own = |name: &str| own(name).and_then(|at| group.values().get(at));
    let first = of.class().keys().first().map(|field| field.name);
    of.class().name() == other
        && first == Some(shared)
        && own(shared) == of.values().first()
        && own(key).is_some_and(|it| it.as_text() == Some(value))
}

/// The requests that lead from an empty state to a state. Consecutive keys with the same values become one request.
pub fn requests(state: &State) -> Vec<Request> {
    let mut objects: Vec<(&Key, &Value)> = state.iter().collect();
    by_place(&mut objects, |it| it.0, |key| state.place(key));
    let mut all = Vec::new();
    let mut run: Option<Run> = None;
    for (key, value) in objects {
        match (key, value) {
            (Key::Bulk(key), Value::Common(set)) => {
                Run::next(&mut run, key.clone(), set.clone(), &mut all);
            }
            // An interface is created with them.
            (Key::Setting(_), _) if key.is_setting() => {}
            _ => {
                all.extend(run.take().map(Run::request));
                all.extend(make::create(key, value, &|key: &Key| state.get(key)));
            }
        }
    }
    all.extend(run.take().map(Run::request));
    all
}

/// Objects with consecutive keys and the same values.
struct Run {
    first: BulkKey,
    set: Arc<Set>,
    count: u64,
}

impl Run {
    /// Maximum length of a run: that of a request in a configuration.
    fn most(class: &Class) -> u64 {
        let repeats = class.fields().iter().find(|field| field.repeats);
        match repeats.map(|field| &field.kind) {
            Some(volley_object::Kind::Number { max, .. }) => *max,
            _ => 1,
        }
    }

    /// Adds an object to the run, or finishes the run and begins another.
    fn next(run: &mut Option<Run>, key: BulkKey, set: Arc<Set>, all: &mut Vec<Request>) {
        if let Some(run) = run
            && Arc::ptr_eq(&run.set, &set)
            && run.count < Run::most(key.class())
            && key.class().step(&run.first.item, run.count) == Some(key.item)
        {
            run.count += 1;
            return;
        }
        let next = Run {
            first: key,
            set,
            count: 1,
        };
        all.extend(run.replace(next).map(Run::request));
    }

    fn request(self) -> Request {
        match make::bulk(&self.first, None, Some(&self.set)) {
            Request::Add(object) => Request::Add(object.repeated(self.count)),
            Request::Set(object) => Request::Set(object.repeated(self.count)),
            other => other,
        }
    }
}
