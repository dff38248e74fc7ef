//! Objects of software RSS and pipelines.

use crate::show::ShowRss;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, Query, refuse};

/// Hash of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum RssHash {
    /// Toeplitz hash, which network cards use.
    #[default]
    Toeplitz,
    /// CRC-32C.
    Crc32c,
}

/// Times at which packets are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum RssMode {
    /// Always.
    #[default]
    On,
    /// While the receiving worker is overloaded and others are not.
    Auto,
}

/// Software RSS: the packets that an interface receives are spread over workers by their flows.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "rss", file = "interface.rss", check = Rss::check)]
#[object(
    set = "set interface rss <interface> {toeplitz@hash=toeplitz | crc32c@hash=crc32c | symmetric@symmetric=on | inner@inner=on | \
           workers (<workers> | all) | on@mode=on | auto@mode=auto}"
)]
#[object(unset = "set interface rss <interface> off")]
#[object(example = "set interface rss pg0 inner workers 0,2 auto")]
pub struct Rss {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Hash of the flow.
    #[object(default = RssHash::Toeplitz)]
    pub hash: RssHash,
    /// Send both directions of a flow to one worker.
    #[object(default = false)]
    pub symmetric: bool,
    /// Use the flow inside a tunnel (IP in IP, GRE, VXLAN).
    #[object(default = false)]
    pub inner: bool,
    /// Workers that get packets, in rising order; without it, all.
    #[object(range = 0u32..=63)]
    pub workers: Vec<u32>,
    /// Time of spreading.
    #[object(default = RssMode::On)]
    pub mode: RssMode,
}

impl Rss {
    fn check(&self) -> Result<(), FieldError> {
        match self.workers.is_sorted_by(|a, b| a < b) {
            true => Ok(()),
            false => refuse(
                "workers",
                "must be in rising order, each worker once, such as 0,2",
            ),
        }
    }
}

/// Pipeline: a graph node runs on one worker only, and the other workers hand their packets to that worker.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "node_worker", file = "[[node_worker]]")]
#[object(set = "set node worker <node> <worker>")]
#[object(unset = "set node worker <node> default")]
#[object(example = "set node worker ip4-lookup 0")]
pub struct NodeWorker {
    /// Graph node.
    #[object(key, needs = "node", example = "ip4-lookup")]
    pub node: String,
    /// Worker that runs the node.
    #[object(range = 0u32..=63)]
    pub worker: u32,
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowRss::query()?;
    Ok(vec![Rss::class()?, NodeWorker::class()?])
}
