//! Feature arcs of the engine: declaring them, and enabling features on interfaces.

use crate::data::error::GraphError;
use crate::engine::arcs::{ArcEntry, ArcReport, Feature};
use crate::engine::changes::SetArcs;
use crate::engine::state::Engine;
use crate::queues::arcs::{ArcId, RECEIVE_ARC};

impl Engine {
    /// Declare a feature arc from node `start` to node `end`.
    pub fn arc(&mut self, name: &'static str, start: &'static str, end: &'static str) -> ArcId {
        self.arcs.declare(name, start, end)
    }

    /// Make a node available as a feature of an arc.
    pub fn add_feature(&mut self, arc: &str, feature: Feature) -> Result<(), GraphError> {
        self.arcs.add(arc, feature, false)
    }

    /// As [`Engine::add_feature`], for a node that consumes all packets of an interface: none of them continues on the arc.
    /// Consumers are behind all other features.
    pub fn add_consumer(&mut self, arc: &str, feature: Feature) -> Result<(), GraphError> {
        self.arcs.add(arc, feature, true)
    }

    /// Remove a feature that is enabled on no interface. Its node stays: see [`Engine::remove`].
    pub fn remove_feature(&mut self, arc: &str, feature: &str) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.arcs.remove(arc, feature)?;
        self.send_arcs()
    }

    /// The enabled feature that consumes all packets of an interface, if there is one.
    pub fn consumer(&self, arc: ArcId, interface: u32) -> Option<&'static str> {
        self.arcs.consumer(arc, interface)
    }

    /// Set the node at the end of the arc of received packets ([`RECEIVE_ARC`]): it gets the packets of interfaces without
    /// features.
    pub fn set_receiver(&mut self, node: &'static str) -> Result<(), GraphError> {
        self.node(node)?;
        self.room_for_changes()?;
        self.arcs.find(RECEIVE_ARC)?.end = node;
        self.send_arcs()
    }

    /// All arcs with their features in order, and the interfaces where each feature is enabled.
    pub fn arcs(&self) -> Vec<ArcReport> {
        let report = |a: &ArcEntry| {
            let on = |name| {
                a.enabled
                    .iter()
                    .filter(|(_, set)| set.contains(name))
                    .map(|(&i, _)| i)
                    .collect()
            };
            let features = a.features.iter().map(|f| (f.name, on(f.name))).collect();
            ArcReport {
                name: a.name,
                start: a.start,
                end: a.end,
                features,
            }
        };
        let all = self.arcs.arcs.iter().filter(|arc| !arc.is_removed);
        all.map(report).collect()
    }

    /// Enable or disable a feature on an interface.
    pub fn set_feature(
        &mut self,
        arc: &str,
        feature: &str,
        interface: u32,
        on: bool,
    ) -> Result<(), GraphError> {
        self.room_for_changes()?;
        let entry = self.arcs.find(arc)?;
        let missing = || GraphError::NoFeature {
            arc: arc.to_owned(),
            feature: feature.to_owned(),
        };
        let name = entry
            .features
            .iter()
            .find(|f| f.name == feature)
            .map(|f| f.name)
            .ok_or_else(missing)?;
        let before = entry.enabled.clone();
        let set = entry.enabled.entry(interface).or_default();
        if on {
            set.insert(name)
        } else {
            set.remove(name)
        };
        let sent = self.send_arcs();
        if sent.is_err()
            && let Ok(entry) = self.arcs.find(arc)
        {
            entry.enabled = before;
        }
        sent
    }

    /// Disable a feature on an interface where no error can be reported. If a queue of changes is full, the workers get
    /// the change together with the next change of arcs.
    pub fn clear_feature(&mut self, arc: ArcId, feature: &str, interface: u32) {
        let entry = self.arcs.arcs.get_mut(usize::from(arc.0));
        let on = entry.and_then(|entry| entry.enabled.get_mut(&interface));
        if on.is_some_and(|on| on.remove(feature)) {
            let _ = self.send_arcs();
        }
    }

    /// Disable all features on an interface that was deleted, because another interface may get its index.
    pub fn clear_features(&mut self, interface: u32) -> Result<(), GraphError> {
        let arcs = &mut self.arcs.arcs;
        let some = arcs.iter_mut().fold(false, |some, arc| {
            let set = arc.enabled.remove(&interface);
            some | set.is_some_and(|set| !set.is_empty())
        });
        if some { self.send_arcs() } else { Ok(()) }
    }

    pub(super) fn send_arcs(&mut self) -> Result<(), GraphError> {
        for worker in self.worker_set.iter() {
            let tables = Box::new(self.arcs.tables(|name| self.node(name))?);
            self.send(worker, Box::new(SetArcs { tables }))?;
        }
        self.arcs.tables(|name| self.node(name)).map(drop)
    }
}
