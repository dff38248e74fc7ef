//! Messages of the control channel: 128 bytes each, little endian.
//!
//! True on exit: [`Message::decode`] accepts any bytes; it returns names cut at their first NUL. `session` decides
//! whether a message fits the state of the connection.

/// Size of every message.
pub const SIZE: usize = 128;
/// The only version of the protocol: 2.0.
pub const VERSION: u16 = 0x0200;
/// Longest secret, in bytes.
pub const SECRET: usize = 24;
const NAME: usize = 32;
const REASON: usize = 96;

/// HELLO: limits of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Name of the server.
    pub name: Text<NAME>,
    /// Oldest supported version.
    pub min_version: u16,
    /// Newest supported version.
    pub max_version: u16,
    /// Largest index of a region.
    pub max_region: u16,
    /// Largest index of a ring from server to client.
    pub max_m2s_ring: u16,
    /// Largest index of a ring from client to server.
    pub max_s2m_ring: u16,
    /// Binary logarithm of the largest ring.
    pub max_log2_ring_size: u8,
}

/// INIT: the interface that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Version of the protocol.
    pub version: u16,
    /// Number of the interface at the server.
    pub id: u32,
    /// 0 for Ethernet.
    pub mode: u8,
    /// The secret that the server requires, or zeros.
    pub secret: Text<SECRET>,
    /// The client's name.
    pub name: Text<NAME>,
}

/// ADD_RING: location of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    /// True for client to server, false for server to client.
    pub s2m: bool,
    /// Number of the ring in its direction.
    pub index: u16,
    /// Region of the ring.
    pub region: u16,
    /// Offset in the region.
    pub offset: u32,
    /// Binary logarithm of the number of descriptors.
    pub log2_ring_size: u8,
    /// Bytes before each packet; only 0 is supported.
    pub private_hdr_size: u16,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Acknowledgement of the last message.
    Ack,
    /// The server's first message.
    Hello(Hello),
    /// The client's first message.
    Init(Init),
    /// A region; the message has its file.
    AddRegion {
        /// Number of the region.
        index: u16,
        /// Size of the region in bytes.
        size: u64,
    },
    /// A ring; the message has its eventfd.
    AddRing(AddRing),
    /// The client has sent all parameters.
    Connect(Text<NAME>),
    /// The server has accepted them.
    Connected(Text<NAME>),
    /// The end of the connection.
    Disconnect {
        /// Code of the reason; 0 if the sender defines none.
        code: u32,
        /// Reason.
        reason: Text<REASON>,
    },
}

/// Text of up to `N` bytes, padded with NUL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>(pub [u8; N]);

impl<const N: usize> Text<N> {
    /// The part of `text` that fits, cut at a character.
    pub fn new(text: &str) -> Self {
        let mut end = text.len().min(N);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; N];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Text(bytes)
    }

    fn at(bytes: &[u8; SIZE], at: usize) -> Self {
        let mut text = [0; N];
        text.copy_from_slice(&bytes[at..at + N]);
        if let Some(end) = text.iter().position(|b| *b == 0) {
            text[end..].fill(0);
        }
        Text(text)
    }

    /// Printable form: all but plain ASCII becomes `?`, so a peer cannot write control sequences to an operator's
    /// terminal.
    pub fn shown(&self) -> String {
        let visible = self.0.iter().take_while(|b| **b != 0);
        let plain = |b: &u8| {
            if (b' '..=b'~').contains(b) {
                char::from(*b)
            } else {
                '?'
            }
        };
        visible.map(plain).collect()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

/// Reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length is wrong.
    #[error("a message of {0} bytes, not 128")]
    Length(usize),
    /// The type does not exist.
    #[error("a message of unknown type {0}")]
    Type(u16),
}

fn u16_at(bytes: &[u8; SIZE], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; SIZE], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

