//! Layout of output: text tables for people, and metrics pages for Prometheus.
//!
//! Used by the command line, the HTTP interface and every crate that defines a query. This crate knows neither queries nor
//! features, and depends on no other crate. It accepts text of any length with any characters, and does not panic.
#![forbid(unsafe_code)]

mod page;
mod table;

pub use page::{COUNTER, GAUGE, Page};
pub use table::{WIDTH, bytes, narrow, or_dash, rate, table, wrapped};
