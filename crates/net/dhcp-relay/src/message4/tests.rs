use super::*;
use proptest::prelude::*;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CIRCUIT: Circuit<'_> = Circuit {
    name: b"lan0",
    remote: &[2, 0, 0, 0, 0, 1],
    link: None,
};

/// A message with these options.
pub(crate) fn message(op: u8, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![op, 1, 6, 0, 0x12, 0x34, 0x56, 0x78];
    bytes.resize(FIXED, 0);
    bytes[HARDWARE..HARDWARE + 6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[FIXED - 4..].copy_from_slice(&COOKIE);
    bytes.extend(options);
    bytes
}

fn to_servers(
    bytes: &[u8],
    policy: Option82,
    circuit: Circuit<'_>,
) -> Result<(Vec<u8>, bool), Count> {
    let mut out = Buffer::default();
    let is_own = |addr| addr == OURS;
    let left = parse(bytes)?.to_servers(OURS, is_own, (policy, circuit), &mut out)?;
    Ok((out.bytes().to_vec(), left))
}

fn refusal(bytes: &[u8]) -> Count {
    to_servers(bytes, Option82::Drop, CIRCUIT).unwrap_err()
}

fn to_client(bytes: &[u8]) -> (Vec<u8>, Client) {
    let mut out = Buffer::default();
    let client = parse(bytes).unwrap().to_client(b"lan0", &mut out).unwrap();
    (out.bytes().to_vec(), client)
}

/// Option 82 with the circuit of these tests.
const ADDED: [u8; 16] = [82, 14, 1, 4, b'l', b'a', b'n', b'0', 2, 6, 2, 0, 0, 0, 0, 1];

#[test]
fn a_request_gets_hops_gateway_and_option() {
    // Padding between options, no end option.
    let (got, left) = to_servers(&message(1, &[53, 1, 1, 0, 0]), Option82::Drop, CIRCUIT).unwrap();
    let mut want = message(1, &[53, 1, 1]);
    want[HOPS] = 1;
    want[GATEWAY..GATEWAY + 4].copy_from_slice(&[10, 0, 0, 1]);
    want.extend(ADDED);
    want.push(255);
    want.resize(300, 0);
    assert!(got == want && !left, "{got:02x?}");
}

#[test]
fn link_selection_names_the_clients_network() {
    let circuit = Circuit {
        link: Some(Ipv4Addr::new(10, 9, 0, 1)),
        ..CIRCUIT
    };
    let (got, _) = to_servers(&message(1, &[255]), Option82::Drop, circuit).unwrap();
    let option = [&[82, 20], &ADDED[2..], &[5, 4, 10, 9, 0, 1]].concat();
    assert_eq!(got[240..240 + 22], option);
    let parsed = parse(&got).unwrap();
    assert_eq!(parsed.circuit(), Some(&b"lan0"[..]));
}

#[test]
fn option_82_of_a_client_is_dropped_kept_or_replaced() {
    let theirs = [53, 1, 1, 82, 4, 1, 2, b'x', b'y', 12, 1, b'h', 255];
    let request = message(1, &theirs);
    assert_eq!(refusal(&request), Count::UntrustedOption);
    let (kept, _) = to_servers(&request, Option82::Keep, CIRCUIT).unwrap();
    assert_eq!(kept[240..240 + 13], theirs);
    let (replaced, _) = to_servers(&request, Option82::Replace, CIRCUIT).unwrap();
    let want = [&[53, 1, 1, 12, 1, b'h'][..], &ADDED, &[255]].concat();
    assert_eq!(replaced[240..240 + want.len()], want);
    for got in [kept, replaced] {
        assert_eq!(got[GATEWAY..GATEWAY + 4], [10, 0, 0, 1]);
    }
}

#[test]
fn what_another_agent_relayed_keeps_its_gateway_and_option() {
    let mut request = message(1, &[82, 4, 1, 2, b'x', b'y', 255]);
    request[GATEWAY..GATEWAY + 4].copy_from_slice(&[10, 5, 0, 1]);
    request[HOPS] = 3;
    let (got, _) = to_servers(&request, Option82::Drop, CIRCUIT).unwrap();
    request[HOPS] = 4;
    request.resize(300, 0);
    assert_eq!(got, request);
    request[GATEWAY..GATEWAY + 4].copy_from_slice(&[10, 0, 0, 1]);
    assert_eq!(refusal(&request), Count::OwnGateway);
}

#[test]
fn bad_requests_are_refused_by_name() {
    let good = message(1, &[53, 1, 1, 255]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, why) in [
        (good[..239].to_vec(), Count::TooShort),
        (Vec::new(), Count::TooShort),
        (with(0, 3), Count::Malformed),
        (with(2, 17), Count::Malformed),
        (with(236, 0), Count::Malformed),
        (with(HOPS, 16), Count::HopLimit),
        (with(HOPS, 255), Count::HopLimit),
        (message(1, &[53]), Count::BadOption),
        (message(1, &[53, 2, 1]), Count::BadOption),
        (message(1, &[82, 200, 1, 2]), Count::BadOption),
    ] {
        assert_eq!(refusal(&bytes), why, "{bytes:02x?}");
    }
    let padded = to_servers(&message(1, &[0; 2000]), Option82::Drop, CIRCUIT).unwrap();
    assert_eq!(padded.0.len(), 300, "padding is left out");
    assert!(to_servers(&with(HOPS, 15), Option82::Drop, CIRCUIT).is_ok());
    let long: Vec<u8> = std::iter::repeat_n([12, 98], 18).flatten().collect();
    assert_eq!(refusal(&message(1, &long)), Count::BadOption);
    let option: Vec<u8> = [&[12, 98][..], &[7; 98]].concat();
    assert_eq!(refusal(&message(1, &option.repeat(18))), Count::TooLong);
}

#[test]
fn an_option_that_does_not_fit_is_left_out() {
    let option: Vec<u8> = [&[12, 98][..], &[7; 98]].concat();
    let sent = |rest: u8| {
        // With 12 long options and one of `rest` bytes.
        let last = [&[13, rest - 2][..], &vec![7; usize::from(rest) - 2]].concat();
        let all = [option.repeat(12), last].concat();
        to_servers(&message(1, &all), Option82::Drop, CIRCUIT).unwrap()
    };
    let (got, left) = sent(15);
    assert!(!left && got.len() == 1472, "{}", got.len());
    assert!(parse(&got).unwrap().has_relay_agent());
    let (got, left) = sent(16);
    assert!(left && got.len() == 1457, "{}", got.len());
    assert!(!parse(&got).unwrap().has_relay_agent());
}

#[test]
fn a_reply_loses_our_option_and_goes_to_its_client() {
    let mut reply = message(
        2,
        &[&[53, 1, 2][..], &ADDED, &[54, 4, 192, 0, 2, 1, 255]].concat(),
    );
    reply[YOURS..YOURS + 4].copy_from_slice(&[10, 0, 0, 77]);
    let (got, client) = to_client(&reply);
    let mut want = message(2, &[53, 1, 2, 54, 4, 192, 0, 2, 1, 255]);
    want[YOURS..YOURS + 4].copy_from_slice(&[10, 0, 0, 77]);
    want.resize(300, 0);
    assert_eq!(got, want);
    let mac = [2, 0, 0, 0, 0, 9];
    let addr = Ipv4Addr::new(10, 0, 0, 77);
    assert_eq!(client, Client { mac, addr });
    let all = Client {
        mac: [0xff; 6],
        addr: Ipv4Addr::BROADCAST,
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = reply.clone();
        bytes[at] = byte;
        to_client(&bytes).1
    };
    assert_eq!(changed(FLAGS, 0x80), all, "the client wants a broadcast");
    assert_eq!(changed(1, 6), all, "no Ethernet");
    assert_eq!(changed(HARDWARE, 3), all, "a group's MAC address");
    assert_eq!(changed(YOURS, 224), all);
    let mut inform = reply.clone();
    inform[YOURS..YOURS + 4].fill(0);
    assert_eq!(to_client(&inform).1, all, "no address at all");
    inform[CLIENT..CLIENT + 4].copy_from_slice(&[10, 0, 0, 78]);
    assert_eq!(to_client(&inform).1.addr, Ipv4Addr::new(10, 0, 0, 78));
}

#[test]
fn a_reply_keeps_the_option_of_another_agent() {
    let reply = message(2, &[82, 4, 1, 2, b'x', b'y', 255]);
    let (got, _) = to_client(&reply);
    assert_eq!(got[240..247], [82, 4, 1, 2, b'x', b'y', 255]);
    for broken in [&[82, 2, 1, 9, 255][..], &[82, 1, 1, 255], &[82, 0, 255]] {
        assert_eq!(parse(&message(2, broken)).unwrap().circuit(), None);
    }
}

fn policies() -> impl Strategy<Value = Option82> {
    prop_oneof![
        Just(Option82::Drop),
        Just(Option82::Keep),
        Just(Option82::Replace)
    ]
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let one = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40));
    let one = one.prop_map(|(kind, value)| match kind {
        PAD | END => vec![kind],
        _ => [&[kind, value.len() as u8][..], &value].concat(),
    });
    proptest::collection::vec(one, 0..8).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn hostile_bytes_end_in_a_message_or_a_reason(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..2200),
        start in any::<bool>(), policy in policies(),
    ) {
        if start && bytes.len() >= FIXED {
            (bytes[0], bytes[2]) = (1 + bytes[0] % 2, 6);
            bytes[FIXED - 4..FIXED].copy_from_slice(&COOKIE);
        }
        let mut out = Buffer::default();
        if let Ok(message) = parse(&bytes) {
            let _ = message.circuit();
            let done = message.to_servers(OURS, |_| false, (policy, CIRCUIT), &mut out);
            if done.is_ok() {
                prop_assert!(parse(out.bytes()).is_ok());
                prop_assert_eq!(out.bytes()[HOPS], bytes[HOPS] + 1);
            }
            if message.to_client(b"lan0", &mut out).is_ok() {
                prop_assert!(parse(out.bytes()).is_ok() && out.bytes().len() >= SHORTEST);
            }
        }
    }

    #[test]
    fn what_a_server_echoes_comes_back_without_our_option(options in options()) {
        let request = message(1, &options);
        let Ok((mut sent, left)) = to_servers(&request, Option82::Replace, CIRCUIT) else {
            return Ok(());
        };
        prop_assert!(!left);
        prop_assert_eq!(parse(&sent).unwrap().circuit(), Some(&b"lan0"[..]));
        sent[0] = REPLY;
        let (back, _) = to_client(&sent);
        let of = |bytes: &[u8]| -> Vec<(u8, Vec<u8>)> {
            let all = parse(bytes).unwrap();
            let kept = all.options().filter(|it| it.kind != PAD && it.kind != RELAY_AGENT);
            kept.map(|it| (it.kind, it.value.to_vec())).collect()
        };
        prop_assert_eq!(of(&back), of(&request));
        prop_assert!(!parse(&back).unwrap().has_relay_agent());
    }
}
