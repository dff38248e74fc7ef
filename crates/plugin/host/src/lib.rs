//! Plugins: loaded, replaced and unloaded while packets flow. See `docs/plugins.md`.
//!
//! - `file`, `elf`: the checks before any code of the file runs.
//! - `sys`: the mapped file and its entry call; the only file with unsafe code.
//! - `plugins`: the plugins, and the versions that wait for the workers before they are unmapped.
//! - `graph`: what a version has in the graph, and how another version takes its place.
//! - `objects`: the classes of objects and the verbs of each plugin, and what becomes of objects when a version is replaced.
//! - `services`, `tasks`: what the router does for a plugin, and what a plugin does on the control thread.
//! - `model`, `show`: the class `plugin` and the query `show plugins`.

mod elf;
mod error;
mod file;
mod graph;
mod model;
mod objects;
mod plugins;
mod services;
mod show;
mod sys;
mod tasks;

pub use error::PluginError;
pub use file::{check as check_file, check_parts};
pub use model::{LoadedPlugin, classes};
pub use plugins::Plugins;
pub use show::{PluginMetricRow, PluginNodeRow, PluginRow, PluginState, PluginsReply, ShowPlugins};
pub use volley_plugin_abi::{HostInterface, PluginProtocol};
