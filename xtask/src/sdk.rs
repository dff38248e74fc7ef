//! The page of the SDK's public surface, from the sources: each exported name with its declaration. A change of it is a change for
//! authors of plugins.

use crate::home::Home;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::{ImplItem, Item, TraitItem, UseTree, Visibility};

/// The page.
pub const PAGE: &str = "docs/generated/sdk.md";
/// The crate.
const SDK: &str = "volley_sdk";
/// Maximum number of crates and modules between a name of the SDK and its declaration.
const DEEPEST: usize = 8;

const HEAD: &str = "# Surface of the plugin SDK

Each name that `volley-sdk` exports, with its declaration. `cargo xtask docs --update` writes this page from the sources; CI compares it. A
plugin is built from the sources of its router, so that a change here needs a new build of plugins and perhaps changes in them.
";

/// The text of the page.
pub fn page(home: &Home) -> Result<String, String> {
    let sources = Sources::new(home)?;
    let mut names = BTreeMap::new();
    let root = sources.file(SDK, &[])?;
    sources.exports(SDK, &[], &root.items, "", &mut names)?;
    let mut page = HEAD.to_owned();
    let mut module = None;
    let parts = |name: &str| match name.rsplit_once("::") {
        Some((of, short)) => (of.to_owned(), short.to_owned()),
        None => (String::new(), name.to_owned()),
    };
    let names = names.iter().map(|(name, lines)| (parts(name), lines));
    let names: BTreeMap<(String, String), &Vec<String>> = names.collect();
    for ((of, short), lines) in &names {
        if module != Some(of) {
            let title = match of.as_str() {
                "" => "volley_sdk".to_owned(),
                of => format!("volley_sdk::{of}"),
            };
            let _ = write!(page, "\n## `{title}`\n");
            module = Some(of);
        }
        let _ = write!(
            page,
            "\n`{short}`\n\n```rust,ignore\n{}\n```\n",
            lines.join("\n")
        );
    }
    Ok(page)
}

/// The sources of the workspace's crates.
struct Sources {
    crates: BTreeMap<String, PathBuf>,
}

/// Declarations by their names in the SDK.
type Names = BTreeMap<String, Vec<String>>;

impl Sources {
    fn new(home: &Home) -> Result<Sources, String> {
        let path = home.root.join("Cargo.toml");
        let text = read(&path)?;
        let manifest: toml::Table = toml::from_str(&text).map_err(|why| why.to_string())?;
        let members = manifest
            .get("workspace")
            .and_then(|it| it.get("dependencies"));
        let members = members.and_then(toml::Value::as_table);
        let folder = |(name, it): (&String, &toml::Value)| {
            let path = it.get("path")?.as_str()?;
            Some((name.replace('-', "_"), home.root.join(path).join("src")))
        };
        let crates = members.into_iter().flatten().filter_map(folder).collect();
        Ok(Sources { crates })
    }

    /// The path of the file of a module.
    fn path(&self, of: &str, module: &[String]) -> Result<PathBuf, String> {
        let folder = self
            .crates
            .get(of)
            .ok_or_else(|| format!("no crate {of}"))?;
        let inner: PathBuf = module.iter().collect();
        let path = match module.is_empty() {
            true => folder.join("lib.rs"),
            false => folder.join(&inner).with_extension("rs"),
        };
        Ok(match path.is_file() {
            true => path,
            false => folder.join(inner).join("mod.rs"),
        })
    }

