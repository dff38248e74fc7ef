//! Errors and limits: the vector is dropped with a reason, the error names file and line, and the next vector is handled.

use super::*;

/// A script that does `body` for packets with a TTL of 1, and sends all others.
fn script(body: &str) -> String {
    format!(
        "function vector(v)
           if v:get(v:next_row(v:all()), 'ip4.ttl') == 1 then
             {body}
           end
           v:send('pg1')
         end"
    )
}

/// The reason and the errors of a vector with one packet of TTL 1, after which another packet is sent.
fn fails(body: &str) -> (String, Vec<String>) {
    let bench = Bench::new(&script(body));
    let level = level();
    let node = bench.clone();
    let make = move |_| node.node::<DeviceInput>();
    // Twice: an allocation that fails tells its line the second time.
    let packets = [1, 64, 1, 64].map(|ttl| frame(1, [10, 0, 1, 2], ttl));
    let out = volley_sdk::harness::run_once(level, 1, &packets, &Domain::new(), make).unwrap();
    let sent = out.iter().filter(|it| it.to == "interface-output");
    assert_eq!(sent.count(), 2, "{body}: the router goes on");
    let dropped: Vec<_> = out.iter().filter_map(|it| it.reason.clone()).collect();
    assert_eq!(dropped.len(), 2, "{body}");
    (dropped[0].clone(), bench.errors())
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let loops = [
        "while true do end",
        "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }); return t[1]",
        "local function f() return f() end f()",
        "for i = 1, 1e12 do local x = i end",
        "repeat v:next_row(v:all()) until false",
    ];
    for body in loops {
        let (reason, errors) = fails(body);
        if reason == "script-error" {
            // The stack ended first.
            assert!(errors[0].contains("overflow"), "{body}: {errors:?}");
            continue;
        }
        assert_eq!(reason, "script-instructions", "{body}: {errors:?}");
        assert!(
            errors[0].starts_with("/etc/volley/test.lua:3: more than 50000 instructions"),
            "{body}: {errors:?}"
        );
    }
}

#[test]
fn a_huge_allocation_ends_at_the_limit() {
    for body in [
        "local s = string.rep('x', 1e9)",
        "local t = {} for i = 1, 1e5 do t[i] = { i } end",
        "local s = 'x' while true do s = s .. s end",
    ] {
        let (reason, errors) = fails(body);
        let expected = ["script-memory", "script-instructions"];
        assert!(
            expected.contains(&reason.as_str()),
            "{body}: {reason} {errors:?}"
        );
        if reason == "script-memory" {
            let last = errors.last().unwrap();
            assert_eq!(
                last,
                "/etc/volley/test.lua:3: more memory than 1048576 bytes"
            );
        }
    }
    let (reason, _) = fails("local s = string.rep('x', 1e9)");
    assert_eq!(reason, "script-memory");
}

#[test]
fn nothing_outside_a_packet_can_be_reached() {
    for (body, text) in [
        (
            "v:byte(60)",
            "packet 1 has no byte 60: its first segment has 60 bytes",
        ),
        ("v:byte(-1)", "out of range"),
        ("v:set_byte(100000, 1)", "packet 1 has no byte 100000"),
        (
            "v:set_byte(0, 256)",
            "to `v:set_byte`: error converting Lua integer to u8",
        ),
        (
            "v:get(2, 'ip4.ttl')",
            "the script has no packet 2 in this vector",
        ),
        ("v:get(0, 'ip4.ttl')", "the script has no packet 0"),
        (
            "v:set('ip4.ttl', 256)",
            "256 does not fit into the 8 bits of `ttl`",
        ),
        ("v:set('tcp.sport', 1)", "packet 1 has no field `sport`"),
        ("v:send(77, 'pg1')", "77 is no mask of this vector"),
        ("v:send('pg7')", "no interface 'pg7'"),
        ("v:send(v:all())", "packet 1 has no route"),
        ("v:apply(v:all())", "packet 1 has no complete route"),
        (
            "v:drop(v:all(), 'bad-luck')",
            "'bad-luck' is no reason of a drop",
        ),
    ] {
        let (reason, errors) = fails(body);
        assert_eq!(reason, "script-error", "{body}");
        assert!(
            errors[0].starts_with("/etc/volley/test.lua:3: ") && errors[0].contains(text),
            "{body}: {errors:?}"
        );
    }
}

#[test]
fn an_error_of_lua_names_file_and_line() {
    let (reason, errors) = fails("\n local x = nil + 1");
    assert_eq!(reason, "script-error");
    assert!(
        errors[0].starts_with("/etc/volley/test.lua:4: attempt to perform arithmetic"),
        "{errors:?}"
    );
    let (_, errors) = fails("error('enough')");
    assert_eq!(errors, ["/etc/volley/test.lua:3: enough"]);
}

#[test]
fn a_vector_of_a_former_call_is_out_of_reach() {
    let bench = Bench::new(
        "local kept
         function vector(v) kept = kept or v:none() ; v:send('pg1') end",
    );
    let out = bench.run(&[frame(1, [10, 0, 1, 2], 64)]);
    assert_eq!(out.len(), 1);
    let text = "local v\n function vector(x) v = x end\n function packet(p) end";
    assert!(Bench::new(text).load().is_ok());
}

#[test]
fn the_queue_of_the_slow_path_is_bounded() {
    let mut bench = Bench::new(
        "function vector(v) v:slow() end
         function packet(p) assert(p:len() == 1) p:send('pg1') end",
    );
    Arc::make_mut(&mut bench.source).queue = 10;
    let packets: Vec<In> = (0..64).map(|n| frame(1, [10, 0, 1, n], 64)).collect();
    let level = level();
    let node = bench.clone();
    let make = move |_| node.node::<DeviceInput>();
    let out = volley_sdk::harness::run_once(level, 64, &packets, &Domain::new(), make).unwrap();
    let full = out
        .iter()
        .filter(|it| it.reason.as_deref() == Some("slow-path-full"));
    assert_eq!(full.count(), 54);
    assert_eq!(bench.errors(), Vec::<String>::new());
}

#[test]
fn a_script_that_cannot_be_loaded_is_refused_with_its_line() {
    for (text, error) in [
        ("\nfunction vector(v", "/etc/volley/test.lua:2: "),
        ("x = 1", "has no function `vector`"),
        ("\n\nerror('no')", "/etc/volley/test.lua:3: no"),
        ("while true do end", "instructions"),
        (
            "local s = string.rep('x', 1e9)",
            "more memory than 1048576 bytes",
        ),
        ("\x1bLJ", "test.lua"),
        ("volley.interface('pg9')", "there was no interface 'pg9'"),
    ] {
        let refused = Bench::new(text).load().err().unwrap();
        assert!(refused.contains(error), "{text}: {refused}");
    }
}
