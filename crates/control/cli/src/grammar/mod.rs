//! All commands and the automaton built from them.
//!
//! A command is written as a pattern: words, `<slots>`, `[optional]`, `(one | of)`, `{any | number | of}`, and `word~s` for a
//! word with a second spelling. All patterns together form one automaton, so a word is matched against all commands at once:
//! exact words take precedence, then slots with a recognisable form (numbers, addresses), then unambiguous abbreviations of
//! words, then slots that accept any word (names, files).

mod automaton;
mod commands;
mod complete;
mod names;
mod objects;
mod pattern;
mod slots;
mod words;

pub(crate) use automaton::Grammar;
pub(crate) use automaton::{Piece, run};
pub(crate) use commands::{CommandDef, Id, Of};
pub use complete::{Candidate, Completion, complete, help};
pub use names::{Names, NoNames};
pub(crate) use words::aliased;
