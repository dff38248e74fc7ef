//! Source locations of code addresses: function and line, including inlined functions.

use addr2line::{Loader, demangle_auto};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// A function at an address; frames are ordered from the innermost to the outermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub function: String,
    /// `file:line`; empty if unknown.
    pub place: String,
}

/// A file of code in a process.
struct Module {
    from: u64,
    until: u64,
    /// Offset between addresses in the process and in the file.
    bias: u64,
    path: String,
    /// `None` until the first use; `Some(None)` if the file cannot be read.
    loader: Option<Option<Loader>>,
}

/// The code of a process.
pub struct Code {
    modules: Vec<Module>,
    /// Memory other than code: a name for each range.
    pub ranges: Vec<(u64, u64, String)>,
    known: HashMap<u64, Rc<[Frame]>>,
}

impl Code {
    /// Parses the text of `/proc/PID/maps`.
    pub fn new(maps: &str) -> Self {
        let mut code = Code {
            modules: Vec::new(),
            ranges: Vec::new(),
            known: HashMap::new(),
        };
        let mut bias: HashMap<&str, u64> = HashMap::new();
        for line in maps.lines() {
            let Some((from, until, may, offset, path)) = parse(line) else {
                continue;
            };
            if path.starts_with('/') && offset == 0 {
                bias.entry(path).or_insert(from);
            }
            if may.contains('x') && path.starts_with('/') {
                code.modules.push(Module {
                    from,
                    until,
                    bias: bias.get(path).copied().unwrap_or(from - offset),
                    path: path.to_owned(),
                    loader: None,
                });
            } else {
                code.ranges.push((from, until, path.to_owned()));
            }
        }
        code
    }

    /// The functions at an address.
    pub fn frames(&mut self, ip: u64) -> Rc<[Frame]> {
        if let Some(known) = self.known.get(&ip) {
            return known.clone();
        }
        let mut modules = self.modules.iter_mut();
        let module = modules.find(|m| (m.from..m.until).contains(&ip));
        let frames: Rc<[Frame]> = module.map_or_else(Vec::new, |m| m.frames(ip)).into();
        self.known.insert(ip, frames.clone());
        frames
    }

    /// The type of memory at an address.
    pub fn range(&self, address: u64) -> Option<&(u64, u64, String)> {
        let mut ranges = self.ranges.iter();
        ranges.find(|(from, until, _)| (*from..*until).contains(&address))
    }
}

impl Module {
    fn frames(&mut self, ip: u64) -> Vec<Frame> {
        let path = &self.path;
        let open = || Loader::new(path).ok();
        let Some(loader) = self.loader.get_or_insert_with(open) else {
            return Vec::new();
        };
        let probe = ip - self.bias;
        let mut frames = Vec::new();
        if let Ok(mut found) = loader.find_frames(probe) {
            while let Ok(Some(frame)) = found.next() {
                let raw = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                let Some(raw) = raw else { continue };
                let place = frame.location.and_then(|l| Some((l.file?, l.line?)));
                frames.push(Frame {
                    function: plain(raw),
                    place: place.map_or_else(String::new, |(f, l)| format!("{}:{l}", short(f))),
                });
            }
        }
        if frames.is_empty()
            && let Some(name) = loader.find_symbol(probe)
        {
            frames.push(Frame {
                function: plain(Cow::Borrowed(name)),
                place: String::new(),
            });
        }
        frames
    }
}

/// The function name without its hash.
fn plain(raw: Cow<'_, str>) -> String {
    let name = demangle_auto(raw, None).into_owned();
    // Generic arguments make names longer than a screen line.
    let name = match name.find('<') {
        Some(at) if at > 0 => name[..at].to_owned(),
        _ => name,
    };
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => name,
    }
}

/// Folders of the workspace that hold crates.
const FOLDERS: [&str; 5] = ["crates/", "apps/", "tools/", "dev/", "xtask/"];

/// A path relative to the workspace's folder; of other paths the last three names.
fn short(path: &str) -> &str {
    let begins = |folder| path.rfind(&format!("/{folder}"));
    if let Some(at) = FOLDERS.into_iter().find_map(begins) {
        return &path[at + 1..];
    }
    let cut = path.rmatch_indices('/').nth(2);
    cut.map_or(path, |(at, _)| &path[at + 1..])
}

/// Whether a frame belongs to the workspace; the file decides, also for inlined functions.
pub fn is_own(frame: &Frame) -> bool {
    FOLDERS.iter().any(|f| frame.place.starts_with(f))
}

/// A line of `maps`: start, end, permissions, offset in the file, its path.
fn parse(line: &str) -> Option<(u64, u64, &str, u64, &str)> {
    let mut words = line.splitn(6, ' ');
    let (from, until) = words.next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (may, offset) = (words.next()?, words.next()?);
    let path = words.nth(2).unwrap_or_default().trim();
    Some((hex(from)?, hex(until)?, may, hex(offset)?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn somewhere() -> u64 {
        std::hint::black_box(1)
    }

    #[test]
    fn a_function_of_this_program_is_named() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut code = Code::new(&maps);
        let frames = code.frames(somewhere as *const () as u64);
        let last = frames.last().unwrap();
        assert!(
            last.function.ends_with("somewhere") && is_own(last),
            "{last:?}"
        );
        assert!(
            last.place
                .starts_with("dev/experiments/src/contended/code.rs:"),
            "{last:?}"
        );
        let local = 0u64;
        let stack = code.range(std::ptr::from_ref(&local) as u64).unwrap();
        assert!(stack.0 > 0 && code.range(1).is_none());
    }

    #[test]
    fn names_lose_their_hash_and_runtime_is_told_apart() {
        assert_eq!(
            plain("_ZN6volley3run17h0123456789abcdefE".into()),
            "volley::run"
        );
        assert_eq!(plain("memcpy".into()), "memcpy");
        let of = |place: &str| Frame {
            function: "take".into(),
            place: format!("{}:7", short(place)),
        };
        assert!(is_own(&of("/a/b/crates/base/tables/src/exchange.rs")));
        assert!(!is_own(&of("/rustc/1/library/core/src/ptr/mod.rs")));
        assert!(!is_own(&of(
            "/root/.cargo/registry/src/x/crossbeam-queue-0.3.12/src/array_queue.rs"
        )));
        assert_eq!(
            short("/a/b/crates/base/buf/src/ring.rs"),
            "crates/base/buf/src/ring.rs"
        );
        assert_eq!(
            short("/rustc/1/library/core/src/ptr/mod.rs"),
            "src/ptr/mod.rs"
        );
    }
}
