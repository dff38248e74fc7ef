//! Text to tokens. The text between parentheses is one token: its meaning depends on the element.

use crate::error::{ClickError, Source};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, or a number.
    Word,
    /// `$name`, without the dollar sign.
    Variable,
    /// The text between parentheses.
    Config,
    /// `->`
    Arrow,
    /// `=>`
    PairArrow,
    /// `::`
    Colons,
    /// `[`
    OpenPorts,
    /// `]`
    ClosePorts,
    /// `{`
    OpenBody,
    /// `}`
    CloseBody,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `|`
    Bar,
    /// `||`
    BarBar,
    /// `...`
    Ellipsis,
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// The first byte of the token; of a configuration, that of the text behind the parenthesis.
    pub(crate) at: usize,
}

const SIGNS: [(&str, Kind); 12] = [
    ("...", Kind::Ellipsis),
    ("->", Kind::Arrow),
    ("=>", Kind::PairArrow),
    ("::", Kind::Colons),
    ("||", Kind::BarBar),
    ("|", Kind::Bar),
    ("[", Kind::OpenPorts),
    ("]", Kind::ClosePorts),
    ("{", Kind::OpenBody),
    ("}", Kind::CloseBody),
    (",", Kind::Comma),
    (";", Kind::Semicolon),
];

/// Whether a byte may be part of a name.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@'
}

/// All tokens of a text; the last one is [`Kind::End`].
pub(crate) fn tokens(source: &Source) -> Result<Vec<Token<'_>>, ClickError> {
    let text = source.text();
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(source, at)?;
        let rest = &text[at..];
        let Some(&byte) = rest.as_bytes().first() else {
            all.push(token(Kind::End, "", at));
            return Ok(all);
        };
        if let Some((sign, kind)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            all.push(token(*kind, &rest[..sign.len()], at));
            at += sign.len();
        } else if byte == b'(' {
            let end = config_end(source, at)?;
            all.push(token(Kind::Config, &text[at + 1..end], at + 1));
            at = end + 1;
        } else if byte == b'$' {
            let name = word(&rest[1..], false);
            if name.is_empty() {
                return Err(source.error(at, "a variable has a name behind the dollar sign"));
            }
            all.push(token(Kind::Variable, name, at));
            at += 1 + name.len();
        } else if is_name_byte(byte) {
            let name = word(rest, true);
            all.push(token(Kind::Word, name, at));
            at += name.len();
        } else {
            let sign = rest.chars().next().unwrap_or_default();
            let text = format!("{sign:?} has no meaning here: remove it or quote it");
            return Err(source.error(at, text));
        }
    }
}

fn token(kind: Kind, text: &str, at: usize) -> Token<'_> {
    Token { kind, text, at }
}

/// The name at the start of a text. A slash joins the names of nested elements.
fn word(text: &str, with_slash: bool) -> &str {
    let bytes = text.as_bytes();
    let joins = |i: usize| {
        with_slash && bytes[i] == b'/' && bytes.get(i + 1).is_some_and(|b| is_name_byte(*b))
    };
    let end = (0..bytes.len()).find(|&i| !is_name_byte(bytes[i]) && !joins(i));
    &text[..end.unwrap_or(bytes.len())]
}

/// The next byte that is neither space nor comment.
fn skip_blanks(source: &Source, mut at: usize) -> Result<usize, ClickError> {
    let text = source.text();
    let bytes = text.as_bytes();
    loop {
        let line_start = at == 0 || bytes.get(at - 1) == Some(&b'\n');
        match bytes.get(at) {
            Some(byte) if byte.is_ascii_whitespace() => at += 1,
            Some(b'#') if line_start => at = line_end(text, at),
            Some(b'/') => match comment_end(source, at)? {
                Some(end) => at = end,
                None => return Ok(at),
            },
            _ => return Ok(at),
        }
    }
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n| at + n)
}

/// The end of the comment that begins at `at`; none if none begins there.
fn comment_end(source: &Source, at: usize) -> Result<Option<usize>, ClickError> {
    let text = source.text();
    let rest = &text[at..];
    if rest.starts_with("//") {
        return Ok(Some(line_end(text, at)));
    }
    if !rest.starts_with("/*") {
        return Ok(None);
    }
    match rest[2..].find("*/") {
        Some(n) => Ok(Some(at + n + 4)),
        None => Err(source.error(at, "the comment does not end: write */ behind it")),
    }
}

/// The closing parenthesis of the configuration that opens at `open`.
fn config_end(source: &Source, open: usize) -> Result<usize, ClickError> {
    let bytes = source.text().as_bytes();
    let mut depth = 0usize;
    let mut at = open;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Ok(at),
            b')' => depth -= 1,
            b'"' | b'\'' => {
                at = quote_end(bytes, at).ok_or_else(|| {
                    source.error(
                        at,
                        "the quoted text does not end: write the quote behind it",
                    )
                })?;
                continue;
            }
            b'/' => {
                if let Some(end) = comment_end(source, at)? {
                    at = end;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let text = "the parenthesis is not closed: write ) behind the arguments";
    Err(source.error(open, text))
}

/// The byte behind the quoted text that begins at `at`.
pub(crate) fn quote_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut i = at + 1;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            _ if byte == quote => return Some(i + 1),
            b'\\' if quote == b'"' => i += 2,
            _ => i += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, String)> {
        let source = Source::new("t", text);
        let all = tokens(&source).unwrap();
        all.iter().map(|t| (t.kind, t.text.to_owned())).collect()
    }

    #[test]
    fn signs_words_and_configurations_are_tokens() {
        let all = kinds("#!x\na::B(\"),\" /* ) */, (2)) -> [1] c/d; // e\n$f | ||...");
        let words: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        let expected = [
            "a",
            "::",
            "B",
            "\"),\" /* ) */, (2)",
            "->",
            "[",
            "1",
            "]",
            "c/d",
            ";",
            "f",
            "|",
            "||",
            "...",
            "",
        ];
        assert_eq!(words, expected);
        assert_eq!(all[3].0, Kind::Config);
        assert_eq!(all[10].0, Kind::Variable);
    }

    #[test]
    fn faults_have_a_place() {
        let fault = |text: &str| tokens(&Source::new("t", text)).unwrap_err().to_string();
        assert!(fault("a ->\n  %").starts_with("t:2:3: '%' has no meaning"));
        assert!(fault("A(b").starts_with("t:1:2: the parenthesis is not closed"));
        assert!(fault("A(\"b)").starts_with("t:1:3: the quoted text does not end"));
        assert!(fault("/* b").starts_with("t:1:1: the comment does not end"));
    }
}
