//! Hashes of flows: Toeplitz with the default key of network cards, and CRC-32C.

use crate::flow::{Flow, MOST};
use crate::model::RssHash;
use std::sync::LazyLock;

/// Key of Microsoft's RSS verification suite, which most drivers use.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Contribution of each half byte of the input, by position and value.
type Halves = [[u32; 16]; 2 * MOST];

static TOEPLITZ: LazyLock<Box<Halves>> = LazyLock::new(|| {
    let mut halves = Box::new([[0; 16]; 2 * MOST]);
    for (place, values) in halves.iter_mut().enumerate() {
        for (value, word) in values.iter_mut().enumerate() {
            let set = (0..4).filter(|bit| value & (8 >> bit) != 0);
            *word = set.fold(0, |sum, bit| sum ^ window(4 * place + bit));
        }
    }
    halves
});

/// The 32 bits of the key that begin with bit `at`.
fn window(at: usize) -> u32 {
    let byte = |i: usize| u64::from(KEY.get(at / 8 + i).copied().unwrap_or(0));
    let bits = (0..5).fold(0, |bits, i| bits << 8 | byte(i));
    (bits >> (8 - at % 8)) as u32
}

/// The polynomial of CRC-32C, low bit first.
const CASTAGNOLI: u32 = 0x82f6_3b78;

static CRC: LazyLock<Box<[u32; 256]>> = LazyLock::new(|| {
    let step = |crc: u32| crc >> 1 ^ (CASTAGNOLI & (crc & 1).wrapping_neg());
    let word = |byte: usize| (0..8).fold(byte as u32, |crc, _| step(crc));
    Box::new(std::array::from_fn(word))
});

/// A hash with its tables.
#[derive(Clone, Copy)]
pub(crate) enum Hash {
    Toeplitz(&'static Halves),
    Crc32c(&'static [u32; 256]),
}

impl Hash {
    pub(crate) fn new(which: RssHash) -> Self {
        match which {
            RssHash::Toeplitz => Hash::Toeplitz(&TOEPLITZ),
            RssHash::Crc32c => Hash::Crc32c(&CRC),
        }
    }

    /// The hash of a flow.
    #[inline]
    pub(crate) fn of(self, flow: &Flow) -> u32 {
        match self {
            Hash::Toeplitz(halves) => toeplitz(halves, flow.bytes()),
            Hash::Crc32c(table) => crc32c(table, flow.bytes()),
        }
    }
}

#[inline]
fn toeplitz(halves: &Halves, bytes: &[u8]) -> u32 {
    let places = halves.as_chunks::<2>().0;
    let both = bytes.iter().zip(places);
    both.fold(0, |hash, (&byte, [high, low])| {
        hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 15)]
    })
}

#[inline]
fn crc32c(table: &[u32; 256], bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// Source, its port, destination, its port, hash of the addresses, hash with ports: Microsoft's "Verifying the RSS Hash
    /// Calculation".
    const SUITE: [(&str, u16, &str, u16, u32, u32); 8] = [
        (
            "66.9.149.187",
            2794,
            "161.142.100.80",
            1766,
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "199.92.111.2",
            14230,
            "65.69.140.83",
            4739,
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "24.19.198.95",
            12898,
            "12.22.207.184",
            38024,
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "38.27.205.30",
            48228,
            "209.142.163.6",
            2217,
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "153.39.163.191",
            44251,
            "202.188.127.2",
            1303,
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "3ffe:2501:200:1fff::7",
            2794,
            "3ffe:2501:200:3::1",
            1766,
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "3ffe:501:8::260:97ff:fe40:efab",
            14230,
            "ff02::1",
            4739,
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            "fe80::200:f8ff:fe21:67cf",
            38024,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    fn octets(text: &str) -> Vec<u8> {
        match text.parse().unwrap() {
            IpAddr::V4(a) => a.octets().to_vec(),
            IpAddr::V6(a) => a.octets().to_vec(),
        }
    }

    #[test]
    fn toeplitz_gives_the_published_values() {
        for (from, port, to, to_port, plain, with_ports) in SUITE {
            let mut input = [octets(from), octets(to)].concat();
            assert_eq!(toeplitz(&TOEPLITZ, &input), plain, "{from} {to}");
            input.extend(port.to_be_bytes());
            input.extend(to_port.to_be_bytes());
            assert_eq!(toeplitz(&TOEPLITZ, &input), with_ports, "{from} {to}");
        }
    }

    #[test]
    fn crc32c_gives_the_published_values() {
        // The check value of the catalogue, and RFC 3720 B.4.
        assert_eq!(crc32c(&CRC, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&CRC, &[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&CRC, &[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&CRC, &rising), 0x46dd_794e);
    }

    /// Flows with consecutive ports use all entries of a table about equally often.
    #[test]
    fn ports_in_a_row_spread_over_the_table() {
        for hash in [Hash::new(RssHash::Toeplitz), Hash::new(RssHash::Crc32c)] {
            let mut entries = [0u32; 128];
            for port in 0..12_800u16 {
                let flow = Flow::between(
                    &octets("192.0.2.1"),
                    &octets("198.51.100.7"),
                    Some((port, 443)),
                );
                entries[(hash.of(&flow) & 127) as usize] += 1;
            }
            assert!(entries.iter().all(|n| (50..200).contains(n)), "{entries:?}");
        }
    }
}
