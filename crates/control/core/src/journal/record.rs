//! What the files of the journal hold: a line with length and checksum, then lines of JSON.

use super::About;
use serde::{Deserialize, Serialize};
use volley_model::Request;

const COMMIT: &str = "volley-commit-1";
const HEAD: &str = "volley-head-1";

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

#[derive(Serialize, Deserialize)]
struct First {
    number: u64,
    #[serde(flatten)]
    about: About,
}

/// Which commit holds.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// The commit that holds; none = nothing was committed.
    pub current: Option<u64>,
    /// It waits to be confirmed until then (seconds since 1970).
    pub confirm_by: Option<u64>,
    /// What holds when it is not confirmed.
    pub before: Option<u64>,
    /// Commits that were not confirmed in time; none in journals of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapsed: Vec<Lapsed>,
}

/// A commit that was not confirmed in time, and was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lapsed {
    /// The commit's number.
    pub number: u64,
    /// When it was rolled back, in seconds since 1970.
    pub time_s: u64,
}

/// FNV-1a: finds what a crash or a disk did to a file; nobody is kept from forging one.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

pub(super) fn sealed(kind: &str, body: &[u8]) -> Vec<u8> {
    let line = format!("{kind} {} {:016x}\n", body.len(), checksum(body));
    let mut bytes = line.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn opened<'b>(kind: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let (line, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let mut words = line.split(' ');
    let is = words.next()? == kind
        && words.next()?.parse() == Ok(body.len())
        && u64::from_str_radix(words.next()?, 16) == Ok(checksum(body));
    is.then_some(body)
}

impl Commit {
    /// As it stands in its file.
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

    /// From its file; none when it does not add up.
    pub fn read(bytes: &[u8]) -> Option<Commit> {
        let body = opened(COMMIT, bytes)?;
        let mut lines = body.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let First { number, about } = serde_json::from_slice(lines.next()?).ok()?;
        let requests: Result<Vec<Request>, _> = lines.map(serde_json::from_slice).collect();
        Some(Commit {
            number,
            about,
            requests: requests.ok()?,
        })
    }
}

impl Head {
    /// As it stands in its file.
    pub fn bytes(&self) -> Vec<u8> {
        sealed(HEAD, &serde_json::to_vec(self).unwrap_or_default())
    }

    /// From its file; none when it does not add up.
    pub fn read(bytes: &[u8]) -> Option<Head> {
        serde_json::from_slice(opened(HEAD, bytes)?).ok()
    }
}
