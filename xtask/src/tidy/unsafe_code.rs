//! Allowed places of unsafe code; each block must have a reason.

use super::Finding;
use super::source::Source;
use super::tokens;

/// Crates that are made of it.
const CRATES: [&str; 8] = [
    "crates/base/simd",
    "crates/base/buf",
    "crates/base/tables",
    "crates/base/graph",
    "crates/base/heap",
    "crates/base/stack-sample",
    "crates/plugin/abi",
    "crates/plugin/host",
];
/// Files of a driver that make system calls or access a ring.
const FILES: [&str; 2] = ["sys.rs", "ring.rs"];

fn allowed(source: &Source) -> bool {
    CRATES
        .iter()
        .any(|dir| source.path.starts_with(&format!("{dir}/")))
        || FILES.contains(&source.file_name())
}

/// `unsafe` outside the allowed places.
pub fn places(source: &Source) -> Vec<Finding> {
    if allowed(source) {
        return Vec::new();
    }
    let places = tokens::all(&source.text)
        .into_iter()
        .filter(|token| token.text == "unsafe");
    places
        .map(|token| {
            source.finding(
                token.line,
                "`unsafe` does not belong here; see CONTRIBUTING.md for where it may be",
            )
        })
        .collect()
}

/// Every unsafe block and impl has a comment with `SAFETY:` directly above it.
pub fn reasons(source: &Source) -> Vec<Finding> {
    if !allowed(source) {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let tokens = tokens::all(&source.text);
    let mut findings = Vec::new();
    for pair in tokens.windows(2) {
        let opens = pair[0].text == "unsafe" && (pair[1].text == "{" || pair[1].text == "impl");
        if opens && !has_reason(&lines, pair[0].line) {
            findings.push(source.finding(
                pair[0].line,
                "this unsafe block needs a `// SAFETY:` comment above it",
            ));
        }
    }
    findings
}

/// Searches upwards from a line (counted from 1) over comments, attributes and the rest of the same statement.
fn has_reason(lines: &[&str], line: usize) -> bool {
    let here = lines.get(line - 1).copied().unwrap_or_default();
    if here.contains("SAFETY:") {
        return true;
    }
    for above in lines[..line - 1].iter().rev() {
        let above = above.trim();
        if above.starts_with("//") {
            if above.contains("SAFETY:") {
                return true;
            }
        } else if above.is_empty() || above.ends_with([';', '}', '{']) && !above.contains("unsafe")
        {
            return false;
        }
    }
    false
}

/// Every crate root outside the list forbids unsafe code; one with driver files denies it.
pub fn crate_roots(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in sources
        .iter()
        .filter(|source| is_root(source) && !allowed(source))
    {
        let driver = |source: &&Source| {
            source.crate_dir() == root.crate_dir() && FILES.contains(&source.file_name())
        };
        let text: String = root.text.split_whitespace().collect();
        let denies =
            text.contains("#![deny(unsafe_code)]") && sources.iter().any(|source| driver(&source));
        if !text.contains("#![forbid(unsafe_code)]") && !denies {
            findings.push(root.finding(
                1,
                "a crate root outside the unsafe list must have `#![forbid(unsafe_code)]`",
            ));
        }
    }
    findings
}

fn is_root(source: &Source) -> bool {
    let ends = ["/src/lib.rs", "/src/main.rs"]
        .iter()
        .any(|end| source.path.ends_with(end));
    ends || (source.path.contains("/src/bin/") && source.path.matches('/').count() < 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUF: &str = "crates/base/buf/src/arena.rs";

    #[test]
    fn unsafe_is_found_in_wrong_places_even_in_macros() {
        let text = "macro_rules! m { () => { unsafe { f() } } }\n// unsafe in words is nothing\nunsafe fn g() {}";
        assert_eq!(
            places(&Source::new("crates/net/ip/src/lib.rs", text)).len(),
            2
        );
        assert!(places(&Source::new(BUF, text)).is_empty());
        assert!(places(&Source::new("crates/io/tap/src/sys.rs", text)).is_empty());
        assert_eq!(
            places(&Source::new("crates/io/tap/src/system.rs", text)).len(),
            2
        );
        assert_eq!(
            places(&Source::new("crates/base/buffet/src/lib.rs", text)).len(),
            2
        );
    }

    #[test]
    fn blocks_without_a_reason_are_found() {
        let count = |text: &str| reasons(&Source::new(BUF, text)).len();
        assert_eq!(count("fn f() {\n    unsafe { g() }\n}"), 1);
        assert_eq!(count("unsafe impl Send for X {}"), 1);
        assert_eq!(
            count("fn f() {\n    // SAFETY: of another.\n    a();\n    unsafe { g() }\n}"),
            1
        );
        assert_eq!(
            count("// SAFETY: far away.\n\nunsafe impl Send for X {}"),
            1
        );
    }

    #[test]
    fn blocks_with_a_reason_pass() {
        let count = |text: &str| reasons(&Source::new(BUF, text)).len();
        assert_eq!(
            count(
                "fn f() {\n    // SAFETY: x is\n    // never null.\n    let a =\n        unsafe { g(x) };\n}"
            ),
            0
        );
        assert_eq!(
            count(
                "// SAFETY: plain data.\n#[cfg(x)]\nunsafe impl Send for X {}\nunsafe impl Sync for X {}"
            ),
            0
        );
        assert_eq!(count("unsafe fn f() {}"), 0);
        assert_eq!(
            count("fn f() {\n    g(); // SAFETY: next to it: unsafe { h() }\n    i()\n}"),
            0
        );
    }

    #[test]
    fn roots_must_forbid() {
        let roots = |files: &[(&str, &str)]| {
            let sources: Vec<Source> = files
                .iter()
                .map(|(path, text)| Source::new(path, text))
                .collect();
            crate_roots(&sources).len()
        };
        assert_eq!(roots(&[("crates/net/ip/src/lib.rs", "//! x\n")]), 1);
        assert_eq!(
            roots(&[(
                "crates/net/ip/src/lib.rs",
                "//! x\n#![forbid(unsafe_code)]\n"
            )]),
            0
        );
        assert_eq!(roots(&[("apps/volley/src/main.rs", "fn main() {}")]), 1);
        assert_eq!(roots(&[("crates/base/simd/src/lib.rs", "")]), 0);
        assert_eq!(
            roots(&[("crates/io/tap/src/lib.rs", "#![deny(unsafe_code)]")]),
            1
        );
        assert_eq!(
            roots(&[
                ("crates/io/tap/src/lib.rs", "#![deny(unsafe_code)]"),
                ("crates/io/tap/src/sys.rs", "")
            ]),
            0
        );
    }
}
