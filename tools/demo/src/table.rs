//! The routing tables: given, from the shared data, or synthetic.

use super::DemoError;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use volley_fib::Af;
use volley_fib::load::{
    ReadOptions, Routes, V4_PREFIXES, V6_PREFIXES, read_routes, synthetic4, synthetic6,
};
use volley_file::Scratch;

/// A table as a file, and its routes for the model.
pub struct RouteTable {
    /// The file.
    pub path: PathBuf,
    /// Description.
    pub what: String,
    /// The routes.
    pub routes: Routes,
}

impl RouteTable {
    /// IPv4.
    pub fn v4(given: &Option<PathBuf>, scratch: &Scratch) -> Result<Self, DemoError> {
        let found = given
            .clone()
            .or_else(|| shared("", "rib4-ris3333", ".txt.xz"));
        match found {
            Some(path) => Self::read(path, Af::V4),
            None => Self::made(scratch.file("made4.txt"), &text4(), Af::V4),
        }
    }

    /// IPv6.
    pub fn v6(given: &Option<PathBuf>, scratch: &Scratch) -> Result<Self, DemoError> {
        let found = given
            .clone()
            .or_else(|| shared("", "rib6-ris3333", ".txt.xz"));
        match found {
            Some(path) => Self::read(path, Af::V6),
            None => Self::made(scratch.file("made6.txt"), &text6(), Af::V6),
        }
    }

    fn read(path: PathBuf, only: Af) -> Result<Self, DemoError> {
        let routes = read_routes(
            &path,
            ReadOptions {
                only: Some(only),
                ..ReadOptions::default()
            },
        )?;
        if routes.is_empty() {
            return Err(DemoError::Useless {
                path,
                why: "it has no routes of the IP version wanted",
            });
        }
        let what = format!("real ({})", name(&path));
        Ok(RouteTable { path, what, routes })
    }

    fn made(path: PathBuf, text: &str, only: Af) -> Result<Self, DemoError> {
        std::fs::write(&path, text).map_err(|source| DemoError::Io {
            path: path.clone(),
            source,
        })?;
        let what = "made up, with the real distribution of lengths".to_owned();
        Ok(RouteTable {
            what,
            ..Self::read(path, only)?
        })
    }
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn text4() -> String {
    let mut text = String::new();
    for (address, length, rank) in synthetic4(V4_PREFIXES, 1) {
        let _ = writeln!(text, "{}/{length} {rank}", Ipv4Addr::from_bits(address));
    }
    text
}

fn text6() -> String {
    let mut text = String::new();
    for (address, length, rank) in synthetic6(V6_PREFIXES, 1) {
        let _ = writeln!(text, "{}/{length} {rank}", Ipv6Addr::from_bits(address));
    }
    text
}

/// A file of the shared data: below `$VOLLEY_SHARED` if that is set (empty: none), else below `shared/data` beside a
/// folder that contains the current folder or the program.
pub fn shared(folder: &str, start: &str, end: &str) -> Option<PathBuf> {
    let roots: Vec<PathBuf> = match std::env::var_os("VOLLEY_SHARED") {
        Some(named) if named.is_empty() => return None,
        Some(named) => vec![named.into()],
        None => {
            let from = [std::env::current_dir().ok(), std::env::current_exe().ok()];
            let above = from.iter().flatten().flat_map(|path| path.ancestors());
            above.map(|folder| folder.join("shared")).collect()
        }
    };
    roots
        .iter()
        .flat_map(|root| [root.join("data").join(folder), root.join(folder)])
        .find_map(|d| within(&d, start, end))
}

/// The first file of a folder, by name, whose name has this start and end.
fn within(folder: &Path, start: &str, end: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = name(path);
        name.starts_with(start) && name.ends_with(end) && !name.contains("nexthops")
    };
    files.filter(fits).min()
}
