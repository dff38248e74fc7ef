//! What is measured of a switch.

use super::topology::{Kind, Scenario};
use crate::allocation::Allocation;
use clap::Parser;

/// Sizes of packets, with frame check sequence.
const SIZES: std::ops::RangeInclusive<usize> = 64..=1518;

/// Scenario, ports, traffic, peer.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(no_binary_name = true)]
pub struct Spec {
    /// Scenario.
    #[arg(value_enum)]
    pub scenario: Scenario,
    /// Number of VNFs of a chain.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub vnfs: u16,
    /// Ports of VNFs.
    #[arg(long, value_enum, default_value = "virtio-user")]
    pub ports: Kind,
    /// Physical ports.
    #[arg(long, value_enum, default_value = "memif")]
    pub physical: Kind,
    /// Send in both directions.
    #[arg(long)]
    pub both: bool,
    /// Send from the second port to the first.
    #[arg(long, conflicts_with = "both")]
    pub reverse: bool,
    /// Bytes of a packet with frame check sequence.
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    /// The switch.
    #[arg(long, default_value = "volley")]
    pub peer: String,
    /// Place the threads of the switch on processors; without it the system does.
    #[arg(long, value_enum)]
    pub cores: Option<Allocation>,
    /// Queues from which the other side of a memif port of the switch receives: an adapter decides them.
    #[arg(skip = 1u16)]
    pub memif_queues: u16,
    /// Measure the round-trip time at this part of the largest rate, instead of throughput.
    #[arg(long)]
    pub load: Option<f64>,
}

impl Spec {
    /// Read the arguments of a point.
    ///
    /// # Errors
    /// The message of the parser, or a sentence.
    pub fn of(args: &str) -> Result<Spec, String> {
        let spec = Spec::try_parse_from(args.split_whitespace()).map_err(|e| e.to_string())?;
        if !SIZES.contains(&spec.size) {
            return Err(format!(
                "--size {}: choose {} to {} bytes",
                spec.size,
                SIZES.start(),
                SIZES.end()
            ));
        }
        match spec.load {
            Some(load) if !(load > 0.0 && load <= 1.0) => {
                Err(format!("--load {load}: choose more than 0, at most 1"))
            }
            _ => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_points() {
        let spec = Spec::of("loopback --vnfs 3 --both --size 256").unwrap();
        assert_eq!((spec.vnfs, spec.both, spec.size), (3, true, 256));
        assert_eq!(spec.scenario, Scenario::Loopback);
        for bad in [
            "p2p --size 63",
            "p2p --load 2",
            "x2y",
            "p2p --both --reverse",
            "p2p --cores three",
        ] {
            assert!(Spec::of(bad).is_err(), "{bad}");
        }
    }
}
