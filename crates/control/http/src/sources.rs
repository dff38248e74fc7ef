//! Limits the connections of each source, so that one source cannot take all slots.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

type Counts = Rc<RefCell<HashMap<IpAddr, usize>>>;

/// Number of connections by source.
#[derive(Default)]
pub(crate) struct Sources(Counts);

/// The slot of a connection; dropping the value releases it.
pub(crate) struct SourcePlace(Counts, IpAddr);

/// The source of an address: an IPv6 host can use any address of a /64.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() & !0 << 64).into(),
        four => four,
    }
}

impl Sources {
    /// Takes one of `limit` slots of a source; `None` when all are taken.
    pub fn place(&self, address: IpAddr, limit: usize) -> Option<SourcePlace> {
        let source = source(address);
        let mut counts = self.0.borrow_mut();
        let taken = counts.entry(source).or_default();
        if *taken >= limit {
            return None;
        }
        *taken += 1;
        Some(SourcePlace(Rc::clone(&self.0), source))
    }
}

impl Drop for SourcePlace {
    fn drop(&mut self) {
        let mut counts = self.0.borrow_mut();
        if let Some(taken) = counts.get_mut(&self.1) {
            *taken -= 1;
            if *taken == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_its_places_and_takes_no_others() {
        let sources = Sources::default();
        let at = |text: &str| text.parse().unwrap();
        let first = sources.place(at("2001:db8::1"), 2).unwrap();
        let _second = sources.place(at("2001:db8::ffff:1"), 2).unwrap();
        assert!(sources.place(at("2001:db8::2"), 2).is_none(), "one /64");
        let _other = sources.place(at("2001:db8:0:1::2"), 2).unwrap();
        let _four = sources.place(at("192.0.2.1"), 1).unwrap();
        assert!(sources.place(at("::ffff:192.0.2.1"), 1).is_none());
        let _neighbour = sources.place(at("192.0.2.2"), 1).unwrap();
        drop(first);
        assert!(sources.place(at("2001:db8::3"), 2).is_some());
        assert_eq!(sources.0.borrow().len(), 4, "who has none is forgotten");
    }
}
