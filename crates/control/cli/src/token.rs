//! Words of a command line: separated by blanks; `"quoted"` with `\` before `"` and `\`; `{ ... }` is one word; `#` begins a
//! comment; a separate `|` is a word.

use volley_model::SyntaxError;

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Text without quotes or braces.
    pub(crate) text: String,
    /// Column of its first character, from 1.
    pub(crate) column: usize,
    /// Column after its last character.
    pub(crate) end: usize,
    /// The notation of the word.
    pub(crate) form: Form,
}

/// The notation of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Without quotes or braces.
    Plain,
    /// In quotes: never a keyword.
    Quoted,
    /// In braces.
    Block,
}

impl Token {
    /// Whether the word is this keyword, without quotes or braces.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.form == Form::Plain && self.text == word
    }
}

/// Splits a line whose first character has the column `base`.
pub(crate) fn tokens(line: &str, base: usize) -> Result<Vec<Token>, SyntaxError> {
    let mut reader = Reader {
        chars: line.chars().collect(),
        at: 0,
        base,
    };
    let mut all = Vec::new();
    while let Some(token) = reader.token()? {
        all.push(token);
    }
    Ok(all)
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    base: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn column(&self) -> usize {
        self.base + self.at
    }

    fn token(&mut self) -> Result<Option<Token>, SyntaxError> {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let column = self.column();
        let (text, form) = match self.peek() {
            None | Some('#') => return Ok(None),
            Some('"') => (self.quoted()?, Form::Quoted),
            Some('{') => (self.block()?, Form::Block),
            Some(_) => (self.plain(), Form::Plain),
        };
        let end = self.column();
        Ok(Some(Token {
            text,
            column,
            end,
            form,
        }))
    }

    fn plain(&mut self) -> String {
        let start = self.at;
        let stops = |c: char| c.is_whitespace() || c == '{';
        while self.peek().is_some_and(|c| !stops(c)) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let open = self.column();
        self.at += 1;
        let mut text = String::new();
        loop {
            let next = self.peek();
            self.at += 1;
            match next {
                Some('"') => return Ok(text),
                Some('\\') if matches!(self.peek(), Some('"' | '\\')) => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                Some(c) => text.push(c),
                None => {
                    return Err(SyntaxError::new(
                        open,
                        "this quote has no end: close it with \"",
                    ));
                }
            }
        }
    }

    fn block(&mut self) -> Result<String, SyntaxError> {
        let open = self.column();
        let start = self.at + 1;
        let mut depth = 0usize;
        while let Some(c) = self.peek() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                '"' => {
                    self.quoted()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(self.chars[start..self.at - 1].iter().collect());
            }
        }
        Err(SyntaxError::new(
            open,
            "this brace has no end: close it with }",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<(String, usize, usize)> {
        let all = tokens(line, 1).unwrap();
        all.into_iter().map(|t| (t.text, t.column, t.end)).collect()
    }

    #[test]
    fn words_quotes_and_blocks() {
        let all = texts("é \"a \\\"b\" {x {y} \"}\"}z # not");
        let expected = [
            ("é", 1, 2),
            ("a \"b", 3, 10),
            ("x {y} \"}\"", 11, 22),
            ("z", 22, 23),
        ];
        let expected = expected.map(|(t, a, b)| (t.to_string(), a, b));
        assert_eq!(all, expected);
    }

    #[test]
    fn open_quotes_and_braces_are_errors_at_their_place() {
        let e = tokens("a \"b", 1).unwrap_err().to_string();
        assert_eq!(e, "column 3: this quote has no end: close it with \"");
        let e = tokens("a {b {c}", 1).unwrap_err().to_string();
        assert_eq!(e, "column 3: this brace has no end: close it with }");
    }
}
