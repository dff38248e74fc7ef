//! The imports between the files of a crate. A re-export is followed to the file that defines the item; tests are
//! ignored, and the declaration of a module is not an import.

use super::Finding;
use super::source::Source;
use super::tokens::{self, Token};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::Visit;

/// Module names from the root of the crate.
type Path = Vec<String>;

/// An import of one file by another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// Files, as positions in [`Crate::files`].
    pub from: usize,
    pub to: usize,
    /// The path as written.
    pub path: String,
    pub line: usize,
    /// The path names an item that the root of the crate re-exports.
    pub by_root: bool,
}

/// The files of a crate and their imports.
pub struct Crate {
    /// Folder in the checkout, such as `crates/base/graph`.
    pub dir: String,
    /// Paths in the checkout; the first is the root of the crate.
    pub files: Vec<String>,
    pub imports: Vec<Import>,
}

/// A path in a `use`, and the name that it has in its module.
struct Use {
    name: String,
    path: Path,
    line: usize,
    is_reexport: bool,
}

#[derive(Default)]
struct Module {
    file: usize,
    defined: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of `use path::*`.
    globs: Vec<Path>,
}

#[derive(Default)]
struct Modules(BTreeMap<Path, Module>);

/// All crates of the checkout that have a root `src/lib.rs` or `src/main.rs`.
pub fn crates(sources: &[Source]) -> Vec<Crate> {
    let mut by_dir: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources
        .iter()
        .filter(|source| source.path.contains("/src/"))
    {
        by_dir.entry(source.crate_dir()).or_default().push(source);
    }
    let read = |(dir, sources): (&str, Vec<&Source>)| read(dir, &sources);
    by_dir.into_iter().filter_map(read).collect()
}

/// A file that cannot be parsed: its imports are unknown.
pub fn unreadable(source: &Source) -> Option<Finding> {
    let is_read = tokens::syntax_outside_tests(&source.text).is_some();
    (!is_read).then(|| Finding {
        path: source.path.clone(),
        line: 0,
        text: "cannot be parsed, so its imports are unknown: write the syntax that `syn` does not know in another way"
            .to_owned(),
    })
}

fn read(dir: &str, sources: &[&Source]) -> Option<Crate> {
    let find = |name: &str| {
        let path = format!("{dir}/src/{name}");
        sources.iter().copied().find(|source| source.path == path)
    };
    let root = find("lib.rs").or_else(|| find("main.rs"))?;
    let mut loader = Loader {
        find: &|path: &[String]| {
            let path = path.join("/");
            find(&format!("{path}.rs")).or_else(|| find(&format!("{path}/mod.rs")))
        },
        modules: Modules::default(),
        files: Vec::new(),
    };
    loader.file(Vec::new(), root);
    let Loader { modules, files, .. } = loader;
    let mut imports = Vec::new();
    for (file, (module, source)) in files.iter().enumerate() {
        imports.extend(modules.imports_of(file, module, source));
    }
    imports.sort();
    imports.dedup_by(|a, b| (a.from, a.to, &a.path) == (b.from, b.to, &b.path));
    let paths = files.iter().map(|(_, source)| source.path.clone());
    Some(Crate {
        dir: dir.to_owned(),
        files: paths.collect(),
        imports,
    })
}

/// Follows module declarations.
struct Loader<'a> {
    find: &'a dyn Fn(&[String]) -> Option<&'a Source>,
    modules: Modules,
    files: Vec<(Path, &'a Source)>,
}

impl<'a> Loader<'a> {
    fn file(&mut self, path: Path, source: &'a Source) {
        let file = self.files.len();
        self.files.push((path.clone(), source));
        if let Some(syntax) = tokens::syntax_outside_tests(&source.text) {
            self.items(path, file, &syntax.items);
        }
    }

    fn items(&mut self, path: Path, file: usize, items: &[syn::Item]) {
        let mut module = Module {
            file,
            ..Module::default()
        };
        for item in items {
            if let Some(name) = name(item) {
                module.defined.insert(name.to_string());
            }
            match item {
                syn::Item::Mod(_) => {}
                other => Uses(&mut module).visit_item(other),
            }
        }
        self.modules.0.insert(path.clone(), module);
        for item in items {
            let syn::Item::Mod(item) = item else { continue };
            let mut inner = path.clone();
            inner.push(item.ident.to_string());
            match &item.content {
                Some((_, items)) => self.items(inner, file, items),
                None => {
                    if let Some(source) = (self.find)(&inner) {
                        self.file(inner, source);
                    }
                }
            }
        }
    }
}

