use super::*;
use crate::autoconf::received;

const MAC: Mac = [2, 0, 0, 0, 0, 1];
const HOUR: u32 = 3600;

fn offer(prefix: &str, flags: &str, valid_s: u32, preferred_s: u32) -> PrefixOffer {
    let prefix: Prefix = prefix.parse().unwrap();
    let IpAddr::V6(address) = prefix.addr() else {
        panic!("{prefix}");
    };
    PrefixOffer {
        prefix: address.into(),
        len: prefix.len(),
        on_link: flags.contains('L'),
        autonomous: flags.contains('A'),
        valid_s,
        preferred_s,
    }
}

fn message(router: u16, lifetime_s: u16, offers: &[PrefixOffer]) -> ReceivedAdvert {
    let mut all = [PrefixOffer::default(); received::PREFIXES];
    all[..offers.len()].copy_from_slice(offers);
    ReceivedAdvert {
        router: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, router),
        mac: [2, 0, 0, 0, 0, 9],
        lifetime_s,
        preference: 1,
        managed: false,
        other: false,
        hop_limit: 0,
        reachable_ms: 0,
        retransmit_ms: 0,
        mtu: None,
        offers: all,
        count: offers.len() as u8,
        more: 0,
    }
}

fn s(seconds: u64) -> u64 {
    seconds * SECOND
}

fn made(state: &State) -> Vec<String> {
    state
        .addresses
        .iter()
        .map(|it| it.address.to_string())
        .collect()
}

#[test]
fn three_solicitations_go_out_until_a_router_answers() {
    let mut state = State::new(MAC, 0, 7 * SECOND / 10);
    let times: Vec<u64> = (0..30_000)
        .filter(|ms| state.asks(ms * (SECOND / 1000)))
        .collect();
    assert_eq!(times, [700, 4700, 8700]);
    assert!(!state.is_asking() && state.solicitations == 3);
    let mut state = State::new(MAC, 0, 0);
    assert!(state.asks(0));
    state.hear(&message(9, 0, &[]), s(1));
    assert!(state.asks(s(4)), "that is no default router");
    state.hear(&message(9, 30, &[]), s(5));
    assert!(!state.asks(s(100)));
}

#[test]
fn addresses_are_made_of_what_may_be_one_prefix_of_many_hosts() {
    let mut state = State::new(MAC, 0, 0);
    let offers = [
        offer("2001:db8:1::/64", "LA", 200, 100),
        offer("2001:db8:2::/64", "A", 200, 200),
        offer("2001:db8:3::/64", "L", 200, 100),
        // All of these are refused for address formation.
        offer("2001:db8:4::/56", "A", 200, 100),
        offer("2001:db8:5::/64", "A", 100, 101),
        offer("fe80::/64", "LA", 200, 100),
        offer("ff02::/64", "LA", 200, 100),
        // A prefix with lifetime 0 has no effect.
        offer("2001:db8:6::/64", "LA", 0, 0),
        // These are refused as on-link prefixes.
        offer("::/0", "L", 200, 100),
        offer("2000::/3", "L", 200, 100),
    ];
    state.hear(&message(9, 30, &offers), 0);
    assert_eq!(
        made(&state),
        ["2001:db8:1::ff:fe00:1/64", "2001:db8:2::ff:fe00:1/64"]
    );
    let networks: Vec<String> = state
        .networks
        .iter()
        .map(|n| n.prefix.to_string())
        .collect();
    assert_eq!(networks, ["2001:db8:1::/64", "2001:db8:3::/64"]);
    assert_eq!(state.refused, 6);
    let wanted: Vec<String> = state.wanted().iter().map(ToString::to_string).collect();
    assert_eq!(wanted[0], "fe80::ff:fe00:1/64");
}

#[test]
fn what_is_over_goes_and_what_is_not_preferred_is_deprecated() {
    let mut state = State::new(MAC, 0, 0);
    let offers = [
        offer("2001:db8:1::/64", "LA", 200, 100),
        offer("2001:db8:2::/64", "LA", u32::MAX, u32::MAX),
    ];
    state.hear(&message(9, 30, &offers), 0);
    assert!(!state.expire(s(29)));
    assert!(state.expire(s(30)) && state.routers.is_empty());
    assert!(!state.expire(s(99)) && state.deprecated().next().is_none());
    assert!(state.expire(s(100)) && !state.expire(s(101)));
    let old: Vec<String> = state.deprecated().map(|a| a.to_string()).collect();
    assert_eq!(old, ["2001:db8:1::ff:fe00:1/64"]);
    // An advertisement makes the address preferred again.
    state.hear(&message(9, 30, &offers), s(110));
    assert!(state.deprecated().next().is_none());
    assert!(state.expire(s(310)));
    assert_eq!(made(&state), ["2001:db8:2::ff:fe00:1/64"]);
    assert_eq!(state.networks.len(), 1);
    assert!(!state.expire(u64::MAX));
}

#[test]
fn nobody_shortens_a_life_to_less_than_two_hours() {
    let near = s(7200);
    for (old, new, want) in [
        (Some(s(100)), Some(s(200)), Some(s(200))),
        (Some(s(100)), Some(s(50)), Some(s(100))),
        (Some(s(7200)), Some(s(50)), Some(s(7200))),
        (Some(s(9000)), Some(s(50)), Some(near)),
        (Some(s(9000)), Some(s(8000)), Some(s(8000))),
        (None, Some(s(50)), Some(near)),
        (None, Some(s(9000)), Some(s(9000))),
        (Some(s(100)), None, None),
    ] {
        assert_eq!(renewed(old, new, 0), want, "{old:?} {new:?}");
    }
    let mut state = State::new(MAC, 0, 0);
    state.hear(
        &message(
            9,
            30,
            &[offer("2001:db8:1::/64", "LA", 10 * HOUR, 9 * HOUR)],
        ),
        0,
    );
    state.hear(
        &message(8, 30, &[offer("2001:db8:1::/64", "LA", 0, 0)]),
        s(10),
    );
    let it = state.addresses[0];
    assert_eq!((it.valid, it.is_preferred), (Some(s(7210)), false));
    assert!(state.networks.is_empty(), "the network goes at once");
}

#[test]
fn a_router_with_lifetime_0_goes_at_once_and_no_more_than_so_many_are_kept() {
    let mut state = State::new(MAC, 0, 0);
    for n in 0..20 {
        state.hear(&message(n, 30, &[]), 0);
    }
    assert_eq!((state.routers.len(), state.refused), (ROUTERS, 12));
    state.hear(&message(3, 0, &[]), s(1));
    assert_eq!(state.routers.len(), ROUTERS - 1);
    state.hear(&message(19, 30, &[]), s(1));
    assert_eq!(state.routers.len(), ROUTERS);
    for n in 0..20 {
        let prefix = format!("2001:db8:{n:x}::/64");
        state.hear(&message(1, 30, &[offer(&prefix, "LA", 200, 100)]), s(2));
    }
    assert_eq!((state.addresses.len(), state.networks.len()), (16, 16));
    assert_eq!(state.refused, 20);
}

#[test]
fn where_another_station_has_the_link_local_address_nothing_is_taken() {
    let mut state = State::new(MAC, 0, 0);
    let offers = [offer("2001:db8:1::/64", "LA", 200, 100)];
    state.hear(&message(9, 30, &offers), 0);
    state.disable();
    state.hear(&message(9, 30, &offers), 0);
    assert!(state.addresses.is_empty() && state.routers.is_empty());
    assert!(!state.asks(s(100)) && state.heard == 1);
}
