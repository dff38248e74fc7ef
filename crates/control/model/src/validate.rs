//! Checks of requests that need no state: ranges, name syntax, required combinations.

use crate::error::ModelError;
use crate::interface::InterfaceSpec;
use crate::name::check_name;
use crate::request::Request;
use volley_object::{Class, Instance};

type Check = Result<(), ModelError>;

fn interface(name: &str) -> Check {
    check_name("interface", name)
}

impl Request {
    /// Makes all checks that need no state.
    pub fn validate(&self) -> Check {
        match self {
            Request::InterfaceCreate(spec) => spec.validate(),
            Request::Set(object) => no_interface(object.class()),
            Request::Unset(key) if key.is_built_in() => {
                let why = "it is always there and cannot be deleted";
                Err(ModelError::invalid(key, why))
            }
            Request::Unset(key) => no_interface(key.class()),
            Request::Change(change) => no_interface(change.class()),
            Request::InterfaceRename { name, new_name } => {
                interface(name).and_then(|()| interface(new_name))
            }
            Request::InterfaceDelete { name } => interface(name),
            Request::Do(_) => Ok(()),
            Request::Add(object) => joins(object.class()),
            Request::Take(part) => joins(part.class()),
            Request::UnsetExact(_) | Request::Bulk(_) | Request::UnsetAny(_) => Ok(()),
        }
    }
}

/// Refuses an object whose class has no lists that can be merged.
fn joins(class: &Class) -> Check {
    match class.joins() {
        true => Ok(()),
        false => {
            let why = "no list of it can get or lose items: use `set` and `unset`";
            Err(ModelError::invalid(class.noun(), why))
        }
    }
}

impl InterfaceSpec {
    fn validate(&self) -> Check {
        // If the name has a default, the driver numbers an interface without a name.
        let numbered = !self.kind.class().fields()[0].required();
        if !(numbered && self.name.is_empty()) {
            interface(&self.name)?;
        }
        let (kind, class) = (&self.kind, self.kind.class());
        if kind.name() != self.name {
            let why = format!("its kind says that it is called {}", kind.name());
            return Err(ModelError::invalid(format!("interface {}", self.name), why));
        }
        for (setting, value) in self.settings() {
            if !class.is_created_with(setting) {
                let why = format!("an interface of kind {} takes no {setting}", class.noun());
                let what = format!("{setting} of {}", self.name);
                return Err(ModelError::invalid(what, why));
            }
            let checked = Instance::of_value(setting, &self.name, value);
            checked.map_err(|error| ModelError::invalid(&self.name, error))?;
        }
        Ok(())
    }
}

/// Refuses an object that is an interface: other requests create and delete interfaces.
fn no_interface(class: &Class) -> Check {
    match class.is_interface() {
        false => Ok(()),
        true => {
            let why = "it is an interface: create it by `interface-create`, delete it by `interface-delete`";
            Err(ModelError::invalid(class.noun(), why))
        }
    }
}
