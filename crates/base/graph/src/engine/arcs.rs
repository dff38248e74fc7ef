//! The registry of feature arcs on the control thread: their features, the order of the features, and the interfaces where
//! each feature is enabled.

use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::node_api::drop_node::DROP_NODE;
use crate::queues::arcs::{ArcId, ArcTable, ArcTables, RECEIVE_ARC};
use std::collections::{BTreeMap, BTreeSet};

/// The start of the arc of received packets in `show features`: every source sends packets into it.
const SOURCES: &str = "sources";

/// A feature that can be enabled on an interface: a node on an arc.
#[derive(Clone, Debug)]
pub struct Feature {
    /// Name, public interface; the node has the same name.
    pub name: &'static str,
    /// Features that must come later.
    pub before: &'static [&'static str],
    /// Features that must come earlier.
    pub after: &'static [&'static str],
}

impl Feature {
    /// A feature behind the features `after`.
    pub const fn after(name: &'static str, after: &'static [&'static str]) -> Self {
        Feature {
            name,
            before: &[],
            after,
        }
    }
}

/// An arc as `show features` tells it.
#[derive(Clone, Debug)]
pub struct ArcReport {
    /// The name of the arc.
    pub name: &'static str,
    /// The node that sends packets into it.
    pub start: &'static str,
    /// The node at the end of the arc.
    pub end: &'static str,
    /// The features in order, each with the interfaces where it is enabled.
    pub features: Vec<(&'static str, Vec<u32>)>,
}

/// All arcs, and the features that are enabled on each interface.
pub(crate) struct ArcRegistry {
    pub(crate) arcs: Vec<ArcEntry>,
}

impl Default for ArcRegistry {
    /// The arc of received packets, which ends at the drop node until [`crate::Engine::set_receiver`].
    fn default() -> Self {
        let mut registry = ArcRegistry { arcs: Vec::new() };
        registry.declare(RECEIVE_ARC, SOURCES, DROP_NODE);
        registry
    }
}

pub(crate) struct ArcEntry {
    pub(crate) name: &'static str,
    /// The node that sends packets into the arc.
    pub(crate) start: &'static str,
    /// The node at the end of the arc.
    pub(crate) end: &'static str,
    pub(crate) features: Vec<Feature>,
    /// Features that consume all packets of an interface; they are behind the others.
    pub(crate) consumers: BTreeSet<&'static str>,
    /// Interface -> names of the enabled features.
    pub(crate) enabled: BTreeMap<u32, BTreeSet<&'static str>>,
    /// The arc was a plugin's, which is gone.
    pub(crate) is_removed: bool,
}

impl ArcRegistry {
    pub(crate) fn declare(
        &mut self,
        name: &'static str,
        start: &'static str,
        end: &'static str,
    ) -> ArcId {
        if let Some(at) = self.arcs.iter().position(|a| a.name == name) {
            return ArcId(at as u8);
        }
        self.arcs.push(ArcEntry {
            name,
            start,
            end,
            features: Vec::new(),
            consumers: BTreeSet::new(),
            enabled: BTreeMap::new(),
            is_removed: false,
        });
        ArcId((self.arcs.len() - 1) as u8)
    }

    /// Declare an arc of a plugin: a removed arc of the name gets its number again.
    pub(crate) fn add_arc(
        &mut self,
        name: &'static str,
        start: &'static str,
        end: &'static str,
    ) -> Result<ArcId, GraphError> {
        if let Some(at) = self.arcs.iter().position(|a| a.name == name) {
            let entry = &mut self.arcs[at];
            if !entry.is_removed {
                return Err(GraphError::ArcExists(name.to_owned()));
            }
            (entry.start, entry.end, entry.is_removed) = (start, end, false);
            return Ok(ArcId(at as u8));
        }
        // The numbers of positions on arcs have 8 bits.
        if self.arcs.len() > usize::from(u8::MAX) {
            return Err(GraphError::TooManyArcs(usize::from(u8::MAX) + 1));
        }
        Ok(self.declare(name, start, end))
    }

