//! A capture file that a worker plays.

use crate::model::{Pace, Repeat};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The state of a player that the control thread and the worker share.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) gone: AtomicBool,
    pub(crate) played: AtomicU64,
}

/// A packet of the file: time and bytes.
pub(crate) struct Played {
    pub(crate) at_ns: u64,
    pub(crate) bytes: Box<[u8]>,
}

/// A file that is played. It starts when its interface first comes up. While the interface is down again, due packets are
/// dropped; a player that repeats forever stops instead, and restarts when the interface comes up.
pub struct Player {
    pub(crate) rx: u32,
    pub(crate) progress: Arc<Progress>,
    packets: Box<[Played]>,
    repeat: Repeat,
    pace: Pace,
    next: usize,
    laps: u64,
    started_ns: Option<u64>,
}

impl Player {
    /// A player of `packets`, whose times are relative to the first packet.
    pub(crate) fn new(
        rx: u32,
        packets: Box<[Played]>,
        repeat: Repeat,
        pace: Pace,
        progress: Arc<Progress>,
    ) -> Self {
        Player {
            rx,
            progress,
            packets,
            repeat,
            pace,
            next: 0,
            laps: 0,
            started_ns: None,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.progress.gone.load(Relaxed)
    }

    /// The number of packets that are due now, at most `most`.
    pub(crate) fn due(&mut self, now_ns: u64, up: bool, most: usize) -> usize {
        if !up && (self.started_ns.is_none() || self.repeat == Repeat::Forever) {
            (self.started_ns, self.next) = (None, 0);
            return 0;
        }
        let over = matches!(self.repeat, Repeat::Times(n) if self.laps >= n);
        if self.packets.is_empty() || over {
            return 0;
        }
        let started = *self.started_ns.get_or_insert(now_ns);
        let rest = &self.packets[self.next..];
        match self.pace {
            Pace::Fast => most.min(rest.len()),
            Pace::Recorded => {
                let elapsed = now_ns.saturating_sub(started);
                let due = rest.iter().take(most);
                due.take_while(|p| p.at_ns <= elapsed).count()
            }
        }
    }

    /// The time at which the next packet is due, if known. Called when no packet is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let next = self.packets.get(self.next)?;
        let over = matches!(self.repeat, Repeat::Times(n) if self.laps >= n);
        let started = self.started_ns.filter(|_| !over)?;
        Some(match self.pace {
            Pace::Fast => started,
            Pace::Recorded => started + next.at_ns,
        })
    }

    /// The next packet; called at most as often as the result of [`Player::due`].
    pub(crate) fn next(&mut self) -> &[u8] {
        let at = self.next;
        self.next += 1;
        if self.next == self.packets.len() {
            self.next = 0;
            self.laps += 1;
            let lap = self.packets.iter().map(|p| p.at_ns).max().unwrap_or(0);
            self.started_ns = self.started_ns.map(|s| s + lap);
        }
        let played = &self.progress.played;
        played.store(played.load(Relaxed) + 1, Relaxed);
        &self.packets[at].bytes
    }
}
