//! The steps of a transaction: objects of a bulk class that follow each other in a group are one step.
//!
//! A separate step for each object would take most of the time and of the memory of a transaction with a million of them.

use crate::key::Set;
use crate::make;
use crate::plan::Step;
use std::collections::HashMap;
use std::sync::Arc;
use volley_model::Request;
use volley_object::{Bulk, BulkKey};

/// Largest number of objects in a step: other work of the control thread waits until the step ends.
pub(crate) const MOST: usize = 4096;

/// Objects of a step, and which values each object has at which position.
struct Filling {
    bulk: Bulk,
    /// Index of a set, by its address: a state stores equal sets once.
    places: HashMap<*const Set, u32>,
}

impl Filling {
    fn new(of: &BulkKey) -> Filling {
        let (bulk, places) = (Bulk::new(&of.group), HashMap::new());
        Filling { bulk, places }
    }

    /// Records that the object has these values; `None`: the object is removed.
    fn take(&mut self, of: &BulkKey, values: Option<&Arc<Set>>) {
        let Some(values) = values else {
            return self.bulk.remove(of.item);
        };
        let place = self.places.entry(Arc::as_ptr(values));
        let set = *place.or_insert_with(|| self.bulk.add_set(values.values.clone()));
        self.bulk.put(of.item, set);
    }
}

/// Objects that become one step, each with its previous values.
struct Open {
    of: BulkKey,
    done: Filling,
    undo: Filling,
    /// The step of the first object, which is used when no other follows.
    alone: Step,
}

impl Open {
    fn fits(&self, of: &BulkKey) -> bool {
        self.of.group == of.group && self.done.bulk.len() < MOST
    }

    fn close(self) -> Step {
        match self.done.bulk.len() {
            1 => self.alone,
            _ => Step {
                request: Request::Bulk(Box::new(self.done.bulk)),
                undo: vec![Request::Bulk(Box::new(self.undo.bulk))],
            },
        }
    }
}

/// Steps in order.
#[derive(Default)]
pub(crate) struct Steps {
    all: Vec<Step>,
    open: Option<Open>,
    /// Number of steps of other objects.
    others: usize,
}

impl Steps {
    /// Adds a step of another object.
    pub fn push(&mut self, step: Step) {
        self.close();
        self.all.push(step);
        self.others += 1;
    }

    /// Number of steps of other objects.
    pub fn count(&self) -> usize {
        self.others
    }

    /// Adds requests that undo the last step of another object.
    pub fn undo_last(&mut self, requests: Vec<Request>) {
        if let (None, Some(step)) = (&self.open, self.all.last_mut()) {
            step.undo.extend(requests);
        }
    }

    /// Adds an object that changes from some values to others; `None`: the object does not exist.
    pub fn bulk(&mut self, of: &BulkKey, before: Option<&Arc<Set>>, now: Option<&Arc<Set>>) {
        if !self.open.as_ref().is_some_and(|open| open.fits(of)) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| Open {
            of: of.clone(),
            done: Filling::new(of),
            undo: Filling::new(of),
            alone: alone(of, before, now),
        });
        open.done.take(of, now);
        open.undo.take(of, before);
    }

    fn close(&mut self) {
        self.all.extend(self.open.take().map(Open::close));
    }

    /// All steps.
    pub fn finish(mut self) -> Vec<Step> {
        self.close();
        self.all
    }
}

impl Extend<Step> for Steps {
    fn extend<T: IntoIterator<Item = Step>>(&mut self, steps: T) {
        steps.into_iter().for_each(|step| self.push(step));
    }
}

/// The step of one object, as a command.
fn alone(of: &BulkKey, before: Option<&Arc<Set>>, now: Option<&Arc<Set>>) -> Step {
    Step {
        request: make::bulk(of, before, now),
        undo: vec![make::bulk(of, now, before)],
    }
}
