//! Rates of interfaces: the control thread samples the counters once a second and keeps the samples of the last minute.

use crate::show::InterfaceRate;
use crate::{IfCounts, IfIdx};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Interval between two samples that are kept for a minute.
const COARSE: Duration = Duration::from_millis(9_500);
/// Samples of the last seconds: the ends of ten spans of one second.
const FINE: usize = 11;
/// Samples of the last minute.
const MINUTE: usize = 7;

#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    counts: IfCounts,
}

/// The samples of one interface.
#[derive(Default)]
struct Looks {
    fine: VecDeque<Look>,
    coarse: VecDeque<Look>,
}

impl Looks {
    fn add(&mut self, look: Look) {
        let due = |last: &Look| look.at - last.at >= COARSE;
        if self.coarse.back().is_none_or(due) {
            keep(&mut self.coarse, look, MINUTE);
        }
        keep(&mut self.fine, look, FINE);
    }

    fn rates(&self) -> Vec<InterfaceRate> {
        let Some(now) = self.fine.back() else {
            return Vec::new();
        };
        let before = self
            .fine
            .len()
            .checked_sub(2)
            .and_then(|at| self.fine.get(at));
        let spans = [
            (1, before),
            (10, self.fine.front()),
            (60, self.coarse.front()),
        ];
        let rate = |(span, from): (u32, Option<&Look>)| between(span, from?, now);
        spans.into_iter().filter_map(rate).collect()
    }
}

fn keep(looks: &mut VecDeque<Look>, look: Look, most: usize) {
    if looks.len() == most {
        looks.pop_front();
    }
    looks.push_back(look);
}

fn between(span_s: u32, from: &Look, to: &Look) -> Option<InterfaceRate> {
    let seconds = (to.at - from.at).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let rate = |before: u64, now: u64, scale: f64| {
        (now.saturating_sub(before) as f64 * scale / seconds).round() as u64
    };
    let (a, b) = (&from.counts, &to.counts);
    Some(InterfaceRate {
        span_s,
        rx_pps: rate(a.rx_packets, b.rx_packets, 1.0),
        rx_bps: rate(a.rx_bytes, b.rx_bytes, 8.0),
        tx_pps: rate(a.tx_packets, b.tx_packets, 1.0),
        tx_bps: rate(a.tx_bytes, b.tx_bytes, 8.0),
    })
}

/// The rates of all interfaces.
#[derive(Default)]
pub(crate) struct Rates(BTreeMap<IfIdx, Looks>);

impl Rates {
    /// Adds a sample of an interface.
    pub(crate) fn add(&mut self, index: IfIdx, counts: IfCounts, at: Instant) {
        self.0.entry(index).or_default().add(Look { at, counts });
    }

    /// Removes a deleted interface, because its index may be used again.
    pub(crate) fn forget(&mut self, index: IfIdx) {
        self.0.remove(&index);
    }

    /// Rates over 1, 10 and 60 seconds, as far as there are samples.
    pub(crate) fn of(&self, index: IfIdx) -> Vec<InterfaceRate> {
        self.0.get(&index).map(Looks::rates).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_second_ten_and_sixty() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let mut counts = IfCounts::default();
        for second in 0..200u64 {
            // 1,000 packets of 100 bytes a second, 5,000 in the last five seconds, 9,000 in the last one.
            let packets = match second {
                199 => 9_000,
                195..199 => 5_000,
                _ => 1_000,
            };
            counts.rx_packets += packets;
            counts.rx_bytes += packets * 100;
            rates.add(IfIdx(3), counts, start + Duration::from_secs(second));
        }
        let all = rates.of(IfIdx(3));
        let pps: Vec<(u32, u64)> = all.iter().map(|r| (r.span_s, r.rx_pps)).collect();
        assert_eq!(
            pps[..2],
            [(1, 9_000), (10, (9_000 + 4 * 5_000 + 5 * 1_000) / 10)]
        );
        let (span, minute) = pps[2];
        assert!(span == 60 && (1_300..1_450).contains(&minute), "{minute}");
        assert_eq!(all[0].rx_bps, 9_000 * 100 * 8);
        rates.forget(IfIdx(3));
        assert!(rates.of(IfIdx(3)).is_empty());
    }
}
