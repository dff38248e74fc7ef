//! The commands of the command line itself, and of classes, queries and verbs.

use crate::own;
use volley_object::pattern::Pattern;
use volley_object::{Class, Classes, Effect, QueryClass, VerbClass};

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandDef {
    pub(crate) id: Id,
    pub(crate) pattern: &'static str,
    pub(crate) text: &'static str,
    pub(crate) example: &'static str,
}

/// Identifies the command that was parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) of: Of,
    /// The name of the class, query or verb.
    pub(crate) class: &'static str,
    /// The index of its pattern.
    pub(crate) at: usize,
}

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The command line itself.
    Own,
    /// A registered query.
    Query,
    /// A registered verb.
    Verb,
    /// A registered class, and the effect of the command on an object.
    Object(Effect),
    /// A registered class, and the command `default` of every class: it removes an object or resets it to its defaults.
    Default,
}

impl Id {
    /// The class of the command's fields; `None` when the class was removed.
    pub(crate) fn class(self, all: &Classes) -> Option<&Class> {
        match self.of {
            Of::Own => own::named(self.class).map(VerbClass::class),
            Of::Query => all.query(self.class).map(QueryClass::class),
            Of::Verb => all.verb(self.class).map(VerbClass::class),
            Of::Object(_) | Of::Default => all.get(self.class),
        }
    }

    /// The pattern of the command in its class; `None` for `default`, which every class has.
    pub(crate) fn pattern(self, class: &Class) -> Option<&Pattern> {
        let effect = match self.of {
            Of::Default => return None,
            Of::Object(effect) => effect,
            Of::Own | Of::Query | Of::Verb => Effect::Set,
        };
        class.patterns(effect).get(self.at)
    }
}