    /// Remove an arc without features; its number is kept.
    pub(crate) fn remove_arc(&mut self, name: &str) -> Result<(), GraphError> {
        let entry = self.find(name)?;
        if let Some(feature) = entry.features.first() {
            return Err(GraphError::ArcInUse {
                arc: name.to_owned(),
                feature: feature.name.to_owned(),
            });
        }
        entry.is_removed = true;
        Ok(())
    }

    /// The number of an arc.
    pub(crate) fn number(&self, arc: &str) -> Result<ArcId, GraphError> {
        let at = self
            .arcs
            .iter()
            .position(|a| a.name == arc && !a.is_removed);
        at.map(|at| ArcId(at as u8))
            .ok_or_else(|| GraphError::NoArc(arc.to_owned()))
    }

    pub(crate) fn find(&mut self, arc: &str) -> Result<&mut ArcEntry, GraphError> {
        self.arcs
            .iter_mut()
            .find(|a| a.name == arc && !a.is_removed)
            .ok_or_else(|| GraphError::NoArc(arc.to_owned()))
    }

    /// Add a feature, keeping the list in an order that obeys every before and after, consumers behind all others.
    pub(crate) fn add(
        &mut self,
        arc: &str,
        feature: Feature,
        consumes: bool,
    ) -> Result<(), GraphError> {
        let entry = self.find(arc)?;
        let (name, mut consumers) = (feature.name, entry.consumers.clone());
        match consumes {
            true => consumers.insert(name),
            false => consumers.remove(name),
        };
        let mut features = entry.features.clone();
        features.retain(|f| f.name != name);
        features.push(feature);
        let mut sorted = topological_order(arc, features)?;
        sorted.sort_by_key(|f| consumers.contains(f.name));
        if let Some(feature) = out_of_order(&sorted) {
            return Err(cycle(arc, feature));
        }
        (entry.features, entry.consumers) = (sorted, consumers);
        Ok(())
    }

    /// Remove a feature that is enabled on no interface; the name of one where it is, otherwise.
    pub(crate) fn remove(&mut self, arc: &str, feature: &str) -> Result<(), GraphError> {
        let entry = self.find(arc)?;
        let mut enabled = entry.enabled.values();
        if enabled.any(|set| set.contains(feature)) {
            return Err(GraphError::FeatureEnabled {
                arc: arc.to_owned(),
                feature: feature.to_owned(),
            });
        }
        entry.features.retain(|f| f.name != feature);
        entry.consumers.remove(feature);
        Ok(())
    }

    /// The feature that consumes all packets of an interface.
    pub(crate) fn consumer(&self, arc: ArcId, interface: u32) -> Option<&'static str> {
        let entry = self.arcs.get(usize::from(arc.0))?;
        let on = entry.enabled.get(&interface)?;
        on.intersection(&entry.consumers).next().copied()
    }

    /// The tables for the workers. `node` finds a node by name.
    pub(crate) fn tables(
        &self,
        node: impl Fn(&str) -> Result<NodeId, GraphError>,
    ) -> Result<ArcTables, GraphError> {
        let mut out = ArcTables::default();
        for arc in &self.arcs {
            let names = arc.features.iter().map(|feature| feature.name);
            let mut table = ArcTable {
                end: node(arc.end).ok(),
                order: names
                    .chain([arc.end])
                    .filter_map(|name| node(name).ok())
                    .collect(),
                ..ArcTable::default()
            };
            for (&interface, on) in arc.enabled.iter().filter(|(_, on)| !on.is_empty()) {
                let mut chain = Vec::with_capacity(on.len() + 1);
                for feature in arc.features.iter().filter(|f| on.contains(f.name)) {
                    chain.push(node(feature.name)?);
                }
                chain.push(node(arc.end)?);
                let known = table.chains.iter().position(|c| *c == chain);
                let at = known.unwrap_or_else(|| {
                    table.chains.push(chain);
                    table.chains.len() - 1
                });
                if at >= u8::MAX as usize {
                    return Err(GraphError::TooManyChains(u8::MAX as usize));
                }
                let slot = interface as usize;
                table.chain_of.resize(table.chain_of.len().max(slot + 1), 0);
                table.chain_of[slot] = at as u8 + 1;
                table.active = true;
            }
            out.push(table);
        }
        Ok(out)
    }
}

/// Repeatedly take the first feature whose predecessors are all taken.
fn topological_order(arc: &str, mut left: Vec<Feature>) -> Result<Vec<Feature>, GraphError> {
    let mut out: Vec<Feature> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = left.iter().position(|f| {
            left.iter().all(|g| {
                g.name == f.name || !(f.after.contains(&g.name) || g.before.contains(&f.name))
            })
        });
        match free {
            Some(at) => out.push(left.remove(at)),
            None => return Err(cycle(arc, left[0].name)),
        }
    }
    Ok(out)
}

