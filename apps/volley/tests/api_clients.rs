//! Many clients at once with random requests, valid and invalid. The state at the end equals a replay of the accepted
//! transactions, in their order, in the model, and the state of a new daemon with that configuration.
//!
//! Runs for 10 seconds, or for `VOLLEY_API_SECONDS`.

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::Daemon;
use support::http::Http;
use volley_control::{Core, requests};
use volley_fib::path::{Path, PathTarget};
use volley_fib::{Address, IpTable, Route, StaticNeighbor};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::Mtu;
use volley_l2::model::Xconnect;
use volley_model::{Applied, Family, InterfaceSpec, Mac, Request};
use volley_object::Object;
use volley_pg::model::PgInterface;

const CLIENTS: usize = 200;

/// Random numbers that repeat for a seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn interface(&mut self) -> String {
        format!("pg{}", self.below(8))
    }

    fn table(&mut self) -> u32 {
        self.below(4) as u32
    }

    fn address(&mut self) -> Address {
        let (a, b) = (self.below(4), self.below(8));
        let address = format!("198.51.{a}.{}/29", 8 * b + 1);
        Address {
            interface: self.interface(),
            address: address.parse().unwrap(),
        }
    }

    fn ip_table(&mut self) -> IpTable {
        // Table 0 is predefined: no request can create or remove it.
        let (id, family) = (1 + self.below(3) as u32, self.family());
        IpTable { id, family }
    }

    fn family(&mut self) -> Family {
        [Family::V4, Family::V6][self.below(2) as usize]
    }

    fn route(&mut self, least: u64) -> Route {
        let prefix = match self.below(2) {
            0 => format!("10.{}.{}.0/24", self.below(4), self.below(16)),
            _ => format!("2001:db8:{:x}::/48", self.below(64)),
        };
        let via = |rng: &mut Rng, v4: bool| {
            let address = match v4 {
                true => format!("192.0.2.{}", 1 + rng.below(200)),
                false => format!("2001:db8:ffff::{:x}", 1 + rng.below(200)),
            };
            let interface = rng.interface();
            let over = (rng.below(2) == 0).then_some(&interface[..]);
            Path::via(address.parse().unwrap(), over)
        };
        let v4 = !prefix.contains(':');
        let paths = (0..self.below(3).max(least)).map(|_| match self.below(3) {
            0 => Path::to(PathTarget::Drop),
            _ => via(self, v4),
        });
        let paths = paths.collect();
        Route {
            table: self.table(),
            count: 1 + self.below(3),
            ..Route::new(prefix.parse().unwrap(), paths)
        }
    }

    /// One request; many of them name an object that does not exist, or create one that exists.
    fn request(&mut self) -> Request {
        volley_fib::classes().unwrap();
        let mac = "02:00:00:00:00:07".parse().unwrap();
        match self.below(16) {
            0 | 1 => {
                let name = self.interface();
                Request::InterfaceCreate(InterfaceSpec::of(&PgInterface { name }).unwrap())
            }
            2 => Request::InterfaceDelete {
                name: self.interface(),
            },
            3 => Admin::request(
                self.interface(),
                [AdminState::Up, AdminState::Down][self.below(2) as usize],
            )
            .unwrap(),
            4 => Request::set(&Mtu {
                interface: self.interface(),
                mtu: 68 + self.below(3000) as u32,
            })
            .unwrap(),
            5 => Request::set(&self.address()).unwrap(),
            6 => Request::unset(&self.address()).unwrap(),
            7 => Request::set(&self.ip_table()).unwrap(),
            8 => Request::unset(&self.ip_table()).unwrap(),
            9 => Request::set(&self.neighbor(mac)).unwrap(),
            10 => Request::unset(&self.neighbor(mac)).unwrap(),
            11 => Request::take(&self.route(0)).unwrap(),
            12 => Request::set(&self.route(1)).unwrap(),
            13 => Request::set(&self.xconnect()).unwrap(),
            14 => Request::UnsetAny(self.xconnect().instance().unwrap().key()),
            _ => Request::add(&self.route(1)).unwrap(),
        }
    }

    fn neighbor(&mut self, mac: Mac) -> StaticNeighbor {
        StaticNeighbor {
            interface: self.interface(),
            address: format!("198.51.0.{}", 2 + self.below(60)).parse().unwrap(),
            mac,
        }
    }

    fn xconnect(&mut self) -> Xconnect {
        Xconnect {
            rx: self.interface(),
            tx: self.interface(),
        }
    }

    /// A text with a fault.
    fn spoilt(&mut self, mut text: Vec<u8>) -> Vec<u8> {
        let at = self.below(text.len() as u64) as usize;
        match self.below(3) {
            0 => text.truncate(at),
            1 => text[at] = self.next() as u8,
            _ => text.insert(at, b"{}[]\",:0"[self.below(8) as usize]),
        }
        text
    }
}

