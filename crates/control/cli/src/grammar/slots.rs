//! What stands in a command where its pattern has a `<slot>`.

use super::names::NameKind;
use crate::token::{Form, Token};

/// A slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) text: &'static str,
}

/// What a slot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A number, perhaps with unit or range: begins with a digit.
    Number,
    /// An IP address with a length.
    Prefix,
    /// An IP address.
    Address,
    /// An IP address, with or without a length.
    Network,
    /// A MAC address.
    Mac,
    /// A word from this list.
    OneOf(&'static [&'static str]),
    /// The name of something that is there.
    Name(NameKind),
    /// Any word.
    Any,
    /// Text in braces or quotes.
    Block,
    /// All that follows; in quotes, one word.
    Rest,
}

use Takes as T;

impl Slot {
    /// How well a word fits: by its shape, by being any word, or not.
    pub(super) fn fit(&self, token: &Token) -> Option<Fit> {
        let text = token.text.as_str();
        let plain = token.form == Form::Plain;
        let shaped = |yes: bool| yes.then_some(Fit::Shape);
        match self.takes {
            T::Block => (token.form != Form::Plain).then_some(Fit::Shape),
            _ if token.form == Form::Block => None,
            T::Number => {
                shaped(plain && text.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
            }
            T::Prefix => shaped(plain && text.contains('/') && addressed(text)),
            T::Address => shaped(plain && !text.contains('/') && addressed(text)),
            T::Network => shaped(plain && addressed(text)),
            T::Mac => shaped(plain && text.split([':', '-', '.']).count() >= 3),
            T::OneOf(words) => (plain && words.contains(&text)).then_some(Fit::Exact),
            T::Name(_) | T::Any | T::Rest => Some(Fit::Any),
        }
    }
}

/// Ways to fit, better ones larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// A slot that takes anything.
    Any,
    /// The beginning of a word.
    Beginning,
    /// A slot that knows the shape.
    Shape,
    /// The word itself, of a command or of the list of a slot.
    Exact,
}

/// Looks like an IP or MAC address, rightly written or not.
fn addressed(text: &str) -> bool {
    let addr = text.split('/').next().unwrap_or(text);
    let six = addr.contains(':')
        && addr
            .chars()
            .all(|c| c.is_ascii_hexdigit() || ":.".contains(c));
    let four = addr.contains('.') && addr.chars().all(|c| c.is_ascii_digit() || c == '.');
    six || four || (text.contains('/') && addr.chars().all(|c| c.is_ascii_digit()))
}
