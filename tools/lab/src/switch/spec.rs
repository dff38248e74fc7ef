//! What is measured of a switch.

use super::topology::{Kind, Scenario};
use crate::allocation::Allocation;
use crate::search;
use clap::{Parser, ValueEnum};

/// The peer that routes.
pub const ROUTER: &str = "volley-router";
/// Sizes of packets, with frame check sequence.
const SIZES: std::ops::RangeInclusive<usize> = 64..=1518;

/// A rate that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// Without loss.
    Ndr,
    /// With at most 0.5 % loss.
    Pdr,
}

impl Search {
    /// The largest loss ratio.
    pub fn ratio(self) -> f64 {
        match self {
            Search::Ndr => search::NDR,
            Search::Pdr => search::PDR,
        }
    }
}

/// Packets that the generator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Traffic {
    /// IPv4 packets of one size.
    One,
    /// IPv4 packets of 64, 570 and 1518 bytes, 7:4:1.
    Imix,
    /// In turn: tagged, for a cross-connect; IPv4; IPv6.
    Mix,
}

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
    /// Ports of VNFs (default: virtio-user).
    #[arg(long, value_enum)]
    pub ports: Option<Kind>,
    /// Physical ports (default: memif).
    #[arg(long, value_enum)]
    pub physical: Option<Kind>,
    /// VNFs are virtual machines with an emulated processor.
    #[arg(long)]
    pub guest: bool,
    /// Send in both directions.
    #[arg(long)]
    pub both: bool,
    /// Send from the second port to the first.
    #[arg(long, conflicts_with = "both")]
    pub reverse: bool,
    /// Bytes of a packet with frame check sequence.
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    /// Packets; `mix` needs the peer `volley-router`.
    #[arg(long, value_enum, default_value = "one")]
    pub traffic: Traffic,
    /// The switch.
    #[arg(long, default_value = "volley")]
    pub peer: String,
    /// The switch joins the ports of the other side: it is the memif slave, and the front end of a vhost-user device.
    #[arg(long)]
    pub swap: bool,
    /// Packed rings of vhost-user.
    #[arg(long)]
    pub packed: bool,
    /// Queues of each port, in each direction.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    pub queues: u16,
    /// Receive mode of Volley's ports.
    #[arg(long)]
    pub rx_mode: Option<String>,
    /// testpmd replaces MAC addresses.
    #[arg(long)]
    pub mac: bool,
    /// Place the threads of the switch on processors; without it the system does.
    #[arg(long, value_enum)]
    pub cores: Option<Allocation>,
    /// Queues from which the other side of a memif port of the switch receives: an adapter decides them.
    #[arg(skip = 1u16)]
    pub memif_queues: u16,
    /// Search the largest rate with at most this loss, instead of offering as many packets as possible.
    #[arg(long, value_enum, conflicts_with_all = ["load", "pps", "cost"])]
    pub search: Option<Search>,
    /// Measure the time through the switch at this part of the largest rate, instead of throughput.
    #[arg(long)]
    pub load: Option<f64>,
    /// Measure the time through the switch at this rate in packets per second.
    #[arg(long, conflicts_with = "load")]
    pub pps: Option<f64>,
    /// Measure the cycles of the switch for a packet while as many as possible are offered.
    #[arg(long, conflicts_with_all = ["load", "pps"])]
    pub cost: bool,
}

impl Spec {
    /// Ports of VNFs.
    pub fn ports(&self) -> Kind {
        self.ports.unwrap_or(Kind::VirtioUser)
    }

    /// Physical ports.
    pub fn physical(&self) -> Kind {
        self.physical.unwrap_or(Kind::Memif)
    }

    /// An option that has no effect in the scenario, and why.
    fn without_effect(&self) -> Option<&'static str> {
        let given = (self.physical.is_some(), self.ports.is_some());
        match (self.scenario, given) {
            (Scenario::P2p, (_, true)) => Some("--ports: p2p has no VNF: choose --physical"),
            (Scenario::V2v, (true, _)) => {
                Some("--physical: v2v has ports of VNFs only: choose --ports")
            }
            (Scenario::P2p | Scenario::P2v | Scenario::V2v, _) if self.vnfs != 1 => {
                Some("--vnfs: only loopback has a chain of VNFs: choose loopback")
            }
            _ if self.traffic == Traffic::Imix && self.size != *SIZES.start() => {
                Some("--size: the packets of imix have their own sizes: leave it out")
            }
            _ => None,
        }
    }

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
        if spec.guest && (spec.scenario != Scenario::Loopback || spec.ports() != Kind::VirtioUser) {
            return Err("--guest: choose loopback with virtio-user ports".to_owned());
        }
        if spec.guest && (spec.swap || spec.packed) {
            return Err("--guest: leave out --swap and --packed".to_owned());
        }
        if let Some(why) = spec.without_effect() {
            return Err(why.to_owned());
        }
        if spec.traffic == Traffic::Mix && spec.peer != ROUTER {
            return Err(format!("--traffic mix: choose --peer {ROUTER}"));
        }
        match (spec.load, spec.pps) {
            (Some(load), _) if !(load > 0.0 && load <= 1.0) => {
                Err(format!("--load {load}: choose more than 0, at most 1"))
            }
            (_, Some(pps)) if !(1.0..=1e9).contains(&pps) => {
                Err(format!("--pps {pps}: choose 1 to 1000000000"))
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
            "p2p --search ndr --load 0.5",
            "p2p --guest",
            "loopback --guest --ports memif",
            "loopback --guest --ports virtio-user --swap",
            "p2p --cores three",
            "p2p --pps 0",
            "p2p --pps 5 --load 0.5",
            "p2p --cost --load 0.5",
            "p2p --traffic mix",
            "p2p --ports memif",
            "v2v --physical veth",
            "p2v --vnfs 2",
            "p2p --traffic imix --size 256",
        ] {
            assert!(Spec::of(bad).is_err(), "{bad}");
        }
    }
}
