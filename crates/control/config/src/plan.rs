//! The requests of a file that is being read.

use crate::field::{Names, Section};
use std::collections::BTreeMap;
use volley_model::{InterfaceSpec, Request};
use volley_object::{Instance, Startup};

/// Requests by the step they belong to. Later steps need earlier ones.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) startup: Startup,
    pub(crate) first: Vec<Request>,
    pub(crate) interfaces: Vec<Request>,
    pub(crate) objects: Vec<Request>,
    pub(crate) states: Vec<Request>,
    pub(crate) starts: Vec<Request>,
    /// Settings that the interface which is being read is created with.
    pub(crate) created_with: Vec<Instance>,
    pub(crate) names: Names,
    pub(crate) keys: Names,
    /// The objects of each class by the values of their keys.
    pub(crate) objects_of: BTreeMap<&'static str, Names>,
}

impl Plan {
    /// Adds an object that refers to none.
    pub(crate) fn early(&mut self, request: Request) {
        self.first.push(request);
    }

    /// Adds an object that refers to others.
    pub(crate) fn late(&mut self, request: Request) {
        self.objects.push(request);
    }

    /// Adds a setting of an interface.
    pub(crate) fn of_interface(&mut self, setting: Instance) {
        let class = setting.class();
        match InterfaceSpec::is_created_with(class.name()) {
            true => self.created_with.push(setting),
            false if class.def().last => self.states.push(Request::Set(setting)),
            false => self.interfaces.push(Request::Set(setting)),
        }
    }

    /// Adds a request that is carried out behind all others.
    pub(crate) fn start(&mut self, request: Request) {
        self.starts.push(request);
    }
}

/// Reports a request that is not well-formed at its table.
pub(crate) fn valid(section: &Section<'_>, request: &Request) -> bool {
    request.validate().map_err(|e| section.error(e)).is_ok()
}
