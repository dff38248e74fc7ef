//! What a version of a plugin has in the graph: nodes, features, arcs, edges of other nodes, and protocols that its nodes receive.

use crate::error::PluginError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::{Engine, ForeignNode, GraphError, NodeFault, NodeId};
use volley_plugin_abi::{
    Plugin, PluginArc, PluginEdge, PluginFeature, PluginListener, PluginProtocol,
};

/// Makes a node the receiver of a protocol, or removes it.
pub(crate) type Listen = dyn Fn(PluginProtocol, NodeId, bool) -> Result<(), String>;

/// The graph of the router.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) engine: Rc<RefCell<Engine>>,
    pub(crate) listen: Rc<Listen>,
}

/// Nodes by name, each with the panic that took it out.
pub(crate) type Nodes = BTreeMap<String, Arc<NodeFault>>;

/// The part of a version in the graph.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) nodes: Nodes,
    /// Nodes that replace nodes of the router.
    pub(crate) overrides: Nodes,
    /// Arc and name of each feature.
    pub(crate) features: Vec<(String, String)>,
    arcs: Vec<String>,
    edges: Vec<PluginEdge>,
    listeners: Vec<PluginListener>,
    /// Vectors of packets that the stages hold on each worker.
    pub(crate) frames: usize,
}

/// What a plugin wants in the graph.
pub(crate) struct Wanted {
    nodes: Vec<ForeignNode>,
    overrides: Vec<ForeignNode>,
    features: Vec<PluginFeature>,
    arcs: Vec<PluginArc>,
    edges: Vec<PluginEdge>,
    listeners: Vec<PluginListener>,
}

impl Wanted {
    /// Takes it out of a registration.
    pub(crate) fn take(plugin: &mut Plugin) -> Wanted {
        Wanted {
            nodes: std::mem::take(&mut plugin.nodes),
            overrides: std::mem::take(&mut plugin.overrides),
            features: std::mem::take(&mut plugin.features),
            arcs: std::mem::take(&mut plugin.arcs),
            edges: std::mem::take(&mut plugin.edges),
            listeners: std::mem::take(&mut plugin.listeners),
        }
    }

    /// The nodes of the router that it changes.
    pub(crate) fn changed_nodes(&self) -> impl Iterator<Item = &str> {
        let edges = self.edges.iter().map(|it| it.node.as_str());
        self.overrides.iter().map(ForeignNode::name).chain(edges)
    }

    /// Refuses a node that replaces another node of the same plugin.
    pub(crate) fn check_own(&self) -> Result<(), GraphError> {
        let is_own = |it: &&ForeignNode| self.nodes.iter().any(|node| node.name() == it.name());
        match self.overrides.iter().find(is_own) {
            None => Ok(()),
            Some(it) => Err(GraphError::NotReplaceable {
                node: it.name().to_owned(),
                why: "it is a node of the plugin itself",
            }),
        }
    }

    /// Lets edges of the plugin's own nodes lead where they are to lead, from the first packet of these nodes on. Takes these edges
    /// out.
    fn lead_own(&mut self) -> Result<Vec<PluginEdge>, PluginError> {
        let mut own = Vec::new();
        for edge in std::mem::take(&mut self.edges) {
            let mut nodes = self.nodes.iter_mut().chain(&mut self.overrides);
            match nodes.find(|node| node.name() == edge.node) {
                Some(node) => node.redirect(&edge.from, &edge.to)?,
                None => {
                    self.edges.push(edge);
                    continue;
                }
            }
            if !self.nodes.iter().any(|node| node.name() == edge.to) {
                return Err(GraphError::NoNode(edge.to).into());
            }
            own.push(edge);
        }
        Ok(own)
    }

    /// Vectors of packets that its stages hold on each worker.
    pub(crate) fn frames(&self) -> usize {
        let all = self.nodes.iter().map(ForeignNode::frames);
        all.fold(0, usize::saturating_add)
    }
}

