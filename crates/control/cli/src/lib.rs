//! The command line: one grammar of all commands, and everything that follows from it.
//!
//! [`grammar`] holds the commands: those of the command line itself, and those of classes, queries and verbs. From it
//! come parsing ([`parse_line`]), completion ([`complete`]), `?` help ([`help`]) and the command reference
//! ([`reference()`]). [`render`] prints every answer as text or JSON, [`server`] serves the command line on a unix
//! socket, [`client`] is `volley ctl`.
//!
//! - True on entry: nothing; a line may be any text.
//! - True on exit: a [`Command`] whose request has passed `Request::validate`, or one sentence with the column where the
//!   line went wrong and what was expected there. Parsing changes nothing.
//! - Nothing here panics on any line, and no line costs more than its length times the size of the grammar.
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
pub use grammar::{Candidate, Completion, NameKind, Names, NoNames, complete, help};
pub use pipe::Pipe;
pub use reference::reference;
pub use render::View;
pub use server::Backend;

/// Longest command line, in bytes.
pub const MAX_LINE: usize = 1 << 20;
