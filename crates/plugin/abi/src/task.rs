//! Work that a plugin does on the control thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use volley_graph::panic_text;

/// A task that the router runs periodically on the control thread, as long as the version of the plugin is loaded.
pub struct PluginTask {
    period: Duration,
    run: Box<dyn FnMut() -> Result<(), String>>,
}

impl PluginTask {
    /// A task with this time between two runs.
    pub(crate) fn new(period: Duration, mut body: impl FnMut() + 'static) -> Self {
        let run = move || {
            catch_unwind(AssertUnwindSafe(&mut body)).map_err(|payload| {
                let text = panic_text(&*payload);
                // Dropping the payload of a panic may panic again.
                std::mem::forget(payload);
                text
            })
        };
        PluginTask {
            period,
            run: Box::new(run),
        }
    }

    /// The time between two runs.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Run once, by the plugin's code. An error is the text of a panic: the task must not run again.
    pub fn run(&mut self) -> Result<(), String> {
        (self.run)()
    }
}
