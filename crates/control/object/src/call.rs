//! Registered queries and verbs, and calls of them: what both have in common.

use crate::class::{Class, ClassDef};
use crate::instance::Instance;
use crate::value::Value;
use crate::{DefinitionError, FieldError};
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// The definition of a query or a verb.
pub trait Definition: Clone + 'static {
    /// The kind of definition: `query` or `verb`.
    const KIND: &'static str;

    /// Name, text, parameters, commands and example. The commands are those with the effect `Set`.
    fn class(&self) -> &ClassDef;

    /// Checks what only this kind of definition has; returns the fault.
    fn fault(&self, _class: &Class) -> Option<String> {
        None
    }
}

/// A registered query or verb. Cheap to clone; its calls keep it alive after it was unregistered.
#[derive(Clone)]
pub struct Defined<D> {
    class: Class,
    def: Arc<D>,
}

impl<D: Definition> Defined<D> {
    /// A query or verb outside the registry, for one interface only.
    pub fn new(def: D) -> Result<Defined<D>, DefinitionError> {
        let class = Class::new(def.class().clone(), 0, BTreeSet::new());
        let class = class.map_err(|error| error.of(D::KIND))?;
        match def.fault(&class) {
            Some(why) => Err(DefinitionError::new(class.name(), why).of(D::KIND)),
            None => Ok(Defined {
                class,
                def: Arc::new(def),
            }),
        }
    }

    /// Name of the query or verb.
    pub fn name(&self) -> &'static str {
        self.class.name()
    }

    /// The class of its parameters: name, text, fields; its commands are those with the effect `Set`.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The definition.
    pub fn def(&self) -> &D {
        &self.def
    }

    /// A call with these parameter values, in order.
    pub fn call(&self, slots: Vec<Option<Value>>) -> Result<Call<D>, FieldError> {
        Ok(Call {
            of: self.clone(),
            parameters: self.class.instance(slots)?,
        })
    }
}

impl<D: Definition> Debug for Defined<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A query or a verb with its parameters, all checked. Cheap to clone.
#[derive(Clone)]
pub struct Call<D> {
    pub(crate) of: Defined<D>,
    pub(crate) parameters: Instance,
}

impl<D: Definition> Call<D> {
    /// The name of the query or verb.
    pub fn name(&self) -> &'static str {
        self.of.name()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Instance {
        &self.parameters
    }
}

impl<D> Debug for Call<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.parameters.fmt(f)
    }
}

impl<D> PartialEq for Call<D> {
    fn eq(&self, other: &Call<D>) -> bool {
        self.parameters == other.parameters
    }
}

impl<D> Eq for Call<D> {}
