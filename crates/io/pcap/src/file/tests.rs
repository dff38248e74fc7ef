use std::io::Cursor;

use proptest::prelude::*;

use super::*;

const FORMATS: [FileFormat; 3] = [FileFormat::PcapUs, FileFormat::PcapNs, FileFormat::PcapNg];
const TIME: u64 = 1_700_000_000_123_456_789;

fn written(format: FileFormat, packets: &[Packet]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "test", WriterOptions::new(format)).unwrap();
    packets
        .iter()
        .for_each(|p| writer.write(p.as_ref()).unwrap());
    assert_eq!(writer.packets_written(), packets.len() as u64);
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Packet>, PcapError> {
    Reader::new(Cursor::new(bytes.to_vec()), "test")?.collect()
}

fn error(bytes: &[u8]) -> String {
    read(bytes).expect_err("a fault").to_string()
}

fn sample() -> Vec<Packet> {
    let mut packets: Vec<Packet> = [60usize, 61, 0, 1514]
        .iter()
        .map(|&n| Packet::ethernet(TIME, (0..n).map(|i| i as u8).collect()))
        .collect();
    packets[1].orig_len = 9000;
    packets[3].comment = Some("dropped: ip4 ttl expired".into());
    packets
}

/// The parts of a packet that a format stores.
fn kept(format: FileFormat, packet: &Packet) -> Packet {
    let unit = if format == FileFormat::PcapUs {
        1000
    } else {
        1
    };
    let comment = packet
        .comment
        .clone()
        .filter(|_| format == FileFormat::PcapNg);
    Packet {
        timestamp_ns: packet.timestamp_ns / unit * unit,
        comment,
        ..packet.clone()
    }
}

#[test]
fn what_is_written_comes_back() {
    for format in FORMATS {
        let expected: Vec<_> = sample().iter().map(|p| kept(format, p)).collect();
        let bytes = written(format, &sample());
        assert_eq!(read(&bytes).unwrap(), expected, "{format:?}");
        let reader = Reader::new(Cursor::new(bytes), "test").unwrap();
        assert_eq!(reader.format(), format);
    }
}

/// A pcap file in the other byte order, made by reversing the bytes of every field.
fn big_endian(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let header = [0..4, 4..6, 6..8, 8..12, 12..16, 16..20, 20..24];
    header.into_iter().for_each(|field| out[field].reverse());
    let mut at = 24;
    while at < out.len() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        (0..4).for_each(|n| out[at + 4 * n..at + 4 * n + 4].reverse());
        at += 16 + len;
    }
    out
}

#[test]
fn both_byte_orders() {
    for format in [FileFormat::PcapUs, FileFormat::PcapNs] {
        let bytes = written(format, &sample());
        let turned = big_endian(&bytes);
        assert_ne!(turned[..4], bytes[..4]);
        assert_eq!(read(&turned).unwrap(), read(&bytes).unwrap());
    }
}

/// One block in big-endian order.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes(), &len, body, &len].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

fn section() -> Vec<u8> {
    block(
        0x0a0d_0d0a,
        &words(&[0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX]),
    )
}

/// Big-endian pcapng with rare blocks: resolution 2^-10 with an offset, simple and obsolete packets, a block to be skipped.
#[test]
fn pcapng_written_out_by_hand() {
    let mut interface = words(&[0x0001_0000, 0]);
    interface.extend([
        0, 9, 0, 1, 0x8a, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 100,
    ]);
    let simple = [words(&[3]), vec![1, 2, 3, 0]].concat();
    let obsolete = [words(&[0, 0, 2048, 2, 4]), vec![8, 9, 0, 0]].concat();
    let enhanced = [words(&[1, 0, 1536, 5, 5]), vec![1, 2, 3, 4, 5, 0, 0, 0]].concat();
    let second = words(&[0x0065_0000, 0]);
    let bytes = [
        section(),
        block(1, &interface),
        block(0x0bad, &[0; 8]),
        block(3, &simple),
        block(2, &obsolete),
        block(1, &second),
        block(6, &enhanced),
    ]
    .concat();
    let packets = read(&bytes).unwrap();
    let found: Vec<_> = packets
        .iter()
        .map(|p| (p.timestamp_ns, p.orig_len, p.linktype.0, p.data.clone()))
        .collect();
    assert_eq!(found[0], (100_000_000_000, 3, 1, vec![1, 2, 3]));
    assert_eq!(found[1], (102_000_000_000, 4, 1, vec![8, 9]));
    assert_eq!(found[2], (1_536_000, 5, 101, vec![1, 2, 3, 4, 5]));
}

