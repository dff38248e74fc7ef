//! `volley ctl`: one line, a file of lines, or interactive, over the daemon's socket.

mod connection;
mod error;
mod files;
mod follow;
mod interactive;
mod run;
mod screen;
mod script;
mod watch;

pub use connection::Connection;
pub use error::ClientError;
pub use interactive::interactive;
pub use run::{all_or_none, batch, one_shot};
pub use screen::Screen;
pub use script::{ScriptOptions, script};
