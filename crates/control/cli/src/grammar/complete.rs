//! Completion and `?` help.

use super::automaton::Grammar;
use super::automaton::{Walk, walk};
use super::commands::{CommandDef, Of};
use super::names::Names;
use super::pattern::Eats;
use super::slots::Takes;
use super::words;
use serde::{Deserialize, Serialize};
use volley_model::quote;
use volley_object::Kind;

/// Maximum length in bytes of a line that is completed: the line is parsed once for each candidate.
const MAX_COMPLETED: usize = 4096;

/// Maximum number of names shown for each kind.
const MAX_NAMES: usize = 200;

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Candidate {
    /// Text that replaces the unfinished word; empty for a slot without known names.
    pub text: String,
    /// The displayed text: the word, or `<slot>`.
    pub show: String,
    /// The help of the word.
    pub help: String,
}

/// All completions.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Completion {
    /// Index in characters (from 0) of the unfinished word.
    pub start: usize,
    /// First words, then slots.
    pub candidates: Vec<Candidate>,
}

/// Completions of a line that ends at the cursor.
pub fn complete(line: &str, names: &dyn Names) -> Completion {
    let mut all = ways(line, names);
    all.candidates.retain(|c| !c.text.is_empty());
    all
}

/// Text for `?` at the end of a line: the possible next words, one a line.
pub fn help(line: &str, names: &dyn Names) -> String {
    let all = ways(line, names);
    let width = all
        .candidates
        .iter()
        .map(|c| c.show.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for c in all.candidates {
        out += &format!("  {:width$}  {}\n", c.show, c.help);
    }
    if out.is_empty() {
        out = "  nothing fits here\n".to_string();
    }
    out
}

fn ways(line: &str, names: &dyn Names) -> Completion {
    let (before, begun) = split(line);
    let start = before.chars().count();
    let mut way = Walk::new();
    if line.len() > MAX_COMPLETED || walk(before, 1, &mut way, 0).is_err() {
        return Completion {
            start,
            candidates: Vec::new(),
        };
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for eats in way.expected() {
        match eats {
            Eats::Word(word) if word.text.starts_with(begun) => {
                let help = match word.of {
                    "" => meaning(before, word.text),
                    _ if !word.help.is_empty() => word.help.to_owned(),
                    _ => of_value(before, word.text),
                };
                push(&mut candidates, word.text, word.text, &help);
            }
            Eats::Word(_) => {}
            Eats::Slot(slot) => {
                let shown = format!("<{}>", slot.name);
                push(&mut candidates, "", &shown, slot.text);
                for name in words(slot.takes, names)
                    .into_iter()
                    .filter(|n| n.starts_with(begun))
                {
                    push(&mut candidates, &quote(&name), &name, slot.text);
                }
            }
        }
    }
    if begun.is_empty() && way.accepted().is_some() {
        push(&mut candidates, "", "<enter>", "run it");
    }
    candidates.sort_by_key(|c| c.show.starts_with('<'));
    Completion { start, candidates }
}

fn push(candidates: &mut Vec<Candidate>, text: &str, show: &str, help: &str) {
    if !candidates.iter().any(|c| c.show == show) {
        candidates.push(Candidate {
            text: text.to_string(),
            show: show.to_string(),
            help: help.to_string(),
        });
    }
}

/// Splits the line into the part before the unfinished word, and that word.
fn split(line: &str) -> (&str, &str) {
    let at = line.rfind(char::is_whitespace);
    let at = at.map_or(0, |i| {
        i + line[i..].chars().next().map_or(1, char::len_utf8)
    });
    line.split_at(at)
}

fn words(takes: Takes, names: &dyn Names) -> Vec<String> {
    match takes {
        Takes::Name(class) => names.names(class).into_iter().take(MAX_NAMES).collect(),
        Takes::OneOf(words) => words.iter().map(|w| w.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// The help of a word: inside a command, its meaning; else the sentence of the only command that it leads to, or of the group
/// of commands.
fn meaning(before: &str, word: &str) -> String {
    let mut way = Walk::new();
    let line = format!("{before}{word}");
    let reached = walk(&line, 1, &mut way, 0).is_ok();
    let (words, slots) = way.words();
    let Some(last) = words.last().filter(|_| reached) else {
        return String::new();
    };
    let led = match slots {
        true => Vec::new(),
        false => Grammar::now()
            .led_by(&words)
            .into_iter()
            .copied()
            .collect::<Vec<CommandDef>>(),
    };
    match &led[..] {
        [] => given(&way, last).unwrap_or_else(|| inside(&way)),
        [only] => only.text.to_owned(),
        [first, more @ ..] => {
            let whole = way.accepted().map(|(command, _)| command.text);
            let text = words::group(&words).or(whole).or(of_one_class(&led));
            let all = || format!("{} (and {} more)", first.text, more.len());
            text.map_or_else(all, str::to_owned)
        }
    }
}

/// The help of a word that is a part of a value, from what follows it.
fn of_value(before: &str, word: &str) -> String {
    let mut way = Walk::new();
    let reached = walk(&format!("{before}{word}"), 1, &mut way, 0);
    reached.map_or_else(|_| String::new(), |()| inside(&way))
}

/// The purpose of the class, if all of these commands belong to one class.
fn of_one_class(commands: &[CommandDef]) -> Option<&'static str> {
    let class = |command: &CommandDef| match command.id.of {
        Of::Object(_) | Of::Default => Some(command.id.class),
        Of::Own | Of::Query | Of::Verb => None,
    };
    let first = commands.first()?;
    let one = class(first).is_some() && commands.iter().all(|c| class(c) == class(first));
    one.then_some(first.text)
}

/// The help of a word of a command of a class, query or verb, by the definition: the field that the word sets and the value;
/// for any other word, the help of the command that ends with it.
fn given(way: &Walk, word: &str) -> Option<String> {
    let (command, _) = way.accepted()?;
    let classes = volley_object::classes();
    let class = command.id.class(&classes)?;
    let pattern = command.id.pattern(class)?;
    let query = classes.query(class.name());
    let query = query.filter(|_| command.id.of == Of::Query);
    if let Some(query) = query
        && let Some(view) = query.def().views.iter().find(|view| view.word == word)
    {
        return Some(view.doc.to_owned());
    }
    let Some((at, value)) = pattern.given_by(word) else {
        return Some(command.text.to_owned());
    };
    let field = class.fields().get(*at)?;
    if let Kind::Choice(all) = &field.kind
        && let Some((_, doc)) = all.iter().find(|(name, _)| Some(*name) == value.as_text())
    {
        return Some((*doc).to_owned());
    }
    Some(format!("{}: {value}.", field.doc.trim_end_matches('.')))
}

/// The help of a keyword without a meaning: a test checks that no keyword has it.
const UNKNOWN: &str = "switches it on by itself";

/// The help of a word inside a command, from what follows it.
fn inside(way: &Walk) -> String {
    let behind: Vec<Eats> = way.expected().collect();
    let slot = behind.iter().find_map(|eats| match eats {
        Eats::Slot(slot) => Some(slot),
        Eats::Word(_) => None,
    });
    match (slot, &behind[..]) {
        // Words that may follow any other word do not belong to this one.
        (Some(slot), [Eats::Slot(_), ..]) => format!("followed by <{}>: {}", slot.name, slot.text),
        (_, [Eats::Word(one)]) => format!("followed by {}", one.text),
        (_, [Eats::Word(one), Eats::Word(two)]) => {
            format!("followed by {} or {}", one.text, two.text)
        }
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::NoNames;
    use crate::grammar::objects;
    use crate::grammar::pattern::{Pattern, Word};
    use volley_object::Shape;

    struct Some2;
    impl Names for Some2 {
        fn names(&self, class: &str) -> Vec<String> {
            match class {
                "interface" => vec!["pg0".into(), "pg1".into(), "tap0".into()],
                _ => Vec::new(),
            }
        }
    }

    fn texts(line: &str) -> (usize, Vec<String>) {
        volley_iface::classes().unwrap();
        volley_log::classes().unwrap();
        let c = complete(line, &Some2);
        (c.start, c.candidates.into_iter().map(|c| c.text).collect())
    }

    #[test]
    fn words_and_names_that_exist_are_offered() {
        assert_eq!(texts("sho"), (0, vec!["show".to_string()]));
        assert_eq!(texts("show l"), (5, vec!["log".to_string()]));
        assert_eq!(
            texts("set int state p"),
            (14, vec!["pg0".to_string(), "pg1".into()])
        );
        assert_eq!(
            texts("set int state pg0 "),
            (18, vec!["up".to_string(), "down".into()])
        );
        assert_eq!(texts("bogus "), (6, vec![]));
    }

    #[test]
    fn help_tells_what_may_come() {
        volley_log::classes().unwrap();
        let text = help("show log ", &Some2);
        assert!(text.contains("level") && text.contains("<enter>"), "{text}");
        assert!(help("", &Some2).contains("  show  "));
    }

    /// An example of a word that the slot accepts.
    fn sample(takes: Takes) -> &'static str {
        match takes {
            Takes::Number => "1",
            Takes::Text(Shape::Prefix) => "10.0.0.0/8",
            Takes::Text(Shape::Address) => "192.0.2.1",
            Takes::Text(Shape::Network) => "239.1.1.1",
            Takes::Text(Shape::Mac) => "02:00:00:00:00:01",
            Takes::Text(Shape::Block) => "{ x }",
            Takes::OneOf(all) => all[0],
            _ => "x9",
        }
    }

    /// Visits every word of a pattern, each with a line that may precede it; among several choices the path continues with the
    /// choice at `pick`.
    fn visit(
        (pattern, pick): (&Pattern, usize),
        before: &mut String,
        each: &mut dyn FnMut(&str, Word),
    ) {
        match pattern {
            Pattern::Leaf(Eats::Word(word)) => {
                each(before, *word);
                *before += &format!("{} ", word.text);
            }
            Pattern::Leaf(Eats::Slot(slot)) => *before += &format!("{} ", sample(slot.takes)),
            Pattern::Seq(all) => all.iter().for_each(|p| visit((p, pick), before, each)),
            Pattern::OneOf(choices) => {
                for choice in choices {
                    visit((choice, pick), &mut before.clone(), each);
                }
                let chosen = &choices[pick.min(choices.len() - 1)];
                visit((chosen, pick), before, &mut |_, _| ());
            }
            Pattern::Optional(inner) => visit((inner, pick), &mut before.clone(), each),
            Pattern::Many(all) => {
                let visit = |it| visit((it, pick), &mut before.clone(), each);
                all.iter().for_each(visit);
            }
        }
    }

    #[test]
    fn every_keyword_has_a_meaning() {
        let mut without = std::collections::BTreeSet::new();
        let all = objects::commands(&volley_object::classes());
        let own = all.iter().filter(|(command, _)| command.id.of == Of::Own);
        for ((_, pattern), pick) in own.flat_map(|it| [(it, 0), (it, 1)]) {
            visit((pattern, pick), &mut String::new(), &mut |before, word| {
                let all = ways(before, &NoNames).candidates;
                let found = all.iter().find(|c| c.text == word.text);
                let help = found.map_or("it is not offered", |c| &c.help);
                let missing = help.is_empty()
                    || help == UNKNOWN
                    || help.ends_with(" more)")
                    || found.is_none();
                if missing {
                    without.insert(format!("{before}[{}]: {help}", word.text));
                }
            });
        }
        assert!(without.is_empty(), "{without:#?}");
    }
}
