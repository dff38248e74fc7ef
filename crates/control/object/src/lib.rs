//! Classes of configuration objects, queries and verbs: each is defined once, as a struct with `#[derive(Object)]`,
//! `#[derive(Query)]` or `#[derive(Verb)]` in the crate of its feature, and every interface derives from it.
//!
//! | file | contents |
//! |---|---|
//! | `value`, `kind`, `addr` | values of fields, and their types: range, choices, how a value is parsed and written |
//! | `class`, `place` | the definition of a class: keys, fields, defaults, references, position in the file, commands |
//! | `pattern` | patterns of commands: a pattern parses a command line, and writes an object as a command |
//! | `call`, `parameters` | what queries and verbs have in common |
//! | `query`, `query_class` | queries, with their parameters and replies |
//! | `stream` | queries whose reply comes in items over time, and their runs |
//! | `bulk`, `packed`, `packing`, `part` | requests for many objects, packed keys, items of lists |
//! | `change` | new values for some fields of existing objects |
//! | `instance`, `json` | an object of a class, its key, its JSON form |
//! | `kept` | texts and definitions for the lifetime of the process |
//! | `startup` | objects that are read when the daemon starts |
//! | `verb` | verbs, and a verb with its parameters |
//! | `registry` | the classes, queries and verbs that exist now; they are added and removed while the daemon runs |
//! | `object` | [`Object`]: conversion from and to the struct of the feature |
//!
//! This crate names no feature. A value that passed [`Class::instance`] is in range; the control core checks whether
//! the referenced objects exist. No input causes a panic.
#![forbid(unsafe_code)]

// The derive macros refer to this crate by its name, also inside the crate.
extern crate self as volley_object;

mod addr;
mod bulk;
mod by_name;
mod call;
mod change;
mod class;
mod definition_error;
mod field;
mod instance;
mod json;
mod kept;
mod kind;
mod object;
mod packed;
mod packing;
mod parameters;
mod part;
pub mod pattern;
mod place;
mod query;
mod query_class;
#[cfg(test)]
mod query_tests;
mod registry;
mod startup;
#[cfg(any(test, feature = "strategy"))]
mod strategy;
mod stream;
#[cfg(test)]
mod stream_tests;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod verb;
mod verb_class;
#[cfg(test)]
mod verb_tests;
mod view;

pub use bulk::{Bulk, BulkReader};
pub use call::{Call, Defined, Definition};
pub use change::Change;
pub use class::{Brings, Check, Class, ClassDef, Effect, References};
pub use definition_error::DefinitionError;
pub use field::{Derived, FieldDef, field_of, names};
pub use instance::{Instance, ObjectKey};
pub use json::{interface_from_json, interface_schema, interface_to_json, of_today};
pub use kept::kept;
pub use kind::{Choice, FieldType, Kind, Shape, TextError, TextKind, choice_name, choice_named};
pub use object::Object;
pub use packed::{BulkKey, Group, Values};
pub use packing::{PACKED, Packed, Packing};
pub use parameters::Parameters;
pub use part::{Left, Part};
pub use place::{Brought, Place, Reference, Start, Strength};
pub use query::{Answer, Body, Query};
pub use query_class::{Asked, QueryClass, QueryDef, StreamDef, ViewDef};
pub use registry::{
    Classes, Listed, classes, define, exchange, put_back, register, undefine, unregister,
};
pub use startup::Startup;
#[cfg(any(test, feature = "strategy"))]
pub use strategy::{instances, keys};
pub use stream::{
    AnyRun, Progress, ReplyPart, Run, Running, Stream, WHOLE_ITEMS, WHOLE_MS, running, whole_run,
};
pub use table::{TextTable, article};
pub use value::{Value, quote, shown};
pub use verb::{Invocation, Verb};
pub use verb_class::{VerbClass, VerbDef};
pub use view::View;
pub use volley_object_derive::{Choice, Object, Query, Verb};

/// One wrong value: the field, and what is allowed. Displayed as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct FieldError {
    /// The name of the field in the definition.
    pub field: &'static str,
    /// The error and what is allowed.
    pub why: String,
}

/// Refuses the value of a field of this name; `why` says what is allowed.
pub fn refuse<T>(field: &'static str, why: impl Into<String>) -> Result<T, FieldError> {
    let why = why.into();
    Err(FieldError { field, why })
}

/// Refuses a list with more than `limit` items.
pub fn at_most(field: &'static str, items: usize, limit: usize) -> Result<(), FieldError> {
    match items > limit {
        true => refuse(field, format!("must be {limit} at most, not {items}")),
        false => Ok(()),
    }
}