/// The results of one client.
#[derive(Default)]
struct Done {
    accepted: Vec<(u64, Vec<Request>)>,
    refused: u64,
    took: Vec<Duration>,
}

impl Done {
    fn change(&mut self, http: &mut Http, requests: Vec<Request>, body: &[u8]) {
        let path = match requests.len() {
            1 => "/v1/requests",
            _ => "/v1/transactions",
        };
        let start = Instant::now();
        let (status, answer) = http.call("POST", path, body);
        self.took.push(start.elapsed());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        match status {
            200 => {
                let number = answer["transaction"].as_u64().unwrap();
                self.accepted.push((number, requests));
            }
            400..=499 => {
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(!message.is_empty() && !message.contains("taking it back failed"));
                self.refused += 1;
            }
            other => panic!("{other}: {answer}"),
        }
    }
}

fn body(requests: &[Request]) -> Vec<u8> {
    match requests {
        [one] => serde_json::to_vec(one).unwrap(),
        all => serde_json::to_vec(all).unwrap(),
    }
}

fn client(daemon: &Daemon, seed: u64, until: Instant) -> Done {
    let socket = daemon.folder.file("s.http.sock");
    let (mut rng, mut done) = (Rng(seed), Done::default());
    let mut http = Http::connect(&socket);
    while Instant::now() < until {
        let count = [1, 1, 1 + rng.below(8)][rng.below(3) as usize];
        let wanted: Vec<Request> = (0..count).map(|_| rng.request()).collect();
        let text = body(&wanted);
        match rng.below(20) {
            // A damaged request may still be valid and accepted: then the request that was read counts.
            0 | 1 => {
                let text = rng.spoilt(text);
                let read: Result<Vec<Request>, _> = match count {
                    1 => serde_json::from_slice(&text).map(|r| vec![r]),
                    _ => serde_json::from_slice(&text),
                };
                done.change(&mut http, read.unwrap_or(wanted), &text);
            }
            2 => assert!(http.get("/v1/show/interfaces").is_object()),
            3 => assert!(http.get("/v1/show/fib?family=ip4&summary=on").is_object()),
            4 => assert_eq!(http.call("GET", "/metrics", b"").0, 200),
            5 => {
                // The client disconnects in the middle of the request, which is therefore never accepted.
                let head = format!("POST /v1/requests HTTP/1.1\r\ncontent-length: {}\r\n", 9999);
                http.send(&[head.as_bytes(), b"host: x\r\n\r\n", &text[..]].concat());
                http = Http::connect(&socket);
            }
            _ => done.change(&mut http, wanted, &text),
        }
    }
    done
}

/// The state after the accepted transactions, in the order of their execution.
fn replay(mut accepted: Vec<(u64, Vec<Request>)>) -> Vec<Request> {
    accepted.sort_by_key(|(number, _)| *number);
    let mut core = Core::default();
    for (at, (number, transaction)) in accepted.iter().enumerate() {
        assert_eq!(
            *number,
            accepted[0].0 + at as u64,
            "a number is missing or doubled"
        );
        let begun = core.begin(transaction, &());
        let begun = begun.unwrap_or_else(|e| panic!("{number}: {e}: {transaction:?}"));
        core.end(begun, Some(&Applied::default()), &());
    }
    requests(core.state())
}

