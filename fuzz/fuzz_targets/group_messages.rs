//! IGMP and MLD messages (RFC 3376, RFC 3810) of hosts and of other queriers: the parsed data is bounded, and a query that is
//! built from parsed data parses to the same.
#![no_main]

#[path = "../src/sums.rs"]
mod sums;

use libfuzzer_sys::fuzz_target;
use volley_fib::{V4, V6};
use volley_mcast::GroupQuerier;
use volley_mcast::members::packet::{
    MembershipMessage, MembershipProtocol, addresses, kind, records,
};
use volley_mcast::members::querier::OutgoingQuery;
use volley_model::Family;

const ETHERNET: usize = 14;
/// The most sources of a query that is sent.
const MOST: usize = 300;

fuzz_target!(|bytes: &[u8]| {
    let packet = sums::repaired(bytes);
    judge::<V4>(&packet, 0xc000_0201);
    judge::<V6>(&packet, 0xfe80 << 112 | 1);
});

fn judge<F: MembershipProtocol>(packet: &[u8], own: F::Addr)
where
    F::Addr: PartialEq + std::fmt::Debug,
{
    let Ok(opened) = F::open(packet) else { return };
    match F::parse_message(&opened) {
        Ok(MembershipMessage::Report(report)) => {
            for (code, group, sources) in records::<F>(report).map(|it| it.expect("whole")) {
                assert_eq!(group.len(), F::WIDTH);
                assert_eq!(addresses::<F>(sources).count() * F::WIDTH, sources.len());
                let _ = kind(code);
            }
        }
        Ok(MembershipMessage::Query(query, sources)) => {
            let ask = OutgoingQuery::<F::Addr> {
                group: query.group,
                sources: addresses::<F>(sources).take(MOST).collect(),
                suppress: query.suppress,
            };
            let frame = F::query(([2, 0, 0, 0, 0, 1], own), &settings(), &ask);
            let opened = F::open(&frame[ETHERNET..]).expect("a query that the router sends");
            let Ok(MembershipMessage::Query(same, list)) = F::parse_message(&opened) else {
                panic!("the router reads its own query");
            };
            assert_eq!((same.group, same.suppress), (ask.group, ask.suppress));
            assert!(addresses::<F>(list).eq(ask.sources.iter().copied()));
        }
        _ => {}
    }
}

fn settings() -> GroupQuerier {
    GroupQuerier {
        interface: "pg0".into(),
        family: Family::V4,
        query_interval: 125,
        robustness: 2,
        max_response: 10_000,
        last_member_interval: 1000,
        last_member_count: None,
    }
}
