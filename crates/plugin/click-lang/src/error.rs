//! A file with a configuration, and the faults in it.

/// A fault in a configuration: one sentence and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}")]
pub struct ClickError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The sentence.
    pub text: String,
}

/// A configuration and the name of its file.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// A configuration.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            text: text.into(),
        }
    }

    /// A configuration from the bytes of a file.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Source, ClickError> {
        let name = name.into();
        String::from_utf8(bytes)
            .map(|text| Source::new(name.clone(), text))
            .map_err(|error| {
                let valid = error.utf8_error().valid_up_to();
                let bytes = &error.as_bytes()[..valid];
                let source = Source::new(name, String::from_utf8_lossy(bytes));
                source.error(
                    valid,
                    "the file is not UTF-8 text here: remove or convert the bytes",
                )
            })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line and column of a byte of the text, each from 1.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let mut end = at.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// A fault at a byte of the text. The sentence may quote the file: control characters are escaped, so that it is one line
    /// and does not act on a terminal.
    pub fn error(&self, at: usize, text: impl AsRef<str>) -> ClickError {
        let (line, column) = self.place(at);
        let shown = |c: char| match c.is_control() {
            true => c.escape_default().to_string(),
            false => c.to_string(),
        };
        ClickError {
            file: self.name.clone(),
            line,
            column,
            text: text.as_ref().chars().map(shown).collect(),
        }
    }
}
