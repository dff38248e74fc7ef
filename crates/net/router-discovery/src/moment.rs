//! Input and output of the state machines.

use crate::link::{Link, Mac};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use volley_fib::Fib;
use volley_iface::Flag;

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this frame on the interface.
    Send(u32, Vec<u8>),
    /// Send this frame, which is at most as long as one message with one option, on the interface.
    SendShort(u32, Vec<u8>),
    /// Set a flag of the interface for workers.
    Mark(u32, Flag, bool),
    /// Report this to the operator about the interface.
    Tell(u32, String),
    /// A router of the link has advertised its MAC address.
    Learn(u32, Ipv6Addr, Mac),
    /// Count a route or an address that did not fit into the FIB.
    NoRoom,
    /// Count a default router that stopped answering.
    SilentRouter,
}

/// Context of one call of a state machine.
pub struct Moment<'a> {
    /// The time, in nanoseconds.
    pub now: u64,
    /// The links of the interfaces.
    pub links: &'a BTreeMap<u32, Link>,
    /// The FIB.
    pub fib: &'a mut Fib,
    /// Random numbers.
    pub random: &'a mut Random,
    /// Actions for the caller.
    pub effects: Vec<Effect>,
}

impl Moment<'_> {
    /// A new random number for a message of an interface.
    pub(crate) fn chance(&mut self, iface: u32) -> u64 {
        let mac = self.links.get(&iface).map_or([0; 6], |link| link.mac);
        self.random.draw(mac, self.now)
    }

    pub(crate) fn tell(&mut self, iface: u32, what: impl Into<String>) {
        self.effects.push(Effect::Tell(iface, what.into()));
    }

    pub(crate) fn mark(&mut self, iface: u32, flag: Flag, on: bool) {
        self.effects.push(Effect::Mark(iface, flag, on));
    }
}

/// Random numbers for times, so that routers do not send in synchrony.
#[derive(Debug, Default)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A new random number for an interface with this MAC address.
    pub fn draw(&mut self, mac: Mac, now: u64) -> u64 {
        let mac = mac.iter().fold(0, |n, b| n << 8 | u64::from(*b));
        let mut x = self.state ^ now ^ mac.rotate_left(20) | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.state = x;
        x >> 8
    }
}
