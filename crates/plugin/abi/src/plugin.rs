//! What a plugin gets, and what it brings.

use std::sync::Arc;
use volley_graph::{Domain, Feature, ForeignNode, Node};

/// What a plugin may use of the router.
#[derive(Clone)]
pub struct Host {
    /// The name that the plugin was loaded by.
    pub name: String,
    /// Capacity of vectors in packets.
    pub vector_size: usize,
    /// The maximum number of workers.
    pub workers: usize,
    /// The domain of published tables, for `Publisher::new`.
    pub domain: Arc<Domain>,
}

/// Why a plugin does not register: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterError(pub String);

impl<T: std::fmt::Display> From<T> for RegisterError {
    fn from(why: T) -> Self {
        RegisterError(why.to_string())
    }
}

/// A feature of an arc, which a node of the plugin is.
#[derive(Clone, Debug)]
pub struct PluginFeature {
    /// The arc, such as `device-input`.
    pub arc: &'static str,
    /// The feature; the node has the same name.
    pub feature: Feature,
    /// It consumes all packets of an interface.
    pub consumes: bool,
}

/// What a plugin brings.
pub struct Plugin {
    host: Host,
    /// Its nodes.
    pub nodes: Vec<ForeignNode>,
    /// Its features.
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

    /// What the plugin may use of the router.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Bring a node. `make` creates the instance of each worker.
    pub fn node<N: Node>(&mut self, make: impl FnMut(usize) -> N + 'static) -> &mut Self {
        self.nodes.push(ForeignNode::new(N::NAME, make));
        self
    }

    /// Bring a node that is a feature of an arc: packets of the interfaces where it is enabled pass it. It sends them on by
    /// `Vector::next_feature`, or on the arc `device-input` by `Vector::send_on_receive`.
    pub fn feature<N: Node>(
        &mut self,
        arc: &'static str,
        make: impl FnMut(usize) -> N + 'static,
    ) -> &mut Self {
        let feature = Feature {
            name: N::NAME,
            before: &[],
            after: &[],
        };
        self.features.push(PluginFeature {
            arc,
            feature,
            consumes: false,
        });
        self.node(make)
    }
}