/// The name of a node and where its panic will be.
fn known(node: &ForeignNode) -> (String, Arc<NodeFault>) {
    (node.name().to_owned(), node.fault().clone())
}

impl Part {
    /// Names of all nodes.
    pub(crate) fn all_nodes(&self) -> impl Iterator<Item = (&String, &Arc<NodeFault>)> {
        self.nodes.iter().chain(&self.overrides)
    }

    /// Whether a node is one of this part, or one of the router that this part changes.
    pub(crate) fn has_or_changes(&self, node: &str) -> bool {
        let mut all = self.all_nodes();
        all.any(|(name, _)| name == node) || self.edges.iter().any(|it| it.node == node)
    }

    /// Adds all of it. After an error the part has what was added, for [`Part::remove`].
    pub(crate) fn add(&mut self, graph: &Graph, mut wanted: Wanted) -> Result<(), PluginError> {
        self.frames = wanted.frames();
        let own = wanted.lead_own()?;
        for arc in &wanted.arcs {
            let mut engine = graph.engine.borrow_mut();
            arc.set(engine.add_foreign_arc(&arc.name, &arc.start, &arc.end)?);
            self.arcs.push(arc.name.clone());
        }
        self.add_nodes(graph, wanted.nodes)?;
        self.edges = own;
        self.check_arcs(graph, &wanted.arcs)?;
        for node in wanted.overrides {
            let (name, fault) = known(&node);
            graph.engine.borrow_mut().override_node(node)?;
            self.overrides.insert(name, fault);
        }
        self.add_features(graph, &wanted.features)?;
        for edge in wanted.edges {
            self.add_edge(graph, edge)?;
        }
        for listener in wanted.listeners {
            self.add_listener(graph, listener)?;
        }
        Ok(())
    }

    /// Adds nodes, which may lead to each other.
    fn add_nodes(&mut self, graph: &Graph, nodes: Vec<ForeignNode>) -> Result<(), GraphError> {
        if nodes.is_empty() {
            return Ok(());
        }
        let all: Vec<_> = nodes.iter().map(known).collect();
        graph.engine.borrow_mut().add_foreign_nodes(nodes)?;
        self.nodes.extend(all);
        Ok(())
    }

    /// Start and end of an arc are nodes.
    fn check_arcs(&self, graph: &Graph, arcs: &[PluginArc]) -> Result<(), GraphError> {
        let engine = graph.engine.borrow();
        let mut ends = arcs.iter().flat_map(|arc| [&arc.start, &arc.end]);
        ends.try_for_each(|node| engine.node(node).map(drop))
    }

    fn add_features(&mut self, graph: &Graph, all: &[PluginFeature]) -> Result<(), PluginError> {
        for it in all {
            let name = it.feature.name;
            if !self.nodes.contains_key(name) {
                return Err(GraphError::NoNode(name.to_owned()).into());
            }
            let mut engine = graph.engine.borrow_mut();
            engine.add_foreign_feature(&it.arc, &it.feature, it.consumes)?;
            let added = (it.arc.clone(), name.to_owned());
            if !self.features.contains(&added) {
                self.features.push(added);
            }
        }
        Ok(())
    }

    fn add_edge(&mut self, graph: &Graph, edge: PluginEdge) -> Result<(), PluginError> {
        if !self.nodes.contains_key(&edge.to) {
            return Err(GraphError::NoNode(edge.to).into());
        }
        let mut engine = graph.engine.borrow_mut();
        engine.redirect(&edge.node, &edge.from, &edge.to)?;
        self.edges.push(edge);
        Ok(())
    }

    fn add_listener(&mut self, graph: &Graph, it: PluginListener) -> Result<(), PluginError> {
        if !self.nodes.contains_key(&it.node) {
            return Err(GraphError::NoNode(it.node).into());
        }
        let node = graph.engine.borrow().node(&it.node)?;
        (graph.listen)(it.protocol, node, true).map_err(PluginError::Listen)?;
        self.listeners.push(it);
        Ok(())
    }

