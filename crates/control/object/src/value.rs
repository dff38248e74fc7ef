//! Values of fields.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// The value of a field, or a part of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// On or off.
    Bool(bool),
    /// A whole number.
    Number(u64),
    /// Text in its normal form: a name, an address, a choice.
    Text(Arc<str>),
    /// Values in order.
    List(Arc<[Value]>),
}

impl Value {
    /// A text.
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Text(Arc::from(text.as_ref()))
    }

    /// The value, if it is a text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list; any other value counts as its only element.
    pub fn elements(&self) -> &[Value] {
        match self {
            Value::List(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    /// The value as one word of a command line, quoted if necessary.
    pub fn word(&self) -> String {
        match self {
            Value::Text(text) => quote(text),
            other => other.to_string(),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::text(text)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(true) => f.write_str("on"),
            Value::Bool(false) => f.write_str("off"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            Value::List(all) => {
                for (i, value) in all.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                Ok(())
            }
        }
    }
}

/// The beginning of a text that a user typed, for a sentence.
pub fn shown(text: &str) -> String {
    let first: String = text.chars().take(64).collect();
    first.escape_debug().to_string()
}

/// A word as a command line needs it: quoted when it has blanks or special characters.
pub fn quote(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'\\{}|#".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    let mut out = String::with_capacity(word.len() + 2);
    out.push('"');
    for c in word.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
