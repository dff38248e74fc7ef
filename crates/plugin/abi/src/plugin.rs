//! The output of a plugin's registration ([`Plugin`]).

use crate::graph::{PluginArc, PluginEdge, PluginListener, PluginProtocol};
use crate::host::Host;
use crate::metric::PluginMetric;
use crate::object::PluginClass;
use crate::scenario::Scenario;
use crate::task::PluginTask;
use crate::verb::PluginVerb;
use std::time::Duration;
use volley_graph::{Feature, ForeignNode, Node, Source, Stage};
use volley_object::{Object, ObjectKey, Verb};

/// Why a plugin cannot register: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterError(pub String);

impl<T: std::fmt::Display> From<T> for RegisterError {
    fn from(why: T) -> Self {
        RegisterError(why.to_string())
    }
}

/// A feature of an arc, implemented by a node of the plugin.
#[derive(Clone, Debug)]
pub struct PluginFeature {
    /// The arc, such as `device-input`.
    pub arc: String,
    /// The feature; the node has the same name.
    pub feature: Feature,
    /// The feature consumes all packets of an interface.
    pub consumes: bool,
}

/// What a plugin brings: nodes, features, arcs, edges, classes of objects, verbs, tasks, metrics, benchmarks and a page.
pub struct Plugin {
    host: Host,
    /// Nodes, sources and stages.
    pub nodes: Vec<ForeignNode>,
    /// Nodes that replace nodes of the router.
    pub overrides: Vec<ForeignNode>,
    /// Feature arcs.
    pub arcs: Vec<PluginArc>,
    /// Edges of nodes of the router.
    pub edges: Vec<PluginEdge>,
    /// Nodes that receive the packets of a protocol.
    pub listeners: Vec<PluginListener>,
    /// Features.
    pub features: Vec<PluginFeature>,
    /// Classes of objects.
    pub classes: Vec<PluginClass>,
    /// Verbs.
    pub verbs: Vec<PluginVerb>,
    /// Tasks.
    pub tasks: Vec<PluginTask>,
    /// Metrics.
    pub metrics: Vec<PluginMetric>,
    /// The page, in Markdown; empty for none.
    pub page: String,
    /// Benchmarks.
    pub scenarios: Vec<Scenario>,
}

impl Plugin {
    pub(crate) fn new(host: Host) -> Self {
        Plugin {
            host,
            nodes: Vec::new(),
            overrides: Vec::new(),
            arcs: Vec::new(),
            edges: Vec::new(),
            listeners: Vec::new(),
            features: Vec::new(),
            classes: Vec::new(),
            verbs: Vec::new(),
            tasks: Vec::new(),
            metrics: Vec::new(),
            page: String::new(),
            scenarios: Vec::new(),
        }
    }

    /// The parts of the router that the plugin may use.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Add a node. `make` creates the instance of each worker.
    pub fn node<N: Node>(&mut self, make: impl FnMut(usize) -> N + 'static) -> &mut Self {
        self.nodes.push(ForeignNode::new(N::NAME, make));
        self
    }

    /// Add a source, at which packets enter the graph. `make` creates the instance of each worker. A driver is a source for
    /// received packets and a consumer ([`Plugin::consumer`]) of the arc `interface-output` for transmitted ones.
    pub fn source<S: Source>(&mut self, make: impl FnMut(usize) -> S + 'static) -> &mut Self {
        self.nodes.push(ForeignNode::source(S::NAME, make));
        self
    }

    /// Add a stage, which holds at most `frames` vectors of packets on each worker. `make` creates the instance of each worker.
    /// `Stage::leave` must send all held packets: a replacement gives them to the next version, and when the plugin is unloaded
    /// they leave by the first edge of the stage.
    pub fn stage<S: Stage>(
        &mut self,
        frames: usize,
        make: impl FnMut(usize) -> S + 'static,
    ) -> &mut Self {
        let stage = ForeignNode::stage(S::NAME, frames, make);
        self.nodes.push(stage);
        self
    }

    /// Add a node that replaces the node of the router of the same name as long as the plugin is loaded. The node of the router
    /// begins with a new state when it returns. The replacement has its own counters.
    pub fn override_node<N: Node>(&mut self, make: impl FnMut(usize) -> N + 'static) -> &mut Self {
        self.overrides.push(ForeignNode::new(N::NAME, make));
        self
    }

    /// Let the edge of a node of the router, or of the plugin, that leads to the node `from` lead to the plugin's node `to`, as long as
    /// the plugin is loaded. `show graph` lists nodes and edges. A feature needs no such edge.
    pub fn edge(&mut self, node: &str, from: &str, to: &str) -> &mut Self {
        let [node, from, to] = [node, from, to].map(str::to_owned);
        self.edges.push(PluginEdge { node, from, to });
        self
    }

