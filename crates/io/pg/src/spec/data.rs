//! The `data { ... }` form of VPP's packet-generator streams, parsed into a [`Template`] and [`Edit`]s:
//!
//! ```text
//! IP4: 02:00:00:00:00:01 -> 4.5.6      Ethernet: MAC addresses, type by name (IP4, IP6) or number (0x0800)
//! UDP: 192.0.2.1 - 192.0.2.9 -> 198.51.100.1 ttl 64     IP: one address or a range; protocol by name (UDP, TCP, ICMP)
//! UDP: 1234 -> 2345                    ports, or `ICMP echo_request`
//! incrementing 30                      payload: or `hex 0x0102`
//! ```
//! Without the first line, packets begin with an IP header (streams that enter at `ip4-input`).

use super::edit::{Edit, EditKind, EditTarget, FieldPath};
use super::layer::{FieldValue, Layer, LayerKind, Value};
use super::limits::TEMPLATE_BYTES;
use super::template::{Template, words};
use std::fmt;
use std::iter::Peekable;
use std::net::IpAddr;
use std::str::FromStr;
use volley_model::{Family, Mac, SyntaxError};
use volley_object::syntax_field;

type Word<'a> = (usize, &'a str);

/// A packet in the classic form, and its parsed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicPacket {
    text: String,
    /// The packet.
    pub template: Template,
    /// The edits: ranges of addresses.
    pub edits: Vec<Edit>,
}

impl FromStr for ClassicPacket {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let (template, edits) = parse(text)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(ClassicPacket {
            text: words.join(" "),
            template,
            edits,
        })
    }
}

impl fmt::Display for ClassicPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

syntax_field!(
    ClassicPacket,
    "a packet in the classic form",
    Block,
    ["UDP: 192.0.2.1 - 192.0.2.9 -> 10.0.0.1 UDP: 1 -> 2 incrementing 30"],
    ""
);

/// Parses the text between the braces.
fn parse(text: &str) -> Result<(Template, Vec<Edit>), SyntaxError> {
    let mut reader = Reader {
        words: words(text).collect::<Vec<_>>().into_iter().peekable(),
        end: text.chars().count() + 1,
        layers: Vec::new(),
        edits: Vec::new(),
    };
    reader.run()?;
    let Reader { layers, edits, .. } = reader;
    Ok((Template { layers }, edits))
}

