//! Errors of a configuration file: file, line, column, key, and the allowed values.

/// One error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {key}{}{message}", if .key.is_empty() { "" } else { ": " })]
pub struct ConfigError {
    /// File name, as given by the caller.
    pub file: String,
    /// Line, from 1; 0: the error concerns the file as a whole.
    pub line: usize,
    /// Column in characters from 1.
    pub column: usize,
    /// Key, such as `interface.mtu`; empty when the error does not concern a key.
    pub key: String,
    /// One sentence.
    pub message: String,
}

/// All errors of a file, in order of position; at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    pub(crate) fn whole(file: &str, message: String) -> ConfigErrors {
        ConfigErrors(vec![ConfigError {
            file: file.to_string(),
            line: 0,
            column: 0,
            key: String::new(),
            message,
        }])
    }
}

/// Converts byte offsets to lines and columns.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        let behind = text.match_indices('\n').map(|(i, _)| i + 1);
        let starts = std::iter::once(0).chain(behind).collect();
        Lines { text, starts }
    }

    /// Line and column of a byte, both from 1.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|s| *s <= at).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at);
        (line, before.map_or(0, |b| b.chars().count()) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let lines = Lines::new("é = 1\nab");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(3), (1, 3));
        assert_eq!(lines.place(8), (2, 2));
        assert_eq!(lines.place(99), (2, 1));
    }
}