/// The name that an item defines in its module; modules are known by their paths.
fn name(item: &syn::Item) -> Option<&syn::Ident> {
    match item {
        syn::Item::Const(item) => Some(&item.ident),
        syn::Item::Enum(item) => Some(&item.ident),
        syn::Item::Fn(item) => Some(&item.sig.ident),
        syn::Item::Static(item) => Some(&item.ident),
        syn::Item::Struct(item) => Some(&item.ident),
        syn::Item::Trait(item) => Some(&item.ident),
        syn::Item::TraitAlias(item) => Some(&item.ident),
        syn::Item::Type(item) => Some(&item.ident),
        syn::Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// Collects the `use` statements of an item, including those in function bodies.
struct Uses<'m>(&'m mut Module);

impl Uses<'_> {
    fn tree(&mut self, path: &mut Path, tree: &syn::UseTree, is_reexport: bool) {
        let (name, last) = match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(path, &part.tree, is_reexport);
                path.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(path, tree, is_reexport);
                }
                return;
            }
            syn::UseTree::Glob(_) => return self.0.globs.push(path.clone()),
            syn::UseTree::Name(leaf) => (&leaf.ident, &leaf.ident),
            syn::UseTree::Rename(leaf) => (&leaf.rename, &leaf.ident),
        };
        let mut path = path.clone();
        let mut name = name.to_string();
        match (last == "self", path.last()) {
            (true, Some(module)) if name == "self" => name = module.clone(),
            (true, _) => {}
            (false, _) => path.push(last.to_string()),
        }
        self.0.uses.push(Use {
            name,
            path,
            line: last.span().start().line,
            is_reexport,
        });
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
        // `::name` is another crate.
        if item.leading_colon.is_none() {
            self.tree(&mut Vec::new(), &item.tree, is_reexport);
        }
    }
}

/// Result of resolving a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Found {
    file: usize,
    by_root: bool,
}

/// Maximum number of re-exports that are followed, because they may refer to each other.
const MAX_STEPS: usize = 16;

impl Modules {
    /// The file that defines `path` as used in `module`; `None` for another crate, and for a module itself.
    fn resolve(&self, module: &[String], path: &[String], steps: usize) -> Option<Found> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(Vec::new(), rest, steps),
            "self" => self.walk(module.to_vec(), rest, steps),
            "super" => self.resolve(module.split_last()?.1, &after_super(rest), steps),
            _ => self.walk_known(module, path, steps),
        }
    }

    /// A path that begins with a name of its module, or else with another crate.
    fn walk_known(&self, module: &[String], path: &[String], steps: usize) -> Option<Found> {
        let (first, here) = (path.first()?, self.0.get(module)?);
        let child = [module, &path[..1]].concat();
        let is_import = |it: &&Use| it.name == *first && it.path.as_slice() != path;
        let is_known = self.0.contains_key(&child)
            || here.defined.contains(first)
            || here.uses.iter().any(|it| is_import(&it));
        is_known.then(|| self.walk(module.to_vec(), path, steps))?
    }

    fn walk(&self, mut at: Path, path: &[String], steps: usize) -> Option<Found> {
        for (nth, name) in path.iter().enumerate() {
            at.push(name.clone());
            if self.0.contains_key(&at) {
                continue;
            }
            at.pop();
            let module = self.0.get(&at)?;
            let found = Found {
                file: module.file,
                by_root: false,
            };
            if module.defined.contains(name) {
                return Some(found);
            }
            let steps = steps.checked_sub(1)?;
            let follow = |target: &Path| {
                let path = [target, &path[nth + 1..]].concat();
                let found = self.resolve(&at, &path, steps)?;
                let by_root = found.by_root || at.is_empty();
                Some(Found { by_root, ..found })
            };
            if let Some(it) = module.uses.iter().find(|it| it.name == *name) {
                return follow(&it.path);
            }
            let globs = module.globs.iter();
            let mut targets = globs.map(|glob| [glob, &path[nth..=nth]].concat());
            if let Some(found) = targets.find_map(|target| follow(&target)) {
                return Some(found);
            }
            // A macro has generated the item, or it is a macro of the crate.
            return (!at.is_empty() && module.globs.is_empty()).then_some(found);
        }
        None
    }

    fn imports_of(&self, file: usize, module: &Path, source: &Source) -> Vec<Import> {
        let tokens = without_uses(tokens::outside_tests(&source.text));
        let words: BTreeSet<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        let mut imports = Vec::new();
        let mut add = |module: &[String], path: &[String], line: usize| {
            let found = self.resolve(module, path, MAX_STEPS);
            if let Some(found) = found.filter(|found| found.file != file) {
                imports.push(Import {
                    from: file,
                    to: found.file,
                    path: path.join("::"),
                    line,
                    by_root: found.by_root,
                });
            }
        };
        for (path, inner) in self.0.iter().filter(|(_, inner)| inner.file == file) {
            for it in &inner.uses {
                // A name that is only re-exported is not an import.
                if !it.is_reexport || words.contains(it.name.as_str()) {
                    add(path, &it.path, it.line);
                }
            }
            for glob in &inner.globs {
                for word in &words {
                    if self.exports(path, glob, word) {
                        add(path, &[glob.as_slice(), &[(*word).to_owned()]].concat(), 0);
                    }
                }
            }
        }
        for (path, line) in paths(&tokens) {
            add(module, &path, line);
        }
        imports
    }

    /// Whether the module of `glob` exports this name.
    fn exports(&self, module: &[String], glob: &[String], word: &str) -> bool {
        let mut at = match glob.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            _ => module.to_vec(),
        };
        for part in glob {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        self.0.get(&at).is_some_and(|module| {
            module.defined.contains(word) || module.uses.iter().any(|it| it.name == word)
        })
    }
}

