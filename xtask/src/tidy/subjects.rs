//! A doc comment must name its subject: readers see it alone, in help, in the API's description and in an editor.

use super::Finding;
use super::source::Source;

/// Words that need a sentence before them.
const PRONOUNS: [&str; 5] = ["It", "Its", "They", "Their", "Them"];

/// Doc comments whose first word is a pronoun.
pub fn pronouns(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (text, line) in source.text.lines().map(str::trim).zip(1..) {
        let comment = text.strip_prefix("///").or(text.strip_prefix("//!"));
        let first = comment.and_then(|it| it.split_whitespace().next());
        if let Some(word) = first.filter(|it| !is_inside && PRONOUNS.contains(it)) {
            let text = format!("`{word}` begins a doc comment: name its subject");
            findings.push(source.finding(line, text));
        }
        is_inside = comment.is_some();
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_begins_with_no_pronoun() {
        let found = |text| pronouns(&Source::new("crates/x/y/src/lib.rs", text));
        let text = "/// Its name.\npub name: String,\n    /// They are many.\npub all: u8,\n";
        let all = found(text);
        assert_eq!(all.len(), 2);
        assert!(all[0].to_string().contains(":1: `Its`"), "{}", all[0]);
        assert!(found("/// Name of a node.\n/// It is unique.\nname: u8,\n").is_empty());
        assert!(found("// It is no doc comment.\nlet it = 1;\n").is_empty());
    }
}
