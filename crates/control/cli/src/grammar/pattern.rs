//! Patterns of commands in the form that the command line matches.

use super::slots::Slot;
use volley_object::pattern::Tree;

/// A pattern of consecutive parts of a line.
pub(super) type Pattern = Tree<Eats>;

/// What matches a word of a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Eats {
    Word(Word),
    Slot(&'static Slot),
}

impl Eats {
    pub(super) fn word(self) -> Option<Word> {
        match self {
            Eats::Word(word) => Some(word),
            Eats::Slot(_) => None,
        }
    }
}

/// A word; a second spelling has an additional suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) tail: &'static str,
    /// The slot to which the word belongs; empty: a keyword of the command.
    pub(crate) of: &'static str,
    /// The help of the word, if the definition has one.
    pub(crate) help: &'static str,
}

impl Word {
    /// Whether the text is one of the word's spellings.
    pub(crate) fn is(self, text: &str) -> bool {
        text.strip_prefix(self.text)
            .is_some_and(|rest| rest.is_empty() || rest == self.tail)
    }

    /// Whether the text is an abbreviation of one of the word's spellings.
    pub(crate) fn begins(self, text: &str) -> bool {
        match text.strip_prefix(self.text) {
            Some(rest) => self.tail.starts_with(rest),
            None => self.text.starts_with(text),
        }
    }
}

/// The first words of a command, up to its first slot or option, and whether the pattern ends there.
pub(super) fn leads(pattern: &Pattern) -> (Vec<Vec<Word>>, bool) {
    match pattern {
        Tree::Leaf(Eats::Word(word)) => (vec![vec![*word]], true),
        Tree::Leaf(Eats::Slot(_)) | Tree::Many(_) => (vec![Vec::new()], false),
        Tree::Optional(inner) => {
            let (mut all, whole) = leads(inner);
            if !whole {
                return (vec![Vec::new()], false);
            }
            all.push(Vec::new());
            (all, true)
        }
        Tree::OneOf(choices) => {
            let parts: Vec<_> = choices.iter().map(leads).collect();
            let whole = parts.iter().all(|(_, whole)| *whole);
            (parts.into_iter().flat_map(|(all, _)| all).collect(), whole)
        }
        Tree::Seq(items) => {
            let mut all = vec![Vec::new()];
            for item in items {
                let (next, whole) = leads(item);
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
