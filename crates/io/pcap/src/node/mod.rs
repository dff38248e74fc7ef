//! Nodes of capture files.

pub mod capture_tx;
pub mod pcap_input;