/// A new section removes the interfaces of the last one.
#[test]
fn sections_stand_alone() {
    let bytes = written(FileFormat::PcapNg, &sample());
    assert_eq!(read(&[&bytes[..], &bytes].concat()).unwrap().len(), 8);
    let packet = block(6, &words(&[0, 0, 0, 0, 0]));
    let bytes = [
        section(),
        block(1, &words(&[0x0001_0000, 0])),
        packet.clone(),
        section(),
        packet,
    ]
    .concat();
    assert_eq!(
        error(&bytes),
        "test: packet 2, byte 108: packet of interface 0, but the section has described 0 so far"
    );
}

#[test]
fn interfaces_and_long_comments() {
    let mut writer =
        Writer::new(Vec::new(), "test", WriterOptions::new(FileFormat::PcapNg)).unwrap();
    assert_eq!(writer.add_interface("pg0", LinkType::ETHERNET).unwrap(), 0);
    assert_eq!(writer.add_interface("tun0", LinkType::RAW).unwrap(), 1);
    let mut packet = Packet::ethernet(TIME, vec![7; 5]);
    (packet.interface, packet.comment) = (1, Some("x".repeat(70_000)));
    writer.write(packet.as_ref()).unwrap();
    let found = read(&writer.finish().unwrap()).unwrap();
    assert_eq!((found[0].interface, found[0].linktype), (1, LinkType::RAW));
    assert_eq!(found[0].comment.as_ref().unwrap().len(), 65_535);
}

#[test]
fn snaplen_cuts_and_keeps_the_length() {
    for format in FORMATS {
        let options = WriterOptions {
            snaplen: 64,
            ..WriterOptions::new(format)
        };
        let mut writer = Writer::new(Vec::new(), "test", options).unwrap();
        writer
            .write(Packet::ethernet(0, vec![1; 100]).as_ref())
            .unwrap();
        let found = read(&writer.finish().unwrap()).unwrap();
        assert_eq!((found[0].data.len(), found[0].orig_len), (64, 100));
    }
}

/// Bits above the link type state that each frame ends with 4 bytes of frame check sequence.
#[test]
fn frame_check_sequences_are_cut_off() {
    let mut packets = sample();
    packets.truncate(2);
    packets[0].orig_len = 60;
    let mut bytes = written(FileFormat::PcapUs, &packets);
    bytes[20..24].copy_from_slice(&0x2400_0001u32.to_le_bytes());
    let found = read(&bytes).unwrap();
    assert_eq!(
        (found[0].data.len(), found[0].orig_len, found[0].linktype),
        (56, 56, LinkType::ETHERNET)
    );
    assert_eq!((found[1].data.len(), found[1].orig_len), (61, 8996));
}

/// Every truncation results in the packets in front of it, then an error that names the position; at a boundary, in fewer
/// packets.
#[test]
fn every_truncation_point() {
    for format in FORMATS {
        let all: Vec<_> = sample().iter().map(|p| kept(format, p)).collect();
        let bytes = written(format, &sample());
        let mut boundaries = 0;
        for cut in 0..bytes.len() {
            let Ok(mut reader) = Reader::new(Cursor::new(bytes[..cut].to_vec()), "test") else {
                continue;
            };
            let mut before = Vec::new();
            let fault = loop {
                match reader.next_ref() {
                    Ok(Some(packet)) => before.push(packet.to_packet()),
                    Ok(None) => break None,
                    Err(e) => break Some(e),
                }
            };
            assert_eq!(before[..], all[..before.len()], "{format:?} cut at {cut}");
            assert!(reader.next().is_none(), "a reader stays at its end");
            boundaries += usize::from(fault.is_none());
            if let Some(e) = fault {
                let text = e.to_string();
                let place = format!("test: packet {}, byte ", before.len() + 1);
                assert!(
                    text.starts_with(&place) && text.contains("file ends inside"),
                    "{text}"
                );
            }
        }
        // after the header and each packet but the last; in pcapng also after the interface
        assert_eq!(
            boundaries,
            if format == FileFormat::PcapNg { 5 } else { 4 },
            "{format:?}"
        );
    }
}

