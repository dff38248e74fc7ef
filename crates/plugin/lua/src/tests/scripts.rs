//! What scripts can do with vectors.

use super::*;

#[test]
fn a_script_sees_whole_vectors_and_sends_them() {
    let bench = Bench::new(
        "local most = 0
         function vector(v)
           if v:len() > most then most = v:len(); volley.log('most ' .. most) end
           v:send('pg1')
         end",
    );
    let packets = [frame(1, [10, 0, 1, 2], 64), frame(2, [10, 0, 1, 3], 64)];
    let out = bench.run(&packets);
    assert_eq!(out.len(), 2);
    for (out, packet) in out.iter().zip(&packets) {
        assert_eq!(
            (out.to.as_str(), out.columns[&Col::TX]),
            ("interface-output", 2)
        );
        assert_eq!(out.bytes, packet.bytes);
    }
    let mut seen = Vec::new();
    while let Some(text) = bench.log.pop() {
        seen.push(text);
    }
    assert!(
        seen.contains(&"lua-script test: most 1".to_owned()),
        "{seen:?}"
    );
    assert_eq!(bench.errors(), Vec::<String>::new());
}

#[test]
fn masks_split_a_vector_and_drops_have_reasons() {
    let bench = Bench::new(
        "function vector(v)
           local low = v:match('ip4.ttl', 1)
           local web = v:match('udp.dport', 80, v:minus(v:all(), low))
           v:drop(low, 'ttl-expired')
           v:send(v:both(web, v:match('ip4.dst', '10.0.1.2')), 'pg1')
           v:drop(v:match('ip4.dst', '10.0.1.3', web), 'filtered')
         end",
    );
    let out = bench.run(&[
        frame(1, [10, 0, 1, 2], 64),
        frame(1, [10, 0, 1, 2], 1),
        frame(1, [10, 0, 1, 3], 64),
        frame(1, [10, 0, 1, 4], 64),
    ]);
    assert_eq!(bench.errors(), Vec::<String>::new());
    let reasons: Vec<_> = out.iter().map(|it| it.reason.as_deref()).collect();
    assert_eq!(
        reasons
            .iter()
            .filter(|it| **it == Some("ttl-expired"))
            .count(),
        1
    );
    assert_eq!(
        reasons.iter().filter(|it| **it == Some("filtered")).count(),
        1
    );
    let sent = out.iter().filter(|it| it.to == "interface-output");
    assert_eq!(sent.count(), 1);
}

#[test]
fn bytes_and_fields_are_read_and_written() {
    let bench = Bench::new(
        "function vector(v)
           local row = v:next_row(v:all())
           while row do
             assert(v:get(row, 'ip4.src') == '10.0.0.9' and v:byte(12, row) == 8)
             assert(v:get(row, 'tcp.sport') == nil and v:length(row) == 60)
             v:set(row, 'ip4.dscp', 46)
             v:set(row, 'eth.dst', '02:00:00:00:00:77')
             v:set_byte(59, 1, row)
             row = v:next_row(v:all(), row)
           end
           v:send('pg1')
         end",
    );
    let out = bench.run(&[frame(1, [10, 0, 1, 2], 64)]);
    assert_eq!(bench.errors(), Vec::<String>::new());
    let bytes = &out[0].bytes;
    assert_eq!((bytes[5], bytes[15], bytes[59]), (0x77, 46 << 2, 1));
    assert!(volley_sdk::wire::checksum::is_valid(&bytes[14..34]));
}

