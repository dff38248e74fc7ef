//! Measurements from host to host: ping and streams of iperf3.

use super::error::NetError;
use super::hosts::{DEVICE, Hosts, JUMBO, Space};
use super::programs::Programs;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The MTU of the first streams.
const USUAL: u32 = 1500;
/// Bytes of IPv4 and ICMP headers, and the same number for IPv4 and UDP.
const HEADERS: u32 = 28;
/// Maximum number of unanswered pings at first: bridges must learn, and neighbours must be resolved.
const TRIES: u32 = 20;

/// Results between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Round-trip time of ten pings in microseconds: the mean.
    pub ping_us: f64,
    /// One TCP stream with an MTU of 1500, received.
    pub tcp_gbps: f64,
    /// One UDP stream of full packets as fast as the sender can, received.
    pub udp_gbps: f64,
    /// Lost fraction of the UDP stream, in percent.
    pub udp_lost_percent: f64,
    /// One TCP stream with an MTU of 9000, after a ping of that size without fragments; `None` if it does not pass.
    pub jumbo_tcp_gbps: Option<f64>,
    /// Reason why it does not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jumbo_fault: Option<String>,
}

/// A measurement between connected hosts.
pub struct Measurement<'a> {
    /// The namespaces.
    pub hosts: &'a Hosts,
    /// Runs programs.
    pub programs: &'a Programs,
    /// The address of host B.
    pub target: &'a str,
    /// Seconds of each stream.
    pub seconds: u64,
}

impl Measurement<'_> {
    /// All measurements; calls `tell` with a name before each.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Figures, NetError> {
        tell("ping");
        self.mtu(USUAL)?;
        let ping_us = self.ping(USUAL)?;
        tell("TCP");
        let tcp_gbps = gbps(&self.stream(&[])?, "sum_received")?;
        tell("UDP");
        let size = (USUAL - HEADERS).to_string();
        let udp = self.stream(&["-u", "-b", "0", "-l", &size])?;
        let (udp_gbps, udp_lost_percent) = received(&udp)?;
        tell("jumbo frames");
        let jumbo = self.mtu(JUMBO).and_then(|()| self.ping(JUMBO));
        let jumbo = jumbo.and_then(|_| gbps(&self.stream(&[])?, "sum_received"));
        self.programs.check()?;
        Ok(Figures {
            ping_us,
            tcp_gbps,
            udp_gbps,
            udp_lost_percent,
            jumbo_fault: jumbo.as_ref().err().map(ToString::to_string),
            jumbo_tcp_gbps: jumbo.ok(),
        })
    }

    fn mtu(&self, mtu: u32) -> Result<(), NetError> {
        for space in [Space::A, Space::B] {
            let words = format!("link set {DEVICE} mtu {mtu}");
            self.hosts.ip(space, &words)?;
        }
        Ok(())
    }

    /// Ten pings that fill the MTU, after the first reply.
    fn ping(&self, mtu: u32) -> Result<f64, NetError> {
        let size = (mtu - HEADERS) as usize;
        let text = size.to_string();
        let words = |count, gap| {
            [
                "ping",
                "-n",
                "-q",
                "-c",
                count,
                "-i",
                gap,
                "-W",
                "1",
                "-M",
                "do",
                "-s",
                &text,
                self.target,
            ]
            .map(str::to_owned)
        };
        let ping = |count, gap| {
            let words = words(count, gap);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.hosts.exec(Space::A, 15, &words)
        };
        let mut answered = false;
        for _ in 0..TRIES {
            self.programs.check()?;
            answered = ping("1", "1").is_ok();
            if answered {
                break;
            }
            self.programs.pause(Duration::from_millis(50))?;
        }
        if !answered {
            return Err(NetError::NoAnswer(size));
        }
        let message = ping("10", "0.01")?;
        mean_us(&message).ok_or_else(|| NetError::Answer {
            line: format!("ping {}", self.target),
            what: "round-trip times",
        })
    }

    /// One stream of iperf3 from A to B; returns its report.
    fn stream(&self, more: &[&str]) -> Result<Value, NetError> {
        let limit = self.seconds + 10;
        // `-1`: the server ends after this stream.
        let server = self.hosts.start(Space::B, limit, &["iperf3", "-s", "-1"])?;
        self.listens()?;
        let seconds = self.seconds.to_string();
        let client = [
            &["iperf3", "-J", "-i", "0", "-c", self.target, "-t", &seconds],
            more,
        ]
        .concat();
        let message = self.hosts.exec(Space::A, limit, &client);
        drop(server);
        let value: Value = serde_json::from_str(&message?).unwrap_or_default();
        Ok(value["end"].clone())
    }

    /// Wait until the server listens on its port (5201).
    fn listens(&self) -> Result<(), NetError> {
        for _ in 0..100 {
            let sockets = self
                .hosts
                .exec(Space::B, 5, &["cat", "/proc/net/tcp6", "/proc/net/tcp"]);
            // Port in hexadecimal, no peer, listening.
            if sockets?
                .lines()
                .any(|l| l.contains(":1451 ") && l.contains(":0000 0A "))
            {
                return Ok(());
            }
            self.programs.pause(Duration::from_millis(20))?;
        }
        Err(NetError::Answer {
            line: "iperf3 -s".into(),
            what: "listening",
        })
    }
}

/// The mean of `rtt min/avg/max/mdev = a/b/c/d ms`.
fn mean_us(message: &str) -> Option<f64> {
    let line = message.lines().find(|l| l.contains("min/avg/max"))?;
    let mean = line.split_once("= ")?.1.split('/').nth(1)?;
    mean.parse::<f64>().ok().map(|ms| ms * 1000.0)
}

fn gbps(end: &Value, sum: &str) -> Result<f64, NetError> {
    let bits = end[sum]["bits_per_second"].as_f64();
    bits.map(|b| b / 1e9).ok_or_else(|| NetError::Answer {
        line: "iperf3 -c".into(),
        what: "a rate",
    })
}

/// Received rate of a UDP stream, and the lost percentage. Older versions report only the sender's rate.
fn received(end: &Value) -> Result<(f64, f64), NetError> {
    let lost = end["sum"]["lost_percent"].as_f64().unwrap_or(0.0);
    if end["sum_received"]["bits_per_second"].is_number() {
        return Ok((gbps(end, "sum_received")?, lost));
    }
    Ok((gbps(end, "sum")? * (1.0 - lost / 100.0), lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_of_ping_and_iperf3_are_understood() {
        let message = "10 packets\nrtt min/avg/max/mdev = 0.012/0.034/0.056/0.010 ms\n";
        assert_eq!(mean_us(message), Some(34.0));
        assert_eq!(mean_us("10 packets transmitted, 0 received"), None);
        let old = json!({ "sum": { "bits_per_second": 2e9, "lost_percent": 25.0 } });
        assert_eq!(received(&old).unwrap(), (1.5, 25.0));
        let new = json!({ "sum": { "bits_per_second": 2e9, "lost_percent": 25.0 },
            "sum_received": { "bits_per_second": 1.25e9 } });
        assert_eq!(received(&new).unwrap(), (1.25, 25.0));
        assert!(gbps(&json!({}), "sum_received").is_err());
    }
}
