use super::*;
use proptest::prelude::*;

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn forward(message: &[u8], peer: &str) -> Result<Vec<u8>, Count> {
    let mut out = Buffer::default();
    let circuit = (Some(ip("2001:db8::1")), &b"lan0"[..]);
    to_servers(message, ip(peer), circuit, &mut out)?;
    Ok(out.bytes().to_vec())
}

/// A message between relay agents and servers.
fn relayed(kind: u8, hops: u8, link: &str, peer: &str, options: &[u8]) -> Vec<u8> {
    let (link, peer) = (ip(link).octets(), ip(peer).octets());
    [&[kind, hops][..], &link, &peer, options].concat()
}

const SOLICIT: [u8; 6] = [1, 0xab, 0xcd, 0xef, 9, 9];
const NAME: [u8; 8] = [0, 18, 0, 4, b'l', b'a', b'n', b'0'];

#[test]
fn a_clients_message_is_put_into_a_relay_forward_message() {
    let options = [&NAME[..], &[0, 9, 0, 6], &SOLICIT].concat();
    let want = relayed(12, 0, "2001:db8::1", "fe80::9", &options);
    assert_eq!(forward(&SOLICIT, "fe80::9"), Ok(want));
    let mut out = Buffer::default();
    to_servers(&SOLICIT, ip("fe80::9"), (None, b"lan0"), &mut out).unwrap();
    let want = relayed(12, 0, "::", "fe80::9", &options);
    assert_eq!(out.bytes(), want, "an interface without a global address");
}

#[test]
fn agents_nest_up_to_the_hop_limit() {
    let mut message = SOLICIT.to_vec();
    for hops in 0..=8 {
        message = forward(&message, "fe80::9").unwrap();
        assert_eq!(message[..2], [12, hops]);
    }
    assert_eq!(forward(&message, "fe80::9"), Err(Count::HopLimit));
    message[1] = 255;
    assert_eq!(forward(&message, "fe80::9"), Err(Count::HopLimit));
    let inner = relayed(12, 2, "::", "fe80::9", &[]);
    let outer = forward(&inner, "2001:db8:5::1").unwrap();
    let (head, _) = outer.split_at(34);
    let want = relayed(12, 3, "::", "2001:db8:5::1", &[]);
    assert_eq!(head, want, "RFC 8415, 19.1.2: no link address");
}

#[test]
fn bad_messages_are_refused_by_name() {
    for (message, why) in [
        (&[][..], Count::TooShort),
        (&[1, 2, 3], Count::TooShort),
        (&[12, 0, 0, 0], Count::TooShort),
        (&[2, 0, 0, 0], Count::UnexpectedType),
        (&[7, 0, 0, 0], Count::UnexpectedType),
        (&[10, 0, 0, 0], Count::UnexpectedType),
        (&[13, 0, 0, 0], Count::UnexpectedType),
        (&[1; 1980], Count::TooLong),
    ] {
        assert_eq!(forward(message, "fe80::9"), Err(why), "{message:02x?}");
    }
}

#[test]
fn a_relay_reply_message_is_taken_apart() {
    let inner = [7, 0xab, 0xcd, 0xef];
    let options = [&[0, 9, 0, 4][..], &inner, &NAME].concat();
    let bytes = relayed(13, 0, "2001:db8::1", "fe80::9", &options);
    let reply = from_server(&bytes).unwrap();
    assert_eq!((reply.link, reply.peer), (ip("2001:db8::1"), ip("fe80::9")));
    assert_eq!(
        (reply.name, reply.message),
        (Some(&b"lan0"[..]), &inner[..])
    );
    assert!(!reply.is_for_agent());
    let nested = [&[0, 9, 0, bytes.len() as u8][..], &bytes].concat();
    let nested = relayed(13, 1, "::", "fe80::8", &nested);
    let nested = from_server(&nested).unwrap();
    assert!(nested.is_for_agent() && nested.name.is_none());
    assert_eq!(nested.message, bytes);
}

#[test]
fn bad_replies_are_refused_by_name() {
    let with = |peer, options: &[u8]| relayed(13, 0, "::", peer, options);
    let good = [0, 9, 0, 4, 7, 0, 0, 0];
    for (bytes, why) in [
        (with("fe80::9", &good)[..33].to_vec(), Count::TooShort),
        (with("fe80::9", &[]), Count::NoMessage),
        (with("fe80::9", &NAME), Count::NoMessage),
        (with("fe80::9", &[0, 9, 0]), Count::BadOption),
        (with("fe80::9", &[0, 9, 0, 5, 7, 0, 0, 0]), Count::BadOption),
        (with("fe80::9", &[0, 9, 0, 3, 7, 0, 0]), Count::TooShort),
        (with("::", &good), Count::BadPeer),
        (with("::1", &good), Count::BadPeer),
        (with("ff02::1", &good), Count::BadPeer),
    ] {
        assert_eq!(from_server(&bytes), Err(why), "{bytes:02x?}");
    }
    assert!(from_server(&with("fe80::9", &good)).is_ok());
}

proptest! {
    #[test]
    fn hostile_bytes_end_in_a_message_or_a_reason(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..2200),
        kind in 0u8..16,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = from_server(&bytes);
        if let Ok(forward) = forward(&bytes, "fe80::9") {
            let mut back = forward;
            back[0] = RELAY_REPLY;
            let reply = from_server(&back).unwrap();
            prop_assert_eq!(reply.message, &bytes[..]);
            prop_assert_eq!(reply.name, Some(&b"lan0"[..]));
        }
    }
}
