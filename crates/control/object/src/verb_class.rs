//! Definitions of verbs, and registered verbs.

use crate::DefinitionError;
use crate::class::{Class, ClassDef};
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};

/// The definition of a verb.
#[derive(Clone)]
pub struct VerbDef {
    /// Name, text, parameters, commands and example.
    pub class: ClassDef,
    /// A client needs the role `configure`.
    pub configure: bool,
    /// The verb has any number of owners, and each of them does its part.
    pub for_all: bool,
}

impl VerbDef {
    /// A verb without parameters and commands.
    pub fn new(name: &'static str, doc: &'static str) -> VerbDef {
        VerbDef {
            class: ClassDef::new(name, doc),
            configure: false,
            for_all: false,
        }
    }
}

/// A registered verb. Cheap to clone; its invocations keep it alive after it was unregistered.
#[derive(Clone)]
pub struct VerbClass {
    pub(crate) class: Class,
    configure: bool,
    for_all: bool,
}

impl VerbClass {
    /// A verb outside the registry, for one interface only.
    pub fn new(def: VerbDef) -> Result<VerbClass, DefinitionError> {
        let class = Class::new(def.class, 0, BTreeSet::new()).map_err(DefinitionError::of_verb)?;
        Ok(VerbClass {
            class,
            configure: def.configure,
            for_all: def.for_all,
        })
    }

    /// Name of the verb.
    pub fn name(&self) -> &'static str {
        self.class.name()
    }

    /// The class of its parameters: name, text, fields; its commands are those with the effect `Set`.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// Whether a client needs the role `configure`.
    pub fn needs_configure(&self) -> bool {
        self.configure
    }

    /// Whether the verb has any number of owners.
    pub fn is_for_all(&self) -> bool {
        self.for_all
    }
}

impl Debug for VerbClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
