//! Any bytes as a capture file: an error or packets, within bounds; packets can be written and read again.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use volley_pcap::file::{MAX_PACKET, WriterOptions};
use volley_pcap::{FileFormat, Packet, Reader, Writer};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(Cursor::new(bytes.to_vec()), "fuzz") else {
        return;
    };
    let mut packets = Vec::new();
    loop {
        match reader.next_ref() {
            Ok(Some(packet)) => {
                assert!(
                    packet.data.len() <= MAX_PACKET
                        && packet.orig_len as usize >= packet.data.len()
                );
                packets.push(packet.to_packet());
            }
            Ok(None) => break,
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz: packet "), "{error}");
                break;
            }
        }
    }
    assert!(matches!(reader.next_ref(), Ok(None)));
    let read: usize = packets.iter().map(|p| p.data.len()).sum();
    assert!(read <= bytes.len());
    again(&packets);
});

fn again(packets: &[Packet]) {
    let mut writer =
        Writer::new(Vec::new(), "again", WriterOptions::new(FileFormat::PcapNg)).unwrap();
    for packet in packets {
        writer.write(packet.as_ref()).unwrap();
    }
    let written = writer.finish().unwrap();
    let found: Vec<Packet> = Reader::new(Cursor::new(written), "again")
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(found.len(), packets.len());
    for (found, packet) in found.iter().zip(packets) {
        assert_eq!(
            (&found.data, found.timestamp_ns, found.orig_len),
            (&packet.data, packet.timestamp_ns, packet.orig_len)
        );
    }
}
