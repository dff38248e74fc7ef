//! Code of the plugin that the router calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volley_graph::panic_text;

/// Runs code of the plugin: a panic is an error.
pub(crate) fn guarded<T>(body: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let text = panic_text(&*payload);
        // Dropping the payload of a panic may panic again.
        std::mem::forget(payload);
        Err(format!("the plugin panicked: {text}"))
    })
}
