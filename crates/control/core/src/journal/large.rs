//! Files of large commits: a head with its own CRC, then the requests, or the differences from an earlier commit.
//!
//! - The head has number, time, author, comment and the number of requests, so that a list of commits reads only heads.
//! - Differences refer to a commit whose file has all its requests (the base), never to differences: a commit needs at most
//!   two files.
//! - A line of differences is a request, or `=AT LENGTH`: bytes of the base's requests that the commit has too. A line begins
//!   and ends with a line of the base.

use super::record::{About, Commit, Fault, sealed, section, understood};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use volley_model::Request;

const FORMAT: &str = "volley-commit-3";
const REQUESTS: &str = "volley-requests-3";

/// Which commits are stored as differences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Requests of fewer bytes are written whole, in the format of small commits.
    pub(crate) large: usize,
    /// Differences are at most this part of the base's requests; else the commit is written whole.
    pub(crate) share: usize,
}

pub(super) const SIZES: Sizes = Sizes {
    large: 64 << 10,
    share: 8,
};

/// Bytes at the start of a file that have the head, unless the comment is very long.
pub(super) const START: usize = 64 << 10;

/// The requests that differences refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Base {
    /// Number of the commit.
    pub(super) number: u64,
    /// Length of its requests, in bytes.
    length: u64,
    /// CRC-32 of its requests.
    crc: u32,
}

impl Base {
    fn of(number: u64, requests: &[u8]) -> Base {
        let (length, crc) = (requests.len() as u64, crc32fast::hash(requests));
        Base {
            number,
            length,
            crc,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    number: u64,
    about: About,
    requests: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<Base>,
}

/// What the head of a commit's file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Number of the commit.
    pub number: u64,
    /// Time, author and comment.
    pub about: About,
    /// Number of requests.
    pub requests: u64,
    /// The commit whose file has the other requests.
    pub(super) base: Option<u64>,
}

impl From<Commit> for Summary {
    fn from(commit: Commit) -> Summary {
        Summary {
            number: commit.number,
            about: commit.about,
            requests: commit.requests.len() as u64,
            base: None,
        }
    }
}

/// Whether a file has this format.
pub(super) fn is_large(bytes: &[u8]) -> bool {
    bytes.starts_with(FORMAT.as_bytes()) && bytes.get(FORMAT.len()) == Some(&b' ')
}

fn first(bytes: &[u8]) -> Result<(First, &[u8]), Fault> {
    let (head, rest) = section(FORMAT, bytes)?;
    Ok((understood(2, head)?, rest))
}

/// Reads the head of a file; the bytes behind it may be missing.
pub(super) fn summary(bytes: &[u8]) -> Result<Summary, Fault> {
    let (first, _) = first(bytes)?;
    Ok(Summary {
        number: first.number,
        about: first.about,
        requests: first.requests,
        base: first.base.map(|base| base.number),
    })
}

/// The requests in a file that has all of them, as JSON; `None` for differences.
pub(super) fn whole(bytes: &[u8]) -> Result<Option<&[u8]>, Fault> {
    let (first, rest) = first(bytes)?;
    let body = body(rest)?;
    Ok(first.base.is_none().then_some(body))
}

fn body(rest: &[u8]) -> Result<&[u8], Fault> {
    match section(REQUESTS, rest)? {
        (body, []) => Ok(body),
        (body, more) => Err(Fault::Length {
            wanted: body.len() as u64,
            found: (body.len() + more.len()) as u64,
        }),
    }
}

/// Reads a commit, with the bytes of its base's file if it has a base.
pub(super) fn read(bytes: &[u8], base: Option<&[u8]>) -> Result<Commit, Fault> {
    let (first, rest) = first(bytes)?;
    let lines = body(rest)?;
    let shared = match (first.base, base) {
        (None, _) => &[],
        (Some(of), None) => return Err(Fault::Differences(of.number)),
        (Some(of), Some(file)) => {
            let found = whole(file).and_then(|it| it.ok_or(Fault::Differences(of.number)));
            let found = found.map_err(|why| Fault::Base(of.number, Box::new(why)))?;
            match Base::of(of.number, found) == of {
                true => found,
                false => return Err(Fault::OtherBase(of.number)),
            }
        }
    };
    let mut requests = Vec::new();
    for (line, at) in lines.split(|b| *b == b'\n').zip(4usize..) {
        match line.strip_prefix(b"=") {
            Some(range) => {
                let kept = kept(range, shared).ok_or_else(|| Fault::Content {
                    line: at,
                    why: "it is no range of the requests of the other commit".into(),
                })?;
                for line in kept.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                    requests.push(understood(at, line)?);
                }
            }
            None if line.is_empty() => {}
            None => requests.push(understood(at, line)?),
        }
    }
    if requests.len() as u64 != first.requests {
        let (wanted, found) = (first.requests, requests.len());
        let why = format!("it names {wanted} requests, and the commit has {found}");
        return Err(Fault::Content { line: 2, why });
    }
    Ok(Commit {
        number: first.number,
        about: first.about,
        requests,
    })
}

