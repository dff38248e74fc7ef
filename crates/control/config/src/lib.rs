//! The configuration file: `volley.toml`, the declared desired state, read into typed requests.
//!
//! - Precondition: none; any bytes may be given.
//! - Postcondition: either a [`Config`] whose requests have all passed `Request::validate`, name only interfaces and tables
//!   that the file declares, and are in dependency order; or [`ConfigErrors`] with **every** error of the file, each with file,
//!   line, column, key, and the allowed values. There is no partial result.
//! - The crate does not panic, and does not access the daemon.
#![forbid(unsafe_code)]

mod error;
mod field;
mod interface;
mod keys;
mod object;
mod object_write;
mod plan;
mod read;
mod schema;
mod tables;
mod write;

pub use error::{ConfigError, ConfigErrors};
pub use schema::{Key, Table};
pub use tables::schema;
pub use write::write;

use std::path::Path;
use volley_model::Request;
use volley_object::Startup;

/// Maximum size of a configuration file in bytes.
pub const MAX_FILE: u64 = 64 << 20;

/// The content of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Config {
    /// Settings that are read at start, and do not change while the daemon runs.
    pub startup: Startup,
    /// Changes that lead from an empty router to the desired state, in dependency order.
    pub requests: Vec<Request>,
}

/// Reads a configuration from text; errors call the file `volley.toml`.
pub fn parse(text: &str) -> Result<Config, ConfigErrors> {
    parse_named("volley.toml", text)
}

/// Reads a configuration from text; errors call the file `name`.
pub fn parse_named(name: &str, text: &str) -> Result<Config, ConfigErrors> {
    read::read(name, text)
}

/// Reads a configuration file.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    let name = path.display().to_string();
    let whole = |why: String| ConfigErrors::whole(&name, why);
    let text = volley_file::read_text(path, MAX_FILE).map_err(|e| match e.raw_os_error() {
        Some(_) => whole(format!("cannot be read: {e}")),
        None => whole(e.to_string()),
    })?;
    parse_named(&name, &text)
}
