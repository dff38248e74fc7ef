//! Packet templates as text: `eth src 02:00:00:00:00:01 / ip4 dst 10.1.0.0 ttl 64 / udp sport 1 / payload 20`.
//!
//! Layers from the outside in, with ` / ` between them; fields as `name value` pairs in any order. A number after
//! `payload` without a name is its size. Omitted fields take their default; lengths, checksums and types are computed.

use super::layer::{FieldValue, Layer, LayerKind, Value};
use super::limits::{LAYERS, TEMPLATE_BYTES};
use std::fmt;
use std::str::FromStr;
use volley_model::SyntaxError;
use volley_object::syntax_field;
use volley_wire::field::Field;

/// The layers of a packet, outermost first; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Layers.
    pub layers: Vec<Layer>,
}

impl FromStr for Template {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut words = words(text).peekable();
        let mut layers = Vec::new();
        let end = text.chars().count() + 1;
        loop {
            let (column, word) = words.next().ok_or_else(|| {
                SyntaxError::new(end, "a layer is missing: write one such as eth or ip4")
            })?;
            if layers.len() == LAYERS {
                return Err(SyntaxError::new(
                    column,
                    format!("more than {LAYERS} layers"),
                ));
            }
            let mut layer = Layer {
                kind: kind(column, word)?,
                fields: Vec::new(),
            };
            while let Some((column, word)) = words.next_if(|(_, w)| *w != "/") {
                let (field, value) = pair(layer.kind, column, word, &mut words)?;
                add(&mut layer, column, field, value)?;
            }
            layers.push(layer);
            if words.next().is_none() {
                return Ok(Template { layers });
            }
        }
    }
}

fn kind(column: usize, word: &str) -> Result<LayerKind, SyntaxError> {
    let unknown = || {
        SyntaxError::new(
            column,
            format!("'{word}' is not a layer: there are {}", LayerKind::names()),
        )
    };
    LayerKind::by_name(word).ok_or_else(unknown)
}

type Pair = (&'static Field, Value);

fn pair<'a>(
    kind: LayerKind,
    column: usize,
    word: &'a str,
    words: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Pair, SyntaxError> {
    let size = kind.field("size");
    if let (Some(size), true) = (size, word.starts_with(|c: char| c.is_ascii_digit())) {
        return value(size, column, word).map(|v| (size, v));
    }
    let names = || {
        let all: Vec<_> = kind.fields().map(|f| f.name).collect();
        all.join(", ")
    };
    let unknown = || {
        SyntaxError::new(
            column,
            format!("'{word}' is not a field of {kind}: there are {}", names()),
        )
    };
    let field = kind.field(word).ok_or_else(unknown)?;
    let after = column + word.chars().count();
    let missing = || SyntaxError::new(after, format!("the value of {kind}.{word} is missing"));
    let (column, word) = words
        .next()
        .filter(|(_, w)| *w != "/")
        .ok_or_else(missing)?;
    value(field, column, word).map(|v| (field, v))
}

fn value(field: &'static Field, column: usize, word: &str) -> Result<Value, SyntaxError> {
    let value = Value::parse(field, word).map_err(|e| SyntaxError::new(column, e))?;
    match (field.name, &value) {
        ("size", Value::Uint(n)) if *n > TEMPLATE_BYTES as u64 => {
            let message = format!("a payload has at most {TEMPLATE_BYTES} bytes");
            Err(SyntaxError::new(column, message))
        }
        ("fill", Value::Uint(n)) if *n > 255 => {
            Err(SyntaxError::new(column, "fill is a byte, 0 to 255"))
        }
        _ => Ok(value),
    }
}

fn add(
    layer: &mut Layer,
    column: usize,
    field: &'static Field,
    value: Value,
) -> Result<(), SyntaxError> {
    if layer.value(field.name).is_some() {
        let message = format!("{}.{} is given twice", layer.kind, field.name);
        return Err(SyntaxError::new(column, message));
    }
    layer.fields.push(FieldValue { field, value });
    Ok(())
}

/// Words with their start columns, counted in characters from 1.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut column = 1;
    text.split(char::is_whitespace).filter_map(move |word| {
        let start = column;
        column += word.chars().count() + 1;
        (!word.is_empty()).then_some((start, word))
    })
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, layer) in self.layers.iter().enumerate() {
            let slash = if i == 0 { "" } else { " / " };
            write!(f, "{slash}{}", layer.kind)?;
            for FieldValue { field, value } in &layer.fields {
                write!(f, " {} {value}", field.name)?;
            }
        }
        Ok(())
    }
}
syntax_field!(
    Template,
    "a packet",
    Block,
    ["eth / ip4 dst 10.0.0.1 / udp / payload 20"],
    ""
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_the_same() {
        let text = "eth src 02:00:00:00:00:01 dst 02:00:00:00:00:02 / vlan id 7 / ip4 src 10.0.0.1 dst 10.1.0.0 ttl 64 \
                    options 0x0194 / udp sport 1 dport 2 / payload size 20 fill 255";
        let t: Template = text.parse().unwrap();
        assert_eq!(
            t.to_string(),
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        assert_eq!(t.layers[2].value("ttl"), Some(&Value::Uint(64)));
        let short: Template = "ip6 dst 2001:db8::1 / payload 20".parse().unwrap();
        assert_eq!(short.layers[1].value("size"), Some(&Value::Uint(20)));
    }

    #[test]
    fn errors_name_the_column_and_what_would_be_right() {
        let cases = [
            (
                "",
                "column 1: a layer is missing: write one such as eth or ip4",
            ),
            (
                "eth /",
                "column 6: a layer is missing: write one such as eth or ip4",
            ),
            ("udp sport", "column 10: the value of udp.sport is missing"),
            (
                "udp sport 70000",
                "column 11: 70000 does not fit in the 16 bits of sport",
            ),
            (
                "udp spurt 7",
                "column 5: 'spurt' is not a field of udp: there are sport, dport, length, checksum",
            ),
            ("udp sport 1 sport 2", "column 13: udp.sport is given twice"),
            (
                "payload 99999",
                "column 9: a payload has at most 65535 bytes",
            ),
            ("payload 1 fill 256", "column 16: fill is a byte, 0 to 255"),
            ("ip4 / é 1", "column 7: 'é' is not a layer"),
        ];
        for (text, error) in cases {
            let e = text.parse::<Template>().unwrap_err().to_string();
            assert!(e.starts_with(error), "{text}: {e}");
        }
    }
}
