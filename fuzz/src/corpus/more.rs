//! Seeds of the targets that read one type of message each.

/// Target, name of the file, content.
pub type Seed = (&'static str, &'static str, Vec<u8>);

/// All seeds; `packets` are frames with an Ethernet header.
pub fn seeds(packets: &[(&'static str, Vec<u8>)]) -> Vec<Seed> {
    let mut all = texts();
    all.extend(messages());
    all.extend(rings());
    all.extend(journals());
    all.extend(peers());
    for (name, frame) in packets {
        let packet = frame.get(14..).unwrap_or_default().to_vec();
        let filtered = [b"ip4.dst == 10.1.0.0/16 and not udp\n", &frame[..]].concat();
        all.push(("batcher_walk", name, [&[0xff, 0xff], &frame[..]].concat()));
        all.push(("capture_filter", name, filtered));
        match *name {
            "ns" | "ra" => {
                all.push(("nd_advert", name, packet.clone()));
                all.push(("nd_input", name, packet));
            }
            "udp6" | "fragment6" | "tunnel" => all.push(("ip_headers", name, packet)),
            "error4" => all.push(("ping_answer", name, packet)),
            _ => {}
        }
    }
    all
}

/// Scripts of memif peers: client or server, whether it shakes hands, and its answers; then actions.
fn peers() -> Vec<Seed> {
    let script = |first: &[u8], actions: &[&[u8]]| [first, &[0; 40], &actions.concat()].concat();
    // Each action of a client follows a byte that says that the script goes on, and is followed by one for a round of work.
    let client: &[&[u8]] = &[
        &[1, 8, 0, 2, 4],
        &[1, 9, 23, 0, 1, 0, 1, 2, 3, 4],
        &[1, 5, 5, 4],
        &[1, 6, 1, 4],
        &[1, 4, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 1, 6, 4],
    ];
    let server: &[&[u8]] = &[
        &[3, 0, 2, 4],
        &[4, 23, 0, 1, 0, 7, 11, 1, 2, 3, 4, 5, 6, 7, 8, 4],
        &[1, 5, 4],
        &[0, 7, 2, 3],
    ];
    vec![
        ("memif_peer", "client", script(&[0, 1], client)),
        ("memif_peer", "client-early", script(&[0, 8], client)),
        ("memif_peer", "server", script(&[1, 1], server)),
        ("memif_peer", "server-odd", script(&[1, 0], server)),
    ]
}

fn texts() -> Vec<Seed> {
    let text = |(target, name, text): &(&'static str, &'static str, &str)| {
        (*target, *name, text.as_bytes().to_vec())
    };
    TEXTS.iter().map(text).collect()
}

const TEXTS: [(&str, &str, &str); 40] = [
    (
        "click_lang",
        "chain",
        "InfiniteSource -> c :: Counter -> Discard;",
    ),
    (
        "click_lang",
        "queue",
        "s :: InfiniteSource(LIMIT 5); q :: Queue(10); u :: Unqueue\ns -> q -> u -> [0] t :: Tee [0] -> Discard; t [1] -> Discard",
    ),
    (
        "click_lang",
        "compound",
        "elementclass C { $a, KEY $b | input -> Counter($a) -> [1] output; input [1] -> Counter($b) -> output || ... }\ndefine($x 1)\nInfiniteSource -> c :: C($x, KEY \"y, $x\") -> Discard; InfiniteSource -> [1] c [1] -> Discard",
    ),
    (
        "click_lang",
        "inline",
        "a, b :: InfiniteSource; a, b => { -> Counter -> } -> Discard // end",
    ),
    ("batcher_text", "link", "0x894f ethernet inner"),
    ("batcher_text", "field", "color 8 8"),
    ("batcher_text", "match", "udp.dst=53"),
    ("batcher_text", "range", "ip4.dst=10.0.0.1-10.0.0.9"),
    ("batcher_text", "mask", "ip4@2.src=10.0.0.0&0xff000000"),
    // The mask has more bits than the field.
    (
        "batcher_text",
        "wide-mask",
        "ip4@2.src=10.0.0.0&0xf04f000000",
    ),
    ("batcher_text", "path", "path=ethernet/vlan/ip4/udp"),
    (
        "pg_template",
        "udp",
        "eth src 02:00:00:00:00:01 / ip4 dst 10.1.0.0 ttl 64 / udp sport 1 / payload 20",
    ),
    (
        "pg_template",
        "ip6",
        "eth / vlan vid 7 / ip6 dst 2001:db8::1 / tcp dport 80 / payload hex 0a0b",
    ),
    (
        "pg_template",
        "edit",
        "ip4.dst increment 10.0.0.0 10.0.0.255 step 2",
    ),
    ("pg_template", "bytes", "offset 30 size 4 random 1 7"),
    ("pg_template", "path", "ip4[1].dst"),
    ("pg_template", "sizes", "imix 64:7 570:4 1518:1"),
    (
        "capture_filter",
        "or",
        "ip6.src == 2001:db8::/32 || (tcp.dport >= 1024 && !arp)\n",
    ),
    ("capture_filter", "mac", "eth.src == 02:00:00:00:00:01\n"),
    (
        "route_file",
        "text",
        "# a table\n1.2.0.0/16 7\n\n  2001:db8::/32\t0 \r\n0.0.0.0/0 7",
    ),
    (
        "route_file",
        "hops",
        "1.0.0.0/8 9.9.9.9\n2.0.0.0/8 8.8.8.8\n3.0.0.0/8 9.9.9.9\n",
    ),
    ("http_path", "route", "route/10.0.0.0%2F8/0/static"),
    ("http_path", "interface", "memif/m0"),
    ("http_path", "mtu", "mtu/pg0"),
    (
        "http_tokens",
        "lines",
        "# tokens\nann read 0123456789abcdef\nbob configure fedcba9876543210\n",
    ),
    ("http_tokens", "one", "0123456789abcdef0123"),
    ("cli_complete", "set", "set interface "),
    ("cli_complete", "route", "ip route add 10.0.0.0/8 via "),
    ("cli_complete", "quote", "show interfaces \"a b"),
    ("cli_complete", "pipe", "show runtime | gr"),
    (
        "request_json",
        "create",
        r#"{"interface-create":{"name":"pg0","kind":"pg"}}"#,
    ),
    (
        "request_json",
        "set",
        r#"{"set":{"class":"mtu","interface":"pg0","mtu":1400}}"#,
    ),
    (
        "request_json",
        "unset",
        r#"{"unset":{"class":"mtu","interface":"pg0"}}"#,
    ),
    (
        "request_json",
        "table",
        r#"{"table-add":{"family":"ip6","table":7}}"#,
    ),
    (
        "request_json",
        "address",
        r#"{"address-add":{"interface":"pg0","address":"192.0.2.1/24"}}"#,
    ),
    (
        "request_json",
        "route",
        r#"{"route-add":{"prefix":"10.0.0.0/8","paths":[{"target":{"via":{"addr":"192.0.2.9","interface":"pg0"}}}]}}"#,
    ),
    (
        "request_json",
        "rename",
        r#"{"interface-rename":{"name":"pg0","new_name":"pg1"}}"#,
    ),
    (
        "core_state",
        "address",
        r#"[{"interface-create":{"name":"pg0","kind":"pg"}},{"address-add":{"interface":"pg0","address":"192.0.2.1/24"}},{"set":{"class":"mtu","interface":"pg0","mtu":1400}}]"#,
    ),
    (
        "core_state",
        "route",
        r#"[{"interface-create":{"name":"pg0","kind":"pg"}},{"table-add":{"family":"ip4","table":7}},{"route-add":{"prefix":"10.0.0.0/8","table":7,"count":9,"paths":[{"target":{"via":{"addr":"192.0.2.9","interface":"pg0"}}}]}}]"#,
    ),
    (
        "core_state",
        "delete",
        r#"[{"interface-create":{"name":"pg0","kind":"pg"}},{"interface-rename":{"name":"pg0","new_name":"pg1"}},{"interface-delete":{"name":"pg1"}}]"#,
    ),
];

fn messages() -> Vec<Seed> {
    let group6 = [&[0xff, 2][..], &[0; 12], &[0x12, 0x34]].concat();
    let query6 = [
        &[130, 0, 0, 0, 0x27, 0x10, 0, 0][..],
        &group6,
        &[0x0a, 125, 0, 0],
    ]
    .concat();
    let report6 = [&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0][..], &group6].concat();
    let long = [&[0, 0, 0, 0, 0, 0, 0, 0, 4, 0][..], &[7; 40]].concat();
    vec![
        ("dhcp_relay", "discover4", discover4()),
        (
            "dhcp_relay",
            "solicit6",
            [
                &[1, 1, 2, 3][..],
                &[0, 8, 0, 2, 0, 0, 0, 1, 0, 4, 0, 3, 0, 1],
            ]
            .concat(),
        ),
        (
            "dhcp_relay",
            "forward6",
            [&[12, 0][..], &[0; 32], &[0, 9, 0, 4, 1, 1, 2, 3]].concat(),
        ),
        (
            "dhcp_relay",
            "reply6",
            [
                &[13, 0][..],
                &[0; 16],
                &[0xfe, 0x80],
                &[1; 14],
                &[0, 9, 0, 4, 2, 1, 2, 3],
            ]
            .concat(),
        ),
        ("mld_listener", "query", query6.clone()),
        (
            "mld_listener",
            "report1",
            [&[131, 0, 0, 0, 0, 0, 0, 0][..], &group6].concat(),
        ),
        (
            "group_messages",
            "query4",
            ip4(
                &[0x11, 100, 0, 0, 224, 1, 2, 3, 10, 125, 0, 1, 10, 0, 0, 9],
                [224, 1, 2, 3],
            ),
        ),
        (
            "group_messages",
            "report4",
            ip4(
                &[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 224, 1, 2, 3],
                [224, 0, 0, 22],
            ),
        ),
        (
            "group_messages",
            "leave4",
            ip4(&[0x17, 0, 0, 0, 224, 1, 2, 3], [224, 0, 0, 2]),
        ),
        ("group_messages", "query6", ip6(&query6)),
        ("group_messages", "report6", ip6(&report6)),
        (
            "ping_answer",
            "reply4",
            [
                &[
                    0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
                ][..],
                &[0, 0, 0, 0, 1, 2, 3, 4],
            ]
            .concat(),
        ),
        (
            "ip_headers",
            "record",
            vec![7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        // A routing header is announced, and the packet ends.
        (
            "ip_headers",
            "cut",
            [
                &[0x60, 0, 0, 0, 0, 8, 60, 64][..],
                &[0; 32],
                &[43, 0, 1, 4, 0, 0, 0, 0],
            ]
            .concat(),
        ),
        // The pointer is between two addresses.
        (
            "ip_headers",
            "odd-pointer",
            vec![7, 11, 7, 11, 0x57, 0xc5, 0, 0, 0, 0, 0, 0],
        ),
        (
            "ip_headers",
            "stamp",
            vec![68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            "netlink_messages",
            "link",
            netlink(
                16,
                &[
                    &[0, 0, 1, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
                    &attribute(3, b"eth0\0"),
                ]
                .concat(),
            ),
        ),
        (
            "netlink_messages",
            "address",
            netlink(
                20,
                &[
                    &[2, 24, 0, 0, 5, 0, 0, 0][..],
                    &attribute(1, &[192, 0, 2, 1]),
                    &attribute(2, &[192, 0, 2, 1]),
                ]
                .concat(),
            ),
        ),
        (
            "netlink_messages",
            "route",
            netlink(
                24,
                &[
                    &[2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0][..],
                    &attribute(1, &[10, 0, 0, 0]),
                    &attribute(4, &[5, 0, 0, 0]),
                ]
                .concat(),
            ),
        ),
        (
            "netlink_messages",
            "neighbour",
            netlink(
                28,
                &[
                    &[2, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0][..],
                    &attribute(1, &[10, 0, 0, 9]),
                    &attribute(2, &[2, 0, 0, 0, 0, 1]),
                ]
                .concat(),
            ),
        ),
        (
            "netlink_messages",
            "hop",
            netlink(
                104,
                &[
                    &[2, 0, 0, 0, 0, 0, 0, 0][..],
                    &attribute(1, &[7, 0, 0, 0]),
                    &attribute(5, &[5, 0, 0, 0]),
                ]
                .concat(),
            ),
        ),
        // An error number that has no negative value.
        (
            "netlink_messages",
            "least-error",
            netlink(2, &[0, 0, 0, 0x80]),
        ),
        (
            "netlink_messages",
            "done",
            [netlink(2, &[0, 0, 0, 0]), netlink(3, &[0, 0, 0, 0])].concat(),
        ),
        (
            "vhost_messages",
            "features",
            [vhost(1, &[]), vhost(2, &[1, 2, 3, 4, 5, 6, 7, 8])].concat(),
        ),
        (
            "vhost_messages",
            "memory",
            vhost(5, &[&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1; 32]].concat()),
        ),
        (
            "vhost_messages",
            "ring",
            [vhost(9, &[3; 40]), vhost(12, &[0, 1, 0, 0, 0, 0, 0, 0])].concat(),
        ),
        (
            "vnet_header",
            "checksum",
            [&[1, 0, 0, 0, 0, 0, 34, 0, 16, 0][..], &[0x50; 60]].concat(),
        ),
        (
            "vnet_header",
            "tcp4",
            [&[1, 1, 54, 0, 0x78, 5, 34, 0, 16, 0][..], &[0x50; 60]].concat(),
        ),
        ("vnet_header", "none", long),
        ("route_file", "mrt", mrt()),
    ]
}

fn discover4() -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..4].copy_from_slice(&[1, 1, 6, 0]);
    message[28..34].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    message.extend([99, 130, 83, 99, 53, 1, 1, 55, 2, 1, 3, 255]);
    message
}

/// An IPv4 packet with a router alert; the target computes the checksums.
fn ip4(message: &[u8], to: [u8; 4]) -> Vec<u8> {
    let length = 24 + message.len() as u8;
    let header = [0x46, 0, 0, length, 0, 0, 0, 0, 1, 2, 0, 0, 192, 0, 2, 9];
    [&header[..], &to, &[148, 4, 0, 0], message].concat()
}

/// An IPv6 packet with a router alert, from a link-local address to all MLDv2 routers.
fn ip6(message: &[u8]) -> Vec<u8> {
    let header = [0x60, 0, 0, 0, 0, 8 + message.len() as u8, 0, 1];
    let from = [&[0xfe, 0x80][..], &[0; 13], &[9]].concat();
    let to = [&[0xff, 2][..], &[0; 13], &[0x16]].concat();
    [&header[..], &from, &to, &[58, 0, 5, 2, 0, 0, 1, 0], message].concat()
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [4 + value.len() as u16, kind]
        .map(u16::to_ne_bytes)
        .concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn netlink(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
    bytes.extend([kind, 2].map(u16::to_ne_bytes).concat());
    bytes.extend([7u32, 0].map(u32::to_ne_bytes).concat());
    bytes.extend(body);
    bytes
}

fn vhost(code: u32, payload: &[u8]) -> Vec<u8> {
    let head = [code, 1, payload.len() as u32]
        .map(u32::to_le_bytes)
        .concat();
    [&head[..], payload].concat()
}

/// A dump in MRT with a table of peers and one route (RFC 6396).
fn mrt() -> Vec<u8> {
    let record = |kind: u8, body: &[u8]| {
        let length = (body.len() as u32).to_be_bytes();
        [&[0, 0, 0, 1, 0, 13, 0, kind][..], &length, body].concat()
    };
    let peers = [
        &[10, 0, 0, 1, 0, 0, 0, 1][..],
        &[0, 1, 1, 1, 1, 9, 9, 9, 9, 0x0d, 5],
    ]
    .concat();
    let hop = [0x40, 1, 1, 0, 0x40, 3, 4, 192, 0, 2, 1];
    let entry = [&[0, 0, 0, 0, 0, 9, 0, 11][..], &hop].concat();
    let rib = [&[0, 0, 0, 5, 24, 1, 2, 3, 0, 1][..], &entry].concat();
    [record(1, &peers), record(2, &rib)].concat()
}

/// Scripts of a guest: see `src/virtio.rs`.
fn rings() -> Vec<Seed> {
    let write = |at: u16, bytes: &[u8]| {
        let [low, high] = at.to_le_bytes();
        [&[0, low, high, bytes.len() as u8][..], bytes].concat()
    };
    let descriptor = |at: u64, len: u32, flags: u16, next: u16| {
        let numbers = [at.to_le_bytes().to_vec(), len.to_le_bytes().to_vec()].concat();
        [&numbers[..], &flags.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    let data = 0x10_4000;
    // Descriptor 0 is readable, 1 has two parts, 2 is writable; each is a head in the available ring.
    let table = [
        descriptor(data, 100, 0, 0),
        descriptor(data, 12, 1, 3),
        descriptor(data, 2000, 2, 0),
        descriptor(data + 64, 64, 0, 0),
    ];
    let table = write(0, &table.concat());
    let sent = write(0x1000, &[0, 0, 2, 0, 0, 0, 1, 0]);
    let free = write(0x1000, &[0, 0, 1, 0, 2, 0]);
    let packed = [
        descriptor(data, 100, 0, 0x0080),
        descriptor(data, 2000, 2, 0x0080),
    ];
    vec![
        (
            "virtio_split",
            "receive",
            [&[3, 0, 0, 0][..], &table, &sent, &[4, 32, 7]].concat(),
        ),
        (
            "virtio_split",
            "send",
            [&[3, 4, 0, 0][..], &table, &free, &[5, 9, 6, 7]].concat(),
        ),
        (
            "virtio_packed",
            "receive",
            [&[3, 0, 0, 0][..], &write(0, &packed[0]), &[4, 32, 7]].concat(),
        ),
        (
            "virtio_packed",
            "send",
            [&[3, 4, 0, 0][..], &write(0, &packed[1]), &[5, 9, 6, 7]].concat(),
        ),
    ]
}

fn journals() -> Vec<Seed> {
    let head = br#"{"sequence":4,"current":2,"confirm_by":99,"before":1,"lapsed":[{"number":3,"time_s":9}],"undone":[1]}"#;
    let plain = br#"{"sequence":4,"current":1,"confirm_by":null,"before":null}"#;
    let about =
        br#"{"number":1,"about":{"time_s":7,"comment":"x","user":null,"how":null,"engine":null}}"#;
    let request = br#"{"interface-create":{"name":"pg0","kind":"pg"}}"#;
    let commit = [&about[..], b"\n", request, b"\n"].concat();
    let file =
        |name: u8, seal: u8, bytes: &[u8]| [&[name, seal, bytes.len() as u8][..], bytes].concat();
    let folder = [
        file(0, 1, plain),
        file(1, 1, plain),
        file(3, 2, &commit),
        file(8, 2, &commit),
    ];
    vec![
        ("journal_record", "head", head.to_vec()),
        ("journal_record", "commit", commit.clone()),
        ("journal_folder", "whole", folder.concat()),
        ("journal_folder", "no-head", file(3, 2, &commit)),
    ]
}