    /// Add a feature arc from node `start`, which sends packets into it by `Vector::send_arc`, to node `end`. Other plugins can
    /// add features to it.
    pub fn arc(&mut self, name: &str, start: &str, end: &str) -> PluginArc {
        let arc = PluginArc::new(name, start, end);
        self.arcs.push(arc.clone());
        arc
    }

    /// Let the plugin's node of this name receive the packets of a protocol: an EtherType, an IP protocol or a UDP port.
    pub fn listen(&mut self, protocol: PluginProtocol, node: &str) -> &mut Self {
        self.listeners.push(PluginListener {
            protocol,
            node: node.to_owned(),
        });
        self
    }

    /// Add a node that is a feature of an arc: packets of the interfaces where the feature is enabled pass it. The node
    /// forwards them by `Vector::next_feature`, or on the arc `device-input` by `Vector::send_on_receive`.
    pub fn feature<N: Node>(
        &mut self,
        arc: &str,
        make: impl FnMut(usize) -> N + 'static,
    ) -> &mut Self {
        self.on_arc::<N>(arc, false);
        self.node(make)
    }

    /// As [`Plugin::feature`], for a node that consumes all packets of an interface. It is behind all other features of the arc.
    pub fn consumer<N: Node>(
        &mut self,
        arc: &str,
        make: impl FnMut(usize) -> N + 'static,
    ) -> &mut Self {
        self.on_arc::<N>(arc, true);
        self.node(make)
    }

    fn on_arc<N: Node>(&mut self, arc: &str, consumes: bool) {
        self.features.push(PluginFeature {
            arc: arc.to_owned(),
            feature: Feature::after(N::NAME, &[]),
            consumes,
        });
    }

    /// Add a verb, which the router has in the commands, HTTP and OpenAPI as long as the plugin is loaded. `perform` does it, or
    /// returns one sentence.
    pub fn verb<V: Verb + 'static, E: std::fmt::Display>(
        &mut self,
        perform: impl FnMut(V) -> Result<(), E> + 'static,
    ) -> Result<&mut Self, RegisterError> {
        self.verbs.push(PluginVerb::new(perform)?);
        Ok(self)
    }

    /// Add a figure to the page of metrics and to `show plugins NAME`: `volley_plugin_metric{plugin="...", metric="NAME"}`. The
    /// counters of nodes are metrics without this.
    pub fn metric(
        &mut self,
        name: &str,
        text: &str,
        read: impl Fn() -> f64 + 'static,
    ) -> &mut Self {
        self.metrics.push(PluginMetric::new(name, text, read));
        self
    }

    /// Set the page of the plugin, in Markdown: `show plugins NAME` shows it.
    pub fn page(&mut self, text: &str) -> &mut Self {
        text.clone_into(&mut self.page);
        self
    }

    /// Add a task, which the router runs periodically on the control thread as long as this version of the plugin is loaded: it
    /// collects what nodes report by queues, and publishes tables. A panic ends the task, and the log has its text. The period is
    /// at least 1 ms and at most 365 days.
    pub fn every(&mut self, period: Duration, task: impl FnMut() + 'static) -> &mut Self {
        self.tasks.push(PluginTask::new(period, task));
        self
    }

    /// Add a benchmark, which `volley bench plugin` runs. The router itself ignores it.
    pub fn scenario(&mut self, scenario: Scenario) -> &mut Self {
        self.scenarios.push(scenario);
        self
    }

    /// Add a class of objects: the router has it in the file, the commands, HTTP and commits as long as the plugin is loaded.
    /// `apply` gets the key of an object and its new value; `None`: the object is removed. It carries the change out, or changes
    /// nothing and returns one sentence. When the plugin is replaced, `apply` of the new version gets all existing objects
    /// before its nodes get packets.
    pub fn object<T: Object + 'static, E: std::fmt::Display>(
        &mut self,
        apply: impl FnMut(&ObjectKey, Option<T>) -> Result<(), E> + 'static,
    ) -> Result<&mut Self, RegisterError> {
        self.classes.push(PluginClass::new(apply)?);
        Ok(self)
    }

    /// Add a class without a key, whose only object has a default for each field: settings. `apply` gets the new values, and the
    /// defaults when the settings are removed.
    pub fn settings<T: Object + Default + 'static>(
        &mut self,
        mut apply: impl FnMut(T) + 'static,
    ) -> Result<&mut Self, RegisterError> {
        self.object(move |_, now: Option<T>| {
            apply(now.unwrap_or_default());
            Ok::<(), std::convert::Infallible>(())
        })
    }
}
