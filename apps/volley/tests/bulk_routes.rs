//! Many routes in one transaction of the HTTP interface: lookups match a list of the routes; prints time and memory.
//!
//! `VOLLEY_ROUTES` sets how many (default 20,000). `cargo xtask show objects` runs it with a million.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;
use support::Daemon;
use support::bed::resident_kib;
use support::http::Http;

const PLAIN: &str = "\
[[interface]]
name = \"pg0\"
kind = \"pg\"
addresses = [\"198.51.100.1/24\"]
";

/// The number of next hops, which the routes use in rotation.
const HOPS: u64 = 200;

fn how_many() -> u64 {
    let asked = std::env::var("VOLLEY_ROUTES").ok();
    asked.map_or(20_000, |text| text.parse().unwrap())
}

/// Prefix `i`, a /24, and its next hop. The factor and the modulus, a prime, have no common divisor: consecutive prefixes are
/// far apart.
fn route(i: u64) -> (Ipv4Addr, Ipv4Addr) {
    let at = u32::try_from(i * 700_001 % 1_000_003).unwrap();
    let hop = u32::try_from(i % HOPS).unwrap();
    (
        Ipv4Addr::from((20 << 24) + at * 256),
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 51, 100, 2)) + hop),
    )
}

/// As [`route`], with host routes that share no prefix of 24 bits.
fn host_route(i: u64) -> (Ipv4Addr, Ipv4Addr) {
    let at = u32::try_from(i * 123_456_791 % 1_000_000_007).unwrap();
    (Ipv4Addr::from((128 << 24) + at), route(i).1)
}

fn path(hop: Ipv4Addr) -> Value {
    json!([{"target": {"via": {"addr": hop, "interface": "pg0"}}}])
}

fn transaction(http: &mut Http, requests: &[Value]) -> Value {
    let body = serde_json::to_vec(requests).unwrap();
    let (status, answer) = http.call("POST", "/v1/transactions", &body);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(status, 200, "{answer}");
    answer
}

/// The next hop of the route that forwards an address.
fn forwards(http: &mut Http, to: Ipv4Addr) -> String {
    let shown = http.get(&format!("/v1/show/fib?family=ip4&address={to}"));
    let route = &shown["tables"][0]["routes"][0];
    let text = route["buckets"][0]["text"].as_str().unwrap_or_default();
    format!("{} {text}", route["prefix"].as_str().unwrap_or_default())
}

/// Compares lookups for a sample of the routes, and for addresses beside them.
fn agree(http: &mut Http, length: u8, all: &BTreeMap<Ipv4Addr, Ipv4Addr>) {
    let step = all.len().div_ceil(500);
    for (prefix, hop) in all.iter().step_by(step) {
        let host = if length == 32 { 0 } else { 77 };
        let inside = Ipv4Addr::from(u32::from(*prefix) + host);
        let reported = forwards(http, inside);
        let want = format!("{prefix}/{length} via {hop} pg0");
        assert!(
            reported.starts_with(&want),
            "{inside}: {reported}, not {want}"
        );
    }
    let reported = forwards(http, Ipv4Addr::new(9, 9, 9, 9));
    assert!(!reported.contains("via"), "{reported}");
}

fn count(http: &mut Http) -> u64 {
    let shown = http.get("/v1/show/fib?family=ip4&summary=on");
    shown["tables"][0]["prefixes"].as_u64().unwrap()
}

/// Prefix and next hop of a number.
type RouteOf = fn(u64) -> (Ipv4Addr, Ipv4Addr);

/// Sends requests that add all routes of a length, and prints time and memory.
fn measured(
    how: &str,
    (length, route): (u8, RouteOf),
    requests: impl Fn(&BTreeMap<Ipv4Addr, Ipv4Addr>) -> Vec<Value>,
) {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let number = how_many();
    let all: BTreeMap<_, _> = (0..number).map(route).collect();
    let (empty, before) = (count(&mut http), resident_kib(daemon.pid()));
    let requests = requests(&all);
    let start = Instant::now();
    transaction(&mut http, &requests);
    let took = start.elapsed().as_secs_f64();
    assert_eq!(count(&mut http), empty + number);
    let bytes = (resident_kib(daemon.pid()) - before) * 1024 / number;
    println!("{number} routes, {how}: {took:.3} s, {bytes} bytes a route");
    agree(&mut http, length, &all);

    let start = Instant::now();
    let gone: Vec<String> = all
        .keys()
        .map(|prefix| format!("{prefix}/{length}"))
        .collect();
    transaction(
        &mut http,
        &[json!({"routes": {"family": "ip4", "gone": gone}})],
    );
    let took = start.elapsed().as_secs_f64();
    let left = resident_kib(daemon.pid()).saturating_sub(before) * 1024 / number;
    println!("{number} routes removed: {took:.3} s, {left} bytes a route are left");
    assert_eq!(count(&mut http), empty);
    assert!(!forwards(&mut http, route(0).0).contains("via"));
}

/// One request for all routes.
fn in_one(all: &BTreeMap<Ipv4Addr, Ipv4Addr>, length: u8) -> Vec<Value> {
    let sets: Vec<Value> = (0..HOPS).map(|i| path(route(i).1)).collect();
    let put = all.iter().map(|(prefix, hop)| {
        let set = u32::from(*hop) - u32::from(route(0).1);
        json!([format!("{prefix}/{length}"), set])
    });
    vec![json!({"routes": {"family": "ip4", "sets": sets, "put": put.collect::<Vec<_>>()}})]
}

#[test]
fn routes_of_one_request_forward() {
    measured("one request", (24, route), |all| in_one(all, 24));
}

#[test]
fn scattered_host_routes_forward() {
    measured("host routes", (32, host_route), |all| in_one(all, 32));
}

#[test]
fn a_request_for_each_route_forwards() {
    if how_many() > 500_000 {
        println!("SKIP: the body would be larger than the limit");
        return;
    }
    measured("a request each", (24, route), |all| {
        let one = |(prefix, hop): (&Ipv4Addr, &Ipv4Addr)| json!({"route-add": {"prefix": format!("{prefix}/24"), "paths": path(*hop)}});
        all.iter().map(one).collect()
    });
}
