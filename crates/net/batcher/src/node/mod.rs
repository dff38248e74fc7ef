//! The node of the path batcher.

pub mod path_batcher;