#[test]
fn lying_lengths_are_told_not_believed() {
    let mut bytes = written(FileFormat::PcapUs, &sample()[..1]);
    bytes[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        error(&bytes),
        "test: packet 1, byte 24: captured length says 4294967295, the limit is 262144"
    );
    bytes[32..36].copy_from_slice(&1000u32.to_le_bytes());
    assert_eq!(
        error(&bytes),
        "test: packet 1, byte 24: file ends inside a packet: 76 of 1016 bytes are there"
    );

    let good = [
        section(),
        block(1, &words(&[0x0001_0000, 0])),
        block(6, &words(&[0, 0, 0, 0, 0])),
    ]
    .concat();
    assert_eq!(read(&good).unwrap().len(), 1);
    let with = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        error(&bytes)
    };
    assert_eq!(
        with(52, 0xffff_fffc),
        "test: packet 1, byte 48: block length says 4294967292, the limit is 16777216"
    );
    assert_eq!(
        with(52, 8),
        "test: packet 1, byte 48: block length 8 is not a multiple of 4 or less than 12"
    );
    assert_eq!(
        with(52, 33),
        "test: packet 1, byte 48: block length 33 is not a multiple of 4 or less than 12"
    );
    assert_eq!(
        with(76, 36),
        "test: packet 1, byte 48: block length is 32 at its start and 36 at its end"
    );
    assert_eq!(
        with(68, 4),
        "test: packet 1, byte 48: the fields of the enhanced packet block do not fit in its length"
    );
    assert_eq!(with(68, u32::MAX), with(68, 4));
    assert_eq!(
        with(56, 7),
        "test: packet 1, byte 48: packet of interface 7, but the section has described 1 so far"
    );
    assert_eq!(
        with(8, 1),
        "test: packet 1, byte 0: byte-order mark of the section is 0x01000000"
    );
    assert_eq!(
        with(12, 0x0002_0000),
        "test: packet 1, byte 0: pcapng file version 2.0 is not known"
    );
}

#[test]
fn what_is_no_capture_is_said_to_be_none() {
    assert_eq!(
        error(b"GIF89a"),
        "test: not a capture file: starts with 47494638 where pcap or pcapng has its magic number"
    );
    assert!(error(b"").contains("nothing (it is empty)"));
    assert!(error(&[0xd4, 0xc3]).contains("starts with d4c3"));
    let mut bytes = written(FileFormat::PcapUs, &[]);
    bytes[4] = 1;
    assert_eq!(
        error(&bytes),
        "test: packet 1, byte 0: pcap file version 1.4 is not known"
    );
    bytes[4] = 2;
    bytes[22] = 1;
    assert_eq!(
        error(&bytes),
        "test: packet 1, byte 0: link type 65537 is not known"
    );
}