    /// Puts a newer version in the place of this one: nodes of both are replaced in place, so that packets find one or the other.
    /// What only this version has stays until [`Part::remove`]. `is_begun` is set when the first node was replaced. After an error
    /// `new` has what it shares with this version and what was added.
    pub(crate) fn exchange(
        &mut self,
        graph: &Graph,
        mut wanted: Wanted,
        new: &mut Part,
        is_begun: &mut bool,
    ) -> Result<(), PluginError> {
        new.frames = wanted.frames();
        self.check_exchange(graph, &wanted)?;
        let own = wanted.lead_own()?;
        self.check_edges(&wanted)?;
        new.edges = own;
        new.number_arcs(graph, self, &wanted.arcs)?;
        let (mut replaced, added): (Vec<_>, Vec<_>) = wanted
            .nodes
            .into_iter()
            .partition(|node| self.nodes.contains_key(node.name()));
        let (over, over_added): (Vec<_>, Vec<_>) = wanted
            .overrides
            .into_iter()
            .partition(|node| self.overrides.contains_key(node.name()));
        // What can be refused comes before the first node of this version is replaced.
        for node in &replaced {
            graph.engine.borrow().check_replacement(node)?;
            new.nodes.extend([known(node)]);
        }
        for node in &over {
            graph.engine.borrow().check_replacement(node)?;
            new.overrides.extend([known(node)]);
        }
        new.add_nodes(graph, added)?;
        new.check_arcs(graph, &wanted.arcs)?;
        new.move_arcs(graph, self, &wanted.arcs)?;
        for node in over_added {
            let (name, fault) = known(&node);
            graph.engine.borrow_mut().override_node(node)?;
            // The edges of the node are those that the new one brings.
            self.edges
                .retain(|it| it.node != name || new.edges.contains(it));
            new.overrides.insert(name, fault);
        }
        new.add_features(graph, &wanted.features)?;
        self.exchange_edges(graph, wanted.edges, new)?;
        self.exchange_listeners(graph, wanted.listeners, new)?;
        replaced.extend(over);
        for node in replaced {
            graph.engine.borrow_mut().replace_foreign(node)?;
            *is_begun = true;
        }
        // Nodes that were replaced have lost the edges that only this version has redirected.
        self.edges
            .retain(|it| !new.has(&it.node) || new.edges.contains(it));
        Ok(())
    }

    /// Whether a node is one of this part.
    fn has(&self, node: &str) -> bool {
        self.nodes.contains_key(node) || self.overrides.contains_key(node)
    }

    /// Refuses a version without a feature that is enabled, without an arc that has features, or without a node to which nodes of other
    /// owners have an edge.
    fn check_exchange(&self, graph: &Graph, wanted: &Wanted) -> Result<(), PluginError> {
        let kept = |it: &&(String, String)| {
            let mut features = wanted.features.iter();
            features.any(|f| f.arc == it.0 && f.feature.name == it.1)
        };
        let gone = self.features.iter().filter(|it| !kept(it));
        check_disabled(graph, gone)?;
        let named = |arc: &&String| wanted.arcs.iter().any(|it| it.name == **arc);
        let gone = self.arcs.iter().filter(|arc| !named(arc));
        self.check_arcs_unused(graph, gone)?;
        let stays = |node: &str| wanted.nodes.iter().any(|it| it.name() == node);
        let goes = |node: &str| self.nodes.contains_key(node) && !stays(node);
        Ok(self.check_no_edge_to(graph, goes)?)
    }

