//! What a Volley without DPDK says to requests about it.

use volley_graph::GraphError;
use volley_iface::Registry;
use volley_model::{Applied, Handler, InterfaceKind, ModelError, Query, Reply, Request};

/// Refuses.
pub struct DpdkHandler;

impl DpdkHandler {
    /// Nothing to bring in.
    pub fn new(_registry: &mut Registry) -> Result<Self, GraphError> {
        Ok(DpdkHandler)
    }
}

impl Handler for DpdkHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let what = match request {
            Request::InterfaceCreate(spec) if matches!(spec.kind, InterfaceKind::Dpdk(_)) => {
                format!("interface {} of kind dpdk", spec.name)
            }
            Request::DpdkEal(_) => "DPDK".to_owned(),
            _ => return None,
        };
        let instead = "this volley was built without it: install libdpdk-dev and dpdk, and build with \
                       `cargo build --release --features dpdk`";
        Some(Err(ModelError::unsupported(what, instead)))
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
