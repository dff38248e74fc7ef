//! The typed language of Volley's control plane: requests, queries and answers.
//!
//! Every interface (configuration file, command line, HTTP, Linux control plane) builds [`Request`]s for changes and
//! [`volley_object::Asked`] for queries, and nothing else. Feature crates carry them out as [`Owners`] and [`Handler`]s.
//!
//! - Precondition: none; every parser here accepts any text.
//! - Postcondition: a value that passed [`Request::validate`] is well-formed by itself (host bits, ranges, name syntax,
//!   matching families); the handlers check whether the named objects exist.
//! - No input causes a panic.
//! - `Display` of a [`Request`] is its command: journals and histories print commands.
#![forbid(unsafe_code)]

mod client;
mod config;
mod error;
mod escape;
mod event;
mod field;
mod handler;
mod interface;
pub mod limits;
mod name;
mod near;
mod owner;
mod request;
mod request_read;
mod rights;
mod role;
mod runtime;
mod spell;
mod time;
mod validate;

pub use client::{Client, Identity, Peer, Via};
pub use config::{
    CommitHow, CommitRow, Committed, ConfigAction, ConfigForm, ConfigReply, ConfigSource,
    parse_span,
};
pub use error::{ModelError, ObjectKind, SyntaxError, listed};
pub use escape::{acts_on_terminals, escape, escape_lines};
pub use event::{ChangeKind, Event};
pub use field::one_host;
pub use handler::{Applied, Handler};
pub use interface::InterfaceSpec;
pub use name::check_name;
pub use near::nearest;
pub use owner::{Owners, key_value};
pub use request::Request;
pub use role::Role;
pub use runtime::runtime_folder;
pub use time::Timestamp;
pub use volley_object::quote;
pub use volley_wire::{Family, IfAddress, MacAddr as Mac, Prefix};