#[test]
fn the_arc_of_ip4_packets_gets_routed_packets() {
    let mut bench = Bench::new(
        "local routes = volley.lpm('routes')
         routes:add('10.0.1.0/24', { interface = 'pg1', mac = '02:00:00:00:00:aa' })
         function vector(v)
           local hit = v:lookup(routes, (v:check_ip4()))
           v:apply(hit)
           v:send(hit)
           v:drop(v:minus(v:all(), hit), 'no-route')
         end",
    );
    Arc::make_mut(&mut bench.source).is_layer3 = true;
    let out = bench.run(&[
        frame(1, [10, 0, 1, 2], 64).advance(14),
        frame(1, [10, 0, 2, 2], 64).advance(14),
    ]);
    assert_eq!(bench.errors(), Vec::<String>::new());
    let sent = out.iter().find(|it| it.to == "interface-output").unwrap();
    assert_eq!(sent.bytes[..6], [2, 0, 0, 0, 0, 0xaa]);
    assert_eq!(sent.bytes[6..12], [2, 0, 0, 0, 0, 2]);
    assert_eq!((sent.bytes.len(), sent.bytes[22]), (54, 63));
    assert!(volley_sdk::wire::checksum::is_valid(&sent.bytes[14..34]));
    let dropped = out.iter().find(|it| it.to == "error-drop").unwrap();
    assert_eq!(dropped.reason.as_deref(), Some("no-route"));
}