    /// Refuses a version with an edge to a node that only this version has: the node could never be removed.
    fn check_edges(&self, wanted: &Wanted) -> Result<(), GraphError> {
        let stays = |node: &str| wanted.nodes.iter().any(|it| it.name() == node);
        for node in wanted.nodes.iter().chain(&wanted.overrides) {
            let goes = |it: &String| self.nodes.contains_key(it) && !stays(it);
            if let Some(target) = node.targets().find(goes) {
                let node = node.name().to_owned();
                return Err(GraphError::EdgeToNowhere { node, target });
            }
        }
        Ok(())
    }

    /// Gives the arcs their numbers: those of an old version of the same name go on.
    fn number_arcs(
        &mut self,
        graph: &Graph,
        old: &Part,
        wanted: &[PluginArc],
    ) -> Result<(), PluginError> {
        for arc in wanted {
            let mut engine = graph.engine.borrow_mut();
            let id = match old.arcs.contains(&arc.name) {
                true => engine.arc_number(&arc.name)?,
                false => engine.add_foreign_arc(&arc.name, &arc.start, &arc.end)?,
            };
            arc.set(id);
            self.arcs.push(arc.name.clone());
        }
        Ok(())
    }

    /// Gives the arcs of an old version their start and end, which are nodes.
    fn move_arcs(&self, graph: &Graph, old: &Part, wanted: &[PluginArc]) -> Result<(), GraphError> {
        for arc in wanted.iter().filter(|it| old.arcs.contains(&it.name)) {
            let mut engine = graph.engine.borrow_mut();
            engine.foreign_arc(&arc.name, &arc.start, &arc.end)?;
        }
        Ok(())
    }

