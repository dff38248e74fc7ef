//! The input (`Host`) and the output (`Plugin`) of a plugin's registration.

use std::sync::Arc;
use volley_graph::{Domain, Feature, ForeignNode, Node};

/// The parts of the router that a plugin may use.
#[derive(Clone)]
pub struct Host {
    /// The name under which the plugin was loaded.
    pub name: String,
    /// Capacity of vectors in packets.
    pub vector_size: usize,
    /// The maximum number of workers.
    pub workers: usize,
    /// The domain of published tables, for `Publisher::new`.
    pub domain: Arc<Domain>,
}

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

/// The nodes and features of a plugin.
pub struct Plugin {
    host: Host,
    /// Nodes.
    pub nodes: Vec<ForeignNode>,
    /// Features.
    pub features: Vec<PluginFeature>,
}

impl Plugin {
    pub(crate) fn new(host: Host) -> Self {
        Plugin {
            host,
            nodes: Vec::new(),
            features: Vec::new(),
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
}
