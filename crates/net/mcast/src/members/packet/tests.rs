use super::*;

/// A report from 10.0.0.9 to 224.0.0.22 with a router alert and two records (sources 10.1.1.1 and 10.1.1.2 of 239.1.1.1;
/// CHANGE_TO_EXCLUDE without sources of 239.1.1.2). The tests fill in its checksums.
const REPORT4: &str = "46c0003800010000010243050a000009e0000016940400002200cbc700000002\
    01000002ef0101010a0101010a01010204000000ef010102";

fn bytes(hex: &str) -> Vec<u8> {
    let at = (0..hex.len()).step_by(2);
    at.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Recomputes the checksums.
fn sum4(packet: &mut [u8]) {
    let at = usize::from(packet[0] & 15) * 4;
    for (from, to, place) in [(0, at, 10), (at, packet.len(), at + 2)] {
        packet[place..place + 2].fill(0);
        let sum = Sum::new().bytes(&packet[from..to]).checksum();
        packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

fn outcome(packet: &[u8]) -> Result<String, Fault> {
    let opened = V4::open(packet)?;
    V4::parse_message(&opened).map(|message| format!("{message:?}"))
}

#[test]
fn a_report_is_read_whole_or_not_at_all() {
    let mut packet = bytes(REPORT4);
    sum4(&mut packet);
    let opened = V4::open(&packet).unwrap();
    let Ok(MembershipMessage::Report(report)) = V4::parse_message(&opened) else {
        panic!("no report");
    };
    let all: Vec<_> = records::<V4>(report).flatten().collect();
    let sources: Vec<u32> = addresses::<V4>(all[0].2).collect();
    assert_eq!((all.len(), all[0].0, all[1].0), (2, 1, 4));
    assert_eq!(sources, [0x0a010101, 0x0a010102]);
    for end in 24..packet.len() {
        let mut cut = packet[..end].to_vec();
        cut[2..4].copy_from_slice(&(end as u16).to_be_bytes());
        if end >= 28 {
            sum4(&mut cut);
            assert!(outcome(&cut).is_err(), "{end}");
        }
        assert_eq!(outcome(&packet[..end]), Err(Fault::Malformed));
    }
}

#[test]
fn messages_are_judged() {
    for (at, byte, fault) in [
        (0, 0x56, Fault::Malformed),
        (6, 0x20, Fault::Malformed),
        (8, 2, Fault::Hops),
        (12, 0xe0, Fault::Sender),
        (20, 7, Fault::Alert),
        (24, 0x55, Fault::Unknown),
        (31, 3, Fault::Message),
        (36, 10, Fault::Message),
        (35, 9, Fault::Message),
    ] {
        let mut packet = bytes(REPORT4);
        packet[at] = byte;
        sum4(&mut packet);
        assert_eq!(outcome(&packet), Err(fault), "{at}");
    }
    let mut packet = bytes(REPORT4);
    sum4(&mut packet);
    packet[40] ^= 1;
    assert_eq!(outcome(&packet), Err(Fault::Checksum));
}

#[test]
fn numbers_of_queries_are_written_as_they_are_read() {
    for bits in [7, 15] {
        for number in 0..1 << bits {
            assert_eq!(float(code(number, bits), bits), number);
        }
        let mut before = 0;
        for number in (1 << bits..40_000_000).step_by(997) {
            let read = float(code(number, bits), bits);
            assert!(read <= number && read >= before, "{number}");
            before = read;
        }
    }
    assert_eq!((float(0x80, 7), float(0xff, 7)), (128, 31_744));
    assert_eq!(float(0x9123, 15), 0x1123 << 4);
}

#[test]
fn own_queries_are_read() {
    let settings = crate::model::tests::querier();
    let ask = |group, sources: &[u128]| OutgoingQuery {
        group,
        sources: sources.to_vec(),
        suppress: true,
    };
    let group: u128 = 0xff05 << 112 | 9;
    let frame = V6::query(
        ([2; 6], 0xfe80 << 112 | 1),
        &settings,
        &ask(Some(group), &[5, 6]),
    );
    let opened = V6::open(&frame[14..]).unwrap();
    let Ok(MembershipMessage::Query(query, sources)) = V6::parse_message(&opened) else {
        panic!("no query");
    };
    let want = (Some(group), 1000, true, 2, 125);
    let got = (
        query.group,
        query.within_ms,
        query.suppress,
        query.robustness,
        query.interval_s,
    );
    assert_eq!(got, want);
    assert_eq!(addresses::<V6>(sources).collect::<Vec<_>>(), [5, 6]);
}
