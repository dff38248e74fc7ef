//! Volley: patches between its ports.

use super::adapter::{ALL, Adapter};
use crate::switch::router;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "volley",
    title: "Volley",
    program: None,
    kinds: ALL,
    start: router::start_switch,
};
