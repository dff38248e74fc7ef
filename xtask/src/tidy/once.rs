//! Header layouts, EtherTypes and tables of packet fields are defined once, in `crates/base/wire`; other code uses those.

use super::Finding;
use super::source::Source;
use super::tokens;

const HOME: &str = "crates/base/wire/";

/// The reference model shares no code with the code that it checks, and development tools build no packets.
const APART: [&str; 3] = ["tools/reference/", "xtask/", "dev/"];

/// EtherTypes of IPv4, IPv6, ARP and VLAN tags. `0x800` is omitted, because it is also a bit mask.
const TYPES: [&str; 6] = ["0x0800", "0x86dd", "0x0806", "0x8100", "0x88a8", "0x9100"];

/// The first byte of an IPv4 header without options, with one word of options, and of an IPv6 header.
const FIRST_BYTES: [&str; 3] = ["0x45", "0x46", "0x60"];

/// Field names that occur in a table of packet fields.
const FIELDS: [&str; 12] = [
    "dscp", "ttl", "hops", "proto", "protocol", "sport", "dport", "flags", "src", "dst", "type",
    "label",
];

/// Every EtherType written as a number, every byte list that begins like an IP header, and every row of a field table: a
/// name, a first bit and a number of bits.
pub fn layouts(source: &Source) -> Vec<Finding> {
    let apart = APART.iter().any(|dir| source.path.starts_with(dir));
    let test = source.is_test() || source.path.contains("/testing/");
    if test || apart || source.path.starts_with(HOME) {
        return Vec::new();
    }
    let tokens = tokens::outside_tests(&source.text);
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let word = token.text.to_ascii_lowercase();
        let begins_list = at > 0 && text(at - 1) == "[" && text(at + 1) == ",";
        if TYPES.contains(&word.as_str()) {
            let text = format!("`{word}` is written out: take it from `volley_wire::ethertype`");
            findings.push(source.finding(token.line, text));
        } else if begins_list && FIRST_BYTES.contains(&word.as_str()) {
            let text = "an IP header is written byte by byte: make it with `volley_wire`";
            findings.push(source.finding(token.line, text));
        } else if is_row(&[
            text(at),
            text(at + 1),
            text(at + 2),
            text(at + 3),
            text(at + 4),
        ]) {
            let text = format!(
                "the place of the field {word} is written here: take it from `volley_wire::field`"
            );
            findings.push(source.finding(token.line, text));
        }
    }
    findings
}

/// Whether the tokens are a field's name, first bit and number of bits.
fn is_row(tokens: &[&str; 5]) -> bool {
    let is_number = |text: &str| text.parse::<u16>().is_ok();
    let [name, ",", bit, ",", bits] = *tokens else {
        return false;
    };
    let known = FIELDS.iter().any(|field| name.trim_matches('"') == *field);
    name.starts_with('"') && known && is_number(bit) && is_number(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_headers_outside_the_wire_crate_are_found() {
        let bad = "fn f() { match kind { 0x86DD => {} _ => {} } out.copy(&[0x45, 0, 0]); }";
        let count = |path: &str, text: &str| layouts(&Source::new(path, text)).len();
        assert_eq!(count("crates/net/x/src/a.rs", bad), 2);
        assert_eq!(count("crates/base/wire/src/a.rs", bad), 0);
        assert_eq!(count("crates/net/x/tests/a.rs", bad), 0);
        assert_eq!(count("tools/reference/src/a.rs", bad), 0);
        let row = r#"const F: [(&str, u16, u8); 2] = [("ttl", 64, 8), ("color", 8, 8)];"#;
        assert_eq!(count("crates/net/x/src/a.rs", row), 1);
        assert_eq!(count("crates/base/wire/src/field.rs", row), 0);
        let fine = "fn f(w: u32) -> bool { w >> 24 ^ 0x45 == 0 && [0x45] != [0x60] }";
        assert_eq!(count("crates/net/x/src/a.rs", fine), 0);
    }
}
