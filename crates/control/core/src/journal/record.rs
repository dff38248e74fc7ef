//! What the files of the journal contain: a line with format, length and CRC-32 (IEEE 802.3), then lines of JSON. Files of
//! large commits have two such sections ([`super::large`]).

use super::large;
use serde::{Deserialize, Serialize};
use volley_model::{CommitHow, Request};
use volley_object::Startup;

/// Metadata of a commit that is written.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Seconds since 1970.
    pub time_s: u64,
    /// The operator's comment.
    pub comment: Option<String>,
    /// Who committed it: a user, or `token NAME`.
    pub user: Option<String>,
    /// How it was made.
    pub how: Option<CommitHow>,
    /// The earlier commit to which an operator rolled back by this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<u64>,
    /// The settings for the next start, when they come from the commit's file. Earlier versions called this field `engine`.
    #[serde(alias = "engine")]
    pub startup: Option<Startup>,
}

const COMMIT: &str = "volley-commit-2";
const HEAD: &str = "volley-head-2";
/// The first bytes of both kinds of files, in every version.
const OURS: &str = "volley-";

/// Maximum length of the first line.
const LINE: usize = 64;

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Number of the commit.
    pub number: u64,
    /// Time, author and comment.
    pub about: About,
    /// The requests that lead from an empty state to the commit's state.
    pub requests: Vec<Request>,
}

/// The first line of JSON. An unknown field is refused: its meaning is unknown, and without it the commit would have other
/// content.
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
    /// Number of heads written so far: of the two copies, the one with the greater number is newer.
    pub sequence: u64,
    /// The active commit; `None`: nothing was committed.
    pub current: Option<u64>,
    /// The time until which the commit waits to be confirmed (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// The commit that becomes active when the current one is not confirmed.
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
    /// The file does not exist, or the disk reported an error.
    #[error("cannot be read: {0}")]
    Unread(String),
    /// The first line is not that of a journal file.
    #[error("is damaged: its first line is not that of a {0}")]
    Line(&'static str),
    /// The file has the format of another version.
    #[error("has the format '{0}', which this version of Volley does not read")]
    Format(String),
    /// The file was truncated or extended.
    #[error("is damaged: it has {found} bytes behind its first line instead of {wanted}")]
    Length {
        /// Length by the first line, in bytes.
        wanted: u64,
        /// Actual length, in bytes.
        found: u64,
    },
    /// Bytes were changed.
    #[error("is damaged: its CRC is {found:08x} instead of {wanted:08x}")]
    Crc {
        /// The CRC in the first line.
        wanted: u32,
        /// The CRC of the bytes.
        found: u32,
    },
    /// The bytes are intact, but the content is not valid.
    #[error("line {line} is not understood: {why}")]
    Content {
        /// Line of the file, from 1.
        line: usize,
        /// The field and what is expected.
        why: String,
    },
    /// The file belongs to the commit with this number.
    #[error("has commit {0} in it")]
    Number(u64),
    /// The file has only the differences from the commit with this number.
    #[error("has only the differences from commit {0}")]
    Differences(u64),
    /// The file of the commit to which the differences refer cannot be used.
    #[error("has the differences from commit {0}, whose file {1}")]
    Base(u64, Box<Fault>),
    /// The commit to which the differences refer has other requests.
    #[error(
        "has the differences from commit {0}, but from other requests than those in the file of that commit"
    )]
    OtherBase(u64),
}

pub(super) fn sealed(format: &str, body: &[u8]) -> Vec<u8> {
    let line = line(format, body.len() as u64, crc32fast::hash(body));
    let mut bytes = line.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn line(format: &str, length: u64, crc: u32) -> String {
    format!("{format} {length} {crc:08x}\n")
}

/// The body of a file that consists of one section.
fn opened<'b>(format: &'static str, bytes: &'b [u8]) -> Result<&'b [u8], Fault> {
    let (wanted, _, body) = start(format, bytes)?;
    let found = body.len() as u64;
    match wanted == found {
        true => section(format, bytes).map(|(body, _)| body),
        false => Err(Fault::Length { wanted, found }),
    }
}

/// A section and the bytes behind it.
pub(super) fn section<'b>(
    format: &'static str,
    bytes: &'b [u8],
) -> Result<(&'b [u8], &'b [u8]), Fault> {
    let (length, wanted, rest) = start(format, bytes)?;
    let cut = usize::try_from(length).ok();
    let cut = cut.and_then(|length| rest.split_at_checked(length));
    let (body, rest) = cut.ok_or(Fault::Length {
        wanted: length,
        found: rest.len() as u64,
    })?;
    let found = crc32fast::hash(body);
    if wanted != found {
        return Err(Fault::Crc { wanted, found });
    }
    Ok((body, rest))
}

/// Length and CRC in the first line of a section, and the bytes behind that line.
fn start<'b>(format: &'static str, bytes: &'b [u8]) -> Result<(u64, u32, &'b [u8]), Fault> {
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
    let length: u64 = length.parse().map_err(|_| odd())?;
    let crc = u32::from_str_radix(crc, 16).map_err(|_| odd())?;
    // Numbers have several notations, of which the journal writes only one.
    match line(format, length, crc).as_bytes() == &bytes[..=end] {
        true => Ok((length, crc, body)),
        false => Err(odd()),
    }
}

pub(super) fn understood<'b, T: Deserialize<'b>>(line: usize, json: &'b [u8]) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|e| {
        let why = e.to_string();
        // The position that serde reports is relative to the line.
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Fault::Content { line, why }
    })
}

/// Registers the classes that an object brings: requests for their objects follow. Without them these are not understood, and
/// the error names the class.
fn bring(request: &Request) {
    if let Request::Set(object) = request
        && let Some(brings) = object.class().def().brings
    {
        let _ = brings(object);
    }
}

impl Commit {
    /// The content of the commit's file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let first = First {
            number: self.number,
            about: self.about.clone(),
        };
        // Every request can be written as JSON: requests are plain data with text keys.
        let _ = serde_json::to_writer(&mut body, &first);
        body.push(b'\n');
        for request in &self.requests {
            let _ = serde_json::to_writer(&mut body, request);
            body.push(b'\n');
        }
        sealed(COMMIT, &body)
    }

    /// Parses the file of a commit that has all its requests.
    pub fn read(bytes: &[u8]) -> Result<Commit, Fault> {
        if large::is_large(bytes) {
            return large::read(bytes, None);
        }
        let body = opened(COMMIT, bytes)?;
        let mut lines = body.split(|b| *b == b'\n').zip(2usize..);
        let (first, at) = lines.next().unwrap_or_default();
        let First { number, about } = understood(at, first)?;
        let lines = lines.filter(|(line, _)| !line.is_empty());
        let request = |(line, at)| {
            let request = understood(at, line)?;
            bring(&request);
            Ok(request)
        };
        let requests: Result<Vec<Request>, Fault> = lines.map(request).collect();
        Ok(Commit {
            number,
            about,
            requests: requests?,
        })
    }
}

impl Head {
    /// The content of the head's file.
    pub fn bytes(&self) -> Vec<u8> {
        sealed(HEAD, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Parses the head's file.
    pub fn read(bytes: &[u8]) -> Result<Head, Fault> {
        understood(2, opened(HEAD, bytes)?)
    }

    /// Whether a commit was rolled back, by its deadline or by an operator.
    pub fn has_rolled_back(&self, number: u64) -> bool {
        self.undone.contains(&number) || self.lapsed.iter().any(|l| l.number == number)
    }
}