/// The rest after a `super`, as a path of the parent.
fn after_super(rest: &[String]) -> Path {
    match rest.first().map(String::as_str) {
        Some("super") => rest.to_vec(),
        _ => [&["self".to_owned()], rest].concat(),
    }
}

/// The tokens outside of `use` statements. `use<..>` in a type is not a `use` statement.
fn without_uses(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut inside = false;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(|next| next.text.as_str());
        inside |= token.text == "use" && next != Some("<");
        if !inside {
            kept.push(token.clone());
        }
        inside &= token.text != ";";
    }
    kept
}

/// Every path of at least two parts, with its line. `$crate` of a macro is the calling crate.
fn paths(tokens: &[Token]) -> Vec<(Path, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", text);
        let mut path = Vec::new();
        let start = at;
        if is_name(text(at)) && before != "$" && before != ":" {
            path.push(text(at).to_owned());
            while text(at + 1) == ":" && text(at + 2) == ":" && is_name(text(at + 3)) {
                at += 3;
                path.push(text(at).to_owned());
            }
        }
        if path.len() > 1 {
            found.push((path, tokens[start].line));
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("crates/a/b/src/{path}"), text))
            .collect();
        let all = crates(&sources);
        assert_eq!(all.len(), 1);
        let short = |file: usize| {
            let path = &all[0].files[file];
            path.trim_start_matches("crates/a/b/src/").to_owned()
        };
        let line = |it: &Import| {
            let root = if it.by_root { " by the root" } else { "" };
            format!("{} -> {}{root}", short(it.from), short(it.to))
        };
        let mut lines: Vec<String> = all[0].imports.iter().map(line).collect();
        lines.dedup();
        lines
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_a_finding() {
        let source = |text: &str| Source::new("crates/a/b/src/c.rs", text);
        assert_eq!(unreadable(&source("fn a() {}\n")), None);
        assert!(unreadable(&source("fn a( {}\n")).is_some());
        assert!(unreadable(&source("fn a() { fn }\n")).is_some());
    }

    #[test]
    fn reexports_are_followed_to_the_file_that_defines() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Deep;\n"),
            ("a.rs", "use crate::Deep;\nuse crate::b::Other as O;\n"),
            (
                "b/mod.rs",
                "mod inner;\npub use inner::*;\npub use crate::c::Other;\n",
            ),
            ("b/inner.rs", "pub struct Deep;\n"),
            ("c.rs", "pub struct Other;\n"),
        ]);
        assert_eq!(found, ["a.rs -> b/inner.rs by the root", "a.rs -> c.rs"]);
    }

    #[test]
    fn paths_in_code_and_macros_are_imports_too() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            (
                "a.rs",
                "use crate::b;\nfn f() { b::g(); m!(crate::c::T); }\n",
            ),
            ("b.rs", "pub fn g() {}\n"),
            ("c.rs", "pub struct T;\nfn h() { use super::d::K; }\n"),
            (
                "d.rs",
                "pub const K: u8 = std::u8::MAX;\nmacro_rules! x { () => { $crate::b::g() } }\n",
            ),
        ]);
        assert_eq!(found, ["a.rs -> b.rs", "a.rs -> c.rs", "c.rs -> d.rs"]);
    }

    #[test]
    fn tests_modules_and_what_is_only_handed_on_are_no_imports() {
        let found = imports(&[
            (
                "lib.rs",
                "mod a;\nmod b;\n#[cfg(test)]\nmod bed;\nextern crate alloc;\n",
            ),
            (
                "a.rs",
                "mod part;\npub use part::P;\nfn f() -> impl Sized + use<> {}\n#[cfg(test)]\nmod tests { use crate::b::T; }\n",
            ),
            ("a/part.rs", "pub struct P;\nuse b::T;\n"),
            ("b.rs", "pub struct T;\nuse b::a::P;\n"),
            ("bed.rs", "use crate::a::P;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_name_that_is_handed_on_and_used_is_an_import() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub use crate::b::T;\nstruct U(T);\n"),
            ("b.rs", "use super::a::*;\npub struct T;\nfn f(_: U) {}\n"),
        ]);
        assert_eq!(found, ["a.rs -> b.rs", "b.rs -> a.rs"]);
    }
}
