//! What the files of the journal contain: a line with format, length and CRC-32 (IEEE 802.3), then lines of JSON.

use serde::{Deserialize, Serialize};
use volley_model::{CommitHow, Request};
use volley_object::Startup;

/// What is asked of a commit when it is written.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Seconds since 1970.
    pub time_s: u64,
    /// What the operator said.
    pub comment: Option<String>,
    /// Who committed it: a user, or `token NAME`.
    pub user: Option<String>,
    /// How it was made.
    pub how: Option<CommitHow>,
    /// The earlier commit that an operator rolled back to by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<u64>,
    /// What the next start reads, when the commit's file gave it. Earlier versions called it `engine`.
    #[serde(alias = "engine")]
    pub startup: Option<Startup>,
}

const COMMIT: &str = "volley-commit-2";
const HEAD: &str = "volley-head-2";
/// How both begin in every version.
const OURS: &str = "volley-";

/// Longest first line.
const LINE: usize = 64;

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub number: u64,
    /// When, by whom, why.
    pub about: About,
    /// The requests that lead from nothing to it.
    pub requests: Vec<Request>,
}

/// The first line of JSON. An unknown field is refused: what it means is not known, so the commit would be another one
/// without it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    number: u64,
    about: About,
}

/// Which commit is active.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Counts the heads that were written: of two copies, the one with the greater number is the later one.
    pub sequence: u64,
    /// The commit that is active; none = nothing was committed.
    pub current: Option<u64>,
    /// It waits to be confirmed until then (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// What is active when it is not confirmed.
    pub before: Option<u64>,
    /// Commits that were not confirmed in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapsed: Vec<Lapsed>,
    /// Commits that an operator rolled back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<u64>,
}

/// A commit that was not confirmed in time, and was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lapsed {
    /// The commit's number.
    pub number: u64,
    /// When it was rolled back, in seconds since 1970.
    pub time_s: u64,
}

/// Why a file cannot be used: a clause that follows "FILE: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is not there, or the disk does not give it.
    #[error("cannot be read: {0}")]
    Unread(String),
    /// Its first line is not one of ours.
    #[error("is damaged: its first line is not that of a {0}")]
    Line(&'static str),
    /// It is of another version.
    #[error("has the format '{0}', which this version of Volley does not read")]
    Format(String),
    /// It was cut, or something was added.
    #[error("is damaged: it has {found} bytes behind its first line instead of {wanted}")]
    Length {
        /// Bytes that its first line names.
        wanted: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Bytes have changed.
    #[error("is damaged: its CRC is {found:08x} instead of {wanted:08x}")]
    Crc {
        /// The CRC of its first line.
        wanted: u32,
        /// That of its bytes.
        found: u32,
    },
    /// Its content is whole, but has another meaning.
    #[error("line {line} is not understood: {why}")]
    Content {
        /// Line of the file, from 1.
        line: usize,
        /// The field and what is expected.
        why: String,
    },
    /// It is the file of another commit.
    #[error("has commit {0} in it")]
    Number(u64),
}

pub(super) fn sealed(format: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = line(format, body).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn line(format: &str, body: &[u8]) -> String {
    format!("{format} {} {:08x}\n", body.len(), crc32fast::hash(body))
}

fn opened<'b>(format: &'static str, bytes: &'b [u8]) -> Result<&'b [u8], Fault> {
    let odd = || Fault::Line(format);
    let end = bytes.iter().take(LINE).position(|b| *b == b'\n');
    let end = end.ok_or_else(odd)?;
    let (first, body) = (&bytes[..end], &bytes[end + 1..]);
    let first = std::str::from_utf8(first).map_err(|_| odd())?;
    let words: Vec<&str> = first.split(' ').collect();
    let [name, length, crc] = words[..] else {
        return Err(odd());
    };
    if name != format {
        let plain = name.bytes().all(|b| b.is_ascii_graphic()) && name.starts_with(OURS);
        return Err(if plain {
            Fault::Format(name.into())
        } else {
            odd()
        });
    }
    let wanted: u64 = length.parse().map_err(|_| odd())?;
    let found = body.len() as u64;
    if wanted != found {
        return Err(Fault::Length { wanted, found });
    }
    let wanted = u32::from_str_radix(crc, 16).map_err(|_| odd())?;
    let found = crc32fast::hash(body);
    if wanted != found {
        return Err(Fault::Crc { wanted, found });
    }
    // Numbers can be written in several ways, of which one is ours.
    match line(format, body).as_bytes() == &bytes[..=end] {
        true => Ok(body),
        false => Err(odd()),
    }
}

fn understood<'b, T: Deserialize<'b>>(line: usize, json: &'b [u8]) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|e| {
        let why = e.to_string();
        // The place is that within the line.
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Fault::Content { line, why }
    })
}

impl Commit {
    /// As it is written into its file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let first = First {
            number: self.number,
            about: self.about.clone(),
        };
        // Every request can be written as JSON: they are plain data with text keys.
        let _ = serde_json::to_writer(&mut body, &first);
        body.push(b'\n');
        for request in &self.requests {
            let _ = serde_json::to_writer(&mut body, request);
            body.push(b'\n');
        }
        sealed(COMMIT, &body)
    }

    /// From its file.
    pub fn read(bytes: &[u8]) -> Result<Commit, Fault> {
        let body = opened(COMMIT, bytes)?;
        let mut lines = body.split(|b| *b == b'\n').zip(2usize..);
        let (first, at) = lines.next().unwrap_or_default();
        let First { number, about } = understood(at, first)?;
        let lines = lines.filter(|(line, _)| !line.is_empty());
        let requests: Result<Vec<Request>, Fault> =
            lines.map(|(line, at)| understood(at, line)).collect();
        Ok(Commit {
            number,
            about,
            requests: requests?,
        })
    }
}

impl Head {
    /// As it is written into its file.
    pub fn bytes(&self) -> Vec<u8> {
        sealed(HEAD, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// From its file.
    pub fn read(bytes: &[u8]) -> Result<Head, Fault> {
        understood(2, opened(HEAD, bytes)?)
    }

    /// Whether a commit was rolled back, by its deadline or by an operator.
    pub fn has_rolled_back(&self, number: u64) -> bool {
        self.undone.contains(&number) || self.lapsed.iter().any(|l| l.number == number)
    }
}
