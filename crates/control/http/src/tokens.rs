//! Tokens of clients over TCP, each with a name and a role, from one private file.
//!
//! A line of the file is `NAME ROLE TOKEN`. A line with a token alone has the file's name and the role `configure`. Empty
//! lines and lines that begin with `#` are skipped.

use crate::http_error::HttpError;
use crate::tls::wrong;
use std::path::Path;
use volley_model::Role;

/// Minimum length of a token in bytes.
const SHORTEST: usize = 16;
/// Maximum length of a name in bytes.
const LONGEST_NAME: usize = 64;
/// Maximum number of tokens.
const MOST: usize = 1024;
/// Maximum size of the file in bytes.
const MAX_FILE: u64 = 256 << 10;

/// One token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Name in the log.
    pub name: String,
    /// Role of the clients with this token.
    pub role: Role,
    secret: String,
}

/// All tokens.
#[derive(Debug)]
pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    /// Reads a file that only its owner may be able to read.
    pub fn read(file: &Path) -> Result<Tokens, HttpError> {
        let bytes = volley_file::read_private(file, MAX_FILE).map_err(|e| wrong(file, e))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = String::from_utf8_lossy(&bytes);
        Tokens::parse(&text, &stem).map_err(|why| wrong(file, why))
    }

    /// Parses a file. Errors never quote the line, which may contain a token at any position.
    pub(crate) fn parse(text: &str, stem: &str) -> Result<Tokens, String> {
        let mut all: Vec<Token> = Vec::new();
        let lines = text
            .lines()
            .enumerate()
            .map(|(n, line)| (n + 1, line.trim()));
        for (number, line) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
            let token = line_of(line, stem).map_err(|why| format!("line {number}: {why}"))?;
            if all.iter().any(|other| other.name == token.name) {
                return Err(format!("line {number}: a line before has this name"));
            }
            if all.iter().any(|other| other.secret == token.secret) {
                return Err(format!("line {number}: a line before has this token"));
            }
            if all.len() == MOST {
                return Err(format!("line {number}: there may be {MOST} tokens at most"));
            }
            all.push(token);
        }
        match all.is_empty() {
            true => Err("it has no token: write lines such as `NAME read TOKEN`".to_owned()),
            false => Ok(Tokens(all)),
        }
    }

    /// Finds the token of a client. Every token is compared completely: the duration does not reveal how much of a guess was
    /// right.
    pub fn find(&self, given: &[u8]) -> Option<&Token> {
        let mut found = None;
        for token in &self.0 {
            if same(given, token.secret.as_bytes()) {
                found = Some(token);
            }
        }
        found
    }
}

fn line_of(line: &str, stem: &str) -> Result<Token, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, role, secret) = match words[..] {
        [secret] => (stem, Role::Configure, secret),
        [name, role, secret] => (name, role_of(role)?, secret),
        _ => return Err("write NAME ROLE TOKEN, or one token alone".to_owned()),
    };
    if secret.len() < SHORTEST || !secret.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(format!(
            "the token must have {SHORTEST} or more printable characters and no blank"
        ));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if words.len() == 3 && (name.len() > LONGEST_NAME || !name.chars().all(fits)) {
        return Err(format!(
            "the name must have at most {LONGEST_NAME} letters, digits and -_.@"
        ));
    }
    Ok(Token {
        name: name.to_owned(),
        role,
        secret: secret.to_owned(),
    })
}

/// Parses a role. The error does not quote the word: with three words on a line, it may be a token.
fn role_of(word: &str) -> Result<Role, String> {
    let wrong = |_| "the role must be read, operate or configure".to_owned();
    word.parse().map_err(wrong)
}

/// Checks the file of tokens like a start.
pub fn check_token(file: &Path) -> Result<(), HttpError> {
    Tokens::read(file).map(drop)
}

/// Compares two texts in a time that does not depend on where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y));
    a.len() == b.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123";
    const TWO: &str = "fedcba9876543210fedc";

    #[test]
    fn a_line_is_a_name_a_role_and_a_token_or_a_token_alone() {
        let text = format!("# who scrapes\nprometheus read {ONE}\n\n  {TWO}  \n");
        let tokens = Tokens::parse(&text, "token").unwrap();
        let of = |given: &str| {
            let found = tokens.find(given.as_bytes());
            found.map(|token| (token.name.as_str(), token.role))
        };
        assert_eq!(of(ONE), Some(("prometheus", Role::Read)));
        assert_eq!(of(TWO), Some(("token", Role::Configure)));
        let longer = format!("{ONE}0");
        for wrong in ["", "0", &ONE[..19], &longer, "prometheus", "\n", " "] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_without_the_token() {
        let cases = [
            (String::new(), "no token"),
            ("# none\n".to_owned(), "no token"),
            ("short\n".to_owned(), "line 1: the token must have 16"),
            (
                format!("a read {ONE}\na read {TWO}"),
                "line 2: a line before has this name",
            ),
            (
                format!("a read {ONE}\nb read {ONE}"),
                "line 2: a line before has this token",
            ),
            (
                format!("{ONE}\n{TWO}"),
                "line 2: a line before has this name",
            ),
            (format!("a admin {ONE}"), "line 1: the role must be"),
            (
                format!("a read {ONE} {TWO}"),
                "line 1: write NAME ROLE TOKEN",
            ),
            (format!("a\u{1b}[2J read {ONE}"), "line 1: the name must"),
            (format!("a {ONE} read"), "line 1: the role must be"),
            (format!("a read {ONE}\u{e9}"), "line 1: the token must have"),
        ];
        for (text, part) in cases {
            let error = Tokens::parse(&text, "token").unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
            assert!(!error.contains(ONE) && !error.contains(TWO), "{error}");
        }
    }
}