impl Message {
    /// Name of the message's type.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Ack => "ACK",
            Message::Hello(_) => "HELLO",
            Message::Init(_) => "INIT",
            Message::AddRegion { .. } => "ADD_REGION",
            Message::AddRing(_) => "ADD_RING",
            Message::Connect(_) => "CONNECT",
            Message::Connected(_) => "CONNECTED",
            Message::Disconnect { .. } => "DISCONNECT",
        }
    }

    /// Read a message.
    pub fn decode(bytes: &[u8]) -> Result<Message, WireError> {
        let bytes: &[u8; SIZE] = bytes
            .try_into()
            .map_err(|_| WireError::Length(bytes.len()))?;
        Ok(match u16_at(bytes, 0) {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: Text::at(bytes, 2),
                min_version: u16_at(bytes, 34),
                max_version: u16_at(bytes, 36),
                max_region: u16_at(bytes, 38),
                max_m2s_ring: u16_at(bytes, 40),
                max_s2m_ring: u16_at(bytes, 42),
                max_log2_ring_size: bytes[44],
            }),
            3 => Message::Init(Init {
                version: u16_at(bytes, 2),
                id: u32_at(bytes, 4),
                mode: bytes[8],
                secret: Text::at(bytes, 9),
                name: Text::at(bytes, 33),
            }),
            4 => Message::AddRegion {
                index: u16_at(bytes, 2),
                size: u64::from(u32_at(bytes, 4)) | u64::from(u32_at(bytes, 8)) << 32,
            },
            5 => Message::AddRing(AddRing {
                s2m: u16_at(bytes, 2) & 1 != 0,
                index: u16_at(bytes, 4),
                region: u16_at(bytes, 6),
                offset: u32_at(bytes, 8),
                log2_ring_size: bytes[12],
                private_hdr_size: u16_at(bytes, 13),
            }),
            6 => Message::Connect(Text::at(bytes, 2)),
            7 => Message::Connected(Text::at(bytes, 2)),
            8 => Message::Disconnect {
                code: u32_at(bytes, 2),
                reason: Text::at(bytes, 6),
            },
            other => return Err(WireError::Type(other)),
        })
    }

    /// Write a message.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let kind: u16 = match self {
            Message::Ack => 1,
            Message::Hello(hello) => {
                put(2, &hello.name.0);
                let words = [
                    hello.min_version,
                    hello.max_version,
                    hello.max_region,
                    hello.max_m2s_ring,
                    hello.max_s2m_ring,
                ];
                for (at, word) in words.iter().enumerate() {
                    put(34 + 2 * at, &word.to_le_bytes());
                }
                put(44, &[hello.max_log2_ring_size]);
                2
            }
            Message::Init(init) => {
                put(2, &init.version.to_le_bytes());
                put(4, &init.id.to_le_bytes());
                put(8, &[init.mode]);
                put(9, &init.secret.0);
                put(33, &init.name.0);
                3
            }
            Message::AddRegion { index, size } => {
                put(2, &index.to_le_bytes());
                put(4, &size.to_le_bytes());
                4
            }
            Message::AddRing(ring) => {
                put(2, &u16::from(ring.s2m).to_le_bytes());
                put(4, &ring.index.to_le_bytes());
                put(6, &ring.region.to_le_bytes());
                put(8, &ring.offset.to_le_bytes());
                put(12, &[ring.log2_ring_size]);
                put(13, &ring.private_hdr_size.to_le_bytes());
                5
            }
            Message::Connect(name) => {
                put(2, &name.0);
                6
            }
            Message::Connected(name) => {
                put(2, &name.0);
                7
            }
            Message::Disconnect { code, reason } => {
                put(2, &code.to_le_bytes());
                put(6, &reason.0);
                8
            }
        };
        put(0, &kind.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_where_others_look_for_them() {
        let init = Message::Init(Init {
            version: VERSION,
            id: 0x0403_0201,
            mode: 0,
            secret: Text::new("psst"),
            name: Text::new("volley"),
        });
        let bytes = init.encode();
        assert_eq!(bytes[..9], [3, 0, 0, 2, 1, 2, 3, 4, 0]);
        assert_eq!(&bytes[9..14], b"psst\0");
        assert_eq!(&bytes[33..40], b"volley\0");
        let ring = Message::AddRing(AddRing {
            s2m: true,
            index: 2,
            region: 1,
            offset: 0x1000,
            log2_ring_size: 10,
            private_hdr_size: 0,
        });
        assert_eq!(
            ring.encode()[..15],
            [5, 0, 1, 0, 2, 0, 1, 0, 0, 0x10, 0, 0, 10, 0, 0]
        );
        let region = Message::AddRegion {
            index: 1,
            size: 1 << 33,
        };
        assert_eq!(
            region.encode()[..13],
            [4, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]
        );
        let end = Message::Disconnect {
            code: 1,
            reason: Text::new("bye"),
        };
        assert_eq!(end.encode()[..10], [8, 0, 1, 0, 0, 0, b'b', b'y', b'e', 0]);
    }

    #[test]
    fn what_a_peer_calls_itself_cannot_harm_a_terminal() {
        let name = Text::<8>(*b"a\x1b[2Jb\xff\0");
        assert_eq!(name.shown(), "a?[2Jb?");
        assert_eq!(Text::<4>::new("äöü").shown(), "????");
        assert!(Text::<4>::new("").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            match Message::decode(&bytes) {
                Ok(message) => prop_assert_eq!(Message::decode(&message.encode()), Ok(message)),
                Err(WireError::Length(n)) => prop_assert!(n == bytes.len() && n != SIZE),
                Err(WireError::Type(t)) => prop_assert!(t == 0 || t > 8),
            }
        }

        #[test]
        fn any_128_bytes_of_a_known_type_read_and_write_the_same(mut bytes in proptest::collection::vec(any::<u8>(), SIZE), kind in 1u8..9) {
            (bytes[0], bytes[1]) = (kind, 0);
            let message = Message::decode(&bytes).unwrap();
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }
}