/// A feature that precedes one that must come earlier.
fn out_of_order(features: &[Feature]) -> Option<&'static str> {
    let mut pairs = features.iter().enumerate();
    let wrong = |at: usize, f: &Feature| {
        let later = &features[at + 1..];
        let mut later = later.iter();
        later.any(|g| f.after.contains(&g.name) || g.before.contains(&f.name))
    };
    pairs.find(|(at, f)| wrong(*at, f)).map(|(_, f)| f.name)
}

fn cycle(arc: &str, feature: &str) -> GraphError {
    GraphError::FeatureCycle {
        arc: arc.to_owned(),
        feature: feature.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::arcs::{ArcPosition, RECEIVE};

    const fn feature(
        name: &'static str,
        before: &'static [&'static str],
        after: &'static [&'static str],
    ) -> Feature {
        Feature {
            name,
            before,
            after,
        }
    }

    #[test]
    fn constraints_order_the_arc_and_cycles_are_refused() {
        let mut book = ArcRegistry::default();
        book.declare("ip4-unicast", "ip4-input", "ip4-lookup");
        book.add("ip4-unicast", feature("nat", &[], &["acl"]), false)
            .unwrap();
        book.add("ip4-unicast", feature("acl", &[], &[]), false)
            .unwrap();
        book.add("ip4-unicast", feature("first", &["acl"], &[]), false)
            .unwrap();
        let names: Vec<_> = book.arcs[1].features.iter().map(|f| f.name).collect();
        assert_eq!(names, ["first", "acl", "nat"]);
        let bad = book.add("ip4-unicast", feature("loop", &["first"], &["nat"]), false);
        assert!(matches!(bad, Err(GraphError::FeatureCycle { .. })));
        assert_eq!(
            book.arcs[1].features.len(),
            3,
            "a refused feature changes nothing"
        );
    }

    #[test]
    fn an_arc_comes_and_goes_with_its_number() {
        let mut book = ArcRegistry::default();
        let id = book.add_arc("p", "a", "b").unwrap();
        let twice = book.add_arc("p", "a", "b");
        assert!(matches!(twice, Err(GraphError::ArcExists(_))));
        book.add("p", feature("f", &[], &[]), false).unwrap();
        let used = book.remove_arc("p");
        assert!(matches!(used, Err(GraphError::ArcInUse { .. })));
        book.remove("p", "f").unwrap();
        book.remove_arc("p").unwrap();
        assert!(matches!(book.find("p"), Err(GraphError::NoArc(_))));
        assert_ne!(book.add_arc("q", "a", "b").unwrap(), id);
        assert_eq!(book.add_arc("p", "a", "c").unwrap(), id);
        assert_eq!(book.find("p").unwrap().end, "c");
    }

    #[test]
    fn consumers_are_behind_all_others_of_the_receive_arc() {
        let mut book = ArcRegistry::default();
        let mut add = |it, consumes| book.add(RECEIVE_ARC, it, consumes);
        add(feature("patch", &[], &[]), true).unwrap();
        add(feature("batcher", &[], &[]), false).unwrap();
        add(feature("spread", &["batcher"], &[]), false).unwrap();
        let names: Vec<_> = book.arcs[0].features.iter().map(|f| f.name).collect();
        assert_eq!(names, ["spread", "batcher", "patch"]);
        let late = book.add(RECEIVE_ARC, feature("late", &[], &["patch"]), false);
        assert!(matches!(late, Err(GraphError::FeatureCycle { .. })));

        book.arcs[0].end = "end";
        book.arcs[0].enabled.insert(3, BTreeSet::from(["spread"]));
        let both = BTreeSet::from(["spread", "patch"]);
        book.arcs[0].enabled.insert(4, both);
        assert_eq!(book.consumer(RECEIVE, 3), None);
        assert_eq!(book.consumer(RECEIVE, 4), Some("patch"));
        let node = |name: &str| {
            Ok(NodeId(match name {
                "spread" => 10,
                "patch" => 11,
                "batcher" => 12,
                _ => 13,
            }))
        };
        let tables = book.tables(node).unwrap();
        let first = [2, 3, 4, 9999].map(|interface| tables.receiver(interface).unwrap().0);
        assert_eq!(first, [13, 10, 10, 13]);
        let node = NodeId(10);
        let arc = RECEIVE;
        let behind = [2, 3, 4].map(|rx| tables.after(ArcPosition { arc, node }, rx).unwrap().0.0);
        assert_eq!(behind, [13, 13, 11]);
    }

    #[test]
    fn packets_walk_the_chain_of_their_interface() {
        let mut book = ArcRegistry::default();
        let arc = book.declare("ip4-unicast", "start", "end");
        book.add("ip4-unicast", feature("a", &[], &[]), false)
            .unwrap();
        book.add("ip4-unicast", feature("b", &[], &["a"]), false)
            .unwrap();
        book.arcs[1].enabled.insert(3, BTreeSet::from(["a", "b"]));
        let node = |name: &str| {
            Ok(NodeId(match name {
                "a" => 10,
                "b" => 11,
                _ => 12,
            }))
        };
        let tables = book.tables(node).unwrap();
        assert!(tables.is_active(arc));
        assert_eq!(tables.enter(arc, 2), None);
        let (first, at) = tables.enter(arc, 3).unwrap();
        let (second, at) = tables.next_on_arc(at).unwrap();
        let (end, at) = tables.next_on_arc(at).unwrap();
        assert_eq!((first, second, end), (NodeId(10), NodeId(11), NodeId(12)));
        assert_eq!(tables.next_on_arc(at), None);
        assert_eq!(tables.next_on_arc(0), None);
    }

    #[test]
    fn packets_come_back_behind_a_feature_whatever_was_switched() {
        let mut book = ArcRegistry::default();
        let arc = book.declare("ip4-unicast", "start", "end");
        for (name, after) in [("a", &[][..]), ("b", &["a"]), ("c", &["b"])] {
            book.add("ip4-unicast", feature(name, &[], after), false)
                .unwrap();
        }
        let on: [&[&'static str]; 4] = [&["a", "b", "c"], &["b"], &["a", "c"], &["a"]];
        for (interface, on) in on.into_iter().enumerate() {
            let on = on.iter().copied().collect();
            book.arcs[1].enabled.insert(interface as u32, on);
        }
        let node = |name: &str| {
            Ok(NodeId(match name {
                "a" => 10,
                "b" => 11,
                "c" => 12,
                _ => 13,
            }))
        };
        let tables = book.tables(node).unwrap();
        let node = NodeId(11);
        let behind = |interface| tables.after(ArcPosition { arc, node }, interface).unwrap();
        // The feature with others, the feature alone, others alone, only features in front of it, none.
        let nodes = [0, 1, 2, 3, 9].map(|interface| behind(interface).0.0);
        assert_eq!(nodes, [12, 13, 12, 13, 13]);
        // The position that the packet gets continues from that node.
        for interface in [0, 2] {
            assert_eq!(
                tables.next_on_arc(behind(interface).1).unwrap().0,
                NodeId(13)
            );
        }
        let arc = ArcId(7);
        assert_eq!(tables.after(ArcPosition { arc, node }, 0), None);
    }
}
