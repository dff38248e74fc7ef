//! Commands of registered queries and verbs.

use super::commands::{CommandDef, Id};
use super::objects::{Effect, converted, interned};
use super::pattern::Pattern;
use volley_object::{Class, Classes, QueryClass, VerbClass};

/// A command of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryCommand {
    pub(crate) query: &'static str,
    at: usize,
}

impl QueryCommand {
    /// The query, and the pattern of the command.
    pub(crate) fn pattern(
        self,
        all: &Classes,
    ) -> Option<(&QueryClass, &volley_object::pattern::Pattern)> {
        let query = all.query(self.query)?;
        Some((query, query.class().set_patterns().get(self.at)?))
    }
}

/// A command of a verb of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerbCommand {
    pub(crate) verb: &'static str,
    at: usize,
}

impl VerbCommand {
    /// The verb, and the pattern of the command.
    pub(crate) fn pattern(
        self,
        all: &Classes,
    ) -> Option<(&VerbClass, &volley_object::pattern::Pattern)> {
        let verb = all.verb(self.verb)?;
        Some((verb, verb.class().set_patterns().get(self.at)?))
    }
}

/// The commands of all queries and verbs with their patterns.
pub(super) fn commands(all: &Classes) -> Vec<(CommandDef, Pattern)> {
    let queries = all.queries().flat_map(|query| {
        let id = |query, at| Id::Query(QueryCommand { query, at });
        of_class(query.class(), all, id, &|pattern| {
            (query.doc_of(pattern), query.example_of(pattern))
        })
    });
    let verbs = all.verbs().flat_map(|verb| {
        let id = |verb, at| Id::Verb(VerbCommand { verb, at });
        of_class(verb.class(), all, id, &|_| {
            (verb.class().doc(), verb.class().def().example.to_owned())
        })
    });
    queries.chain(verbs).collect()
}

/// The commands of a query or a verb, whose parameters are of a class.
fn of_class(
    class: &Class,
    all: &Classes,
    id: fn(&'static str, usize) -> Id,
    texts: &dyn Fn(&volley_object::pattern::Pattern) -> (&'static str, String),
) -> Vec<(CommandDef, Pattern)> {
    let patterns = class.set_patterns().iter().enumerate();
    let command = |(at, pattern): (usize, &volley_object::pattern::Pattern)| {
        let (doc, example) = texts(pattern);
        let definition = CommandDef {
            id: id(interned(class.name()), at),
            pattern: interned(&pattern.show(class.fields())),
            text: interned(doc),
            example: interned(&example),
        };
        (
            definition,
            converted((class, all), Effect::Set(at), pattern),
        )
    };
    patterns.map(command).collect()
}
