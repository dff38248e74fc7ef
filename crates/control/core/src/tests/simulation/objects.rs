//! The executor of the simulation: objects in a plain map, and steps that fail by seed.

use crate::{Executor, Probe};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use volley_model::{Applied, ModelError, Request};
use volley_object::{Bulk, Effect, Instance, ObjectKey};

#[derive(Debug, Default)]
struct Inner {
    interfaces: BTreeMap<String, String>,
    objects: BTreeMap<ObjectKey, Instance>,
    /// Keys of ordered objects, in the order of their creation.
    order: Vec<ObjectKey>,
    /// Unexpected requests: they cannot be carried out.
    wrong: Vec<String>,
}

/// The command that creates an object.
pub(super) fn command(object: &Instance) -> String {
    let object = object.clone();
    match object.class().patterns(Effect::Add).is_empty() {
        true => Request::Set(object).to_string(),
        false => Request::Add(object).to_string(),
    }
}

/// The handlers of all features.
#[derive(Debug, Default)]
pub(super) struct Objects {
    inner: RefCell<Inner>,
    /// The step after this many is refused; `None`: no step.
    pub(super) refuse_after: Cell<Option<usize>>,
}

impl Objects {
    /// The commands that create all objects.
    pub(super) fn lines(&self) -> Vec<String> {
        let inner = self.inner.borrow();
        let objects = inner.objects.values().map(command);
        let mut lines: Vec<String> = inner.interfaces.values().cloned().chain(objects).collect();
        lines.sort();
        lines
    }

    /// The ordered objects, in their order.
    pub(super) fn in_order(&self, interface: &str) -> Vec<String> {
        let inner = self.inner.borrow();
        let own = inner
            .order
            .iter()
            .filter(|key| key.owner() == Some(interface));
        own.filter_map(|key| inner.objects.get(key))
            .map(command)
            .collect()
    }

    /// The unexpected requests.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.inner.borrow().wrong.clone()
    }
}

impl Inner {
    fn expect(&mut self, is_so: bool, request: &Request, why: &str) {
        if !is_so {
            self.wrong.push(format!("`{request}`: {why}"));
        }
    }

    fn apply(&mut self, request: &Request) {
        match request {
            Request::InterfaceCreate(spec) => {
                let mut kind = spec.clone();
                (kind.mac, kind.mtu) = (None, None);
                let line = Request::InterfaceCreate(kind).to_string();
                let before = self.interfaces.insert(spec.name.clone(), line);
                self.expect(before.is_none(), request, "it is there");
                for (class, value) in spec.settings() {
                    let setting = Instance::of_value(class, &spec.name, value).unwrap();
                    self.objects.insert(setting.key(), setting);
                }
            }
            Request::InterfaceDelete { name } => self.delete(request, name),
            Request::InterfaceRename { name, new_name } => self.rename(request, name, new_name),
            Request::Set(object) => self.set(request, object.clone(), false),
            Request::Add(object) => self.set(request, object.clone(), true),
            Request::Unset(key) => {
                let before = self.objects.remove(key);
                self.order.retain(|it| it != key);
                let always = key.class().is_always();
                self.expect(always || before.is_some(), request, "it is not there");
            }
            Request::Bulk(bulk) => self.bulk(request, bulk),
            _ => self.expect(false, request, "the core plans it otherwise"),
        }
    }

    fn set(&mut self, request: &Request, object: Instance, is_new: bool) {
        let (key, class) = (object.key(), object.class().clone());
        let owned = key
            .owner()
            .is_none_or(|name| self.interfaces.contains_key(name));
        self.expect(owned, request, "its interface is not there");
        let mut has_all = true;
        object.references(&mut |class, name, _| {
            let of = |name: &str| self.interfaces.contains_key(name);
            has_all &= class != "interface" || name.as_text().is_none_or(of);
        });
        self.expect(has_all, request, "an interface that it names is not there");
        let before = match class.is_always() && object.is_usual() {
            true => self.objects.remove(&key),
            false => self.objects.insert(key.clone(), object),
        };
        let is_once = is_new || class.def().once;
        self.expect(!(is_once && before.is_some()), request, "it is there");
        if class.def().ordered && before.is_none() {
            self.order.push(key);
        }
    }

    fn delete(&mut self, request: &Request, name: &str) {
        let before = self.interfaces.remove(name);
        self.expect(before.is_some(), request, "it is not there");
        self.objects.retain(|key, _| key.owner() != Some(name));
        self.order.retain(|key| key.owner() != Some(name));
        let mut objects = self.objects.values();
        let user = objects.find(|object| object.refers_to("interface", name));
        let why = user
            .map(|user| format!("`{}` needs it", command(user)))
            .unwrap_or_default();
        self.expect(why.is_empty(), request, &why);
    }

    fn rename(&mut self, request: &Request, name: &str, new_name: &str) {
        let line = self.interfaces.remove(name);
        self.expect(line.is_some(), request, "it is not there");
        let line = line
            .unwrap_or_default()
            .replace(&format!(" {name}"), &format!(" {new_name}"));
        let before = self.interfaces.insert(new_name.to_owned(), line);
        self.expect(before.is_none(), request, "the new name is taken");
        let objects = std::mem::take(&mut self.objects).into_values();
        let renamed = objects.map(|object| object.renamed("interface", name, new_name));
        self.objects = renamed.map(|object| (object.key(), object)).collect();
        for key in &mut self.order {
            *key = key.renamed("interface", name, new_name);
        }
    }

    fn bulk(&mut self, request: &Request, bulk: &Bulk) {
        for item in bulk.removed() {
            let key = bulk.group(item.version()).key(*item).object_key();
            let before = self.objects.remove(&key);
            self.expect(before.is_some(), request, "one is not there");
        }
        for (item, set) in bulk.puts() {
            let key = bulk.group(item.version()).key(*item);
            let object = key.instance(&bulk.sets()[*set as usize]);
            self.set(request, object, false);
        }
    }
}

impl Probe for Objects {
    fn by_first_name(&self, _: &str) -> Vec<Instance> {
        Vec::new()
    }
}

impl Executor for Objects {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        match self.refuse_after.get() {
            Some(0) => {
                self.refuse_after.set(None);
                return Err(ModelError::invalid("this step", "it is refused"));
            }
            left => self.refuse_after.set(left.map(|left| left - 1)),
        }
        self.inner.borrow_mut().apply(request);
        Ok(Applied::one())
    }
}
