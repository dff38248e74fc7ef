//! Commands of registered queries.

use super::commands::{CommandDef, Id};
use super::objects::{Verb, converted, interned};
use super::pattern::Pattern;
use volley_object::{Class, Classes};

/// A command of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryCommand {
    pub(crate) query: &'static str,
    at: usize,
}

impl QueryCommand {
    /// The parameters of the query, and the pattern of the command.
    pub(crate) fn pattern(
        self,
        all: &Classes,
    ) -> Option<(&Class, &volley_object::pattern::Pattern)> {
        let class = all.query(self.query)?.class();
        Some((class, class.set_patterns().get(self.at)?))
    }
}

/// The commands of all queries with their patterns.
pub(super) fn commands(all: &Classes) -> Vec<(CommandDef, Pattern)> {
    let of_query = |class: &Class| {
        let patterns = class.set_patterns().iter().enumerate();
        let command = |(at, pattern): (usize, &volley_object::pattern::Pattern)| {
            let query = interned(class.name());
            let definition = CommandDef {
                id: Id::Query(QueryCommand { query, at }),
                pattern: interned(&pattern.show(class.fields())),
                text: interned(class.doc()),
                example: interned(class.def().example),
            };
            (definition, converted((class, all), Verb::Set(at), pattern))
        };
        patterns.map(command).collect::<Vec<_>>()
    };
    all.queries().flat_map(|q| of_query(q.class())).collect()
}
