//! The entry call.

use crate::allocator::{HostAllocator, HostCalls};
use crate::host::Host;
use crate::plugin::{Plugin, RegisterError};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use volley_graph::{panic_text, remember_panic};

/// The name of the entry in the file, terminated by a zero byte.
pub const ENTRY: &[u8] = b"volley_plugin_entry\0";

/// The entry of a plugin.
pub type Entry = extern "C" fn(&'static HostCalls, &mut Outcome);

/// Argument and result of the entry call.
pub enum Outcome {
    /// The argument, before the call.
    Asked(Host),
    /// The plugin is ready.
    Ready(Box<Plugin>),
    /// The plugin refused, or panicked: one sentence.
    Failed(String),
}

/// The plugin's side of the entry call, called by the code that [`crate::plugin!`] generates. The plugin allocates nothing
/// before the allocator has the router's functions, and no panic leaves this function.
pub fn enter(
    allocator: &HostAllocator,
    calls: &'static HostCalls,
    outcome: &mut Outcome,
    register: fn(&mut Plugin) -> Result<(), RegisterError>,
) {
    allocator.set(calls);
    let done = catch_unwind(AssertUnwindSafe(|| {
        // The router reports the text of a panic: the hook prints nothing.
        set_hook(Box::new(remember_panic));
        let Outcome::Asked(host) = outcome else {
            return Err(RegisterError::from("it was called twice"));
        };
        let mut plugin = Plugin::new(host.clone());
        register(&mut plugin)?;
        Ok(plugin)
    }));
    *outcome = match done {
        Ok(Ok(plugin)) => Outcome::Ready(Box::new(plugin)),
        Ok(Err(RegisterError(why))) => Outcome::Failed(why),
        Err(payload) => {
            let text = panic_text(&*payload);
            // Dropping the payload of a panic may panic again.
            std::mem::forget(payload);
            Outcome::Failed(format!("it panicked: {text}"))
        }
    };
}
