//! Words that are not allowed in some places, and the first line of a node file.
//!
//! An exception is a comment with its reason, on the same line or the line above:
//! `// tidy: allow(println) this is what the example is for`. A lock is reported once per file, and its exception may be
//! anywhere in the file: `// tidy: allow(Mutex) only the control thread locks it`.

use super::Finding;
use super::source::Source;
use super::tokens::{self, Token};

const PRINTS: [&str; 5] = ["println", "eprintln", "print", "eprint", "dbg"];
const UNFINISHED: [&str; 2] = ["todo", "unimplemented"];
const LOCKS: [&str; 3] = ["Mutex", "RwLock", "Condvar"];
const SIMD: &str = "crates/base/simd/";

/// `unwrap`, printing, unfinished code, locks on the data path.
pub fn banned(source: &Source) -> Vec<Finding> {
    if source.is_test() {
        return Vec::new();
    }
    let tokens = tokens::outside_tests(&source.text);
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let Some(text) = judge(source, &tokens, at).filter(|_| !excused(source, token)) {
            findings.push(source.finding(token.line, text));
        }
    }
    findings.extend(locks(source, &tokens));
    findings
}

fn judge(source: &Source, tokens: &[Token], at: usize) -> Option<String> {
    let word = tokens[at].text.as_str();
    let follows = |offset: usize, text: &str| {
        tokens
            .get(at + offset)
            .is_some_and(|token| token.text == text)
    };
    let after_dot = at > 0 && tokens[at - 1].text == ".";
    if source.is_node() && after_dot && matches!(word, "unwrap" | "expect") && follows(1, "(") {
        return Some(format!(
            "`.{word}()` in a node: a packet must not be able to stop the worker"
        ));
    }
    if source.is_library() && follows(1, "!") && PRINTS.contains(&word) {
        return Some(format!(
            "`{word}!` in a library: return it, trace it or count it"
        ));
    }
    if source.is_library() && follows(1, "!") && UNFINISHED.contains(&word) {
        return Some(format!(
            "`{word}!`: finish it, or drop and count with a reason"
        ));
    }
    None
}

/// Locks on the worker's side, the first of each type in a file.
fn locks(source: &Source, tokens: &[Token]) -> Vec<Finding> {
    let dirs = ["crates/net/", "crates/io/", "crates/base/"];
    if !source.is_library() || !dirs.iter().any(|dir| source.path.starts_with(dir)) {
        return Vec::new();
    }
    let first = |word: &&str| tokens.iter().find(|token| token.text == **word);
    let used = LOCKS.iter().filter_map(first);
    let open = used.filter(|token| !source.text.lines().any(|line| allows(line, &token.text)));
    let text =
        "on the worker's side: publish a snapshot or use a bounded queue, or say who locks it";
    open.map(|token| source.finding(token.line, format!("`{}` {text}", token.text)))
        .collect()
}

/// Processor-specific code is allowed in `base/simd` only.
pub fn x86(source: &Source) -> Vec<Finding> {
    let known = [SIMD, "xtask/", "dev/"];
    if known.iter().any(|dir| source.path.starts_with(dir)) {
        return Vec::new();
    }
    let tokens = tokens::all(&source.text);
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let arch = token.text == "arch"
            && at >= 3
            && tokens[at - 1].text == ":"
            && matches!(tokens[at - 3].text.as_str(), "core" | "std");
        let other = matches!(
            token.text.as_str(),
            "target_arch" | "target_feature" | "is_x86_feature_detected"
        );
        if (arch || other) && !excused(source, token) {
            findings.push(source.finding(
                token.line,
                format!("`{}` belongs in {SIMD} alone", token.text),
            ));
        }
    }
    findings
}

fn excused(source: &Source, token: &Token) -> bool {
    let above = token.line.saturating_sub(2);
    let lines = source.text.lines().skip(above).take(token.line - above);
    lines.into_iter().any(|line| allows(line, &token.text))
}

/// Whether a comment allows a word, which requires a reason.
fn allows(line: &str, word: &str) -> bool {
    let mark = format!("// tidy: allow({word})");
    line.split_once(&mark)
        .is_some_and(|(_, reason)| reason.trim().len() >= 10)
}

/// A node file begins with its name and one sentence: `//! ip4-input: ...`.
pub fn node_head(source: &Source) -> Vec<Finding> {
    if !source.is_node() || source.is_test() {
        return Vec::new();
    }
    let first = source.text.lines().next().unwrap_or_default();
    let stem = source.file_name().trim_end_matches(".rs").replace('_', "-");
    let good = first
        .strip_prefix("//! ")
        .and_then(|line| line.split_once(": "))
        .is_some_and(|(names, sentence)| {
            let plain = |name: &str| {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            };
            names.split(", ").all(plain)
                && names.split(", ").any(|name| matches_stem(name, &stem))
                && sentence.len() > 10
        });
    if good {
        return Vec::new();
    }
    vec![source.finding(1, format!("a node file begins with `//! node-name: one sentence`, and the name holds the file's, `{stem}`"))]
}

