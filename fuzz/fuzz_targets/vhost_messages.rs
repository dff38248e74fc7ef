//! Messages of a vhost-user peer through a socket: each is read completely, a message that is encoded again has the same bytes,
//! and no payload is read beyond its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use volley_vhost::memory::MAX_REGIONS;
use volley_vhost::protocol::{Arrived, HEAD, Link, MAX_PAYLOAD, Message, encode};

/// Bytes that the buffers of a socket can always hold.
const MOST: usize = 16 << 10;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(MOST)];
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (ours, peer) = pair.expect("sockets");
    let sent = rustix::net::send(&peer, bytes, SendFlags::NOSIGNAL);
    assert!(bytes.is_empty() || sent == Ok(bytes.len()));
    drop(peer);
    let (mut link, mut at) = (Link::new(ours), 0);
    // The other end is closed, so this does not wait.
    while let Ok(Arrived::Message(message)) = link.receive() {
        assert!(message.payload.len() <= MAX_PAYLOAD);
        let len = HEAD + message.payload.len();
        // The lowest two bits of the flags are the version.
        let again = encode(message.code, message.flags & !3, &message.payload);
        assert_eq!(again, bytes[at..at + len]);
        at += len;
        read(message);
    }
});

fn read(mut message: Message) {
    let len = message.payload.len();
    assert_eq!(message.nothing().is_ok(), len == 0);
    assert_eq!(message.number().is_ok(), len == 8);
    assert_eq!(message.ring_state().is_ok(), len == 8);
    assert_eq!(message.ring_addr().is_ok(), len == 40);
    if let Ok(regions) = message.regions() {
        assert!(regions.len() <= MAX_REGIONS && 8 + 32 * regions.len() <= len);
    }
    let _ = (
        message.ring_file().is_ok(),
        message.is_reply(),
        message.needs_reply(),
    );
}
