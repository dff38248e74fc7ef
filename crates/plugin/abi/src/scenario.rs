//! Benchmarks that a plugin offers: `volley bench plugin FILE` runs them.

use crate::guarded::guarded;
use std::path::PathBuf;

/// Returns the commands of a scenario.
type Setup = dyn Fn() -> Result<Vec<String>, String>;

/// A benchmark of one node: packets that are received on `pg0`, whose node is a feature of an arc. Packets that follow the arc to
/// its end are routed to `pg1`: 10.0.1.0/24 is there, with the neighbour 10.0.1.2.
pub struct Scenario {
    /// Name, unique in the plugin.
    pub name: String,
    /// Name of the feature and of its node, whose clocks are measured.
    pub node: String,
    /// Maximum number of packets per vector.
    pub vector_size: usize,
    /// Number of packets in circulation: 512 stay in the cache, 16,384 do not.
    pub packets: usize,
    /// Template of the packets, as in `packet-generator new ... template { ... }`.
    pub template: String,
    /// Edits of the template, as in `packet-generator new ... edit ...`.
    pub edits: Vec<String>,
    /// Figures that others have published for the same work.
    pub published: Vec<Published>,
    /// Whether the router does the same work without the node: the benchmark also measures it with the feature disabled.
    pub is_native: bool,
    /// Files that the commands read. The benchmark removes them at its end.
    pub files: Vec<PathBuf>,
    setup: Box<Setup>,
}

/// Published figures of a scenario; absent figures are none.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Where they were published, such as `talk`.
    pub source: String,
    /// Clocks per packet.
    pub clocks: Option<f64>,
    /// Misses of the first-level data cache per packet.
    pub l1_misses: Option<f64>,
    /// Mispredicted branches in percent of all branches.
    pub mispredicted: Option<f64>,
}

impl Scenario {
    /// A scenario without commands: IPv4 and UDP packets of 64 bytes from 10.0.0.9 to 10.0.1.2, in vectors of up to 256.
    pub fn new(name: impl Into<String>, node: impl Into<String>) -> Self {
        Scenario {
            name: name.into(),
            node: node.into(),
            vector_size: 256,
            packets: 512,
            template: "eth src 02:00:00:00:00:99 dst 02:00:00:00:00:01 / ip4 src 10.0.0.9 dst 10.0.1.2 ttl 64 / udp sport 1234 dport 80".to_owned(),
            edits: Vec::new(),
            published: Vec::new(),
            is_native: false,
            files: Vec::new(),
            setup: Box::new(|| Ok(Vec::new())),
        }
    }

    /// Commands that create the plugin's objects, before the feature is enabled.
    pub fn commands(mut self, make: impl Fn() -> Vec<String> + 'static) -> Self {
        self.setup = Box::new(move || guarded(|| Ok(make())));
        self
    }

    /// The commands, made by the plugin's code.
    pub fn setup(&self) -> Result<Vec<String>, String> {
        (self.setup)()
    }
}