struct Reader<'a> {
    words: Peekable<std::vec::IntoIter<Word<'a>>>,
    end: usize,
    layers: Vec<Layer>,
    edits: Vec<Edit>,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        let (column, name, from) = self.head()?;
        let from = if from.1.parse::<Mac>().is_ok() {
            self.ethernet(column, name, from)?;
            let (_, name, from) = self.head()?;
            self.ip(name, from)?
        } else {
            self.ip(name, from)?
        };
        self.transport(from)?;
        self.payload()
    }

    fn next(&mut self, expected: &str) -> Result<Word<'a>, SyntaxError> {
        let end = self.end;
        let missing = || SyntaxError::new(end, format!("{expected} is missing"));
        self.words.next().ok_or_else(missing)
    }

    fn expect(&mut self, word: &str) -> Result<(), SyntaxError> {
        match self.next(&format!("'{word}'"))? {
            (_, w) if w == word => Ok(()),
            (column, w) => Err(SyntaxError::new(
                column,
                format!("expected '{word}', not '{w}'"),
            )),
        }
    }

    /// `NAME: FIRST`, with or without a blank after the colon.
    fn head(&mut self) -> Result<(usize, &'a str, Word<'a>), SyntaxError> {
        let (column, name) = self.next("a layer such as 'IP4: MAC -> MAC'")?;
        let shape = || {
            SyntaxError::new(
                column,
                format!("expected 'NAME:' such as 'UDP:', not '{name}'"),
            )
        };
        let name = name.strip_suffix(':').ok_or_else(shape)?;
        let first = self.next("an address")?;
        Ok((column, name, first))
    }

    fn push(&mut self, kind: LayerKind) {
        let fields = Vec::new();
        self.layers.push(Layer { kind, fields });
    }

    /// Parses a value into a field of the last layer.
    fn set(&mut self, name: &str, (column, word): Word<'_>) -> Result<Value, SyntaxError> {
        let last = self.layers.last_mut();
        let slot = last.and_then(|l| l.kind.field(name).map(|f| (l, f)));
        let (layer, field) =
            slot.ok_or_else(|| SyntaxError::new(column, format!("no field {name} here")))?;
        let value = Value::parse(field, word).map_err(|e| SyntaxError::new(column, e))?;
        layer.fields.retain(|f| f.field.name != name);
        layer.fields.push(FieldValue {
            field,
            value: value.clone(),
        });
        Ok(value)
    }

    fn ethernet(&mut self, column: usize, name: &str, from: Word<'a>) -> Result<(), SyntaxError> {
        self.push(LayerKind::Eth);
        let number = match name {
            "IP4" => "0x0800",
            "IP6" => "0x86dd",
            other if other.starts_with("0x") => other,
            other => {
                let message = format!(
                    "'{other}' is not an Ethernet type: write IP4, IP6 or a number such as 0x0800"
                );
                return Err(SyntaxError::new(column, message));
            }
        };
        self.set("type", (column, number))?;
        self.set("src", from)?;
        self.expect("->")?;
        let to = self.next("the destination MAC address")?;
        self.set("dst", to).map(|_| ())
    }

    fn ip(&mut self, name: &'a str, from: Word<'a>) -> Result<LayerKind, SyntaxError> {
        let family = from.1.parse::<IpAddr>().map(Family::of);
        let family = family.map_err(|_| {
            SyntaxError::new(
                from.0,
                format!("'{}' is neither a MAC nor an IP address", from.1),
            )
        })?;
        let (layer, ttl) = match family {
            Family::V4 => (LayerKind::Ip4, "ttl"),
            Family::V6 => (LayerKind::Ip6, "hops"),
        };
        let transport = match (name, family) {
            ("UDP", _) => LayerKind::Udp,
            ("TCP", _) => LayerKind::Tcp,
            ("ICMP", Family::V4) => LayerKind::Icmp,
            ("ICMP" | "ICMP6", Family::V6) => LayerKind::Icmp6,
            _ => {
                let message =
                    format!("'{name}' is not a protocol over {family}: write UDP, TCP or ICMP");
                return Err(SyntaxError::new(from.0, message));
            }
        };
        self.push(layer);
        self.address(layer, "src", from)?;
        self.expect("->")?;
        let to = self.next("the destination address")?;
        self.address(layer, "dst", to)?;
        while let Some((column, word)) = self
            .words
            .next_if(|(_, w)| ["ttl", "hop-limit"].contains(w))
        {
            let value = self.next(&format!("the value of {word}"))?;
            self.set(ttl, value).map_err(|e| SyntaxError {
                column: e.column.max(column),
                ..e
            })?;
        }
        Ok(transport)
    }

    /// Parses one address, or `FIRST - LAST`, for which an edit is added.
    fn address(
        &mut self,
        layer: LayerKind,
        name: &'static str,
        from: Word<'a>,
    ) -> Result<(), SyntaxError> {
        let min = self.set(name, from)?;
        if self.words.next_if(|(_, w)| *w == "-").is_none() {
            return Ok(());
        }
        let (column, word) = self.next("the last address of the range")?;
        let Some(field) = layer.field(name) else {
            return Ok(());
        };
        let max = Value::parse(field, word).map_err(|e| SyntaxError::new(column, e))?;
        let how = EditKind::Increment { min, max, step: 1 };
        let path = FieldPath {
            layer,
            nth: 0,
            field,
        };
        let edit = Edit {
            target: EditTarget::Field(path),
            how,
        };
        edit.check().map_err(|e| SyntaxError::new(column, e))?;
        self.edits.push(edit);
        Ok(())
    }

    fn transport(&mut self, kind: LayerKind) -> Result<(), SyntaxError> {
        self.push(kind);
        let starts = |w: &str| ["UDP:", "TCP:", "ICMP", "ICMP:", "ICMP6", "ICMP6:"].contains(&w);
        let Some((column, word)) = self.words.next_if(|(_, w)| starts(w)) else {
            return Ok(());
        };
        match (kind, word.trim_end_matches(':')) {
            (LayerKind::Udp, "UDP") | (LayerKind::Tcp, "TCP") => {
                let sport = self.next("the source port")?;
                self.set("sport", sport)?;
                self.expect("->")?;
                let dport = self.next("the destination port")?;
                self.set("dport", dport).map(|_| ())
            }
            (LayerKind::Icmp | LayerKind::Icmp6, "ICMP" | "ICMP6") => self.icmp(kind),
            _ => Err(SyntaxError::new(
                column,
                format!("'{word}' does not fit the protocol {kind} above"),
            )),
        }
    }

    fn icmp(&mut self, kind: LayerKind) -> Result<(), SyntaxError> {
        let (column, word) = self.next("the ICMP type")?;
        let number = match (word, kind) {
            ("echo_request", LayerKind::Icmp) => "8",
            ("echo_reply", LayerKind::Icmp) => "0",
            ("echo_request", _) => "128",
            ("echo_reply", _) => "129",
            (other, _) => other,
        };
        self.set("type", (column, number)).map(|_| ())
    }

    fn payload(&mut self) -> Result<(), SyntaxError> {
        let Some((column, word)) = self.words.next() else {
            return Ok(());
        };
        self.push(LayerKind::Payload);
        match word {
            "incrementing" => {
                let size = self.next("the number of bytes")?;
                if let Value::Uint(n @ 65_536..) = self.set("size", size)? {
                    let message = format!("{n} bytes are too many, at most {TEMPLATE_BYTES}");
                    return Err(SyntaxError::new(size.0, message));
                }
            }
            "hex" => {
                let hex = self.next("the bytes")?;
                self.set("hex", hex)?;
            }
            other => {
                let message = format!(
                    "'{other}' is not understood here: write 'incrementing N' or 'hex 0x...'"
                );
                return Err(SyntaxError::new(column, message));
            }
        }
        match self.words.next() {
            Some((column, word)) => Err(SyntaxError::new(
                column,
                format!("'{word}' is behind the end of the packet"),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_form_is_read() {
        let text = "IP4: 1.2.3 -> 02:fe:00:00:00:01\n UDP: 192.0.2.1 - 192.0.2.9 -> 10.0.0.1 ttl 9\n UDP: 1234 -> 2345\n incrementing 30";
        let (template, edits) = parse(text).unwrap();
        assert_eq!(
            template.to_string(),
            "eth type 2048 src 00:01:00:02:00:03 dst 02:fe:00:00:00:01 / ip4 src 192.0.2.1 dst 10.0.0.1 ttl 9 / \
             udp sport 1234 dport 2345 / payload size 30"
        );
        assert_eq!(edits.len(), 1);
        assert_eq!(
            edits[0].to_string(),
            "ip4.src increment 192.0.2.1 192.0.2.9"
        );
        let (template, _) = parse("ICMP: ::1 -> ::2 ICMP echo_request hex 0x0102").unwrap();
        let text = "ip6 src ::1 dst ::2 / icmp6 type 128 / payload hex 0x0102";
        assert_eq!(template.to_string(), text);
    }

    #[test]
    fn errors_have_a_column() {
        let cases = [
            ("", "column 1: a layer such as 'IP4: MAC -> MAC' is missing"),
            (
                "FOO: 1.2.3 -> 4.5.6",
                "column 1: 'FOO' is not an Ethernet type",
            ),
            ("IP4: 1.2.3 4.5.6", "column 12: expected '->', not '4.5.6'"),
            (
                "UDP: 1.1.1.9 - 1.1.1.1 -> 2.2.2.2",
                "column 16: edit of ip4.src is not valid",
            ),
            (
                "UDP: 1.1.1.1 -> 2.2.2.2 bogus",
                "column 25: 'bogus' is not understood here",
            ),
            (
                "TCP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2",
                "column 25: 'UDP:' does not fit",
            ),
        ];
        for (text, error) in cases {
            let e = parse(text).unwrap_err().to_string();
            assert!(e.starts_with(error), "{text}: {e}");
        }
    }
}
