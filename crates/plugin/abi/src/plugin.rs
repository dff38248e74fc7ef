//! The output of a plugin's registration ([`Plugin`]).

use crate::host::Host;
use crate::object::PluginClass;
use crate::scenario::Scenario;
use crate::task::PluginTask;
use std::time::Duration;
use volley_graph::{Feature, ForeignNode, Node};
use volley_object::{Object, ObjectKey};

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
    pub arc: &'static str,
    /// The feature; the node has the same name.
    pub feature: Feature,
    /// The feature consumes all packets of an interface.
    pub consumes: bool,
}

/// The nodes, features, classes of objects, tasks and benchmarks of a plugin.
pub struct Plugin {
    host: Host,
    /// Nodes.
    pub nodes: Vec<ForeignNode>,
    /// Features.
    pub features: Vec<PluginFeature>,
    /// Classes of objects.
    pub classes: Vec<PluginClass>,
    /// Tasks.
    pub tasks: Vec<PluginTask>,
    /// Benchmarks.
    pub scenarios: Vec<Scenario>,
}

impl Plugin {
    pub(crate) fn new(host: Host) -> Self {
        Plugin {
            host,
            nodes: Vec::new(),
            features: Vec::new(),
            classes: Vec::new(),
            tasks: Vec::new(),
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

    /// Add a node that is a feature of an arc: packets of the interfaces where the feature is enabled pass it. The node
    /// forwards them by `Vector::next_feature`, or on the arc `device-input` by `Vector::send_on_receive`.
    pub fn feature<N: Node>(
        &mut self,
        arc: &'static str,
        make: impl FnMut(usize) -> N + 'static,
    ) -> &mut Self {
        self.features.push(PluginFeature {
            arc,
            feature: Feature::after(N::NAME, &[]),
            consumes: false,
        });
        self.node(make)
    }

    /// Add a task, which the router runs periodically on the control thread as long as this version of the plugin is loaded: it
    /// collects what nodes report by queues, and publishes tables. A panic ends the task, and the log has its text.
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