    /// The content of a module.
    fn file(&self, of: &str, module: &[String]) -> Result<syn::File, String> {
        let path = self.path(of, module)?;
        let text = read(&path)?;
        syn::parse_file(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Adds what the items of a module export, under the path `at`.
    fn exports(
        &self,
        of: &str,
        module: &[String],
        items: &[Item],
        at: &str,
        names: &mut Names,
    ) -> Result<(), String> {
        let under = |name: &str| match at {
            "" => name.to_owned(),
            at => format!("{at}::{name}"),
        };
        for item in items.iter().filter(|item| is_shown(item)) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let path = [module, std::slice::from_ref(&name)].concat();
                    match &inner.content {
                        Some((_, items)) => {
                            self.exports(of, &path, items, &under(&name), names)?;
                        }
                        None => {
                            let file = self.file(of, &path)?;
                            self.exports(of, &path, &file.items, &under(&name), names)?;
                        }
                    }
                }
                Item::Use(it) => {
                    for (path, name) in leaves(&it.tree, Vec::new()) {
                        self.export(of, module, path, &name, at, names)?;
                    }
                }
                other => {
                    if let Some(name) = name_of(other) {
                        let found = names.entry(under(&name)).or_default();
                        found.extend(declaration(other, items));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds what one leaf of a `pub use` exports.
    fn export(
        &self,
        of: &str,
        module: &[String],
        path: Vec<String>,
        name: &str,
        at: &str,
        names: &mut Names,
    ) -> Result<(), String> {
        let (of, path) = absolute(of, module, path);
        if !self.crates.contains_key(&of) {
            let from = [vec![of], path].concat().join("::");
            let text = format!("pub use {from};");
            names
                .entry(format!("{at}::{name}").trim_start_matches(':').to_owned())
                .or_default()
                .push(text);
            return Ok(());
        }
        match path.split_last() {
            Some((last, inner)) if last == "*" => {
                let file = self.file(&of, inner)?;
                self.exports(&of, inner, &file.items, at, names)
            }
            Some((last, inner)) => {
                let lines = self.find(&of, inner, last, 0)?;
                let key = format!("{at}::{name}");
                names.insert(key.trim_start_matches(':').to_owned(), lines);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The declaration of an item, which the module declares or exports.
    fn find(
        &self,
        of: &str,
        module: &[String],
        name: &str,
        depth: usize,
    ) -> Result<Vec<String>, String> {
        // What a macro writes has no declaration in the sources.
        let path = [&[of.to_owned()], module, &[name.to_owned()]].concat();
        let written = || vec![format!("pub use {};", path.join("::"))];
        if depth > DEEPEST {
            return Ok(written());
        }
        if of.ends_with("_derive") {
            return Ok(vec![format!("#[derive({name})]")]);
        }
        if !self.crates.contains_key(of) || !self.path(of, module)?.is_file() {
            return Ok(written());
        }
        let file = self.file(of, module)?;
        let declared = |item: &&Item| name_of(item).as_deref() == Some(name);
        let mut lines: Vec<String> = Vec::new();
        for item in file.items.iter().filter(declared) {
            lines.extend(declaration(item, &file.items));
        }
        for item in &file.items {
            let Item::Use(it) = item else { continue };
            for (path, as_name) in leaves(&it.tree, Vec::new()) {
                let is_public = !matches!(it.vis, Visibility::Inherited);
                if as_name == name && is_public {
                    let (of, path) = absolute(of, module, path);
                    if let Some((last, inner)) = path.split_last() {
                        lines.extend(self.find(&of, inner, last, depth + 1)?);
                    }
                }
            }
        }
        // Macros with `#[macro_export]` are in the root, wherever they are declared.
        if lines.is_empty() && module.is_empty() {
            lines.extend(self.exported_macro(of, name)?);
        }
        match lines.is_empty() {
            true => Ok(written()),
            false => Ok(lines),
        }
    }

    fn exported_macro(&self, of: &str, name: &str) -> Result<Option<String>, String> {
        let mut folders: Vec<PathBuf> = self.crates.get(of).cloned().into_iter().collect();
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|why| why.to_string())?;
            for entry in entries.flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if read(&path)?.contains(&format!("macro_rules! {name} ")) {
                    return Ok(Some(format!("macro_rules! {name}")));
                }
            }
        }
        Ok(None)
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))
}

/// A path from the root of its crate.
fn absolute(of: &str, module: &[String], mut path: Vec<String>) -> (String, Vec<String>) {
    match path.first().map(String::as_str) {
        Some("crate") => (of.to_owned(), path.split_off(1)),
        Some("self") => (of.to_owned(), [module, &path[1..]].concat()),
        Some("super") => {
            let parent = module.split_last().map(|(_, parent)| parent);
            (
                of.to_owned(),
                [parent.unwrap_or_default(), &path[1..]].concat(),
            )
        }
        // A module of the crate's root, or another crate.
        Some(first) if first.starts_with("volley_") || is_foreign(first) => {
            let first = path.remove(0);
            (first, path)
        }
        _ => (of.to_owned(), [module, &path[..]].concat()),
    }
}

fn is_foreign(first: &str) -> bool {
    ["core", "std", "alloc", "zerocopy"].contains(&first)
}

/// The leaves of a `use`: the path, and the name that it gets.
fn leaves(tree: &UseTree, mut path: Vec<String>) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(it) => {
            path.push(it.ident.to_string());
            leaves(&it.tree, path)
        }
        UseTree::Name(it) => {
            path.push(it.ident.to_string());
            vec![(path, it.ident.to_string())]
        }
        UseTree::Rename(it) => {
            path.push(it.ident.to_string());
            vec![(path, it.rename.to_string())]
        }
        UseTree::Glob(_) => {
            path.push("*".to_owned());
            vec![(path, "*".to_owned())]
        }
        UseTree::Group(it) => {
            let all = it.items.iter();
            all.flat_map(|tree| leaves(tree, path.clone())).collect()
        }
    }
}

fn is_shown(item: &Item) -> bool {
    let (vis, attrs) = match item {
        Item::Mod(it) => (&it.vis, &it.attrs),
        Item::Use(it) => (&it.vis, &it.attrs),
        Item::Struct(it) => (&it.vis, &it.attrs),
        Item::Enum(it) => (&it.vis, &it.attrs),
        Item::Trait(it) => (&it.vis, &it.attrs),
        Item::Fn(it) => (&it.vis, &it.attrs),
        Item::Type(it) => (&it.vis, &it.attrs),
        Item::Const(it) => (&it.vis, &it.attrs),
        _ => return false,
    };
    let hidden = attrs.iter().any(|it| {
        let list = it.meta.require_list();
        list.is_ok_and(|list| list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
    });
    matches!(vis, Visibility::Public(_)) && !hidden
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Type(it) => &it.ident,
        Item::Const(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The source on one line.
fn text(of: &impl Spanned) -> String {
    let text = of.span().source_text().unwrap_or_default();
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").replace("( ", "(").replace(", )", ")")
}

/// The declaration of an item and its public functions, without their bodies.
fn declaration(item: &Item, beside: &[Item]) -> Vec<String> {
    let name = name_of(item).unwrap_or_default();
    let mut lines = match item {
        Item::Struct(it) => {
            let fields = it.fields.iter();
            let shown = fields.filter(|field| matches!(field.vis, Visibility::Public(_)));
            let field = |field: &syn::Field| match &field.ident {
                Some(name) => format!("    pub {name}: {},", text(&field.ty)),
                None => format!("    pub {},", text(&field.ty)),
            };
            let head = format!("pub struct {name}{}", text(&it.generics));
            std::iter::once(head).chain(shown.map(field)).collect()
        }
        Item::Enum(it) => {
            let variant = |variant: &syn::Variant| {
                let fields = text(&variant.fields);
                format!("    {}{fields},", variant.ident)
            };
            let head = format!("pub enum {name}{}", text(&it.generics));
            std::iter::once(head)
                .chain(it.variants.iter().map(variant))
                .collect()
        }
        Item::Trait(it) => {
            let head = format!("pub trait {name}{}", text(&it.generics));
            let member = |member: &TraitItem| match member {
                TraitItem::Fn(it) => Some(format!("    {};", text(&it.sig))),
                TraitItem::Type(it) => {
                    Some(format!("    type {}{};", it.ident, bounds(&it.bounds)))
                }
                TraitItem::Const(it) => Some(format!("    const {}: {};", it.ident, text(&it.ty))),
                _ => None,
            };
            std::iter::once(head)
                .chain(it.items.iter().filter_map(member))
                .collect()
        }
        Item::Fn(it) => vec![format!("pub {};", text(&it.sig))],
        Item::Type(it) => vec![format!("pub type {name} = {};", text(&it.ty))],
        Item::Const(it) => vec![format!("pub const {name}: {};", text(&it.ty))],
        _ => Vec::new(),
    };
    for item in beside {
        let Item::Impl(it) = item else { continue };
        let of_it = matches!(&*it.self_ty, syn::Type::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == name));
        if it.trait_.is_some() || !of_it {
            continue;
        }
        lines.extend(it.items.iter().filter_map(|member| match member {
            ImplItem::Fn(it) if matches!(it.vis, Visibility::Public(_)) => {
                Some(format!("    pub {};", text(&it.sig)))
            }
            ImplItem::Const(it) if matches!(it.vis, Visibility::Public(_)) => {
                Some(format!("    pub const {}: {};", it.ident, text(&it.ty)))
            }
            _ => None,
        }));
    }
    lines
}

fn bounds(all: &impl Spanned) -> String {
    match text(all) {
        none if none.is_empty() => none,
        some => format!(": {some}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surface_has_names_of_every_kind() {
        let page = page(&Home::find().unwrap()).unwrap();
        for text in [
            "## `volley_sdk::prelude`",
            "pub trait Node",
            "pub fn settings<T: Object",
            "pub struct Plugin",
            "macro_rules! nexts",
            "## `volley_sdk::wire::ip4`",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn bodies_and_private_functions_are_left_out() {
        let file = "pub struct A { pub b: u8, c: u8 }\nimpl A {\n    pub fn d(\n        &self,\n    ) -> u8 { 1 }\n    fn e(&self) {}\n}";
        let file = syn::parse_file(file).unwrap();
        let lines = declaration(&file.items[0], &file.items);
        let expected = [
            "pub struct A",
            "    pub b: u8,",
            "    pub fn d(&self) -> u8;",
        ];
        assert_eq!(lines, expected);
    }
}
