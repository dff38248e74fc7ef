//! One run of arping: when its requests are due, and its results.

use super::query::{Arping, ArpingAnswer};
use crate::entry::{Mac, SECOND};
use std::net::IpAddr;

/// Most answers kept for each request.
const ANSWERS: usize = 16;
/// Most MAC addresses kept.
const MACS: usize = 64;
/// Most answers that the client has not read.
const UNREAD: usize = 256;
/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;
/// A request that is not sent within this time is no longer waited for.
const UNSENT: u64 = SECOND;

/// State of one run.
pub(crate) struct Run {
    pub iface: u32,
    pub address: IpAddr,
    pub count: u32,
    pub interval: u64,
    pub timeout: u64,
    pub asked: u32,
    /// When the last request was due, and when the worker sent it.
    pub last: (u64, Option<u64>),
    /// Answers to the last request.
    pub of_last: usize,
    pub received: u32,
    pub macs: Vec<Mac>,
    pub unread: Vec<ArpingAnswer>,
}

impl Run {
    pub fn new(iface: u32, query: &Arping, now: u64) -> Run {
        Run {
            iface,
            address: query.address,
            count: query.count,
            interval: u64::from(query.interval_ms) * MILLISECOND,
            timeout: u64::from(query.timeout_ms) * MILLISECOND,
            asked: 0,
            last: (now, None),
            of_last: 0,
            received: 0,
            macs: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Whether a request is due now; if so, the request is counted.
    pub fn next(&mut self, now: u64) -> bool {
        let more = self.count == 0 || self.asked < self.count;
        let wait = if self.asked == 0 { 0 } else { self.interval };
        if !more || now < self.last.0 + wait {
            return false;
        }
        self.asked += 1;
        self.last = (now, None);
        self.of_last = 0;
        true
    }

    pub fn is_done(&self, now: u64) -> bool {
        let until = match self.last {
            (_, Some(sent)) => sent + self.timeout,
            (asked, None) => asked + self.timeout + UNSENT,
        };
        self.count != 0 && self.asked >= self.count && now >= until
    }

    pub fn sent(&mut self, number: u32, at: u64) {
        if number + 1 == self.asked {
            self.last.1 = Some(at);
        }
    }

    pub fn answered(&mut self, mac: Mac, at: u64) {
        if self.asked == 0 {
            return;
        }
        self.received += u32::from(self.of_last == 0);
        self.of_last += 1;
        if !self.macs.contains(&mac) && self.macs.len() < MACS {
            self.macs.push(mac);
        }
        if self.of_last <= ANSWERS && self.unread.len() < UNREAD {
            let since = self.last.1.unwrap_or(self.last.0);
            self.unread.push(ArpingAnswer {
                number: self.asked - 1,
                mac: volley_model::Mac(mac),
                rtt_us: at.saturating_sub(since) / 1000,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND;

    fn run(count: u32) -> Run {
        let query = Arping {
            interface: "lan0".to_owned(),
            address: "192.0.2.9".parse().unwrap(),
            count,
            interval_ms: 100,
            timeout_ms: 50,
        };
        Run::new(3, &query, 0)
    }

    #[test]
    fn requests_keep_their_pace_and_duplicates_are_kept() {
        let mut run = run(2);
        assert!(run.next(0) && !run.next(0) && !run.next(99 * MS));
        run.sent(0, MS);
        run.answered([2, 0, 0, 0, 0, 1], 3 * MS);
        run.answered([2, 0, 0, 0, 0, 2], 4 * MS);
        assert_eq!((run.received, run.macs.len()), (1, 2));
        let reported: Vec<_> = run.unread.drain(..).map(|a| (a.number, a.rtt_us)).collect();
        assert_eq!(reported, [(0, 2000), (0, 3000)]);
        assert!(run.next(100 * MS) && !run.next(900 * MS));
        run.sent(0, 100 * MS);
        assert!(
            !run.is_done(1149 * MS) && run.is_done(1150 * MS),
            "it is unsent"
        );
        run.sent(1, 101 * MS);
        assert!(!run.is_done(150 * MS) && run.is_done(151 * MS));
    }

    #[test]
    fn a_flood_of_answers_is_bounded() {
        let mut run = run(0);
        run.answered([2; 6], 0);
        assert_eq!(run.received, 0, "nothing was asked yet");
        for number in 0..1000u64 {
            assert!(run.next(number * 100 * MS));
            for n in 0..100u8 {
                run.answered([2, 0, 0, 0, (number % 100) as u8, n], number * 100 * MS);
            }
        }
        assert_eq!((run.unread.len(), run.macs.len()), (UNREAD, MACS));
        assert_eq!(run.received, 1000);
        assert!(!run.is_done(u64::MAX), "it has no end");
    }
}
