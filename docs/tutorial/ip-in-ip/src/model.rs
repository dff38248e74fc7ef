//! The objects: pairs of addresses.

use crate::header::pair;
use crate::pairs::Pairs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_sdk::harness::Domain;
use volley_sdk::prelude::*;
use volley_sdk::tables::{Publisher, Snap};

// ANCHOR: object
/// Pair of IP in IP: packets to the destination are encapsulated and sent from the local to the remote address.
#[derive(Clone, Debug, Object)]
#[object(class = "ip_in_ip_pair", file = "[[ip_in_ip_pair]]", check = Pair::check)]
#[object(set = "set ip-in-ip pair <destination> {fields}")]
#[object(unset = "delete ip-in-ip pair <destination>")]
#[object(example = "set ip-in-ip pair 10.1.0.1 local 192.0.2.1 remote 198.51.100.1")]
pub struct Pair {
    /// Destination of the inner packets.
    #[object(key, example = "10.1.0.1")]
    pub destination: Ipv4Addr,
    /// Source of the outer packets.
    #[object(example = "192.0.2.1")]
    pub local: Ipv4Addr,
    /// Destination of the outer packets.
    #[object(example = "198.51.100.1")]
    pub remote: Ipv4Addr,
}
// ANCHOR_END: object

impl Pair {
    fn check(&self) -> Result<(), FieldError> {
        match self.local.is_unspecified() || self.remote.is_unspecified() {
            true => refuse("remote", "and local must not be 0.0.0.0: name the two ends"),
            false => Ok(()),
        }
    }
}

/// The control thread's half of the table.
pub struct Writer {
    pairs: Publisher<Pairs>,
    used: usize,
}

impl Writer {
    /// An empty table.
    pub fn new(domain: &Arc<Domain>) -> Self {
        Writer {
            pairs: Publisher::new(domain, Pairs::empty()),
            used: 0,
        }
    }

    /// The workers' half.
    pub fn snap(&self) -> Snap<Pairs> {
        self.pairs.snap()
    }

    /// Carry out a change of an object.
    pub fn apply(&mut self, key: &ObjectKey, now: Option<Pair>) -> Result<(), String> {
        let destination: Ipv4Addr = match &now {
            Some(pair) => pair.destination,
            None => key.name().parse().map_err(|why| format!("{key}: {why}"))?,
        };
        let to = now.map_or(0, |it| pair(it.local.to_bits(), it.remote.to_bits()));
        self.set(destination.to_bits(), to);
        Ok(())
    }

    /// Write a pair; 0 removes it.
    pub fn set(&mut self, destination: u32, pair: u64) {
        if self.pairs.current().is_full(self.used) {
            let (larger, used) = self.pairs.current().larger();
            self.pairs.publish(larger);
            self.used = used;
        }
        self.used += usize::from(self.pairs.current().set(destination, pair));
    }
}
