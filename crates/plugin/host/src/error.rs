//! Errors of loading, replacing and unloading plugins.

use volley_graph::GraphError;
use volley_object::DefinitionError;
use volley_plugin_abi::Mismatch;

/// Why a plugin is not loaded, replaced or unloaded: one sentence each, without the name of the plugin and its path.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// Other users could change the file.
    #[error("the file {0}")]
    Unsafe(String),
    /// The file is not a complete shared library.
    #[error("it is no shared library of this machine, or a part of one is missing: {0}")]
    NotALibrary(object::Error),
    /// The file contradicts itself, or is for another machine.
    #[error("it is no shared library that the router can map: {0}")]
    Damaged(&'static str),
    /// The fingerprint does not match.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The file cannot be mapped.
    #[error("it cannot be mapped: {0}")]
    Map(String),
    /// The plugin refused to register, or panicked.
    #[error("its registration failed: {0}")]
    Register(String),
    /// The graph refused the change.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A class of objects contradicts itself or another one, or is in use.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// An object does not fit the new version.
    #[error("{0}")]
    Object(String),
    /// A protocol has another receiver.
    #[error("{0}")]
    Listen(String),
    /// Stages that hold more vectors than the router would ever have.
    #[error(
        "the plugin's stages hold {0} vectors on each worker, and the limit is {1}: declare fewer by `Plugin::stage`"
    )]
    TooManyFrames(usize, usize),
    /// Another plugin has the node, or has changed it.
    #[error("plugin {by} has or changes the node `{node}`: unload that plugin first")]
    Changed {
        /// The node.
        node: String,
        /// The other plugin.
        by: String,
    },
    /// No plugin of this name is loaded.
    #[error("it is not loaded: `show plugins` lists the plugins")]
    NotLoaded,
    /// A feature that would be removed is enabled on an interface.
    #[error(
        "feature `{feature}` of arc `{arc}` is enabled on an interface: `set interface feature INTERFACE {feature} arc {arc} disable` first"
    )]
    InUse {
        /// The feature.
        feature: String,
        /// Arc of the feature.
        arc: String,
    },
}