/// The bytes that a range `AT LENGTH` names: whole lines.
fn kept<'b>(range: &[u8], base: &'b [u8]) -> Option<&'b [u8]> {
    let (at, length) = std::str::from_utf8(range).ok()?.split_once(' ')?;
    let at: usize = at.parse().ok()?;
    let kept = base.get(at..at.checked_add(length.parse().ok()?)?)?;
    let begins = at == 0 || base.get(at - 1) == Some(&b'\n');
    (begins && kept.ends_with(b"\n")).then_some(kept)
}

/// The content of a commit's file: all requests in the format of small commits if they are few, else differences from the base
/// (number and file) if they are short, else all requests.
pub(super) fn bytes(
    commit: &Commit,
    base: impl FnOnce() -> Option<(u64, Vec<u8>)>,
    sizes: Sizes,
) -> Vec<u8> {
    if !is_many(&commit.requests, sizes.large) {
        return commit.bytes();
    }
    if let Some((number, bytes)) = base()
        && let Ok(Some(requests)) = whole(&bytes)
        && let Some(lines) = differences(&commit.requests, requests, sizes)
    {
        return file(commit, Some(Base::of(number, requests)), &lines);
    }
    let mut lines = Vec::new();
    for request in &commit.requests {
        line(request, &mut lines);
    }
    file(commit, None, &lines)
}

/// Whether requests have at least so many bytes.
fn is_many(requests: &[Request], large: usize) -> bool {
    let (mut json, mut total) = (Vec::new(), 0);
    requests.iter().any(|request| {
        json.clear();
        line(request, &mut json);
        total += json.len();
        total >= large
    })
}

fn file(commit: &Commit, base: Option<Base>, lines: &[u8]) -> Vec<u8> {
    let first = First {
        number: commit.number,
        about: commit.about.clone(),
        requests: commit.requests.len() as u64,
        base,
    };
    let mut head = serde_json::to_vec(&first).unwrap_or_default();
    head.push(b'\n');
    let mut bytes = sealed(FORMAT, &head);
    bytes.extend(sealed(REQUESTS, lines));
    bytes
}

/// Every request can be written as JSON: requests are plain data with text keys.
fn line(request: &Request, to: &mut Vec<u8>) {
    let _ = serde_json::to_writer(&mut *to, request);
    to.push(b'\n');
}

/// The lines that turn the base's requests into these; `None` if they are long.
fn differences(requests: &[Request], base: &[u8], sizes: Sizes) -> Option<Vec<u8>> {
    let most = base.len() / sizes.share;
    let (mut out, mut json) = (Vec::new(), Vec::new());
    let mut keep = 0..0;
    let mut index: Option<HashMap<&[u8], usize>> = None;
    let flush = |keep: &std::ops::Range<usize>, out: &mut Vec<u8>| {
        if !keep.is_empty() {
            out.extend(format!("={} {}\n", keep.start, keep.len()).into_bytes());
        }
    };
    for request in requests {
        json.clear();
        line(request, &mut json);
        if base[keep.end..].starts_with(&json) {
            keep.end += json.len();
            continue;
        }
        flush(&keep, &mut out);
        // The index is built when it is first needed: most commits change few requests.
        match index.get_or_insert_with(|| index_of(base)).get(&json[..]) {
            Some(at) => keep = *at..at + json.len(),
            None => {
                out.extend_from_slice(&json);
                keep = keep.end..keep.end;
            }
        }
        if out.len() > most {
            return None;
        }
    }
    flush(&keep, &mut out);
    (out.len() <= most).then_some(out)
}

/// Where each line of the base begins.
fn index_of(base: &[u8]) -> HashMap<&[u8], usize> {
    let mut next = 0;
    let lines = base.split_inclusive(|b| *b == b'\n');
    let placed = lines.map(|line| {
        let at = next;
        next += line.len();
        (line, at)
    });
    placed.collect()
}
