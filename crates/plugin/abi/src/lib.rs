//! The interface between the router and a plugin.
//!
//! A plugin is a shared library (`cdylib`) with copies of the engine's crates, built by the same compiler from the same
//! sources. The router reads its [`Fingerprint`] from the file before any of its code runs, and calls its entry once. The
//! plugin allocates with the router's allocator, so that one side can free what the other side has allocated. Code of the
//! plugin guards each call from the router into the plugin, so that no panic leaves the plugin.
//!
//! Types differ in their `TypeId` between the two sides: nothing is downcast across the boundary. A plugin uses only the fields
//! of [`Host`], and provides the fields of [`Plugin`]. Definitions of classes and objects cross the boundary as JSON.

mod allocator;
mod class;
mod entry;
mod fingerprint;
mod graph;
mod guarded;
mod host;
mod metric;
mod object;
mod plugin;
mod scenario;
mod task;
mod verb;

pub use allocator::{HostAllocator, HostCalls};
pub use class::{describe, describe_verb, described, described_verb};
pub use entry::{ENTRY, Entry, Outcome, enter};
pub use fingerprint::{FINGERPRINT, Fingerprint, Mismatch};
pub use graph::{PluginArc, PluginEdge, PluginListener, PluginProtocol};
pub use host::{Host, HostInterface, HostServices, LogLevel, NoServices};
pub use metric::PluginMetric;
pub use object::PluginClass;
pub use plugin::{Plugin, PluginFeature, RegisterError};
pub use scenario::{Published, Scenario};
pub use task::PluginTask;
pub use verb::PluginVerb;

/// Make a crate a plugin. The argument is a function `fn(&mut Plugin) -> Result<(), RegisterError>`, which adds nodes and
/// features.
#[macro_export]
macro_rules! plugin {
    ($register:path) => {
        // Tests of the plugin's crate run without a router.
        #[cfg(test)]
        const _: fn(&mut $crate::Plugin) -> Result<(), $crate::RegisterError> = $register;

        #[cfg(not(test))]
        #[global_allocator]
        static VOLLEY_ALLOCATOR: $crate::HostAllocator = $crate::HostAllocator::new();

        /// The fingerprint, which the router reads before it maps the file.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        pub static VOLLEY_PLUGIN: $crate::Fingerprint = $crate::Fingerprint::HERE;

        /// The entry, which the router calls once.
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        #[allow(improper_ctypes_definitions)]
        pub extern "C" fn volley_plugin_entry(
            calls: &'static $crate::HostCalls,
            outcome: &mut $crate::Outcome,
        ) {
            $crate::enter(&VOLLEY_ALLOCATOR, calls, outcome, $register);
        }
    };
}
