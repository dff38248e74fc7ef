use std::io::{Cursor, Write};

use super::*;

fn gz(data: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(data).unwrap();
    e.finish().unwrap()
}

fn bz(data: &[u8]) -> Vec<u8> {
    let mut e = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    e.write_all(data).unwrap();
    e.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
    liblzma::encode_all(Cursor::new(data), 1).unwrap()
}

fn zst(data: &[u8]) -> Vec<u8> {
    zstd::encode_all(Cursor::new(data), 1).unwrap()
}

type Pack = fn(&[u8]) -> Vec<u8>;
const PACKS: [(Format, Pack); 4] = [
    (Format::Gzip, gz),
    (Format::Bzip2, bz),
    (Format::Xz, xz),
    (Format::Zstd, zst),
];

fn unpack(bytes: &[u8], limits: Limits) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    wrap(Cursor::new(bytes.to_vec()), "test", limits)?.read_to_end(&mut out)?;
    Ok(out)
}

fn sample(n: usize) -> Vec<u8> {
    (0..n as u32)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .take(n)
        .collect()
}

#[test]
fn every_format_comes_back() {
    for n in [0, 1, 1000, 300_000] {
        let data = sample(n);
        assert_eq!(unpack(&data, Limits::default()).unwrap(), data);
        for (format, pack) in PACKS {
            let packed = pack(&data);
            assert_eq!(Format::of(&packed), format, "{n} bytes");
            assert_eq!(
                unpack(&packed, Limits::default()).unwrap(),
                data,
                "{format:?} {n}"
            );
        }
    }
}

#[test]
fn members_are_joined() {
    for (format, pack) in PACKS {
        let joined = [pack(b"one "), pack(b"two")].concat();
        assert_eq!(
            unpack(&joined, Limits::default()).unwrap(),
            b"one two",
            "{format:?}"
        );
    }
}

/// A truncated file must never look like a complete one. Less than six bytes do not show a format and are read as plain.
#[test]
fn every_cut_is_an_error() {
    let data = sample(2000);
    for (format, pack) in PACKS {
        let packed = pack(&data);
        for cut in 6..packed.len() {
            let error = unpack(&packed[..cut], Limits::default());
            let error = error.expect_err(&format!("{format:?} cut at {cut} of {}", packed.len()));
            assert!(error.to_string().starts_with("test: the "), "{error}");
        }
    }
}

#[test]
fn damage_is_an_error_or_harmless_never_a_panic() {
    let data = sample(500);
    for (_, pack) in PACKS {
        let packed = pack(&data);
        for at in 0..packed.len() {
            let mut bad = packed.clone();
            bad[at] ^= 0x55;
            let _ = unpack(
                &bad,
                Limits {
                    output: 1 << 20,
                    memory: 64 << 20,
                },
            );
        }
    }
}

#[test]
fn the_limit_on_output_holds() {
    let zeros = vec![0u8; 4 << 20];
    let limits = Limits {
        output: 1 << 20,
        ..Limits::default()
    };
    for (format, pack) in PACKS {
        let error = unpack(&pack(&zeros), limits).expect_err("a bomb");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{format:?}");
        assert!(
            error.to_string().contains("more than 1048576 bytes"),
            "{error}"
        );
    }
    assert_eq!(
        unpack(&gz(&zeros[..1 << 20]), limits).unwrap().len(),
        1 << 20
    );
}

#[test]
fn the_limit_on_memory_holds() {
    let data = sample(4096);
    let options = liblzma::stream::LzmaOptions::new_preset(9).unwrap();
    let mut filters = liblzma::stream::Filters::new();
    filters.lzma2(&options);
    let stream =
        liblzma::stream::Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc32)
            .unwrap();
    let mut e = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    e.write_all(&data).unwrap();
    let packed = e.finish().unwrap();
    assert_eq!(unpack(&packed, Limits::default()).unwrap(), data);
    let error = unpack(
        &packed,
        Limits {
            memory: 8 << 20,
            ..Limits::default()
        },
    );
    assert!(error.is_err(), "a 64 MiB dictionary under an 8 MiB limit");
}

#[test]
fn opening_names_the_file() {
    let error = open("/nowhere/at/all").err().expect("no such file");
    assert!(
        error
            .to_string()
            .starts_with("cannot open /nowhere/at/all: "),
        "{error}"
    );
    let dir = tempfile::tempdir().unwrap();
    assert!(
        read_all(dir.path(), Limits::default()).is_err(),
        "a directory is no file"
    );
    let path = dir.path().join("a.txt"); // a wrong name: the file is gzip
    std::fs::write(&path, gz(b"10.0.0.0/8 1\n")).unwrap();
    let line = open(&path).unwrap().lines().next().unwrap().unwrap();
    assert_eq!(line, "10.0.0.0/8 1");
}

proptest::proptest! {
    #[test]
    fn any_bytes_after_a_magic(which in 0usize..4, tail: Vec<u8>) {
        let mut bytes = PACKS[which].1(b"x")[..6].to_vec();
        bytes.extend(tail);
        let _ = unpack(&bytes, Limits { output: 1 << 20, memory: 16 << 20 });
    }
}
