//! Plugins: loaded, replaced and unloaded while packets flow. See `docs/plugins.md`.
//!
//! - `file`: the checks before any code of the file runs.
//! - `sys`: the mapped file and its entry call; the only file with unsafe code.
//! - `plugins`: the nodes and features of each plugin, and the versions that wait for the workers before they are unmapped.
//! - `model`, `show`: the class `plugin` and the query `show plugins`.

mod error;
mod file;
mod model;
mod plugins;
mod show;
mod sys;

pub use error::PluginError;
pub use model::{LoadedPlugin, classes};
pub use plugins::Plugins;
pub use show::{PluginNodeRow, PluginRow, PluginState, PluginsReply, ShowPlugins};
