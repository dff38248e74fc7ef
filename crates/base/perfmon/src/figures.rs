//! Figures of a node: events for each packet and for each call.

use crate::bundle::Bundle;
use volley_graph::{EventReport, MAX_EVENTS};

/// The figures of a node on one worker, by event of the bundle. None: the processor does not count the event, or there was no
/// packet or call.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Events of all runs. Runs that could not be counted are taken to have as many events as the others.
    pub total: Vec<Option<f64>>,
    /// Events for each packet.
    pub per_packet: Vec<Option<f64>>,
    /// Events for each call.
    pub per_call: Vec<Option<f64>>,
    /// The quotient of the bundle.
    pub ratio: Option<f64>,
}

fn quotient(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

impl Figures {
    /// The figures of a report; `has` says which events were counted.
    pub fn of(bundle: &Bundle, report: &EventReport, has: [bool; MAX_EVENTS]) -> Figures {
        let value = |at: usize| has[at].then_some(report.values[at] as f64);
        let over = |count: f64| move |value: Option<f64>| value.and_then(|it| quotient(it, count));
        let (calls, runs) = (
            report.calls as f64,
            (report.calls + report.uncounted) as f64,
        );
        let values: Vec<_> = (0..bundle.events.len()).map(value).collect();
        let each =
            |f: &dyn Fn(Option<f64>) -> Option<f64>| values.iter().map(|it| f(*it)).collect();
        let ratio = bundle.ratio.and_then(|ratio| {
            let (of, by) = (value(ratio.of)?, value(ratio.by)?);
            quotient(of * ratio.factor, by)
        });
        Figures {
            total: each(&|it| quotient(it? * runs, calls)),
            per_packet: each(&over(report.vectors as f64)),
            per_call: each(&over(calls)),
            ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::bundle;

    fn report(calls: u64, vectors: u64, uncounted: u64, values: [u64; 2]) -> EventReport {
        let mut all = [0; MAX_EVENTS];
        all[..2].copy_from_slice(&values);
        EventReport {
            worker: 0,
            node: "ip4-lookup".into(),
            calls,
            vectors,
            uncounted,
            values: all,
        }
    }

    #[test]
    fn events_that_were_not_counted_are_like_those_that_were() {
        let bundle = bundle("branch-mispred").unwrap();
        let figures = Figures::of(bundle, &report(10, 2560, 30, [5120, 128]), [true; 6]);
        assert_eq!(figures.per_packet, [Some(2.0), Some(0.05)]);
        assert_eq!(figures.per_call, [Some(512.0), Some(12.8)]);
        assert_eq!(figures.total, [Some(20480.0), Some(512.0)]);
        assert_eq!(figures.ratio, Some(2.5));
    }

    #[test]
    fn what_is_not_known_is_none() {
        let bundle = bundle("inst-and-clock").unwrap();
        let mut has = [true; 6];
        has[1] = false;
        let figures = Figures::of(bundle, &report(10, 0, 0, [70, 0]), has);
        assert_eq!(figures.per_packet, [None, None]);
        assert_eq!(figures.per_call, [Some(7.0), None]);
        assert_eq!(figures.ratio, None);
        let never = Figures::of(bundle, &report(0, 0, 4, [0, 0]), [true; 6]);
        assert_eq!(never.total, [None, None]);
    }
}
