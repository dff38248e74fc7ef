//! Comparison of another router's advertisements with this router's (RFC 4861, 6.2.7).

use crate::autoconf::received::ReceivedAdvert;
use crate::model::{AdvertisedPrefix, RouterAdvertisement};
use std::net::IpAddr;

/// Names of the values that differ. A value that one of the two leaves unspecified is no difference, nor is the router
/// lifetime.
pub fn differences(
    message: &ReceivedAdvert,
    (ours, mtu): (&RouterAdvertisement, u16),
    prefixes: &[AdvertisedPrefix],
) -> Vec<&'static str> {
    let differ = |a: u32, b: u32| a != 0 && b != 0 && a != b;
    let own_mtu = if ours.send_mtu { u32::from(mtu) } else { 0 };
    let lifetimes = message.offers().iter().any(|theirs| {
        let same = |it: &&AdvertisedPrefix| {
            let address = match it.prefix.addr() {
                IpAddr::V6(a) => u128::from(a),
                IpAddr::V4(_) => return false,
            };
            (address, it.prefix.len()) == (theirs.prefix, theirs.len)
        };
        let own = prefixes.iter().find(same);
        own.is_some_and(|own| {
            (own.valid, own.preferred_lifetime()) != (theirs.valid_s, theirs.preferred_s)
        })
    });
    let all = [
        (
            differ(message.hop_limit.into(), ours.hop_limit.into()),
            "hop limit",
        ),
        (message.managed != ours.managed, "managed flag"),
        (message.other != ours.other, "other flag"),
        (
            differ(message.reachable_ms, ours.reachable),
            "reachable time",
        ),
        (
            differ(message.retransmit_ms, ours.retransmit),
            "retransmission time",
        ),
        (differ(message.mtu.unwrap_or(0), own_mtu), "MTU"),
        (lifetimes, "lifetimes of a prefix"),
    ];
    let differ = all.into_iter().filter(|(differ, _)| *differ);
    differ.map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoconf::received::{PREFIXES, PrefixOffer};
    use volley_object::Object;

    #[test]
    fn what_both_say_is_compared() {
        let mut offers = [PrefixOffer::default(); PREFIXES];
        offers[0] = PrefixOffer {
            prefix: 0x2001_0db8_0001_0000 << 64,
            len: 64,
            on_link: true,
            autonomous: true,
            valid_s: 2_592_000,
            preferred_s: 604_800,
        };
        let mut message = ReceivedAdvert {
            router: "fe80::9".parse().unwrap(),
            mac: [0; 6],
            lifetime_s: 30,
            preference: 1,
            managed: false,
            other: false,
            hop_limit: 64,
            reachable_ms: 7,
            retransmit_ms: 0,
            mtu: None,
            offers,
            count: 1,
            more: 0,
        };
        let mut ours = RouterAdvertisement::defaults(["pg0".into()]).unwrap();
        ours.retransmit = 5;
        let usual = |p: &str| AdvertisedPrefix::network(p.parse().unwrap());
        let prefixes = [usual("2001:db8:1::/64"), usual("2001:db8:2::/64")];
        let differ = |message: &ReceivedAdvert| differences(message, (&ours, 1500), &prefixes);
        assert!(differ(&message).is_empty(), "{:?}", differ(&message));
        message.offers[0].valid_s -= 1;
        (message.hop_limit, message.retransmit_ms) = (63, 6);
        (message.managed, message.other, message.mtu) = (true, true, Some(1400));
        let want = [
            "hop limit",
            "managed flag",
            "other flag",
            "retransmission time",
            "MTU",
            "lifetimes of a prefix",
        ];
        assert_eq!(differ(&message), want);
    }
}
