//! Messages to the service manager: ready, stopping, alive (the protocol of `sd_notify(3)`: one datagram per message to the
//! socket that `$NOTIFY_SOCKET` names). Without a manager nothing is sent.

use std::collections::HashMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager, if there is one.
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// The manager that the environment names.
    pub fn of_environment() -> Self {
        let text = |name| std::env::var(name).ok();
        let watchdog = span(
            text("WATCHDOG_USEC").as_deref(),
            text("WATCHDOG_PID").as_deref(),
        );
        Manager {
            socket: std::env::var_os("NOTIFY_SOCKET").and_then(|name| open(name.to_str()?)),
            watchdog,
        }
    }

    /// Sends a message. The control thread does not wait for a manager that does not read.
    pub fn tell(&self, message: &str) {
        if let Some((socket, manager)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), manager);
        }
    }

    /// The interval within which the manager expects a message that the daemon is alive; none if it expects none.
    pub fn watchdog(&self) -> Option<Duration> {
        self.socket.as_ref().and(self.watchdog)
    }
}

fn open(name: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let manager = match name.strip_prefix('@') {
        Some(hidden) => SocketAddr::from_abstract_name(hidden).ok()?,
        None => SocketAddr::from_pathname(name).ok()?,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, manager))
}

/// The watchdog's interval, unless it is meant for another process.
fn span(usec: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    let mine = pid.is_none_or(|pid| pid == std::process::id().to_string());
    let usec: u64 = usec?.parse().ok()?;
    (mine && usec > 0).then(|| Duration::from_micros(usec))
}

/// Whether workers are alive, from one check to the next.
#[derive(Default)]
pub struct Watchdog {
    /// Rounds at the last check, by worker.
    rounds: HashMap<usize, u64>,
}

impl Watchdog {
    /// True if each worker has finished a round since the last check, or sleeps. An item is a worker, its rounds so far, and
    /// whether it sleeps.
    pub fn beats(&mut self, workers: impl Iterator<Item = (usize, u64, bool)>) -> bool {
        let now: Vec<(usize, u64, bool)> = workers.collect();
        let moved = |(w, rounds, asleep): &(usize, u64, bool)| {
            *asleep || self.rounds.get(w).is_none_or(|before| before != rounds)
        };
        let all = now.iter().all(moved);
        self.rounds = now.into_iter().map(|(w, rounds, _)| (w, rounds)).collect();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_new_rounds_has_no_pulse() {
        let mut pulse = Watchdog::default();
        let mut look = |workers: &[(u64, bool)]| {
            let numbered = workers.iter().enumerate();
            pulse.beats(numbered.map(|(w, (rounds, asleep))| (w, *rounds, *asleep)))
        };
        assert!(look(&[(5, false), (9, false)]));
        assert!(look(&[(6, false), (10, false)]));
        assert!(
            !look(&[(7, false), (10, false)]),
            "the second made no round"
        );
        assert!(look(&[(8, false), (10, true)]), "it sleeps");
        assert!(!look(&[(8, false), (11, false)]), "the first made no round");
        assert!(look(&[(9, false), (12, false)]));
    }

    #[test]
    fn the_watchdog_is_for_one_process() {
        let me = std::process::id().to_string();
        let second = Some(Duration::from_secs(1));
        assert_eq!(span(Some("1000000"), None), second);
        assert_eq!(span(Some("1000000"), Some(&me)), second);
        assert_eq!(span(Some("1000000"), Some("1")), None);
        for bad in [None, Some("0"), Some("-1"), Some("soon")] {
            assert_eq!(span(bad, None), None);
        }
    }
}
