//! Layout of what is shown: tables of text for people, and pages of metrics for Prometheus.
//!
//! The command line and the HTTP interface use it, and so does every crate that defines a query. This crate knows neither
//! queries nor features, and depends on no other crate. Text of any length and with any signs is shown; nothing here panics.
#![forbid(unsafe_code)]

mod page;
mod table;

pub use page::{COUNTER, GAUGE, Page};
pub use table::{WIDTH, bytes, narrow, or_dash, rate, table, wrapped};
