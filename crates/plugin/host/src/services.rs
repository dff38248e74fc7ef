//! What the router does for plugins: its interfaces, and its log.

use volley_plugin_abi::{HostInterface, HostServices, LogLevel};

/// The services of a router whose interfaces this function returns.
pub(crate) struct Services<F>(pub(crate) F);

impl<F: Fn() -> Vec<HostInterface>> HostServices for Services<F> {
    fn interfaces(&self) -> Vec<HostInterface> {
        (self.0)()
    }

    fn log(&self, level: LogLevel, text: &str) {
        match level {
            LogLevel::Error => tracing::error!(target: "plugin", "{text}"),
            LogLevel::Warning => tracing::warn!(target: "plugin", "{text}"),
            LogLevel::Info => tracing::info!(target: "plugin", "{text}"),
        }
    }
}
