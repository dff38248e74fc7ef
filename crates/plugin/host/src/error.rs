//! Why a plugin is refused.

use volley_graph::GraphError;
use volley_plugin_abi::Mismatch;

/// Why a plugin is not loaded, replaced or unloaded: one sentence each, without the name of the plugin and its path.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// Others could change the file.
    #[error("the file {0}")]
    Unsafe(String),
    /// The file is not a whole shared library.
    #[error("it is no shared library of this machine, or a part of one is missing: {0}")]
    NotALibrary(object::Error),
    /// The fingerprint does not match.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The file cannot be mapped.
    #[error("it cannot be mapped: {0}")]
    Map(String),
    /// The plugin's own code refused or panicked.
    #[error("its registration failed: {0}")]
    Register(String),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// There is no such plugin.
    #[error("it is not loaded: `show plugins` lists the plugins")]
    NotLoaded,
    /// Interfaces use a feature that would go.
    #[error(
        "feature `{feature}` of arc `{arc}` is enabled on an interface: `set interface feature INTERFACE {feature} arc {arc} disable` first"
    )]
    InUse {
        /// The feature.
        feature: String,
        /// Its arc.
        arc: String,
    },
}
