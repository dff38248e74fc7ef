//! Definitions of verbs.

use crate::call::{Defined, Definition};
use crate::class::ClassDef;

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

/// A registered verb.
pub type VerbClass = Defined<VerbDef>;

impl Definition for VerbDef {
    const KIND: &'static str = "verb";

    fn class(&self) -> &ClassDef {
        &self.class
    }
}