    /// Edges of nodes of the router: those of both versions stay, old ones return, new ones come. After an error this version has
    /// lost edges: [`Part::take_again`] restores them.
    fn exchange_edges(
        &mut self,
        graph: &Graph,
        wanted: Vec<PluginEdge>,
        new: &mut Part,
    ) -> Result<(), PluginError> {
        let (stay, added): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|it| self.edges.contains(it));
        new.edges.extend(stay);
        // Edges of nodes that are replaced go with them, and so do those of nodes that leave.
        let goes = |it: &&PluginEdge| !new.has(&it.node) && !self.has(&it.node);
        let gone = self.edges.iter().filter(|it| !new.edges.contains(it));
        let gone: Vec<PluginEdge> = gone.filter(goes).cloned().collect();
        for edge in gone {
            take_back(graph, &edge)?;
            self.edges.retain(|it| *it != edge);
        }
        for edge in added {
            new.add_edge(graph, edge)?;
        }
        Ok(())
    }

    fn take_edges_back(&mut self, graph: &Graph) -> Result<(), GraphError> {
        while let Some(edge) = self.edges.last() {
            take_back(graph, edge)?;
            self.edges.pop();
        }
        Ok(())
    }

    /// Protocols of both versions stay, old ones are released, new ones come.
    fn exchange_listeners(
        &mut self,
        graph: &Graph,
        wanted: Vec<PluginListener>,
        new: &mut Part,
    ) -> Result<(), PluginError> {
        let (stay, added): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|it| self.listeners.contains(it));
        // Another node of the plugin may get the protocol of one that stays.
        let is_taken = |it: &PluginListener| added.iter().any(|new| new.protocol == it.protocol);
        let released = self.listeners.iter().filter(|it| is_taken(it));
        released.for_each(|it| release(graph, it));
        self.listeners.retain(|it| !is_taken(it));
        new.listeners = stay;
        for listener in added {
            new.add_listener(graph, listener)?;
        }
        Ok(())
    }

    /// Forgets what another version has too.
    pub(crate) fn forget_shared(&mut self, other: &Part) {
        self.nodes.retain(|node, _| !other.nodes.contains_key(node));
        self.overrides
            .retain(|node, _| !other.overrides.contains_key(node));
        self.features.retain(|it| !other.features.contains(it));
        self.arcs.retain(|it| !other.arcs.contains(it));
        self.edges.retain(|it| !other.edges.contains(it));
        self.listeners.retain(|it| !other.listeners.contains(it));
    }

    /// The edges and protocols of this version, for [`Part::take_again`].
    pub(crate) fn taken(&self) -> (Vec<PluginEdge>, Vec<PluginListener>) {
        (self.edges.clone(), self.listeners.clone())
    }

    /// Name, start and end of each arc of this version, for [`Part::move_arcs_back`].
    pub(crate) fn arc_ends(&self, graph: &Graph) -> Vec<[String; 3]> {
        let all = graph.engine.borrow().arcs().into_iter();
        let own = all.filter(|it| self.arcs.iter().any(|arc| arc == it.name));
        own.map(|it| [it.name, it.start, it.end].map(str::to_owned))
            .collect()
    }

    /// Gives the arcs the start and end again that they had before a newer version was refused, whose nodes are still there.
    pub(crate) fn move_arcs_back(&self, graph: &Graph, ends: &[[String; 3]]) {
        for [arc, start, end] in ends {
            // Fails if a queue of changes is full: the arc then ends at the node of the refused version.
            let _ = graph.engine.borrow_mut().foreign_arc(arc, start, end);
        }
    }

    /// Takes the edges and protocols again that it had before a newer version was refused.
    pub(crate) fn take_again(
        &mut self,
        graph: &Graph,
        (edges, listeners): (Vec<PluginEdge>, Vec<PluginListener>),
    ) {
        for edge in edges {
            if !self.edges.contains(&edge) {
                // Fails if a queue of changes is full: the edge then leads where it led without the plugin.
                let _ = self.add_edge(graph, edge);
            }
        }
        for listener in listeners {
            if !self.listeners.contains(&listener) {
                // The refused version has released the protocol: nothing can refuse.
                let _ = self.add_listener(graph, listener);
            }
        }
    }

    /// New instances of nodes that another version has begun to replace. Returns whether all nodes have one: otherwise instances of
    /// the other version may stay in the graph.
    pub(crate) fn renew(&mut self, graph: &Graph, mut wanted: Wanted) -> bool {
        if wanted.lead_own().is_err() {
            return false;
        }
        for arc in &wanted.arcs {
            if let Ok(id) = graph.engine.borrow().arc_number(&arc.name) {
                arc.set(id);
            }
        }
        let renewed = |nodes: Vec<ForeignNode>| {
            let mut all = Nodes::new();
            for node in nodes {
                let (name, fault) = known(&node);
                if graph.engine.borrow_mut().replace_foreign(node).is_ok() {
                    all.insert(name, fault);
                }
            }
            all
        };
        let (nodes, overrides) = (renewed(wanted.nodes), renewed(wanted.overrides));
        let has_all = |had: &Nodes, new: &Nodes| had.keys().all(|name| new.contains_key(name));
        let is_whole = has_all(&self.nodes, &nodes) && has_all(&self.overrides, &overrides);
        self.nodes.extend(nodes);
        self.overrides.extend(overrides);
        is_whole
    }

    /// Refuses to remove what others use: an enabled feature, a node to which other nodes have an edge, an arc with features.
    pub(crate) fn check_unused(&self, graph: &Graph) -> Result<(), PluginError> {
        check_disabled(graph, self.features.iter())?;
        self.check_arcs_unused(graph, self.arcs.iter())?;
        Ok(self.check_no_edge_to(graph, |node| self.nodes.contains_key(node))?)
    }

    /// Features of other plugins use the arcs.
    fn check_arcs_unused<'a>(
        &self,
        graph: &Graph,
        mut arcs: impl Iterator<Item = &'a String>,
    ) -> Result<(), GraphError> {
        let reports = graph.engine.borrow().arcs();
        let used = arcs.find_map(|arc| {
            let report = reports.iter().find(|it| it.name == arc)?;
            let is_own = |name: &str| {
                let mut features = self.features.iter();
                features.any(|(of, own)| of == arc && own == name)
            };
            let other = report.features.iter().find(|(name, _)| !is_own(name))?;
            Some((arc.clone(), other.0.to_owned()))
        });
        match used {
            None => Ok(()),
            Some((arc, feature)) => Err(GraphError::ArcInUse { arc, feature }),
        }
    }

    /// Nodes of other owners have an edge to a node that goes; those that the plugin itself has redirected return.
    fn check_no_edge_to(
        &self,
        graph: &Graph,
        goes: impl Fn(&str) -> bool,
    ) -> Result<(), GraphError> {
        let engine = graph.engine.borrow();
        let mut others = engine.edges().filter(|(node, _)| !self.has(node));
        let own = |node: &str, target: &str| {
            let mut edges = self.edges.iter();
            edges.any(|it| it.node == node && it.to == target)
        };
        let user = others.find_map(|(node, edges)| {
            let mut targets = edges.iter().filter(|it| goes(it));
            let target = targets.find(|it| !own(node, it))?;
            Some((node.to_owned(), (*target).to_owned()))
        });
        match user {
            None => Ok(()),
            Some((node, target)) => Err(GraphError::EdgeToNowhere { node, target }),
        }
    }

    /// Removes all of it from the graph. After an error (a queue of changes is full) it has what is left.
    pub(crate) fn remove(&mut self, graph: &Graph) -> Result<(), GraphError> {
        self.listeners.drain(..).for_each(|it| release(graph, &it));
        // The edges of nodes that leave go with them.
        self.edges.retain(|it| !self.nodes.contains_key(&it.node));
        self.take_edges_back(graph)?;
        let mut engine = graph.engine.borrow_mut();
        while let Some((arc, feature)) = self.features.last() {
            engine.remove_feature(arc, feature)?;
            self.features.pop();
        }
        while let Some(arc) = self.arcs.last() {
            match engine.remove_foreign_arc(arc) {
                // It is removed already if only the message to the workers failed.
                Ok(()) | Err(GraphError::NoArc(_)) => {}
                Err(error) => return Err(error),
            }
            self.arcs.pop();
        }
        while let Some((node, _)) = self.overrides.first_key_value() {
            match engine.restore(node) {
                // The node of an interface may be gone.
                Ok(()) | Err(GraphError::NoNode(_)) => {}
                Err(error) => return Err(error),
            }
            self.overrides.pop_first();
        }
        let left = self.nodes.keys().filter(|it| engine.node(it).is_ok());
        let left: Vec<String> = left.cloned().collect();
        match left.is_empty() {
            true => Ok(()),
            false => engine.remove_nodes(left),
        }
    }
}

