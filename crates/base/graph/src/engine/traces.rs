//! Traces: starting them, and the text of their records.

use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::data::offload::GsoKind;
use crate::engine::changes::SetTrace;
use crate::engine::state::Engine;
use crate::queues::trace;
use crate::queues::trace::{TraceFilter, TraceNames, TraceReport};
use std::sync::Arc;

/// Node and counter names for the text of traces, with interface names from the caller.
pub struct EngineNames<'a> {
    /// The graph.
    pub engine: &'a Engine,
    /// The names of interfaces, by index.
    pub interface: &'a dyn Fn(u32) -> String,
}

impl TraceNames for EngineNames<'_> {
    fn node(&self, node: NodeId) -> String {
        self.engine.name(node).to_owned()
    }
    fn counter(&self, node: NodeId, counter: usize) -> (String, String) {
        let info = self.engine.counter_info(node, counter);
        info.map_or_else(Default::default, |i| (i.name.to_owned(), i.text.to_owned()))
    }
    fn interface(&self, index: u32) -> String {
        (self.interface)(index)
    }
    fn gso(&self, kind: GsoKind) -> &'static str {
        let name = self.engine.gso_names.get(usize::from(kind.class()));
        name.copied().unwrap_or_default()
    }
}

impl Engine {
    /// Name the classes of super-segments for the text of traces.
    pub fn set_gso_names(&mut self, names: [&'static str; GsoKind::CLASSES]) {
        self.gso_names = names;
    }

    /// Start traces for the next `packets` packets at `node`: of all packets, or of those that `filter` accepts. The
    /// filter replaces the node's filter.
    pub fn trace(
        &mut self,
        node: &str,
        packets: u32,
        filter: Option<Arc<dyn TraceFilter>>,
    ) -> Result<(), GraphError> {
        let node = self.node(node)?;
        self.room_for_changes()?;
        self.worker_set.iter().try_for_each(|w| {
            self.send(
                w,
                Box::new(SetTrace {
                    node: Some(node),
                    packets,
                    filter: filter.clone(),
                }),
            )
        })
    }

    /// Delete the traces, and stop those in progress.
    pub fn clear_traces(&mut self) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.worker_set.iter().try_for_each(|w| {
            self.send(
                w,
                Box::new(SetTrace {
                    node: None,
                    packets: 0,
                    filter: None,
                }),
            )
        })?;
        let notes = self.notes.iter().flatten();
        notes.for_each(|q| while q.pop().is_some() {});
        self.traces.clear();
        Ok(())
    }

    /// Convert the records of the workers into text, and return all traces, oldest first.
    pub fn traces(&mut self, interface: &dyn Fn(u32) -> String) -> Vec<TraceReport> {
        let mut steps = Vec::new();
        let queues = self.notes.iter().enumerate();
        let notes = queues.filter_map(|(w, q)| Some((w, q.as_ref()?)));
        for (worker, note) in
            notes.flat_map(|(w, q)| std::iter::from_fn(move || Some((w, q.pop()?))))
        {
            let names = EngineNames {
                engine: self,
                interface,
            };
            let (owner, packet) = trace::mark_owner(note.packet);
            // The worker that marked a packet had it before the workers that it was handed off to.
            steps.push((owner != worker, owner, packet, note.step(&names)));
        }
        steps.sort_by_key(|(handed, ..)| *handed);
        for (_, worker, packet, step) in steps {
            let traced = self.traces.entry((worker, packet));
            let traced = traced.or_insert_with(|| TraceReport {
                worker,
                packet,
                steps: Vec::new(),
            });
            traced.steps.push(step);
        }
        let mut all: Vec<TraceReport> = self.traces.values().cloned().collect();
        all.sort_by_key(|t| t.steps.first().map(|step| step.at_ns));
        all
    }
}
