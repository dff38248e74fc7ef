//! `show plugins`: the query, its reply and its text.

use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;
use volley_show::{GAUGE, Page, table};

/// Plugins: their files, nodes and state; of one, also its metrics and its page.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "plugins",
    show = "show plugins [<name>]",
    example = "show plugins"
)]
#[query(reply = PluginsReply, text = text, detail = detail, detail_by = "name", figures = figures)]
pub struct ShowPlugins {
    /// Only this plugin.
    #[query(needs = "plugin")]
    pub name: Option<String>,
}

/// Plugins.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PluginRow {
    /// Name.
    pub name: String,
    /// Path of its file.
    pub path: String,
    /// State.
    pub state: PluginState,
    /// Nodes of the plugin, those that replace nodes of the router included.
    pub nodes: Vec<PluginNodeRow>,
    /// Metrics of the plugin.
    pub metrics: Vec<PluginMetricRow>,
    /// Page of the plugin, in Markdown; empty for none.
    pub page: String,
}

/// A metric of a plugin.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct PluginMetricRow {
    /// Name.
    pub name: String,
    /// One sentence.
    pub text: String,
    /// Value; none where the plugin's function panicked.
    pub value: Option<f64>,
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

/// The table, and for each plugin its metrics and its page.
fn detail(reply: &PluginsReply) -> String {
    let mut all = text(reply);
    for it in &reply.plugins {
        for metric in &it.metrics {
            let value = metric.value.map_or("none".to_owned(), |it| it.to_string());
            all += &format!("{} {value}  {}\n", metric.name, metric.text);
        }
        if !it.page.is_empty() {
            all += &format!("\n{}", it.page);
        }
    }
    all
}

fn figures(reply: &PluginsReply, page: &mut Page) {
    let name = "volley_plugin_metric";
    page.family(name, GAUGE, "Figures of plugins.");
    for it in &reply.plugins {
        for metric in &it.metrics {
            let labels = [("plugin", &it.name[..]), ("metric", &metric.name[..])];
            if let Some(value) = metric.value {
                page.sample(name, &labels, value);
            }
        }
    }
}
