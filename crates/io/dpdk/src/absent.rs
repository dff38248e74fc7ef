//! Replies to DPDK requests in a Volley without DPDK.

use crate::model::{DpdkEal, DpdkInterface};
use volley_graph::GraphError;
use volley_iface::Registry;
use volley_model::{Applied, Handler, ModelError, Request};

/// Refuses all requests.
pub struct DpdkHandler;

impl DpdkHandler {
    /// Registers nothing.
    pub fn new(_registry: &mut Registry) -> Result<Self, GraphError> {
        Ok(DpdkHandler)
    }

    /// Refuse the objects of this crate.
    pub(crate) fn own(&self, registry: &mut Registry) {
        registry.own(|_, _: Option<DpdkEal>| Err(absent("DPDK".to_owned())));
    }
}

fn absent(what: String) -> ModelError {
    let instead = "this volley was built without it: install libdpdk-dev and dpdk, and build with \
                   `cargo build --release --features dpdk`";
    ModelError::unsupported(what, instead)
}

impl Handler for DpdkHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let what = match request {
            Request::InterfaceCreate(spec) if spec.kind_as::<DpdkInterface>().is_some() => {
                format!("interface {} of kind dpdk", spec.name)
            }
            _ => return None,
        };
        Some(Err(absent(what)))
    }
}
