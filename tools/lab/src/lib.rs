//! Statistics of measurements, and the search of the largest rate with a bounded loss.
#![forbid(unsafe_code)]

pub mod search;
pub mod stats;
