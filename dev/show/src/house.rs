//! The items of "Rooms and words".

use super::{Item, Work, build, item, long, twice};
use xtask::budget;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::tidy::{self, House};

/// Names of protocols above Ethernet and of IP forwarding, in lower case; digits after them are ignored.
const ABOVE_ETHERNET: [&str; 22] = [
    "ip",
    "ipv",
    "arp",
    "nd",
    "icmp",
    "icmpv",
    "igmp",
    "mld",
    "tcp",
    "udp",
    "sctp",
    "dhcp",
    "mpls",
    "gre",
    "vxlan",
    "fib",
    "dpo",
    "adjacency",
    "ttl",
    "dscp",
    "nexthop",
    "fragment",
];
/// A part of an IP address, if a digit follows.
const PART_OF_ADDRESS: &str = "dst";

/// The crates that must not use these names.
const ENGINE: &str = "crates/base/";
/// The crate of header formats, which names protocols.
const HEADERS: &str = "crates/base/wire/";
/// The crate of tables has a longest-prefix match for each address size, and may use these names.
const TABLES: (&str, [&str; 1]) = ("crates/base/tables/", ["ipv"]);

pub const ITEMS: &[Item] = &[
    item(
        "circles",
        "no import circle of more than three files in a crate, re-exports followed",
        Work::Look(|home| look(home, |house| house.circles())),
    ),
    item(
        "arrows",
        "rooms import only rooms to their left",
        Work::Look(|home| look(home, |house| house.arrows())),
    ),
    item(
        "words",
        "no retired word in comments, strings of the program, pages and names; no doc comment begins with a pronoun",
        Work::Look(|home| look(home, |house| house.words())),
    ),
    item(
        "once",
        "EtherTypes, IP headers and tables of packet fields are written in base/wire alone",
        Work::Look(|home| look(home, |house| house.once())),
    ),
    item(
        "duplicates",
        "pairs of places of the program with six or more equal lines, no more than on 2026-11-24 (tool `duplicates`)",
        Work::Look(twice::run),
    ),
    item(
        "readme",
        "each claim of the README has a test that shows it",
        Work::Look(|home| look(home, |house| house.claims())),
    ),
    item(
        "budgets",
        "instructions per packet against bench/budgets.toml",
        Work::Call(|sitting| budget::run(sitting.home, false)),
    ),
    long(
        "build-cold",
        "the README's first command built from nothing",
        Work::Look(build::cold),
    ),
    long(
        "build-node",
        "volley built in release after a change of one node file, three times",
        Work::Look(build::after_a_node),
    ),
    long(
        "ci-quick",
        "cargo xtask ci --quick in a warm checkout",
        Work::Look(build::quick),
    ),
    long(
        "ci-warm",
        "cargo xtask ci in a warm checkout",
        Work::Look(build::whole),
    ),
    item(
        "sizes",
        "the largest crate, file and function",
        Work::Look(|home| look(home, |house| Ok(house.sizes()))),
    ),
    item(
        "engine-knows-no-ip",
        "code and doc comments of crates/base, except header formats, name no protocol above Ethernet",
        Work::Look(|home| look(home, engine_knows_no_ip)),
    ),
];

fn look(home: &Home, judge: fn(&House<'_>) -> Result<String, String>) -> Outcome {
    let house = tidy::House::read(home).map_err(|error| error.to_string());
    Outcome::of(house.and_then(|house| judge(&house)))
}

fn engine_knows_no_ip(house: &House<'_>) -> Result<String, String> {
    let files = house.code_below(ENGINE);
    let files: Vec<_> = files
        .filter(|(path, _)| !path.starts_with(HEADERS))
        .collect();
    let mut places = Vec::new();
    for (path, code) in &files {
        for (line, text) in code {
            let known = words(text).into_iter().find(|word| is_refused(path, word));
            if let Some(word) = known {
                let path = path.trim_start_matches(ENGINE);
                places.push(format!("{path}:{line} `{word}`"));
            }
        }
    }
    match places.is_empty() {
        true => Ok(format!("{} files", files.len())),
        false => Err(format!("{} places: {}", places.len(), places.join(", "))),
    }
}

/// Whether a word is refused in this file.
fn is_refused(path: &str, word: &str) -> bool {
    let (tables, may) = TABLES;
    let allowed = path.starts_with(tables) && may.contains(&name(word));
    is_above_ethernet(word) && !allowed
}

/// A word without trailing digits.
fn name(word: &str) -> &str {
    word.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn is_above_ethernet(word: &str) -> bool {
    let name = name(word);
    ABOVE_ETHERNET.contains(&name) || name == PART_OF_ADDRESS && word != name
}

/// The words of a name or a sentence, in lower case: `Tcp4Header` and `tcp4-header` have `tcp4` and `header`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && !before.is_uppercase();
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    // `IPv4` is one word.
    for at in 1..words.len() {
        if words[at - 1] == "ip" && words[at].starts_with('v') {
            let rest = std::mem::take(&mut words[at]);
            words[at - 1].push_str(&rest);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_may_name_the_sizes_of_addresses_and_nothing_else() {
        assert!(!is_refused("crates/base/tables/src/lpm4/mod.rs", "ipv4"));
        assert!(is_refused("crates/base/tables/src/lpm4/mod.rs", "tcp"));
        assert!(is_refused("crates/base/graph/src/lib.rs", "ipv4"));
    }

    #[test]
    fn protocols_are_found_in_names_and_sentences() {
        let found = |text: &str| words(text).iter().any(|word| is_above_ethernet(word));
        for text in [
            "Tcp4",
            "set_udp_port",
            "\"ip4-input\"",
            "TCP over IPv6",
            "Dst1",
            "ICMPv6",
            "Col::Dpo",
        ] {
            assert!(found(text), "{text}: {:?}", words(text));
        }
        for text in [
            "ethernet-input",
            "skip",
            "descriptor",
            "Strip",
            "Tx",
            "mtu",
            "handle",
            "find",
        ] {
            assert!(!found(text), "{text}: {:?}", words(text));
        }
    }
}