/// The edge leads where it led without the plugin. A node that has no such edge any more needs nothing.
fn take_back(graph: &Graph, edge: &PluginEdge) -> Result<(), GraphError> {
    let mut engine = graph.engine.borrow_mut();
    match engine.redirect_back(&edge.node, &edge.from, &edge.to) {
        Err(GraphError::NoEdge { .. } | GraphError::NoNode(_)) => Ok(()),
        done => done,
    }
}

/// The protocol is free.
fn release(graph: &Graph, it: &PluginListener) {
    let node = graph.engine.borrow().node(&it.node);
    if let Ok(node) = node {
        // The node listens to it: nothing can refuse.
        let _ = (graph.listen)(it.protocol, node, false);
    }
}

fn check_disabled<'a>(
    graph: &Graph,
    mut features: impl Iterator<Item = &'a (String, String)>,
) -> Result<(), PluginError> {
    let arcs = graph.engine.borrow().arcs();
    let used = features.find(|(arc, feature)| {
        let mut of_arc = arcs.iter().filter(|it| it.name == arc);
        of_arc.any(|it| {
            let mut features = it.features.iter();
            features.any(|(name, on)| name == feature && !on.is_empty())
        })
    });
    match used {
        None => Ok(()),
        Some((arc, feature)) => Err(PluginError::InUse {
            feature: feature.clone(),
            arc: arc.clone(),
        }),
    }
}
