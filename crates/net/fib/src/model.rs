//! Objects of the FIB: settings of the router and of interfaces.

use crate::source::Fib;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use volley_model::{Applied, Mac, Owners};
use volley_object::{Class, DefinitionError, FieldError, FieldType, Object};

/// Sharing of a route's flows among its paths (multipath).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Object)]
#[object(class = "multipath", file = "[multipath]", check = Multipath::check)]
#[object(set = "set ip multipath {resilient@resilient=on | buckets <buckets>}")]
#[object(example = "set ip multipath resilient buckets 512")]
pub struct Multipath {
    /// Move only the flows of a path that goes; when the path returns, move as few flows as possible to it.
    #[object(default = false)]
    pub resilient: bool,
    /// Buckets of a resilient route, a power of two.
    #[object(default = 256, range = 16u32..=4096)]
    pub buckets: u32,
}

impl Multipath {
    fn check(&self) -> Result<(), FieldError> {
        match self.buckets.is_power_of_two() {
            true => Ok(()),
            false => Err(FieldError {
                field: "buckets",
                why: format!("must be a power of two, not '{}'", self.buckets),
            }),
        }
    }
}

/// Directed broadcasts: packets from other networks to the broadcast address of a network of the interface are sent to all
/// hosts of that network (RFC 2644).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "directed_broadcast", file = "interface.directed_broadcast")]
#[object(set = "set interface ip directed-broadcast <interface> <enabled>")]
#[object(example = "set interface ip directed-broadcast pg1 on")]
pub struct DirectedBroadcast {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Send directed broadcasts.
    #[object(default = false)]
    pub enabled: bool,
}

/// Static neighbour: MAC address of a host on the link of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "neighbor", file = "[[neighbor]]", check = StaticNeighbor::check)]
#[object(formerly = "neighbor-add")]
#[object(set = "set (ip | ip6) neighbor [static] <interface> <address> <mac> [static]")]
#[object(unset = "set (ip | ip6) neighbor del <interface> <address>")]
#[object(unset = "set (ip | ip6) neighbor del <interface> <address> <mac>")]
#[object(example = "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:02")]
pub struct StaticNeighbor {
    /// Interface on whose link the neighbour is.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP address of the neighbour.
    #[object(key)]
    pub address: IpAddr,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

impl StaticNeighbor {
    fn check(&self) -> Result<(), FieldError> {
        let wrong = |field, why: String| Err(FieldError { field, why });
        let addr = self.address;
        let broadcast = matches!(addr, IpAddr::V4(a) if a.is_broadcast());
        if addr.is_unspecified() || addr.is_multicast() || broadcast {
            let why = "must be the address of one host, not zero, multicast or broadcast:";
            return wrong("address", format!("{why} {addr}"));
        }
        if self.mac.is_multicast() || self.mac.0 == [0; 6] {
            let why = "must be a unicast address (first octet even) and not zero, not";
            return wrong("mac", format!("{why} {}", self.mac));
        }
        Ok(())
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![
        Multipath::class()?,
        DirectedBroadcast::class()?,
        StaticNeighbor::class()?,
    ])
}

/// Makes the FIB the owner of its classes.
pub fn own(owners: &mut Owners, fib: &Rc<RefCell<Fib>>) -> Result<(), DefinitionError> {
    let shared = fib.clone();
    owners.own(move |_, now: Option<Multipath>| {
        let now = now.unwrap_or_default();
        let buckets = now.resilient.then_some(now.buckets as usize);
        let changed = shared.borrow_mut().set_resilient(buckets);
        Ok(Applied::changed(changed.into()))
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<StaticNeighbor>| {
        let interface = key.owner().unwrap_or_default();
        let address = key.values().get(1).and_then(IpAddr::from_value);
        let Some(address) = address else {
            return Ok(Applied::nothing());
        };
        let mac = now.map(|it| it.mac);
        shared.borrow_mut().neighbor_of(interface, address, mac)
    })?;
    let shared = fib.clone();
    owners.own(move |key, now: Option<DirectedBroadcast>| {
        let on = now.is_some_and(|it| it.enabled);
        let interface = key.owner().unwrap_or_default();
        shared.borrow_mut().directed_broadcast_of(interface, on)
    })?;
    Ok(())
}
