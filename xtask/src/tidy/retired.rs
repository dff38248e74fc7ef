//! Retired words in comments of Rust files and in pages: none, or no more than the list's ceiling for a word that is still
//! being replaced.

use super::Finding;
use super::source::{self, Source};
use crate::error::Error;
use crate::home::Home;

const LIST: &str = "xtask/src/tidy/retired-words.txt";

/// Pages that are not checked: a history, and what is generated from the code.
const PAGES_NOT_CHECKED: [&str; 2] = ["CHANGELOG.md", "docs/generated/"];

/// A word of the list.
#[derive(Debug, PartialEq, Eq)]
struct Retired {
    word: String,
    instead: String,
    /// Occurrences that are accepted until they are replaced.
    ceiling: usize,
}

/// Counts each word of the list over the checkout.
pub fn words(home: &Home, sources: &[Source]) -> Result<Vec<Finding>, Error> {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).map_err(Error::file(path));
    let list = retired(&read(&home.root.join(LIST))?).map_err(Error::Usage)?;
    let mut texts: Vec<String> = sources
        .iter()
        .map(|source| comments(&source.text))
        .collect();
    for path in source::files(home)? {
        let name = source::relative(home, &path);
        let checked = !PAGES_NOT_CHECKED.iter().any(|page| name.starts_with(page));
        if checked && name.ends_with(".md") {
            texts.push(read(&path)?);
        }
    }
    let lower: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let judge = |it: &Retired| judge(it, lower.iter().map(|text| count(text, &it.word)).sum());
    Ok(list.iter().filter_map(judge).collect())
}

fn judge(it: &Retired, times: usize) -> Option<Finding> {
    let Retired {
        word,
        instead,
        ceiling,
    } = it;
    let text = format!(
        "`{word}` is retired, use: {instead} ({times} times in comments and pages, {ceiling} accepted)"
    );
    (times > *ceiling).then(|| Finding {
        path: LIST.to_owned(),
        line: 0,
        text,
    })
}

/// The lines `WORD<TAB>INSTEAD` and `open<TAB>CEILING<TAB>WORD<TAB>INSTEAD`; `review` lines are for readers.
fn retired(list: &str) -> Result<Vec<Retired>, String> {
    let mut found = Vec::new();
    for (at, line) in list.lines().enumerate() {
        let bad = || format!("{LIST}:{}: not a line of this list", at + 1);
        let columns: Vec<&str> = line.split('\t').collect();
        let (word, instead, ceiling) = match columns[..] {
            _ if line.is_empty() || line.starts_with('#') => continue,
            ["review", _, _] => continue,
            ["open", ceiling, word, instead] => {
                (word, instead, ceiling.parse().map_err(|_| bad())?)
            }
            [word, instead] => (word, instead, 0),
            _ => return Err(bad()),
        };
        found.push(Retired {
            word: word.to_lowercase(),
            instead: instead.to_owned(),
            ceiling,
        });
    }
    Ok(found)
}

/// The comments of a Rust file, a line each. A line in which `//` is part of a string counts from there: no harm.
fn comments(text: &str) -> String {
    let behind = |line| str::split_once(line, "//").map(|(_, comment)| comment);
    text.lines()
        .filter_map(behind)
        .collect::<Vec<_>>()
        .join("\n")
}

/// How often a text has a word, as a whole word; both in lower case.
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
        let list = "# head\n\ngiver\tproducer\nreview\tpair\ta tap\nopen\t3\tYard\tqueue\n";
        let all = retired(list).unwrap();
        let words: Vec<_> = all.iter().map(|it| (&it.word[..], it.ceiling)).collect();
        assert_eq!(words, [("giver", 0), ("yard", 3)]);
        for bad in ["giver", "open\tmany\tyard\tqueue", "a\tb\tc"] {
            assert!(retired(bad).unwrap_err().contains(":1:"), "{bad}");
        }
    }

    #[test]
    fn whole_words_of_comments_are_counted() {
        let text = comments("let giver = 1; // The giver, a givers' giver_x.\nlet giver = 2;\n");
        assert_eq!(count(&text.to_lowercase(), "giver"), 1);
        assert_eq!(count("is told. is told", "is told"), 2);
    }

    #[test]
    fn a_word_may_not_come_back() {
        let it = |ceiling| Retired {
            word: "giver".into(),
            instead: "producer".into(),
            ceiling,
        };
        assert!(judge(&it(0), 0).is_none() && judge(&it(2), 2).is_none());
        let finding = judge(&it(0), 1).unwrap().text;
        assert!(finding.contains("`giver` is retired, use: producer"));
    }
}
