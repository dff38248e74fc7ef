//! Messages of DHCP clients and servers through the relay: its own parser accepts what it builds, with the circuit id in it,
//! and a reply contains the client's message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::net::Ipv4Addr;
use volley_dhcp_relay::Option82;
use volley_dhcp_relay::buffer::Buffer;
use volley_dhcp_relay::message4::{self, Circuit};
use volley_dhcp_relay::message6;

const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NAME: &[u8] = b"pg0";
const RELAY_REPLY: u8 = 13;

thread_local! {
    static BUFFERS: RefCell<[Buffer; 2]> = RefCell::default();
}

fuzz_target!(|bytes: &[u8]| {
    BUFFERS.with_borrow_mut(|[out, back]| {
        four(bytes, out, back);
        six(bytes, out);
    });
});

fn four(bytes: &[u8], out: &mut Buffer, back: &mut Buffer) {
    let Ok(message) = message4::parse(bytes) else {
        return;
    };
    for policy in [Option82::Drop, Option82::Keep, Option82::Replace] {
        let circuit = Circuit {
            name: NAME,
            remote: b"remote",
            link: Some(OURS),
        };
        let done = message.to_servers(OURS, |it| it == OURS, (policy, circuit), out);
        let Ok(left_out) = done else { continue };
        let made = message4::parse(out.bytes()).expect("what the relay sends is a message");
        let is_first = message.gateway().is_unspecified();
        if is_first {
            assert_eq!(made.gateway(), OURS);
        }
        if is_first && !left_out && policy == Option82::Replace {
            assert_eq!(made.circuit(), Some(NAME));
            if made.to_client(NAME, back).is_ok() {
                let client = message4::parse(back.bytes()).expect("a client gets a message");
                assert_eq!(client.circuit(), None, "the option is for servers");
            }
        }
    }
}

fn six(bytes: &[u8], out: &mut Buffer) {
    let _ = (
        message6::from_server(bytes),
        message6::is_from_server(bytes),
    );
    let peer = "fe80::1".parse().expect("an address");
    if message6::to_servers(bytes, peer, (None, NAME), out).is_ok() {
        // A server replies with the message and the interface id that it got.
        out.bytes_mut()[0] = RELAY_REPLY;
        let reply = message6::from_server(out.bytes()).expect("a reply to it");
        assert_eq!((reply.message, reply.name), (bytes, Some(NAME)));
        assert_eq!(reply.peer, peer);
    }
}
