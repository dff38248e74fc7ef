//! What a trial gave, for people and for programs.

use super::histogram::Distribution;
use serde::Serialize;
use std::fmt::Write;

/// Parts of the packets whose times are the quantiles of a distribution.
pub const PARTS: [f64; 16] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999,
];

/// Times from the due time of a packet to the sink, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Minimum.
    pub min_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub deviation_us: f64,
    /// Median.
    pub median_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Quantiles for [`PARTS`] of the packets.
    pub quantiles_us: [f64; PARTS.len()],
}

impl Latency {
    /// Of measured times in microseconds.
    pub fn of(times: &Distribution) -> Latency {
        Latency {
            min_us: times.min,
            mean_us: times.mean,
            deviation_us: times.deviation(),
            median_us: times.quantile(0.5),
            p90_us: times.quantile(0.9),
            p99_us: times.quantile(0.99),
            p999_us: times.quantile(0.999),
            max_us: times.max,
            quantiles_us: PARTS.map(|part| times.quantile(part)),
        }
    }
}

/// Times between two looks of the worker at its ports: the resolution of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Polls {
    /// Median.
    pub median_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// What the sink received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Return {
    /// Packets, without duplicates.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Fraction of the packets that did not arrive.
    pub loss: f64,
    /// Packets that were received before.
    pub duplicates: u64,
    /// Packets behind one that was sent later.
    pub reordered: u64,
    /// Packets of others.
    pub others: u64,
    /// Packets per second, from the first to the last.
    pub pps: f64,
    /// Latency; none without packets.
    pub latency: Option<Latency>,
}

/// What a trial gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Requested rate; none for as many packets as possible.
    pub asked_pps: Option<f64>,
    /// Packets that are due at the same time.
    pub burst: u64,
    /// Seconds from the first to the last packet.
    pub seconds: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets per second, from the first to the last.
    pub sent_pps: f64,
    /// Packets that were not sent because the generator was late by more than a millisecond.
    pub missed: u64,
    /// Packets that were sent late because no buffer was free.
    pub no_buffers: u64,
    /// Largest number of packets that were sent at once.
    pub largest_vector: u64,
    /// Times between two looks at the ports.
    pub polls: Option<Polls>,
    /// What came back; none without a sink.
    pub returned: Option<Return>,
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Outcome {
    /// Relative error of the rate; none without a rate.
    pub fn rate_error(&self) -> Option<f64> {
        let asked = self.asked_pps.filter(|_| self.sent > 1)?;
        Some(self.sent_pps / asked - 1.0)
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.sent > 0 {
            let asked = match (self.asked_pps, self.rate_error()) {
                (Some(asked), Some(error)) => format!(
                    " (asked {}: {:+.2} %)",
                    grouped(asked as u64),
                    error * 100.0
                ),
                _ => String::new(),
            };
            let _ = writeln!(
                text,
                "sent       {} packets in {:.3} s, {} per second{asked}; bursts of {}, up to {} at once",
                grouped(self.sent),
                self.seconds,
                grouped(self.sent_pps as u64),
                self.burst,
                self.largest_vector
            );
            if self.missed + self.no_buffers > 0 {
                let _ = writeln!(
                    text,
                    "late       {} packets not sent, because the generator was late by more than 1 ms; {} delayed without a buffer",
                    grouped(self.missed),
                    grouped(self.no_buffers)
                );
            }
        }
        if let Some(r) = &self.returned {
            let _ = writeln!(
                text,
                "received   {} packets, {} per second: {} lost ({:.4} %), {} duplicates, {} out of order; {} other packets",
                grouped(r.packets),
                grouped(r.pps as u64),
                grouped(r.lost),
                r.loss * 100.0,
                grouped(r.duplicates),
                grouped(r.reordered),
                grouped(r.others)
            );
            if let Some(l) = &r.latency {
                let _ = writeln!(
                    text,
                    "latency    minimum {:.2} us, mean {:.2}, deviation {:.2}, median {:.2}, p99 {:.2}, p99.9 {:.2}, maximum {:.2}; from the time at which a packet is due",
                    l.min_us, l.mean_us, l.deviation_us, l.median_us, l.p99_us, l.p999_us, l.max_us
                );
            }
        }
        if let Some(p) = &self.polls {
            let _ = writeln!(
                text,
                "resolution {:.2} us (median time between two looks at the ports; p99 {:.2}, maximum {:.2}); a latency is known within 1/64 of itself",
                p.median_us, p.p99_us, p.max_us
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        let of = |n| grouped(n);
        assert_eq!([of(0), of(999), of(1_000)], ["0", "999", "1,000"]);
        assert_eq!(of(1_234_567), "1,234,567");
    }
}