/// Whether the file name is part of the node's name; a node for both families (`ip_lookup.rs`) has one name for each.
fn matches_stem(name: &str, stem: &str) -> bool {
    let families = ["ip4-", "ip6-"]
        .iter()
        .filter_map(|family| name.strip_prefix(family));
    name.contains(stem)
        || stem
            .strip_prefix("ip-")
            .is_some_and(|rest| families.into_iter().any(|name| name == rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "crates/net/ip/src/node/lookup.rs";

    fn count(path: &str, text: &str) -> usize {
        banned(&Source::new(path, text)).len()
    }

    #[test]
    fn unwrap_in_nodes_outside_tests() {
        assert_eq!(count(NODE, "fn f() { a.unwrap(); b.expect(\"x\"); }"), 2);
        assert_eq!(
            count(
                NODE,
                "fn f() { a.unwrap_or(1); unwrap(); }\n#[cfg(test)] mod tests { fn t() { a.unwrap() } }"
            ),
            0
        );
        assert_eq!(
            count("crates/control/cli/src/lib.rs", "fn f() { a.unwrap(); }"),
            0
        );
    }

    #[test]
    fn printing_in_libraries() {
        assert_eq!(
            count(
                "crates/net/fib/src/lib.rs",
                "fn f() { println!(); dbg!(x); todo!() }"
            ),
            3
        );
        assert_eq!(
            count("apps/volley/src/main.rs", "fn main() { println!() }"),
            0
        );
        assert_eq!(
            count("crates/net/fib/tests/a.rs", "fn f() { println!() }"),
            0
        );
        assert_eq!(
            count("crates/net/fib/src/tests.rs", "fn f() { println!() }"),
            0
        );
        assert_eq!(
            count(
                "crates/net/fib/src/lib.rs",
                "// println!()\nconst A: &str = \"println!\";"
            ),
            0
        );
    }

    #[test]
    fn locks_on_the_workers_side() {
        assert_eq!(
            count(
                "crates/base/tables/src/a.rs",
                "use std::sync::{Arc, Mutex};"
            ),
            1
        );
        assert_eq!(
            count("crates/control/cli/src/a.rs", "use std::sync::Mutex;"),
            0
        );
        assert_eq!(
            count(
                "crates/io/pg/src/a.rs",
                "// tidy: allow(Mutex) only the control thread ever locks it\nuse std::sync::Mutex;"
            ),
            0
        );
        assert_eq!(
            count(
                "crates/io/pg/src/a.rs",
                "// tidy: allow(Mutex)\nuse std::sync::Mutex;"
            ),
            1
        );
        assert_eq!(
            count(
                "crates/io/pg/src/a.rs",
                "// tidy: allow(RwLock) for another word\nuse std::sync::Mutex;"
            ),
            1
        );
    }

    #[test]
    fn processors_only_in_simd() {
        let text = "use core::arch::x86_64::*;\n#[cfg(target_arch = \"x86_64\")] fn f() { std::arch::asm!(\"\") }";
        assert_eq!(x86(&Source::new("crates/base/buf/src/a.rs", text)).len(), 3);
        assert!(x86(&Source::new("crates/base/simd/src/a.rs", text)).is_empty());
        assert!(
            x86(&Source::new(
                "crates/net/ip/src/a.rs",
                "let arch = 1; // core::arch"
            ))
            .is_empty()
        );
    }

    #[test]
    fn node_files_say_their_name() {
        let head = |path: &str, text: &str| node_head(&Source::new(path, text)).len();
        assert_eq!(
            head(
                NODE,
                "//! ip4-lookup, ip6-lookup: finds the longest prefix.\n"
            ),
            0
        );
        assert_eq!(head(NODE, "//! ip4-lookup finds the longest prefix.\n"), 1);
        assert_eq!(head(NODE, "//! ip4-input: finds the longest prefix.\n"), 1);
        assert_eq!(head(NODE, "//! ip4-lookup: short\n"), 1);
        assert_eq!(head(NODE, ""), 1);
        assert_eq!(head("crates/net/ip/src/lookup.rs", ""), 0);
        let both = "crates/net/ip/src/node/ip_lookup.rs";
        assert_eq!(
            head(
                both,
                "//! ip4-lookup, ip6-lookup: finds the longest prefix.\n"
            ),
            0
        );
        assert_eq!(
            head(
                both,
                "//! ip4-input, ip6-input: finds the longest prefix.\n"
            ),
            1
        );
    }
}
