//! Owners: each class of objects has one, which carries out changes of its objects; each query has one, which answers it; each
//! verb has one, which performs it.

use crate::error::ModelError;
use crate::handler::Applied;
use crate::request::Request;
use std::collections::BTreeMap;
use volley_object::{
    Answer, Asked, Bulk, Class, Classes, DefinitionError, FieldType, Instance, Invocation, Object,
    ObjectKey, Query, Run, Running, Stream, Verb, running,
};

type Owner = Box<dyn FnMut(&ObjectKey, Option<&Instance>) -> Result<Applied, ModelError>>;

type BulkOwner = Box<dyn FnMut(&Bulk) -> Result<Applied, ModelError>>;

type Answerer = Box<dyn FnMut(&Asked) -> Result<Answer, ModelError>>;

type Starter = Box<dyn FnMut(&Asked) -> Result<Running, ModelError>>;

type Performer = Box<dyn FnMut(&Invocation) -> Result<Applied, ModelError>>;

/// The owners of classes, queries and verbs. Used only on the control thread.
#[derive(Default)]
pub struct Owners {
    all: BTreeMap<&'static str, Owner>,
    bulks: BTreeMap<&'static str, BulkOwner>,
    queries: BTreeMap<&'static str, Answerer>,
    streams: BTreeMap<&'static str, Starter>,
    verbs: BTreeMap<&'static str, Vec<Performer>>,
    /// The owner of the classes that objects bring, see [`volley_object::ClassDef::brought`].
    brought: Option<Owner>,
    /// The owner of the verbs that objects bring.
    brought_verbs: Option<Performer>,
}

