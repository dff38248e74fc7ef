//! Length of files and functions.

use super::Finding;
use super::source::Source;
use std::collections::BTreeMap;
use syn::visit::Visit;

const FILE: usize = 800;
const NODE: usize = 400;
const FUNCTION: usize = 70;

/// Files: 800 lines, a node 400.
pub fn lines(source: &Source) -> Vec<Finding> {
    let limit = if source.is_node() { NODE } else { FILE };
    let count = source.text.lines().count();
    if count <= limit {
        return Vec::new();
    }
    vec![source.finding(
        0,
        format!("{count} lines; {limit} is the limit: split it by what the parts are for"),
    )]
}

/// Functions: 70 lines from `fn` to the closing brace.
pub fn functions(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, line, length) in measure(source) {
        if length > FUNCTION {
            findings.push(source.finding(
                line,
                format!("function `{name}` has {length} lines; {FUNCTION} is the limit"),
            ));
        }
    }
    findings
}

fn measure(source: &Source) -> Vec<(String, usize, usize)> {
    let mut lengths = Lengths(Vec::new());
    if let Some(syntax) = &source.syntax {
        lengths.visit_file(syntax);
    }
    lengths.0
}

struct Lengths(Vec<(String, usize, usize)>);

impl Lengths {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let start = signature.fn_token.span.start().line;
        let end = block.brace_token.span.close().end().line;
        self.0
            .push((signature.ident.to_string(), start, end + 1 - start));
    }
}

impl<'ast> Visit<'ast> for Lengths {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

/// Statistics of the lengths of files and functions.
pub fn statistics(sources: &[Source]) -> Vec<String> {
    let mut files: Vec<(usize, &str)> = sources
        .iter()
        .map(|source| (source.text.lines().count(), source.path.as_str()))
        .collect();
    files.sort_unstable();
    let mut lengths: Vec<usize> = sources
        .iter()
        .flat_map(measure)
        .map(|(_, _, length)| length)
        .collect();
    lengths.sort_unstable();
    let total: usize = files.iter().map(|(count, _)| count).sum();
    let mut lines = vec![format!(
        "{} files, {total} lines, median {}; {} functions, median {} lines",
        files.len(),
        files.get(files.len() / 2).map_or(0, |file| file.0),
        lengths.len(),
        lengths.get(lengths.len() / 2).copied().unwrap_or(0),
    )];
    lines.extend(
        files
            .iter()
            .rev()
            .take(5)
            .map(|(count, path)| format!("{count:6} {path}")),
    );
    lines
}

/// The largest crate, file and function, in lines.
pub fn largest(sources: &[Source]) -> String {
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources
        .iter()
        .filter(|source| !source.crate_dir().is_empty())
    {
        *crates.entry(source.crate_dir()).or_default() += source.text.lines().count();
    }
    let (dir, lines) = crates
        .into_iter()
        .max_by_key(|(_, lines)| *lines)
        .unwrap_or_default();
    let files = sources
        .iter()
        .map(|source| (source.text.lines().count(), source.path.as_str()));
    let (file_lines, file) = files.max().unwrap_or_default();
    let functions = sources.iter().flat_map(|source| {
        let all = measure(source).into_iter();
        all.map(|(name, line, length)| (length, format!("{name} in {}:{line}", source.path)))
    });
    let (length, function) = functions.max().unwrap_or_default();
    format!("crate {dir}: {lines} lines; file {file}: {file_lines}; function {function}: {length}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn files_at_the_limit_pass_and_above_do_not() {
        let text = "//\n".repeat(NODE + 1);
        assert!(lines(&Source::new("crates/net/ip/src/lookup.rs", &text)).is_empty());
        assert_eq!(
            lines(&Source::new("crates/net/ip/src/node/lookup.rs", &text)).len(),
            1
        );
        assert!(lines(&Source::new("crates/net/ip/src/node/mod.rs", &text)).is_empty());
        assert!(lines(&Source::new("x/src/a.rs", &"//\n".repeat(FILE))).is_empty());
        assert_eq!(
            lines(&Source::new("x/src/a.rs", &"//\n".repeat(FILE + 1))).len(),
            1
        );
    }

    #[test]
    fn functions_are_measured_wherever_they_are() {
        assert!(functions(&Source::new("a.rs", &long_function(FUNCTION))).is_empty());
        let too_long = long_function(FUNCTION + 1);
        for text in [
            too_long.clone(),
            format!("impl A {{ {too_long} }}"),
            format!("trait A {{ {too_long} }}"),
            format!("mod a {{ fn b() {{ {too_long} }} }}"),
        ] {
            let found = functions(&Source::new("a.rs", &text));
            assert!(
                found
                    .iter()
                    .any(|finding| finding.text.contains("`long` has 71 lines")),
                "{text}"
            );
        }
    }

    #[test]
    fn statistics_name_the_longest() {
        let sources = [
            Source::new("a.rs", "fn a() {}\n"),
            Source::new("b.rs", &long_function(9)),
        ];
        let lines = statistics(&sources);
        assert!(lines[0].starts_with("2 files, 10 lines"), "{}", lines[0]);
        assert!(lines[1].ends_with("9 b.rs"));
    }

    #[test]
    fn the_largest_things_are_named() {
        let small = Source::new("crates/a/b/src/lib.rs", "fn f() {}\n");
        let large = Source::new("crates/a/c/src/lib.rs", &long_function(9));
        let text = largest(&[small, large]);
        let want = "crate crates/a/c: 9 lines; file crates/a/c/src/lib.rs: 9; function long in crates/a/c/src/lib.rs:1: 9";
        assert_eq!(text, want);
    }
}
