//! `show plugins`: the query, its reply and its text.

use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;
use volley_show::table;

/// Plugins: their files, nodes and state.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "plugins", show = "show plugins", example = "show plugins")]
#[query(reply = PluginsReply, text = text)]
pub struct ShowPlugins;

/// Plugins.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PluginsReply {
    /// Those that are loaded, by name, then those whose code is still mapped.
    pub plugins: Vec<PluginRow>,
}

/// State of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginState {
    /// The nodes of the plugin are in the graph.
    #[default]
    Loaded,
    /// The plugin was unloaded or replaced, and waits until no worker uses its code.
    Leaving,
    /// The plugin was unloaded or replaced, and its code stays mapped: a thread has destructors of the plugin to run.
    StillMapped,
}

/// One plugin.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PluginRow {
    /// Name.
    pub name: String,
    /// Path of its file.
    pub path: String,
    /// State.
    pub state: PluginState,
    /// Nodes of the plugin.
    pub nodes: Vec<PluginNodeRow>,
}

/// A node of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PluginNodeRow {
    /// Name.
    pub name: String,
    /// Text of the panic that took the node out.
    pub panic: Option<String>,
}

fn text(reply: &PluginsReply) -> String {
    let row = |it: &PluginRow| {
        let state = match it.state {
            PluginState::Loaded => "loaded",
            PluginState::Leaving => "leaving",
            PluginState::StillMapped => "unloaded, still mapped",
        };
        let nodes: Vec<String> = it.nodes.iter().map(node).collect();
        vec![
            it.name.clone(),
            state.to_owned(),
            nodes.join(", "),
            it.path.clone(),
        ]
    };
    let rows: Vec<_> = reply.plugins.iter().map(row).collect();
    table(&["Name", "State", "Nodes", "Path"], &rows)
}

fn node(node: &PluginNodeRow) -> String {
    match &node.panic {
        Some(panic) => format!("{} (out, it panicked: {panic})", node.name),
        None => node.name.clone(),
    }
}
