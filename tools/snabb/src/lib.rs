//! Lua programs that wire graphs, as users of Snabb write them: `config.app`, `config.link`, `engine.configure`, `engine.main`. See
//! `docs/lua.md`.
//!
//! - `snabb.lua`: the apps and the engine. It writes a configuration in Click's language.
//! - [`Host`]: the router that runs the graph; [`Router`] is a daemon behind its control socket.
//!
//! A configuration that follows another one is a difference: the router replaces the graph, and what is the same goes on.
#![forbid(unsafe_code)]

mod router;

pub use router::{Options, Router, RouterError};

use mlua::{Error, Lua};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The apps and the engine.
const SNABB: &str = include_str!("snabb.lua");

/// The router that runs the graph of a program. Errors are one sentence.
pub trait Host: Send + 'static {
    /// Run a graph in Click's language in place of the one that runs.
    fn configure(&mut self, text: &str) -> Result<(), String>;
    /// The value of a handler.
    fn read(&mut self, handler: &str) -> Result<String, String>;
    /// Write a handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String>;
}

/// Run a program: its name for errors, its text, and its arguments. Returns the router. An error is one sentence, with the line.
pub fn run<H: Host>(
    name: &str,
    text: &str,
    arguments: &[String],
    host: H,
) -> (H, Result<(), String>) {
    let shared = Arc::new(Mutex::new(host));
    let done = execute(name, text, arguments, &shared);
    let done = done.map_err(|error| sentence(&error));
    let host =
        Arc::into_inner(shared).map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner));
    match host {
        Some(host) => (host, done),
        // The state of Lua, which has the other handles, is gone.
        None => unreachable!("a handle of the router is left"),
    }
}

fn execute<H: Host>(
    name: &str,
    text: &str,
    arguments: &[String],
    host: &Arc<Mutex<H>>,
) -> mlua::Result<()> {
    let lua = Lua::new();
    let table = lua.create_table()?;
    let of = host.clone();
    let configure = move |_: &Lua, text: String| with(&of, |host| host.configure(&text));
    table.set("configure", lua.create_function(configure)?)?;
    let of = host.clone();
    let read = move |_: &Lua, handler: String| with(&of, |host| host.read(&handler));
    table.set("read", lua.create_function(read)?)?;
    let of = host.clone();
    let write = move |_: &Lua, (handler, value): (String, String)| {
        with(&of, |host| host.write(&handler, &value))
    };
    table.set("write", lua.create_function(write)?)?;
    let start = Instant::now();
    let now = move |_: &Lua, ()| Ok(start.elapsed().as_secs_f64());
    table.set("now", lua.create_function(now)?)?;
    let sleep = |_: &Lua, seconds: f64| {
        let span = Duration::try_from_secs_f64(seconds);
        std::thread::sleep(span.map_err(Error::external)?);
        Ok(())
    };
    table.set("sleep", lua.create_function(sleep)?)?;
    lua.load(SNABB).set_name("=snabb.lua").call::<()>(table)?;
    let all = lua.create_sequence_from(arguments.iter().map(String::as_str))?;
    lua.globals().set("arg", all)?;
    lua.load(text).set_name(format!("@{name}")).exec()
}

fn with<H, T>(host: &Mutex<H>, call: impl FnOnce(&mut H) -> Result<T, String>) -> mlua::Result<T> {
    let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
    call(&mut host).map_err(Error::runtime)
}

/// The first line of an error of Lua: file, line and reason.
fn sentence(error: &Error) -> String {
    let text = match error {
        Error::CallbackError { cause, .. } => cause.to_string(),
        other => other.to_string(),
    };
    let first = text.lines().next().unwrap_or_default();
    let first = first.trim_start_matches("runtime error: ");
    first.trim_start_matches("syntax error: ").to_owned()
}

#[cfg(test)]
mod tests;