impl Owners {
    /// Registers a class, if necessary, and its owner. The arguments of `apply` are the key of an object and its new value;
    /// `None`: the object is removed. The objects of a class without a command for removal always have a value: the owner gets
    /// the defaults instead of `None`.
    pub fn own<T: Object + 'static>(
        &mut self,
        mut apply: impl FnMut(&ObjectKey, Option<T>) -> Result<Applied, ModelError> + 'static,
    ) -> Result<Class, DefinitionError> {
        let class = T::class()?;
        let name = class.name();
        if self.all.contains_key(name) {
            return Err(DefinitionError::new(name, "it has two owners"));
        }
        let always = class.is_always();
        let owner = move |key: &ObjectKey, now: Option<&Instance>| {
            let usual = || always.then(|| T::usual(key)).flatten();
            apply(key, now.map_or_else(usual, T::of))
        };
        self.all.insert(name, Box::new(owner));
        Ok(class)
    }

    /// Makes `apply` the owner of all classes that objects bring: it gets the objects without their Rust types.
    pub fn own_brought(
        &mut self,
        apply: impl FnMut(&ObjectKey, Option<&Instance>) -> Result<Applied, ModelError> + 'static,
    ) {
        self.brought = Some(Box::new(apply));
    }

    /// Makes `perform` the owner of all verbs that objects bring: it gets the parameters without their Rust types.
    pub fn perform_brought(
        &mut self,
        perform: impl FnMut(&Invocation) -> Result<Applied, ModelError> + 'static,
    ) {
        self.brought_verbs = Some(Box::new(perform));
    }

    /// Registers a bulk class, if necessary, and its owner. `apply` gets one or more objects of a group, and carries out all of
    /// them, or none and returns an error.
    pub fn own_bulk<T: Object + 'static>(
        &mut self,
        apply: impl FnMut(&Bulk) -> Result<Applied, ModelError> + 'static,
    ) -> Result<Class, DefinitionError> {
        let class = T::class()?;
        let name = class.name();
        match self.bulks.insert(name, Box::new(apply)) {
            Some(_) => Err(DefinitionError::new(name, "it has two owners")),
            None => Ok(class),
        }
    }

    /// Removes the owner of a class. The class itself is unregistered by its name.
    pub fn disown(&mut self, class: &str) {
        self.all.remove(class);
        self.bulks.remove(class);
    }

    /// Registers a query, if necessary, and its owner, which makes the reply to a query with these parameters.
    pub fn answer<Q: Query + 'static>(
        &mut self,
        mut answer: impl FnMut(Q) -> Result<Q::Reply, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        let name = self.unanswered::<Q>()?;
        let owner = move |asked: &Asked| match asked.get() {
            Some(query) => Ok(Answer::new::<Q>(answer(query)?)?),
            None => Err(not_answered(asked)),
        };
        self.queries.insert(name, Box::new(owner));
        Ok(())
    }

    /// Registers a query whose reply comes in items, if necessary, and its owner, which begins a run with these parameters.
    pub fn stream<Q: Stream + 'static, R: Run<Reply = Q::Reply> + 'static>(
        &mut self,
        mut begin: impl FnMut(Q) -> Result<R, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        let name = self.unanswered::<Q>()?;
        let owner = move |asked: &Asked| match asked.get() {
            Some(query) => begin(query).map(running::<Q>),
            None => Err(not_answered(asked)),
        };
        self.streams.insert(name, Box::new(owner));
        Ok(())
    }

    /// The name of a query that has no owner; an error when it has one.
    fn unanswered<Q: Query>(&self) -> Result<&'static str, DefinitionError> {
        let name = Q::query()?.name();
        match self.is_answered(name) {
            true => Err(DefinitionError::new(name, "it has two owners").of("query")),
            false => Ok(name),
        }
    }

    fn is_answered(&self, query: &str) -> bool {
        self.queries.contains_key(query) || self.streams.contains_key(query)
    }

    /// Removes the owner of a query. The query itself is unregistered by its name.
    pub fn withdraw(&mut self, query: &str) {
        self.queries.remove(query);
        self.streams.remove(query);
    }

    /// Registers a verb, if necessary, and its owner, which performs it with these parameters. A verb for all owners has any
    /// number of them; [`Applied::and`] combines their results.
    pub fn perform<V: Verb + 'static>(
        &mut self,
        mut perform: impl FnMut(V) -> Result<Applied, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        let verb = V::verb()?;
        let owners = self.verbs.entry(verb.name()).or_default();
        if !owners.is_empty() && !verb.def().for_all {
            return Err(DefinitionError::new(verb.name(), "it has two owners").of("verb"));
        }
        owners.push(Box::new(move |invocation| match invocation.get() {
            Some(verb) => perform(verb),
            None => Err(not_performed(invocation)),
        }));
        Ok(())
    }

    /// Removes the owners of a verb. The verb itself is unregistered by its name.
    pub fn retire(&mut self, verb: &str) {
        self.verbs.remove(verb);
    }

    /// Performs a verb.
    fn invoke(&mut self, invocation: &Invocation) -> Result<Applied, ModelError> {
        if invocation.verb().def().class.brought.is_some() {
            let owner = self.brought_verbs.as_mut();
            return owner.map_or_else(|| Err(not_performed(invocation)), |it| it(invocation));
        }
        let owners = self.verbs.get_mut(invocation.verb().name());
        let owners = owners.ok_or_else(|| not_performed(invocation))?;
        let mut all = owners.iter_mut();
        all.try_fold(Applied::default(), |done, perform| {
            Ok(done.and(perform(invocation)?))
        })
    }

    /// Answers a query.
    pub fn query(&mut self, asked: &Asked) -> Result<Answer, ModelError> {
        match self.queries.get_mut(asked.name()) {
            Some(owner) => owner(asked),
            None => Err(not_answered(asked)),
        }
    }

    /// Begins a run of a query whose reply comes in items.
    pub fn begin(&mut self, asked: &Asked) -> Result<Running, ModelError> {
        match self.streams.get_mut(asked.name()) {
            Some(owner) => owner(asked),
            None => Err(not_answered(asked)),
        }
    }

    /// Answers a query with the type of its reply.
    pub fn ask<Q: Query>(&mut self, query: &Q) -> Result<Q::Reply, ModelError> {
        let asked = query.asked();
        let asked = asked.map_err(|error| ModelError::invalid(Q::NAME, error))?;
        let reply = self.query(&asked)?.get().cloned();
        reply.ok_or_else(|| ModelError::invalid(Q::NAME, "its reply is of another type"))
    }

    /// The first class, query or verb that has no owner.
    pub fn unowned(&self, classes: &Classes) -> Option<String> {
        // The drivers' handlers carry out interfaces, and what brings a class carries out its objects.
        let is_own = |class: &&Class| !class.is_interface() && class.def().brought.is_none();
        let owned = classes.iter().filter(is_own);
        let mut names = owned.map(Class::name);
        let class =
            names.find(|name| !self.all.contains_key(name) && !self.bulks.contains_key(name));
        let mut queries = classes.queries().map(|query| query.name());
        let query = queries.find(|name| !self.is_answered(name));
        let own = classes.verbs();
        let own = own.filter(|verb| verb.def().class.brought.is_none());
        let mut verbs = own.map(|verb| verb.name());
        let verb = verbs.find(|name| !self.verbs.contains_key(name));
        let class = class.map(|name| format!("class {name}"));
        let class = class.or_else(|| query.map(|name| format!("query {name}")));
        class.or_else(|| verb.map(|name| format!("verb {name}")))
    }

    /// Carries out a request about an object, or a verb; `None` for any other request.
    pub fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let (key, now) = match request {
            Request::Do(invocation) => return Some(self.invoke(invocation)),
            Request::Bulk(bulk) => return Some(self.carry_out_bulk(bulk)),
            // An owner gets the complete objects of a bulk class: the control core has merged them.
            Request::Set(object) | Request::Add(object) if object.class().def().bulk => {
                return Bulk::with(object).map(|bulk| self.carry_out_bulk(&bulk));
            }
            Request::Unset(key) if key.class().def().bulk => {
                return Bulk::without(key).map(|bulk| self.carry_out_bulk(&bulk));
            }
            Request::Set(object) => (object.key(), Some(object)),
            Request::Unset(key) => (key.clone(), None),
            _ => return None,
        };
        Some(self.carry_out(&key, now))
    }

    fn carry_out_bulk(&mut self, bulk: &Bulk) -> Result<Applied, ModelError> {
        match self.bulks.get_mut(bulk.class().name()) {
            Some(owner) => owner(bulk),
            None => Err(not_carried_out(bulk.class())),
        }
    }

    fn carry_out(
        &mut self,
        key: &ObjectKey,
        now: Option<&Instance>,
    ) -> Result<Applied, ModelError> {
        let owner = match key.class().def().brought {
            Some(_) => self.brought.as_mut(),
            None => self.all.get_mut(key.class().name()),
        };
        match owner {
            Some(owner) => owner(key, now),
            None => Err(not_carried_out(key.class())),
        }
    }
}

fn not_carried_out(class: &Class) -> ModelError {
    let why = "nothing in this daemon carries it out: load what defines it";
    ModelError::invalid(class.noun(), why)
}

fn not_answered(asked: &Asked) -> ModelError {
    let why = "nothing in this daemon answers it: load what defines it";
    ModelError::invalid(format!("query {}", asked.name()), why)
}

fn not_performed(invocation: &Invocation) -> ModelError {
    let why = "nothing in this daemon performs it: load what defines it";
    ModelError::invalid(format!("verb {}", invocation.verb().name()), why)
}

/// A key value as its type; the default of the type if the value does not fit, which the class excludes.
pub fn key_value<T: FieldType + Default>(key: &ObjectKey, at: usize) -> T {
    let value = key.values().get(at);
    value.and_then(T::from_value).unwrap_or_default()
}