/// The replies of the daemon's handlers, without what differs between equal states: indices, counters, and the order of paths,
/// which follows the indices of interfaces.
fn answers(http: &mut Http) -> Vec<String> {
    let keep = |rows: &Value, keys: &[&str]| {
        let cell = |key: &str, mut cell: Value| {
            if let ("paths" | "others", Value::Array(all)) = (key, &mut cell) {
                all.sort_by_key(ToString::to_string);
            }
            cell
        };
        let row = |row: &Value| {
            keys.iter()
                .map(|k| cell(k, row[k].clone()))
                .collect::<Vec<_>>()
        };
        let rows = rows.as_array().unwrap().iter().map(row);
        rows.map(|row| json!(row).to_string()).collect::<Vec<_>>()
    };
    let interfaces = http.get("/v1/show/interfaces");
    let keys = ["name", "kind", "state", "mac", "mtu", "addresses", "tables"];
    let mut all = keep(&interfaces["interfaces"], &keys);
    let neighbors = http.get("/v1/show/neighbors");
    let keys = ["interface", "address", "mac", "fixed"];
    all.extend(keep(&neighbors["neighbors"], &keys));
    for family in ["ip4", "ip6"] {
        let fib = http.get(&format!("/v1/show/fib?family={family}"));
        for table in fib["tables"].as_array().unwrap() {
            let rows = keep(&table["routes"], &["prefix", "source", "others", "paths"]);
            let of = |row: String| format!("{family} table {}: {row}", table["table"]);
            all.extend(rows.into_iter().map(of));
        }
    }
    all.sort();
    all
}

/// MAC addresses derive from the seed, so that two daemons have the same ones.
const SEEDED: &str = "[engine]\nseed = 1\n";

#[test]
fn what_runs_is_what_was_accepted() {
    let seconds = std::env::var("VOLLEY_API_SECONDS").ok();
    let seconds = seconds.and_then(|s| s.parse().ok()).unwrap_or(10);
    let daemon = Daemon::start(SEEDED, &[]);
    let until = Instant::now() + Duration::from_secs(seconds);
    let dones: Vec<Done> = std::thread::scope(|scope| {
        let start = |seed| {
            let daemon = &daemon;
            scope.spawn(move || client(daemon, seed, until))
        };
        let threads: Vec<_> = (0..CLIENTS as u64).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let refused: u64 = dones.iter().map(|d| d.refused).sum();
    let mut took: Vec<Duration> = dones.iter().flat_map(|d| d.took.clone()).collect();
    took.sort();
    let accepted: Vec<_> = dones.into_iter().flat_map(|d| d.accepted).collect();
    println!(
        "api clients: {CLIENTS}, {seconds} s: {} accepted, {refused} refused; median {:?}, slowest {:?}",
        accepted.len(),
        took[took.len() / 2],
        took[took.len() - 1],
    );
    assert!(accepted.len() > 100 && refused > 100);
    let wanted = json!(replay(accepted));
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    assert_eq!(http.get("/v1/state")["requests"], wanted);
    // The handlers agree with the state: a new daemon with that state gives the same replies.
    let fresh = Daemon::start(SEEDED, &[]);
    let mut other = Http::connect(&fresh.folder.file("s.http.sock"));
    let (status, done) = other.post("/v1/transactions", &wanted);
    assert_eq!(status, 200, "{done}");
    let (has, wants) = (answers(&mut http), answers(&mut other));
    let more: Vec<_> = has.iter().filter(|row| !wants.contains(row)).collect();
    let less: Vec<_> = wants.iter().filter(|row| !has.contains(row)).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "{more:#?} instead of {less:#?}"
    );
    assert!(!daemon.log().contains("panic"), "{}", daemon.log());
}
