//! Feature arcs of the engine: declaring them, and enabling features on interfaces.

use crate::data::error::GraphError;
use crate::engine::arcs::{ArcEntry, ArcReport, Feature};
use crate::engine::changes::SetArcs;
use crate::engine::state::Engine;
use crate::queues::arcs::ArcId;

impl Engine {
    /// Declare a feature arc from node `start` to node `end`.
    pub fn arc(&mut self, name: &'static str, start: &'static str, end: &'static str) -> ArcId {
        self.arcs.declare(name, start, end)
    }

    /// Make a node available as a feature of an arc.
    pub fn add_feature(&mut self, arc: &str, feature: Feature) -> Result<(), GraphError> {
        self.arcs.add(arc, feature)
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
        self.arcs.arcs.iter().map(report).collect()
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

    /// Disable all features on an interface that was deleted, because another interface may get its index.
    pub fn clear_features(&mut self, interface: u32) -> Result<(), GraphError> {
        let arcs = &mut self.arcs.arcs;
        let some = arcs.iter_mut().fold(false, |some, arc| {
            let set = arc.enabled.remove(&interface);
            some | set.is_some_and(|set| !set.is_empty())
        });
        if some { self.send_arcs() } else { Ok(()) }
    }

    fn send_arcs(&mut self) -> Result<(), GraphError> {
        for worker in self.worker_set.iter() {
            let tables = Box::new(self.arcs.tables(|name| self.node(name))?);
            self.send(worker, Box::new(SetArcs { tables }))?;
        }
        self.arcs.tables(|name| self.node(name)).map(drop)
    }
}
