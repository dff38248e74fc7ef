//! The requests collected while a file is read.

use crate::field::{Names, Section};
use std::collections::BTreeMap;
use volley_model::{InterfaceSpec, Request};
use volley_object::{Instance, Startup};

/// Requests by step. Later steps depend on earlier ones.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) startup: Startup,
    /// Objects without references.
    pub(crate) first: Vec<Request>,
    pub(crate) interfaces: Vec<Request>,
    /// Objects with references.
    pub(crate) objects: Vec<Request>,
    pub(crate) states: Vec<Request>,
    /// Requests that are carried out after all others.
    pub(crate) starts: Vec<Request>,
    /// Settings of the interface that is being read, for its creation.
    pub(crate) created_with: Vec<Instance>,
    pub(crate) names: Names,
    pub(crate) keys: Names,
    /// The objects of each class by the values of their keys.
    pub(crate) objects_of: BTreeMap<&'static str, Names>,
}

impl Plan {
    /// Adds a setting of an interface.
    pub(crate) fn of_interface(&mut self, setting: Instance) {
        let class = setting.class();
        match InterfaceSpec::is_created_with(class.name()) {
            true => self.created_with.push(setting),
            false if class.def().last => self.states.push(Request::Set(setting)),
            false => self.interfaces.push(Request::Set(setting)),
        }
    }
}

/// Checks a request; reports an error at its table.
pub(crate) fn valid(section: &Section<'_>, request: &Request) -> bool {
    request.validate().map_err(|e| section.error(e)).is_ok()
}