#[test]
fn a_route_that_is_applied_and_not_used_leaves_the_packet_as_it_was() {
    let mut bench = Bench::new(
        "local routes = volley.lpm('routes')
         routes:add('10.0.0.0/16', { interface = 'pg1', mac = '02:00:00:00:00:aa' })
         function vector(v)
           local hit = v:lookup(routes)
           v:apply(hit)
           v:put('ip4.dscp', 10, hit)
           v:send(v:match('ip4.dst', '10.0.1.2', hit))
           v:drop(v:match('ip4.dst', '10.0.1.3', hit), 'filtered')
           v:slow(v:match('ip4.dst', '10.0.1.4', hit))
         end
         function packet(p)
           p:lookup(routes)
           p:apply()
           p:set('ip4.dscp', 11)
         end",
    );
    Arc::make_mut(&mut bench.source).is_layer3 = true;
    let packets: Vec<In> = (2..=5)
        .flat_map(|last| [2, 64, 255].map(|ttl| frame(1, [10, 0, 1, last], ttl).advance(14)))
        .collect();
    let out = bench.run(&packets);
    assert_eq!(bench.errors(), Vec::<String>::new());
    for packet in &packets {
        let (last, ttl) = (packet.bytes[33], packet.bytes[22]);
        let mut ip = packet.bytes[14..].to_vec();
        ip[1] = if last == 4 { 11 << 2 } else { 10 << 2 };
        if last == 2 {
            ip[8] -= 1;
        }
        ip[10..12].fill(0);
        let sum = volley_sdk::wire::checksum::checksum(&ip[..20]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut of_packet = out.iter().filter(|it| it.bytes.ends_with(&ip));
        let found = of_packet
            .next()
            .unwrap_or_else(|| panic!("{last} {ttl}: {out:?}"));
        let reason = (last == 3).then_some("filtered");
        match last {
            2 => assert_eq!(
                (found.to.as_str(), found.bytes.len()),
                ("interface-output", 14 + ip.len())
            ),
            // The bench has no next feature.
            _ => assert_eq!(
                (found.reason.as_deref(), found.bytes.len()),
                (reason, ip.len())
            ),
        }
    }
}

#[test]
fn a_packet_without_a_route_is_not_sent_on_the_interface_of_before() {
    let bench = Bench::new(
        "local routes = volley.lpm('routes')
         routes:add('10.0.1.0/24', { interface = 'pg1', mac = '02:00:00:00:00:aa' })
         function vector(v)
           v:send(v:all(), 'pg1')
           v:lookup(routes)
           v:drop(v:rest(), 'no-route')
         end",
    );
    let out = bench.run(&[frame(1, [10, 0, 1, 2], 64), frame(1, [10, 0, 2, 2], 64)]);
    assert_eq!(bench.errors(), Vec::<String>::new());
    let to: Vec<&str> = out.iter().map(|it| it.to.as_str()).collect();
    assert_eq!(to, ["error-drop", "interface-output"]);
    assert_eq!(out[0].reason.as_deref(), Some("no-route"));
}

#[test]
fn operations_see_headers_as_the_script_has_changed_them() {
    let bench = Bench::new(
        "local function all(v, set, n) assert(v:count(set) == n, v:count(set) .. ' of ' .. v:len()) end
         function vector(v)
           local n = v:len()
           local good, bad = v:check_ip4()
           all(v, good, n) all(v, bad, 0)
           v:put('ip4.ttl', 1)
           good, bad = v:check_ip4()
           all(v, good, 0) all(v, bad, 0)
           v:put('ip4.ttl', 9)
           v:put('ip4.dst', '127.0.0.1')
           good, bad = v:check_ip4()
           all(v, good, 0) all(v, bad, n)
           v:put('ip4.dst', '10.0.1.9')
           all(v, (v:check_ip4()), n)
           v:set_byte(12, 0x86, 1)
           all(v, v:ethertype(0x0800), n - 1)
           good, bad = v:check_ip4()
           all(v, good, n - 1) all(v, bad, 0)
           v:set_byte(12, 8, 1)
           all(v, v:ethertype(0x0800), n)
           all(v, v:to_me(), n)
           v:set_byte(5, 7, n)
           all(v, v:to_me(), n - 1)
           v:drop_out(v:minus(v:all(), v:to_me()))
           all(v, v:to_me(), n - 1)
           v:compact()
           all(v, v:ethertype(0x0800), n - 1)
           local first, rest = v:split(v:to_me())
           all(v, v:to_me(first), n - 1) all(v, rest, 0)
           v:set_byte(5, 1, n)
           all(v, v:to_me(v:all()), n)
           v:send(v:all(), 'pg1')
         end",
    );
    let packets = vec![frame(1, [10, 0, 1, 2], 64); 300];
    let out = bench.run(&packets);
    assert_eq!(bench.errors(), Vec::<String>::new());
    assert_eq!(out.len(), packets.len());
    // Their padding was cut.
    assert!(
        out.iter()
            .all(|it| it.to == "interface-output" && it.bytes.len() == 54)
    );
}

#[test]
fn a_reload_is_between_two_vectors_and_packets_of_other_interfaces_pass() {
    let (first, second) = (
        Bench::new("function vector(v) v:send('pg0') end"),
        Bench::new("function vector(v) v:send('pg1') end"),
    );
    let link = Link::new(first.errors.clone());
    link.give(config(1, Some(first.load().unwrap().0)));
    // The node has not taken the first one: the second configuration keeps it under its number.
    link.give(config(1, None));
    let mut given = link.take().unwrap();
    assert!(given.scripts[0].1.is_some());
    given
        .scripts
        .push((2, Some(Box::new(second.load().unwrap().0))));
    given.by_interface = vec![crate::link::NONE, 0, 1];
    given.others = crate::link::NONE;
    link.give(given);
    let packets = [
        frame(1, [10, 0, 1, 2], 64),
        frame(2, [10, 0, 1, 3], 64),
        frame(3, [10, 0, 1, 4], 64),
    ];
    let make = move |_| LuaScripts::<DeviceInput>::new(link.clone(), 256);
    let level = level();
    let out = volley_sdk::harness::run_once(level, 3, &packets, &Domain::new(), make).unwrap();
    let to = |dst: u8| out.iter().find(|it| it.bytes[33] == dst).unwrap();
    assert_eq!(to(2).columns[&Col::TX], 1);
    assert_eq!(to(3).columns[&Col::TX], 2);
    assert_eq!(to(4).to, "error-drop");
    assert_eq!(
        to(4).reason,
        None,
        "it went to the next feature, which the bench does not have"
    );
}

#[test]
fn send_returns_whether_these_are_all_packets_of_the_script() {
    let bench = Bench::new(
        "function vector(v)
           local web = v:match('udp.dport', 80)
           if not v:send(web, 'pg1') then v:drop(v:rest(), 'filtered') end
         end",
    );
    let (one, mut other) = (frame(1, [10, 0, 1, 2], 64), frame(1, [10, 0, 1, 2], 64));
    other.bytes[37] = 81;
    let all = |out: &[Out]| out.iter().map(|it| it.reason.clone()).collect::<Vec<_>>();
    assert_eq!(all(&bench.run(&[one.clone(), one.clone()])), [None, None]);
    let filtered = Some("filtered".to_owned());
    assert_eq!(all(&bench.run(&[other, one])), [filtered, None]);
    assert_eq!(bench.errors(), Vec::<String>::new());
}
