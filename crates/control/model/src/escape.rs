//! Escapes external text for a terminal or a log.

use std::fmt::Write;

/// Whether a character could control a terminal or forge a line: control characters (ESC, newline, C1), line and paragraph
/// separators, and characters that change the direction of text.
pub fn acts_on_terminals(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn with<'a>(text: &'a str, hostile: impl Fn(char) -> bool) -> std::borrow::Cow<'a, str> {
    if !text.chars().any(&hostile) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hostile(c) {
            // Writing into a string does not fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Escapes a text to one line without effect on a terminal: other characters are written as `
/// `, `\u{1b}` and so on (CWE-117, CWE-150).
pub fn escape(text: &str) -> std::borrow::Cow<'_, str> {
    with(text, acts_on_terminals)
}

/// Escapes a text of several lines: newlines and tabs stay.
pub fn escape_lines(text: &str) -> std::borrow::Cow<'_, str> {
    with(text, |c| acts_on_terminals(c) && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(escape("a plain é 名 line"), "a plain é 名 line");
        assert_eq!(
            escape("\x1b[2Jx\r\n\u{9b}31m\u{7f}\0"),
            "\\u{1b}[2Jx\\r\\n\\u{9b}31m\\u{7f}\\u{0}"
        );
        assert_eq!(escape("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
        assert_eq!(
            escape_lines("a\tb\n\x1b]0;x\x07\n"),
            "a\tb\n\\u{1b}]0;x\\u{7}\n"
        );
    }
}
