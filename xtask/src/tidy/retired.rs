//! Retired words in comments of Rust files and in pages: none, or at most the list's ceiling for a word that is not yet
//! replaced everywhere.

use super::Finding;
use super::source::{self, Source};
use super::tokens::{self, Token};
use crate::error::Error;
use crate::home::Home;

const LIST: &str = "xtask/src/tidy/retired-words.txt";

/// Pages that are not checked: the change log, and generated pages.
const PAGES_NOT_CHECKED: [&str; 2] = ["CHANGELOG.md", "docs/generated/"];

/// A word of the list.
#[derive(Debug, PartialEq, Eq)]
struct Retired {
    word: String,
    instead: String,
    /// Whether identifiers are checked too.
    is_name: bool,
}

/// Looks for each word of the list in the checkout.
pub fn words(home: &Home, sources: &[Source]) -> Result<Vec<Finding>, Error> {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).map_err(Error::file(path));
    let list = retired(&read(&home.root.join(LIST))?).map_err(Error::Usage)?;
    let prose = |source: &Source| {
        let of_program = if source.is_test() {
            String::new()
        } else {
            strings(&tokens::outside_tests(&source.text))
        };
        format!("{}\n{of_program}", comments(&source.text))
    };
    let mut texts: Vec<(String, String)> = sources
        .iter()
        .map(|source| (source.path.clone(), prose(source)))
        .collect();
    for path in source::files(home)? {
        let name = source::relative(home, &path);
        let checked = !PAGES_NOT_CHECKED.iter().any(|page| name.starts_with(page));
        if checked && name.ends_with(".md") {
            texts.push((name, read(&path)?));
        }
    }
    let mut findings = Vec::new();
    for (path, text) in &texts {
        let text = text.to_lowercase();
        let used = list.iter().filter(|it| count(&text, &it.word) > 0);
        findings.extend(used.map(|it| finding(it, path, 0)));
    }
    let names: Vec<&Retired> = list.iter().filter(|it| it.is_name).collect();
    for source in sources {
        for token in tokens::all(&source.text) {
            let parts = parts(&token.text);
            let used = names.iter().find(|it| parts.contains(&it.word));
            findings.extend(used.map(|it| finding(it, &source.path, token.line)));
        }
    }
    Ok(findings)
}

fn finding(it: &Retired, path: &str, line: usize) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        text: format!("`{}` is retired, use: {}", it.word, it.instead),
    }
}

/// The lines `WORD<TAB>INSTEAD` and `open<TAB>CEILING<TAB>WORD<TAB>INSTEAD`; `review` lines are ignored.
fn retired(list: &str) -> Result<Vec<Retired>, String> {
    let mut found = Vec::new();
    for (at, line) in list.lines().enumerate() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (word, instead, is_name) = match columns[..] {
            _ if line.is_empty() || line.starts_with('#') => continue,
            ["review", _, _] => continue,
            ["name", word, instead] => (word, instead, true),
            [word, instead] => (word, instead, false),
            _ => return Err(format!("{LIST}:{}: not a line of this list", at + 1)),
        };
        found.push(Retired {
            word: word.to_lowercase(),
            instead: instead.to_owned(),
            is_name,
        });
    }
    Ok(found)
}

/// The string literals among tokens, a line each.
fn strings(tokens: &[Token]) -> String {
    let literals = tokens.iter().filter(|token| token.text.contains('"'));
    let texts: Vec<&str> = literals.map(|token| token.text.as_str()).collect();
    texts.join("\n")
}

/// The words of an identifier in lower case; none of another token.
fn parts(token: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    if token.contains('"') || token.contains('\'') {
        return parts;
    }
    for c in token.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            let lower = c.to_lowercase();
            match parts.last_mut() {
                Some(part) => part.extend(lower),
                None => parts.push(lower.collect()),
            }
        }
    }
    parts
}

/// The comments of a Rust file, a line each. A line in which `//` is part of a string counts from there: no harm.
fn comments(text: &str) -> String {
    let behind = |line| str::split_once(line, "//").map(|(_, comment)| comment);
    text.lines()
        .filter_map(behind)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Number of occurrences of a word in a text, as a whole word; both in lower case.
fn count(text: &str, word: &str) -> usize {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    let alone = |at: &usize| {
        let before = text[..*at].chars().next_back();
        let behind = text[*at + word.len()..].chars().next();
        !before.is_some_and(inside) && !behind.is_some_and(inside)
    };
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(alone)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let list = "# head\n\nwhoever\tthe subject\nreview\tpair\ta tap\nname\tYard\tqueue\n";
        let all = retired(list).unwrap();
        let words: Vec<_> = all.iter().map(|it| (&it.word[..], it.is_name)).collect();
        assert_eq!(words, [("whoever", false), ("yard", true)]);
        for bad in ["giver", "open\t3\tyard\tqueue", "a\tb\tc"] {
            assert!(retired(bad).unwrap_err().contains(":1:"), "{bad}");
        }
    }

    #[test]
    fn whole_words_of_comments_are_counted() {
        let text = comments("let word = 1; // The word, a words' word_x.\nlet word = 2;\n");
        assert_eq!(count(&text.to_lowercase(), "word"), 1);
        assert_eq!(count("is told. is told", "is told"), 2);
    }

    #[test]
    fn strings_are_prose_and_identifiers_have_words() {
        let text = "fn a() { b(\"goes before\", goes_before) }";
        assert_eq!(strings(&tokens::all(text)), "\"goes before\"");
        assert_eq!(parts("NoTwinHere"), ["no", "twin", "here"]);
        assert_eq!(parts("by_bell"), ["by", "bell"]);
        assert_eq!(parts("BELLS"), ["bells"]);
        assert_eq!(parts("\"a bell\""), [""]);
    }
}
