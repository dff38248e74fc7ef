//! Features of the arc of received packets, such as a bridge: nodes that get the frames of an interface before
//! `ethernet-input`.

use crate::{IfIdx, Interfaces};
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{Engine, Feature, GraphError, RECEIVE, RECEIVE_ARC};
use volley_model::ModelError;

/// A feature of the arc of received packets, which its crate enables on interfaces. Control thread only.
#[derive(Clone)]
pub struct ReceiveFeature {
    engine: Rc<RefCell<Engine>>,
    name: &'static str,
}

impl ReceiveFeature {
    /// A node that sends packets on along the arc ([`volley_graph::StageCx::send_on_receive`]), before the features `before`.
    pub fn new(
        engine: &Rc<RefCell<Engine>>,
        name: &'static str,
        before: &'static [&'static str],
    ) -> Result<Self, GraphError> {
        let feature = feature(name, before);
        engine.borrow_mut().add_feature(RECEIVE_ARC, feature)?;
        let engine = engine.clone();
        Ok(ReceiveFeature { engine, name })
    }

    /// A node that consumes all frames of an interface.
    pub fn consumer(engine: &Rc<RefCell<Engine>>, name: &'static str) -> Result<Self, GraphError> {
        let feature = feature(name, &[]);
        engine.borrow_mut().add_consumer(RECEIVE_ARC, feature)?;
        let engine = engine.clone();
        Ok(ReceiveFeature { engine, name })
    }

    /// Enables or disables the feature on an interface. An error if the workers cannot be notified now.
    pub fn set(&self, interface: IfIdx, on: bool) -> Result<(), GraphError> {
        let mut engine = self.engine.borrow_mut();
        engine.set_feature(RECEIVE_ARC, self.name, interface.0, on)
    }

    /// Enables the feature for an operator, who gets the error.
    pub fn enable(&self, all: &Interfaces, interface: IfIdx) -> Result<(), ModelError> {
        self.set(interface, true).map_err(|error| {
            let what = format!("{} on {}", self.name, all.name(interface.0));
            ModelError::invalid(what, error)
        })
    }

    /// Disables the feature where no error can be reported ([`Engine::clear_feature`]).
    pub fn clear(&self, interface: IfIdx) {
        let mut engine = self.engine.borrow_mut();
        engine.clear_feature(RECEIVE, self.name, interface.0);
    }

    /// Whether a feature consumes all frames of an interface, so that `ethernet-input` gets none.
    pub fn is_consumed(&self, interface: IfIdx) -> bool {
        is_consumed(&self.engine.borrow(), interface)
    }
}

/// Whether a feature consumes all frames of an interface, so that `ethernet-input` gets none.
pub fn is_consumed(engine: &Engine, interface: IfIdx) -> bool {
    engine.consumer(RECEIVE, interface.0).is_some()
}

fn feature(name: &'static str, before: &'static [&'static str]) -> Feature {
    Feature {
        name,
        before,
        after: &[],
    }
}
