//! `volley-lab generate` and `volley-lab sink`.

use super::frame::{Frame, FrameSpec};
use super::instruments::Offer;
use super::outcome::{Outcome, grouped};
use super::rig::{Ports, Rig};
use crate::error::LabError;
use crate::interrupt::stop_at_interrupt;
use crate::search::{self, Goal};
use clap::Args;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volley_model::Mac;

/// Largest number with a suffix: a larger rate cannot be counted in cycles.
const MOST: f64 = 10e9;

/// A number with a suffix: `1500`, `20k`, `1.5M`, `2G`.
fn number(text: &str) -> Result<f64, String> {
    let bad = || format!("'{text}' is no number: write 1500, 20k, 1.5M");
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| bad())?;
    match number * factor {
        rate if rate > MOST => Err(format!("'{text}' is too large: choose at most 10G")),
        rate if rate > 0.0 => Ok(rate),
        _ => Err(bad()),
    }
}

/// Ports, and the time.
#[derive(Clone, Debug, Args)]
pub struct PortArgs {
    /// Command of `volley ctl` that makes the port (default: a port in memory).
    #[arg(long, value_name = "COMMAND")]
    pub port: Option<String>,
    /// Command before the port is made, such as `create memif socket ...`; may be repeated.
    #[arg(long, value_name = "COMMAND")]
    pub before: Vec<String>,
    /// Seconds.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Longest time to wait for the links, in seconds.
    #[arg(long, default_value_t = 10.0)]
    pub wait: f64,
    /// Processor core of the worker (default: any).
    #[arg(long)]
    pub core: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Send packets, and receive what comes back.
#[derive(Clone, Debug, Args)]
pub struct GenerateArgs {
    /// Ports, and the time.
    #[command(flatten)]
    pub ports: PortArgs,
    /// Command that makes the port that receives (default: the port that sends).
    #[arg(long, value_name = "COMMAND", requires = "port")]
    pub receive: Option<String>,
    /// Packets per second: 1500, 20k, 1.5M (default: as many as possible).
    #[arg(long, value_parser = number)]
    pub rate: Option<f64>,
    /// Packets that are due at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub burst: u64,
    /// Stop after this number of packets.
    #[arg(long)]
    pub packets: Option<u64>,
    /// Bytes of a packet without frame check sequence.
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    /// Source MAC address.
    #[arg(long, default_value = "02:00:00:00:00:99")]
    pub source_mac: Mac,
    /// Destination MAC address.
    #[arg(long, default_value = "02:00:00:00:00:01")]
    pub destination_mac: Mac,
    /// Source address.
    #[arg(long, default_value = "198.19.0.1")]
    pub source: IpAddr,
    /// First destination address.
    #[arg(long, default_value = "20.0.0.1")]
    pub destination: IpAddr,
    /// Number of consecutive destination addresses, one after the other.
    #[arg(long, default_value_t = 1)]
    pub addresses: u32,
    /// Microseconds that the port in memory delays packets.
    #[arg(long, conflicts_with = "port")]
    pub delay_us: Option<f64>,
    /// Search the non-drop rate and the rate with at most 0.5 % loss, up to `--rate`; `--seconds` is the length of a trial.
    #[arg(long, requires = "rate")]
    pub search: bool,
}

/// Receive the packets of a generator of this machine.
#[derive(Clone, Debug, Args)]
pub struct SinkArgs {
    /// Ports, and the time.
    #[command(flatten)]
    pub ports: PortArgs,
}

fn seconds(name: &str, value: f64) -> Result<Duration, LabError> {
    match Duration::try_from_secs_f64(value) {
        Ok(time) if time <= Duration::from_secs(86_400) => Ok(time),
        _ => Err(LabError::Argument(format!(
            "{name} {value}: choose 0 to 86400 seconds"
        ))),
    }
}

impl PortArgs {
    fn ports(&self) -> Result<Ports, LabError> {
        Ok(Ports {
            before: self.before.clone(),
            send: self.port.clone(),
            wait: seconds("--wait", self.wait)?,
            core: self.core,
            ..Ports::default()
        })
    }
}

impl GenerateArgs {
    fn frame(&self) -> Result<Frame, LabError> {
        let spec = FrameSpec {
            source_mac: self.source_mac,
            destination_mac: self.destination_mac,
            source: self.source,
            destination: self.destination,
            addresses: self.addresses,
            size: self.size,
            vlan: None,
        };
        Frame::new(&spec).map_err(LabError::Argument)
    }
}

fn print(outcome: &Outcome, json: bool) {
    match json {
        true => print_json(outcome),
        false => print!("{}", outcome.text()),
    }
}

/// Prints texts and numbers as JSON, which cannot fail.
fn print_json(value: &impl Serialize) {
    println!(
        "{}",
        serde_json::to_string_pretty(value).unwrap_or_default()
    );
}

/// `volley-lab generate`.
///
/// # Errors
/// If a port cannot be used, or the search does not converge.
pub fn generate(args: &GenerateArgs) -> Result<(), LabError> {
    let delay = args.delay_us.map(|us| seconds("--delay-us", us / 1e6));
    let ports = Ports {
        receive: args.receive.clone(),
        delay: delay.transpose()?,
        ..args.ports.ports()?
    };
    let time = seconds("--seconds", args.ports.seconds)?;
    let frame = args.frame()?;
    let stop = stop_at_interrupt()?;
    let mut rig = Rig::new(&ports, &[vec![frame]])?;
    if args.search {
        return rates(&mut rig, args);
    }
    let offer = Offer {
        rate: args.rate,
        burst: args.burst,
        packets: args.packets,
    };
    let outcome = rig.run(&offer, time, &|| stop.load(Ordering::Relaxed))?;
    print(&outcome, args.ports.json);
    Ok(())
}

/// Search NDR and PDR.
fn rates(rig: &mut Rig, args: &GenerateArgs) -> Result<(), LabError> {
    let most = args.rate.unwrap_or(1e6);
    let goal = Goal {
        seconds: args.ports.seconds,
        ..Goal::new((most / 1e4).max(1.0), most)
    };
    let found = search::search(rig, &goal);
    let found = found.map_err(|e| LabError::Argument(e.to_string()))?;
    if args.ports.json {
        print_json(&found);
        return Ok(());
    }
    for bounds in &found.bounds {
        let upper = match bounds.upper {
            Some(upper) => format!("{} lose more", grouped(upper as u64)),
            None => "the largest rate of the search".to_owned(),
        };
        println!(
            "loss of at most {:.1} %: {} packets per second ({upper})",
            bounds.loss_ratio * 100.0,
            grouped(bounds.lower as u64)
        );
    }
    println!("{} trials, {:.1} s", found.trials, found.seconds);
    Ok(())
}

/// `volley-lab sink`.
///
/// # Errors
/// If the port cannot be used.
pub fn sink(args: &SinkArgs) -> Result<(), LabError> {
    if args.ports.port.is_none() {
        let why = "a sink without --port receives nothing: choose a command that makes a port";
        return Err(LabError::Argument(why.to_owned()));
    }
    let time = seconds("--seconds", args.ports.seconds)?;
    let stop = stop_at_interrupt()?;
    let mut rig = Rig::new(&args.ports.ports()?, &[])?;
    let outcome = rig.receive(time, &|| stop.load(Ordering::Relaxed));
    print(&outcome, args.ports.json);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_suffixes() {
        assert_eq!(number("1500"), Ok(1500.0));
        assert_eq!(number("1.5M"), Ok(1.5e6));
        assert_eq!(number("20k"), Ok(20e3));
        for bad in ["", "M", "-1", "0", "inf", "nan", "1e300", "11G", "1x"] {
            assert!(number(bad).is_err(), "{bad}");
        }
    }
}
