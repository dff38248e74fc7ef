//! Patterns of commands, read into a small tree.

use super::slots::{Slot, slot};
use volley_object::pattern::split;

/// A pattern.
#[derive(Debug)]
pub(super) enum Pattern {
    Word(Word),
    Slot(&'static Slot),
    Seq(Vec<Pattern>),
    OneOf(Vec<Pattern>),
    Optional(Box<Pattern>),
    Many(Box<Pattern>),
}

/// A word, with a second spelling that is longer by a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) tail: &'static str,
    /// The slot that it is a part of; empty = it is a keyword of the command.
    pub(crate) of: &'static str,
    /// What it means, where its definition says that.
    pub(crate) help: &'static str,
}

impl Word {
    /// True for one of its spellings.
    pub(crate) fn is(self, text: &str) -> bool {
        text.strip_prefix(self.text)
            .is_some_and(|rest| rest.is_empty() || rest == self.tail)
    }

    /// True for the beginning of one of its spellings.
    pub(crate) fn begins(self, text: &str) -> bool {
        match text.strip_prefix(self.text) {
            Some(rest) => self.tail.starts_with(rest),
            None => self.text.starts_with(text),
        }
    }
}

impl Pattern {
    /// The words that a command can begin with, up to its first slot or option.
    pub(super) fn leads(&self) -> Vec<Vec<Word>> {
        self.lead().0
    }

    /// The same, and whether the pattern has nothing else.
    fn lead(&self) -> (Vec<Vec<Word>>, bool) {
        match self {
            Pattern::Word(word) => (vec![vec![*word]], true),
            Pattern::Slot(_) | Pattern::Many(_) => (vec![Vec::new()], false),
            Pattern::Optional(inner) => {
                let (mut all, whole) = inner.lead();
                if !whole {
                    return (vec![Vec::new()], false);
                }
                all.push(Vec::new());
                (all, true)
            }
            Pattern::OneOf(choices) => {
                let parts: Vec<_> = choices.iter().map(Pattern::lead).collect();
                let whole = parts.iter().all(|(_, whole)| *whole);
                (parts.into_iter().flat_map(|(all, _)| all).collect(), whole)
            }
            Pattern::Seq(items) => {
                let mut all = vec![Vec::new()];
                for item in items {
                    let (next, whole) = item.lead();
                    let joined = |had: &Vec<Word>| {
                        let had = had.clone();
                        next.iter().map(move |more| [&had[..], more].concat())
                    };
                    all = all.iter().flat_map(joined).collect();
                    if !whole {
                        return (all, false);
                    }
                }
                (all, true)
            }
        }
    }
}

/// The pattern of a word in a pattern's text.
type Leaf<'l> = &'l dyn Fn(&'static str) -> Option<Pattern>;

/// Reads a pattern of the table; `None` = the pattern is wrong (a test reads them all).
pub(super) fn read(text: &'static str) -> Option<Pattern> {
    read_with(text, &|part| match part.strip_prefix('<') {
        Some(name) => Some(Pattern::Slot(slot(name.strip_suffix('>')?)?)),
        None => {
            let (text, tail) = part.split_once('~').unwrap_or((part, ""));
            let (of, help) = ("", "");
            Some(Pattern::Word(Word {
                text,
                tail,
                of,
                help,
            }))
        }
    })
}

/// Reads a pattern, each word of which is read by `leaf`.
pub(super) fn read_with(text: &'static str, leaf: Leaf<'_>) -> Option<Pattern> {
    let mut parts = split(text).into_iter().peekable();
    let pattern = one_of(&mut parts, leaf)?;
    parts.next().is_none().then_some(pattern)
}

type Parts = std::iter::Peekable<std::vec::IntoIter<&'static str>>;

fn one_of(parts: &mut Parts, leaf: Leaf<'_>) -> Option<Pattern> {
    let mut choices = vec![sequence(parts, leaf)?];
    while parts.next_if_eq(&"|").is_some() {
        choices.push(sequence(parts, leaf)?);
    }
    match choices.len() {
        1 => choices.pop(),
        _ => Some(Pattern::OneOf(choices)),
    }
}

fn sequence(parts: &mut Parts, leaf: Leaf<'_>) -> Option<Pattern> {
    let mut items = Vec::new();
    while let Some(part) = parts.next_if(|p| !["]", ")", "}", "|"].contains(p)) {
        items.push(match part {
            "[" => Pattern::Optional(Box::new(inner(parts, leaf, "]")?)),
            "{" => Pattern::Many(Box::new(inner(parts, leaf, "}")?)),
            "(" => inner(parts, leaf, ")")?,
            part => leaf(part)?,
        });
    }
    Some(Pattern::Seq(items))
}

fn inner(parts: &mut Parts, leaf: Leaf<'_>, close: &str) -> Option<Pattern> {
    let pattern = one_of(parts, leaf)?;
    parts.next_if_eq(&close).map(|_| pattern)
}
