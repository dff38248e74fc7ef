//! The text between parentheses: arguments with commas between them, quotes, comments.

use crate::lexer::quote_end;

/// The part of a text that [`scan`] has found.
enum Part<'a> {
    /// A byte outside of quotes, as text.
    Plain(&'a str),
    /// Quoted text with its quotes.
    Quoted(&'a str),
}

/// Call `visit` for each part of a text without comments. Quotes that do not end reach to the end.
fn scan<'a>(text: &'a str, mut visit: impl FnMut(Part<'a>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = match bytes[at] {
            b'"' | b'\'' => {
                let end = quote_end(bytes, at).unwrap_or(bytes.len()).min(bytes.len());
                visit(Part::Quoted(&text[at..end]));
                end
            }
            b'/' if rest.starts_with("//") => rest.find('\n').map_or(text.len(), |n| at + n),
            b'/' if rest.starts_with("/*") => {
                visit(Part::Plain(" "));
                rest[2..].find("*/").map_or(text.len(), |n| at + n + 4)
            }
            _ => {
                let len = rest.chars().next().map_or(1, char::len_utf8);
                visit(Part::Plain(&rest[..len]));
                at + len
            }
        };
        at = end;
    }
}

/// The arguments of a configuration, without comments and the spaces around them. An empty text has none.
pub fn split(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0usize;
    scan(text, |part| {
        let text = match part {
            Part::Plain(",") if depth == 0 => {
                all.push(String::new());
                return;
            }
            Part::Plain(text) | Part::Quoted(text) => text,
        };
        match part {
            Part::Plain("(" | "[" | "{") => depth += 1,
            Part::Plain(")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push_str(text);
        }
    });
    let mut all: Vec<String> = all.iter().map(|it| it.trim().to_owned()).collect();
    // A comma behind the last argument is allowed.
    if all.last().is_some_and(String::is_empty) {
        all.pop();
    }
    all
}

/// The words of an argument, with spaces between them; quoted spaces do not separate words.
pub fn words(argument: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut now = String::new();
    scan(argument, |part| match part {
        Part::Plain(text) if text.trim().is_empty() => {
            if !now.is_empty() {
                all.push(std::mem::take(&mut now));
            }
        }
        Part::Plain(text) | Part::Quoted(text) => now.push_str(text),
    });
    if !now.is_empty() {
        all.push(now);
    }
    all
}

/// A text without its quotes. In double quotes a backslash escapes a character.
pub fn unquote(text: &str) -> String {
    String::from_utf8_lossy(&bytes(text)).into_owned()
}

/// The bytes of a text without its quotes: in double quotes and outside of them `\<68 69>` means bytes in hexadecimal digits.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut all = Vec::new();
    scan(text, |part| match part {
        Part::Plain(text) => all.extend_from_slice(text.as_bytes()),
        Part::Quoted(text) => {
            let quote = &text[..1];
            let inner = &text[1..];
            let inner = inner.strip_suffix(quote).unwrap_or(inner);
            match quote {
                "'" => all.extend_from_slice(inner.as_bytes()),
                _ => escaped(inner, &mut all),
            }
        }
    });
    if text.contains("\\<") && !text.contains('"') {
        let mut plain = Vec::new();
        escaped(text, &mut plain);
        return plain;
    }
    all
}

/// Append a text in which backslashes escape.
fn escaped(text: &str, to: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        to.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(sign) = rest.chars().next() else {
            to.push(b'\\');
            break;
        };
        let behind = &rest[sign.len_utf8()..];
        rest = behind;
        match sign {
            'n' => to.push(b'\n'),
            't' => to.push(b'\t'),
            'r' => to.push(b'\r'),
            '0' => to.push(0),
            '<' => {
                let end = behind.find('>').unwrap_or(behind.len());
                hexadecimal(&behind[..end], to);
                rest = behind.get(end + 1..).unwrap_or_default();
            }
            other => to.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    to.extend_from_slice(rest.as_bytes());
}

/// Append bytes of hexadecimal digits; other characters separate them.
fn hexadecimal(text: &str, to: &mut Vec<u8>) {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let pairs = digits.chunks(2);
    to.extend(pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_and_parentheses_do_not_separate() {
        let all = split(" a, \"b,c\" /* d, */ e, (f, g), h // i, j\n");
        assert_eq!(all, ["a", "\"b,c\"   e", "(f, g)", "h"]);
        assert!(split("  ").is_empty());
        assert_eq!(split("a,"), ["a"]);
        assert_eq!(split(",a"), ["", "a"]);
    }

    #[test]
    fn words_keep_quoted_spaces() {
        assert_eq!(words(" a  'b c' d\"e f\" "), ["a", "'b c'", "d\"e f\""]);
    }

    #[test]
    fn quotes_and_escapes_are_removed() {
        assert_eq!(unquote("a \"b\\\"c\" 'd\\e'"), "a b\"c d\\e");
        assert_eq!(bytes("\\<00 ff 1>"), [0, 255, 1]);
        assert_eq!(bytes("\"x\\<41>\\n\""), b"xA\n");
        assert_eq!(unquote("\"never ends"), "never ends");
    }
}
