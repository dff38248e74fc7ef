//! Multicast routes: an interface that goes leaves them, and those that nothing can come in by any more go with it.

use super::{Editor, other_name};
use crate::key::{Key, MrouteKey, Value};
use std::sync::Arc;
use volley_model::{ModelError, Mroute, Request};

impl Editor<'_> {
    /// Requests of multicast routes; false for any other.
    pub(super) fn mroute(&mut self, request: &Request) -> Result<bool, ModelError> {
        match request {
            Request::MrouteSet(it) => {
                let value = Value::Mroute(Arc::new(normal(it.clone())));
                self.put(Key::Mroute(MrouteKey::of(it)), value);
            }
            Request::MrouteDel {
                group,
                source,
                table,
            } => self.take(Key::Mroute(MrouteKey {
                table: *table,
                group: *group,
                source: *source,
            }))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Multicast routes that name an interface.
    fn mroutes_over(&self, name: &str) -> Vec<(Key, Arc<Mroute>)> {
        let all = self.state.from(Key::Mroute(MrouteKey::first()));
        let mroutes = all.map_while(|(key, value)| match value {
            Value::Mroute(it) => Some((key.clone(), it.clone())),
            _ => None,
        });
        mroutes
            .filter(|(_, it)| it.interfaces().any(|other| other == name))
            .collect()
    }

    /// An interface goes.
    pub(super) fn leave_mroutes(&mut self, name: &str) {
        for (key, it) in self.mroutes_over(name) {
            let rest = it.over(|other| other != name);
            self.put(key, rest.map(|it| Value::Mroute(Arc::new(it))));
        }
    }

    /// An interface has another name.
    pub(super) fn rename_in_mroutes(&mut self, name: &str, new_name: &str) {
        for (key, it) in self.mroutes_over(name) {
            let new = |names: &[String]| -> Vec<String> {
                let names = names.iter().map(|n| other_name(n, name, new_name));
                names.collect()
            };
            let renamed = Mroute {
                accept: new(&it.accept),
                forward: new(&it.forward),
                ..it.as_ref().clone()
            };
            self.put(key, Value::Mroute(Arc::new(normal(renamed))));
        }
    }
}

/// The order in which interfaces are named says nothing.
fn normal(mut it: Mroute) -> Mroute {
    it.accept.sort();
    it.forward.sort();
    it
}
