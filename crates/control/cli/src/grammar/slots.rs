//! Slots: the variable parts of commands, written `<slot>` in a pattern.

use crate::token::{Form, Token};
use volley_object::Shape;

/// A slot.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) text: &'static str,
}

/// The values that a slot accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Takes {
    /// A number, perhaps with a unit or a range: begins with a digit.
    Number,
    /// A word from this list.
    OneOf(&'static [&'static str]),
    /// The name of an existing object of this class, see [`Names`](super::Names).
    Name(&'static str),
    /// A text of this form.
    Text(Shape),
}

use Takes as T;

impl Slot {
    /// How well a word matches: by its form, as any word, or not at all.
    pub(super) fn fit(&self, token: &Token) -> Option<Fit> {
        let text = token.text.as_str();
        let plain = token.form == Form::Plain;
        let shaped = |yes: bool| yes.then_some(Fit::Shape);
        match self.takes {
            T::Text(Shape::Block) => (token.form != Form::Plain).then_some(Fit::Shape),
            _ if token.form == Form::Block => None,
            T::Number => {
                shaped(plain && text.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
            }
            T::Text(Shape::Prefix) => shaped(plain && text.contains('/') && addressed(text)),
            T::Text(Shape::Address) => shaped(plain && !text.contains('/') && addressed(text)),
            T::Text(Shape::Network) => shaped(plain && addressed(text)),
            T::Text(Shape::Mac) => shaped(plain && text.split([':', '-', '.']).count() >= 3),
            T::OneOf(words) => (plain && words.contains(&text)).then_some(Fit::Exact),
            T::Name(_) | T::Text(_) => Some(Fit::Any),
        }
    }
}

/// Quality of a match, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// A slot that accepts any word.
    Any,
    /// An abbreviation of a word.
    Beginning,
    /// A slot that recognises the form of the word.
    Shape,
    /// The exact word of a command or of a slot's list.
    Exact,
}

/// Whether the text has the form of an IP or MAC address, valid or not.
fn addressed(text: &str) -> bool {
    let addr = text.split('/').next().unwrap_or(text);
    let six = addr.contains(':')
        && addr
            .chars()
            .all(|c| c.is_ascii_hexdigit() || ":.".contains(c));
    let four = addr.contains('.') && addr.chars().all(|c| c.is_ascii_digit() || c == '.');
    six || four || (text.contains('/') && addr.chars().all(|c| c.is_ascii_digit()))
}