#[test]
fn files_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = dir.path().join(format!("{format:?}.pcap"));
        let mut writer = Writer::create(&path, WriterOptions::new(format)).unwrap();
        sample()
            .iter()
            .for_each(|p| writer.write(p.as_ref()).unwrap());
        writer.finish().unwrap();
        let capture = read_packets(&path).unwrap();
        assert_eq!(
            (capture.format, capture.linktype),
            (format, LinkType::ETHERNET)
        );
        assert_eq!(capture.packets.len(), 4);
        let plain = std::fs::read(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &plain).unwrap();
        let packed = packed.finish().unwrap();
        let zipped = dir.path().join("packed");
        std::fs::write(&zipped, &packed).unwrap();
        assert_eq!(read_packets(&zipped).unwrap(), capture);
        std::fs::write(&zipped, &packed[..packed.len() - 1]).unwrap();
        let error = read_packets(&zipped).unwrap_err().to_string();
        assert!(error.contains("the gzip data is cut or damaged"), "{error}");
    }
    let error = read_packets(dir.path().join("none"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot open "), "{error}");
    let error = Writer::create(
        dir.path().join("no/dir"),
        WriterOptions::new(FileFormat::PcapUs),
    )
    .err()
    .unwrap();
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    let path = dir.path().join("PcapUs.pcap");
    let error = read_packets_limited(&path, 1000).unwrap_err().to_string();
    assert!(error.contains("more than 1000 bytes of packets"), "{error}");
    assert_eq!(
        FileFormat::for_path(Path::new("a/b.pcapng")),
        FileFormat::PcapNg
    );
    assert_eq!(
        FileFormat::for_path(Path::new("a/b.pcap")),
        FileFormat::PcapUs
    );
}

#[test]
fn a_fault_is_one_sentence() {
    for fault in [
        Fault::Version("pcap", 9, 9),
        Fault::LinkType(1),
        Fault::Block("packet"),
        Fault::Interface(1, 0),
    ] {
        assert!(!fault.to_string().contains('\n'));
    }
}

proptest! {
    #[test]
    fn any_packets_come_back(
        contents in proptest::collection::vec((any::<u32>(), any::<u32>(), proptest::collection::vec(0u8.., 0..200), any::<Option<String>>()), 0..20),
        which in 0usize..3,
    ) {
        let packets: Vec<_> = contents.into_iter().map(|(seconds, more, data, comment)| {
            let time = u64::from(seconds) * 1_000_000_000 + u64::from(more) % 1_000_000_000;
            let mut packet = Packet::ethernet(time, data);
            packet.orig_len += more % 1000;
            packet.comment = comment;
            packet
        }).collect();
        let expected: Vec<_> = packets.iter().map(|p| kept(FORMATS[which], p)).collect();
        prop_assert_eq!(read(&written(FORMATS[which], &packets)).unwrap(), expected);
    }

    #[test]
    fn damaged_files_never_panic(which in 0usize..3, edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        let mut bytes = written(FORMATS[which], &sample());
        for (at, value) in edits {
            let at = at % 200.min(bytes.len());
            bytes[at] = value;
        }
        let _ = read(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_magic(which in 0usize..3, tail: Vec<u8>) {
        let mut bytes = written(FORMATS[which], &[]);
        bytes.extend(tail);
        let _ = read(&bytes);
    }
}

/// A disk with limited space.
struct Disk {
    room: usize,
    bytes: Vec<u8>,
}

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let fits = bytes.len().min(self.room - self.bytes.len());
        if fits == 0 {
            // The error of Linux: ENOSPC.
            return Err(std::io::Error::from_raw_os_error(28));
        }
        self.bytes.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Output for Disk {
    fn cut(&mut self, len: u64) -> std::io::Result<()> {
        self.bytes.cut(len)
    }
}

#[test]
fn a_full_disk_leaves_whole_records_and_a_true_count() {
    for format in FORMATS {
        let all = written(format, &sample());
        let header = Writer::new(Vec::new(), "test", WriterOptions::new(format)).unwrap();
        let header = header.finish().unwrap().len();
        for room in header..all.len() {
            let bytes = Vec::new();
            let disk = Disk { room, bytes };
            let mut writer = Writer::new(disk, "test", WriterOptions::new(format)).unwrap();
            for packet in sample() {
                writer.write(packet.as_ref()).unwrap();
            }
            let error = writer.flush().unwrap_err().to_string();
            let why = "cannot write test: no space left on device (ENOSPC)";
            assert_eq!(error, why);
            let packet = Packet::ethernet(TIME, vec![1; 20]);
            assert_eq!(writer.write(packet.as_ref()).unwrap_err().to_string(), why);
            let (packets, file) = (writer.packets_written(), writer.out.bytes.clone());
            let left = read(&file).unwrap();
            assert_eq!(left.len() as u64, packets, "{format:?} {room}");
            assert!(all.starts_with(&file) && packets < 4);
            // One record more does not fit.
            let next = written(format, &sample()[..packets as usize + 1]);
            assert!(next.len() > room, "{format:?} {room}: {packets}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_begun_is_an_error_at_once() {
    let disk = Disk {
        room: 10,
        bytes: Vec::new(),
    };
    let error = Writer::new(disk, "test", WriterOptions::new(FileFormat::PcapUs)).err();
    assert!(error.unwrap().to_string().contains("ENOSPC"));
    let full = std::fs::File::create("/dev/full").unwrap();
    let options = WriterOptions::new(FileFormat::PcapNg);
    let error = Writer::new(full, "/dev/full", options).err();
    assert_eq!(
        error.unwrap().to_string(),
        "cannot write /dev/full: no space left on device (ENOSPC)"
    );
    let error = Writer::create("/dev/full", options).err();
    assert_eq!(
        error.unwrap().to_string(),
        "cannot write /dev/full: is a device; give a regular file"
    );
}
