//! Click's configuration language.
//!
//! Contract:
//! - [`parse`] accepts any text and never panics. Recursion, the number of elements and the number of connections are limited.
//! - [`flatten()`] replaces compound elements by their contents: the result has elements of a library and connections between
//!   their ports.
//! - [`wire`] decides which ports push and which pull, and checks that every port is connected as its mode allows.
//! - Every error is one sentence with file, line and column.
//!
//! The crate knows neither elements nor the engine: a library of elements gives their names and [`Shape`]s.
#![forbid(unsafe_code)]

mod arguments;
mod ast;
mod error;
mod flatten;
mod lexer;
mod nearest;
mod parser;
mod scope;
mod shape;
mod tunnels;
mod wiring;

pub use arguments::{bytes, split, unquote, words};
pub use ast::Program;
pub use error::{ClickError, Source};
pub use flatten::{Element, Hookup, Network, flatten};
pub use nearest::{hint, nearest};
pub use parser::parse;
pub use shape::{Mode, Shape};
pub use wiring::{Port, Wiring, wire};
