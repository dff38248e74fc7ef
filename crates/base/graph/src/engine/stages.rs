//! Adding stages, and frames for the packets that they hold.

use crate::changes::AddFrames;
use crate::data::counters::Counters;
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::engine::{Engine, NodeFactory};
use crate::node_api::edges::Nexts;
use crate::node_api::stage::{Role, Stage};
use crate::worker::body::StageBody;

impl Engine {
    /// Add a stage. `make` creates the instance of each worker.
    pub fn add_stage<S: Stage>(
        &mut self,
        name: &str,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Result<NodeId, GraphError> {
        let maker: NodeFactory = Box::new(move |w| Box::new(StageBody(make(w))));
        let (edges, counters) = (S::Next::EDGES, S::Count::INFO);
        self.define(name, edges, counters, Role::Stage, maker)
    }

    /// Reserve `frames` more frames on every worker: the maximum that its stages hold at a time.
    pub fn reserve_frames(&mut self, frames: usize) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.stage_frames += frames;
        let size = self.settings().vector_size;
        for worker in self.worker_set().clone().iter() {
            let spare = (0..frames).map(|_| Frame::new(size)).collect();
            self.send(worker, Box::new(AddFrames { spare }))?;
        }
        Ok(())
    }
}
