//! Errors of the graph.

/// Why a graph cannot be built or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// An edge's target does not exist.
    #[error(
        "node `{node}` has an edge to `{target}`, which is no node: register the crate that brings it"
    )]
    EdgeToNowhere {
        /// The node with the edge.
        node: String,
        /// The name of the missing target.
        target: String,
    },
    /// A crate needs a handle that no crate registered before it provides.
    #[error("no crate provides `{0}`: register the crate that does so earlier")]
    NotProvided(&'static str),
    /// A node that cannot receive the packets that it is registered for.
    #[error("node `{node}` cannot be registered: {why}")]
    NotRegistered {
        /// The node.
        node: &'static str,
        /// The reason.
        why: String,
    },
    /// Two nodes with one name.
    #[error("node `{0}` exists already: choose another name")]
    NodeExists(String),
    /// No node of this name.
    #[error("no node `{0}`: `show graph` lists them")]
    NoNode(String),
    /// No feature arc of this name.
    #[error("no feature arc `{0}`: `show features` lists them")]
    NoArc(String),
    /// Two feature arcs with one name.
    #[error("feature arc `{0}` exists already: choose another name")]
    ArcExists(String),
    /// A feature arc that is to be removed has a feature.
    #[error(
        "feature arc `{arc}` has the feature `{feature}`: remove what brings the feature first"
    )]
    ArcInUse {
        /// The arc.
        arc: String,
        /// The feature.
        feature: String,
    },
    /// No number is free for a feature arc.
    #[error("there are too many feature arcs: {0} is the limit")]
    TooManyArcs(usize),
    /// A node has no edge to this node.
    #[error("node `{node}` has no edge to `{target}`: `show graph` lists its edges")]
    NoEdge {
        /// The node.
        node: String,
        /// The other node.
        target: String,
    },
    /// No feature of this name on the arc.
    #[error("no feature `{feature}` on arc `{arc}`: `show features` lists them")]
    NoFeature {
        /// The arc.
        arc: String,
        /// The feature.
        feature: String,
    },
    /// A feature that is to be removed is enabled on an interface.
    #[error(
        "feature `{feature}` of arc `{arc}` is enabled on an interface: disable it there first, `show features` lists where"
    )]
    FeatureEnabled {
        /// The arc.
        arc: String,
        /// The feature.
        feature: String,
    },
    /// A node that cannot be replaced while it runs.
    #[error("node `{node}` cannot be replaced: {why}")]
    NotReplaceable {
        /// The node.
        node: String,
        /// The reason.
        why: &'static str,
    },
    /// Before and after contradict each other.
    #[error(
        "the features of arc `{arc}` cannot be ordered: `{feature}` is both before and after another"
    )]
    FeatureCycle {
        /// The arc.
        arc: String,
        /// One of the features.
        feature: String,
    },
    /// Two columns that contradict each other.
    #[error(
        "column `{column}` of `{node}` contradicts column `{other}` of `{owner}`: columns that are needed at the same time have storage of their own, and a name has one declaration"
    )]
    ColumnsContradict {
        /// The column.
        column: &'static str,
        /// The node that has it.
        node: String,
        /// The other column.
        other: &'static str,
        /// The node or the plugin that has the other column.
        owner: String,
    },
    /// No storage for one more column.
    #[error(
        "column `{column}` has no storage left: column `{other}` of `{owner}` has the last one, and their lives overlap"
    )]
    NoColumnLeft {
        /// The column.
        column: &'static str,
        /// The column that has the last storage.
        other: &'static str,
        /// The node or the plugin that declares that column.
        owner: String,
    },
    /// A holder requests more buffers than holders may have.
    #[error(
        "holder `{name}` requests {parts} sixteenths of the buffers, and {left} are left: request fewer, the rest is for forwarding"
    )]
    ShareOfBuffers {
        /// The holder.
        name: &'static str,
        /// The requested sixteenths.
        parts: usize,
        /// The sixteenths that are left.
        left: usize,
    },
    /// No node id is free.
    #[error("the graph is full: {0} nodes is the limit")]
    TooManyNodes(usize),
    /// Too many interfaces with different feature sets.
    #[error("too many different feature chains: {0} is the limit")]
    TooManyChains(usize),
    /// The vector size is out of range.
    #[error("vector size {0} is out of range: choose 1 to 1024")]
    VectorSize(usize),
    /// The vector size exceeds the capacity of vectors, or is too small.
    #[error(
        "vector size {packets} is out of range: choose 4 to {room}, or set max_vector_size of [engine] and start again"
    )]
    VectorRoom {
        /// The requested size.
        packets: usize,
        /// The capacity of vectors.
        room: usize,
    },
    /// The number of workers is out of range.
    #[error("{0} workers are out of range: choose 1 to 64")]
    Workers(usize),
    /// There is no such worker.
    #[error("there is no worker {0}: `show workers` lists them")]
    NoWorker(usize),
    /// A node to which packets cannot be handed off.
    #[error(
        "node `{0}` runs where its packets come: name a node between ethernet-input and interface-tx"
    )]
    NotPlaceable(String),
    /// Every worker id is in use.
    #[error(
        "there are {0} workers, and no more can be added: set max_workers of [engine] and start again"
    )]
    NoPlace(usize),
    /// A worker's change queue is full: the worker does not apply changes any more.
    #[error("worker {0} takes no changes: its queue is full")]
    WorkerBusy(usize),
    /// A thread could not be started.
    #[error("worker {worker} could not be started: {why}")]
    Thread {
        /// The worker.
        worker: usize,
        /// The system's error.
        why: String,
    },
}
