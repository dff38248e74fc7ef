//! The command line: one grammar of all commands, and the functions derived from it.
//!
//! [`grammar`] holds the commands: those of the command line itself, and those of classes, queries and verbs. From the grammar
//! come parsing ([`parse_line`]), completion ([`complete`]), `?` help ([`help`]) and the command reference ([`reference()`]).
//! [`render`] prints every answer as text or JSON, [`server`] serves the command line on a unix socket, [`client`] is `volley
//! ctl`.
//!
//! - Precondition: none; a line may be any text.
//! - Postcondition: a [`Command`] whose request has passed `Request::validate`, or one sentence with the column of the error
//!   and what was expected there. Parsing has no side effects.
//! - No line causes a panic, and no line costs more than its length times the size of the grammar.
#![forbid(unsafe_code)]

mod action;
mod build;
pub mod client;
pub mod grammar;
mod own;
mod pipe;
mod reference;
pub mod render;
mod script;
pub mod server;
mod socket;
mod token;

pub use action::{Action, Builtin, Command};
pub use build::parse_line;
pub use grammar::{Candidate, Completion, Names, NoNames, complete, help};
pub use own::{Exec, Line, Watch};
pub use pipe::Pipe;
pub use reference::reference;
pub use render::View;
pub use server::Backend;

/// Longest command line, in bytes.
pub const MAX_LINE: usize = 1 << 20;
