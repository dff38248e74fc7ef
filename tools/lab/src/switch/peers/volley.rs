//! Volley: patches between its ports.

use super::adapter::Adapter;
use crate::switch::router;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "volley",
    title: "Volley",
    program: None,
    start: router::start_switch,
};
