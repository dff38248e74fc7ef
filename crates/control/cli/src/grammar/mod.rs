//! All commands and the automaton made from them.
//!
//! A command is written as a pattern: words, `<slots>`, `[optional]`, `(one | of)`, `{any | number | of}`, and `word~s`
//! for a word with a second spelling. All patterns together form one automaton, so a word is judged against every
//! command at once: exact words win, then slots of a recognisable shape (numbers, addresses), then unambiguous
//! beginnings of words, then slots that take anything (names, files).

mod automaton;
mod commands;
mod complete;
mod keywords;
mod names;
mod objects;
mod pattern;
mod slots;
mod words;

pub(crate) use automaton::Grammar;
pub(crate) use automaton::{Piece, run};
pub(crate) use commands::{CommandDef, Id, Of};
pub use complete::{Candidate, Completion, complete, help};
pub use names::{NameKind, Names, NoNames};
pub(crate) use words::aliased;
