//! Allowed dependencies between crates; each external dependency must have a row in `docs/dependencies.md`.

use super::Finding;
use crate::error::Error;
use crate::home::Home;
use crate::run::Program;
use serde::Deserialize;
use std::collections::BTreeMap;

const PAGE: &str = "docs/dependencies.md";

/// The crates of the workspace, by folder.
pub struct Workspace {
    pub members: Vec<Member>,
}

/// One crate.
pub struct Member {
    pub name: String,
    /// Folder in the checkout, such as `crates/net/ip`.
    pub dir: String,
    /// Names of the crates that it depends on, and whether only its tests do.
    pub needs: Vec<(String, bool)>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: String,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

impl Workspace {
    pub fn read(home: &Home) -> Result<Self, Error> {
        let metadata = [
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ];
        let output = Program::cargo(home).args(metadata).output()?;
        if !output.ok {
            return Err(Error::Command {
                command: "cargo metadata".into(),
                reason: output.tail(5),
            });
        }
        let mut workspace = Self::parse(&output.stdout)?;
        workspace.add_fuzz(home)?;
        Ok(workspace)
    }

    fn parse(json: &str) -> Result<Self, Error> {
        let metadata: Metadata =
            serde_json::from_str(json).map_err(|error| Error::format("cargo metadata", error))?;
        let root = format!("{}/", metadata.workspace_root);
        let members = metadata.packages.into_iter().map(|package| Member {
            dir: package
                .manifest_path
                .trim_start_matches(&root)
                .trim_end_matches("/Cargo.toml")
                .to_owned(),
            name: package.name,
            needs: package
                .dependencies
                .into_iter()
                .map(|need| (need.name, need.kind.as_deref() == Some("dev")))
                .collect(),
        });
        Ok(Self {
            members: members.collect(),
        })
    }

    /// The fuzz targets are a separate workspace; only their external dependencies are checked.
    fn add_fuzz(&mut self, home: &Home) -> Result<(), Error> {
        let path = home.root.join("fuzz/Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(());
        };
        let manifest: toml::Table = toml::from_str(&text)
            .map_err(|error| Error::format(path.display().to_string(), error))?;
        let names = manifest
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .map(|table| table.keys().cloned().collect());
        let needs: Vec<String> = names.unwrap_or_default();
        self.members.push(Member {
            name: "fuzz".into(),
            dir: "fuzz".into(),
            needs: needs.into_iter().map(|name| (name, true)).collect(),
        });
        Ok(())
    }

    fn dirs(&self) -> BTreeMap<&str, &str> {
        self.members
            .iter()
            .map(|member| (member.name.as_str(), member.dir.as_str()))
            .collect()
    }
}

/// Crate of requests, queries, replies.
const MODEL: &str = "crates/control/model";
/// Crate that opens files.
const FILE: &str = "crates/base/file";
/// Crate for the definition of classes of objects, which feature crates use.
const OBJECT: &str = "crates/control/object";
/// Crate for the layout of query output.
const SHOW: &str = "crates/control/show";

/// Whether a crate in folder `from` may use one in folder `to`.
fn may_use(from: &str, to: &str) -> bool {
    let inside = |dir: &str, parent: &str| dir.starts_with(parent);
    let foundation = [
        "crates/base/wire",
        "crates/base/simd",
        "crates/base/input",
        "crates/base/stack-sample",
        FILE,
    ];
    let middle = ["crates/base/buf", "crates/base/tables"];
    let base = inside(to, "crates/base/");
    match from {
        "apps/daemon" => inside(to, "crates/"),
        // The reference model shares no code with the code that it checks.
        "tools/reference" => false,
        // The lab measures with the benchmark.
        "tools/lab" if to == "tools/bench" => true,
        _ if inside(from, "tools/") => {
            inside(to, "crates/") || ["apps/daemon", "tools/reference"].contains(&to)
        }
        // The lab is a separate program: the router contains none of its dependencies.
        "apps/volley" => to != "tools/lab",
        _ if inside(from, "apps/") || from == "fuzz" => true,
        "dev/experiments" => to == "xtask",
        "dev/show" => ["xtask", "dev/experiments"].contains(&to),
        "crates/control/object-derive" | SHOW => false,
        // Addresses and prefixes are defined in base/wire, with their text.
        OBJECT => ["crates/control/object-derive", SHOW, "crates/base/wire"].contains(&to),
        MODEL => [OBJECT, "crates/base/wire"].contains(&to),
        // Compressed files are opened as all files are.
        "crates/base/input" if to == FILE => true,
        "crates/base/graph" => foundation.contains(&to) || middle.contains(&to),
        _ if middle.contains(&from) => foundation.contains(&to),
        // Counters of the threads of workers.
        "crates/base/perfmon" => to == "crates/base/graph",
        _ if inside(from, "crates/base/") => false,
        "crates/net/iface" => base || [MODEL, OBJECT, SHOW].contains(&to),
        "crates/net/fib" => base || ["crates/net/iface", MODEL, OBJECT, SHOW].contains(&to),
        // Neighbor discovery is one protocol in two crates: net/neighbor passes links and messages to
        // net/router-discovery.
        "crates/net/neighbor" if to == "crates/net/router-discovery" => true,
        // The Linux control plane is one feature in two crates: net/lcp has its objects, net/netlink communicates with
        // the kernel.
        "crates/net/netlink" if to == "crates/net/lcp" => true,
        _ if inside(from, "crates/net/") => {
            base || ["crates/net/iface", "crates/net/fib", MODEL, OBJECT, SHOW].contains(&to)
        }
        // The generator replays capture files, whose format io/pcap implements.
        "crates/io/pg" if to == "crates/io/pcap" => true,
        // The kernel's vhost-net serves a tap's rings, which io/vhost implements.
        "crates/io/tap" if to == "crates/io/vhost" => true,
        // Shared code of the drivers for the kernel's interfaces.
        "crates/io/tap" | "crates/io/af-packet" | "crates/io/af-xdp" if to == "crates/io/linux" => {
            true
        }
        // Memory that drivers share with peers is handled in one crate, which does not use packets.
        "crates/io/shm" => false,
        "crates/io/memif" | "crates/io/vhost" if to == "crates/io/shm" => true,
        _ if inside(from, "crates/io/") => {
            base || ["crates/net/iface", MODEL, OBJECT, SHOW].contains(&to)
        }
        _ if inside(from, "crates/control/") => {
            inside(to, "crates/control/") || foundation.contains(&to)
        }
        _ if inside(from, "crates/plugin/") => plugin_may_use(from, to),
        _ => false,
    }
}

/// As [`may_use`], for crates of plugins and graph files.
fn plugin_may_use(from: &str, to: &str) -> bool {
    match from {
        // A parser, which knows no engine.
        "crates/plugin/click-lang" => false,
        // Elements that are interfaces and capture files.
        "crates/plugin/click" if ["crates/net/iface", "crates/io/pcap"].contains(&to) => true,
        _ => {
            let inside = ["crates/base/", "crates/plugin/"];
            inside.iter().any(|it| to.starts_with(it)) || [MODEL, OBJECT, SHOW].contains(&to)
        }
    }
}

/// Checks dependencies against the design. Dev-dependencies are unrestricted; cargo refuses circles.
pub fn arrows(workspace: &Workspace) -> Vec<Finding> {
    let dirs = workspace.dirs();
    let mut findings = Vec::new();
    for member in &workspace.members {
        for (need, for_tests) in &member.needs {
            let Some(to) = dirs.get(need.as_str()) else {
                continue;
            };
            if !for_tests && !may_use(&member.dir, to) {
                let text = format!(
                    "`{}` must not depend on `{need}` ({to}): see the arrows in ARCHITECTURE.md",
                    member.name
                );
                findings.push(Finding {
                    path: format!("{}/Cargo.toml", member.dir),
                    line: 0,
                    text,
                });
            }
        }
    }
    findings
}

/// Checks that the page lists every external dependency, and no others.
pub fn documented(home: &Home, workspace: &Workspace) -> Result<Vec<Finding>, Error> {
    let path = home.root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    Ok(compare(workspace, &page))
}

fn compare(workspace: &Workspace, page: &str) -> Vec<Finding> {
    let dirs = workspace.dirs();
    let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for member in &workspace.members {
        for (need, _) in member
            .needs
            .iter()
            .filter(|(need, _)| !dirs.contains_key(need.as_str()))
        {
            used.entry(need).or_default().push(&member.name);
        }
    }
    let rows: Vec<(usize, &str)> = page
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, row_name(line)?)))
        .collect();
    let finding = |line: usize, text: String| Finding {
        path: PAGE.into(),
        line,
        text,
    };
    let mut findings = Vec::new();
    for (name, users) in used
        .iter()
        .filter(|(name, _)| !rows.iter().any(|row| row.1 == **name))
    {
        findings.push(finding(
            0,
            format!(
                "`{name}` (used by {}) has no row that says what it is for",
                users.join(", ")
            ),
        ));
    }
    for (line, name) in rows.iter().filter(|(_, name)| !used.contains_key(name)) {
        findings.push(finding(
            *line,
            format!("`{name}` is listed, but no crate uses it any more"),
        ));
    }
    findings
}

/// The name in the first cell of "| `name` | why |".
fn row_name(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("| `")?.split_once('`')?;
    rest.trim_start().starts_with('|').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sample = (&'static str, &'static str, &'static [(&'static str, bool)]);

    fn workspace(members: &[Sample]) -> Workspace {
        let member = |(name, dir, needs): &Sample| Member {
            name: (*name).into(),
            dir: (*dir).into(),
            needs: needs
                .iter()
                .map(|(need, test)| ((*need).to_owned(), *test))
                .collect(),
        };
        Workspace {
            members: members.iter().map(member).collect(),
        }
    }

    #[test]
    fn the_arrows_of_the_design() {
        let good = [
            ("crates/base/buf", "crates/base/simd"),
            ("crates/base/graph", "crates/base/tables"),
            ("crates/net/iface", "crates/base/graph"),
            ("crates/net/fib", "crates/net/iface"),
            ("crates/net/ip", "crates/net/fib"),
            ("crates/io/pg", "crates/net/iface"),
            ("crates/net/ip", "crates/control/model"),
            ("crates/net/ip", "crates/control/object"),
            ("crates/control/model", "crates/control/object"),
            ("crates/control/cli", "crates/control/model"),
            ("apps/daemon", "crates/net/ip"),
            ("tools/demo", "apps/daemon"),
            ("tools/demo", "tools/reference"),
            ("tools/lab", "tools/bench"),
            ("apps/volley", "tools/demo"),
            ("dev/show", "dev/experiments"),
            ("dev/experiments", "xtask"),
        ];
        let bad = [
            ("crates/base/simd", "crates/base/buf"),
            ("crates/base/buf", "crates/base/tables"),
            ("crates/base/tables", "crates/base/graph"),
            ("crates/base/graph", "crates/net/iface"),
            ("crates/net/iface", "crates/net/fib"),
            ("crates/net/ip", "crates/net/l2"),
            ("crates/net/ip", "crates/io/pg"),
            ("crates/io/pg", "crates/net/fib"),
            ("crates/io/pcap", "crates/io/pg"),
            ("crates/control/model", "crates/base/tables"),
            ("crates/control/object", "crates/control/model"),
            ("crates/control/cli", "crates/net/ip"),
            ("crates/control/config", "crates/io/pg"),
            ("apps/daemon", "tools/bench"),
            ("tools/reference", "crates/base/wire"),
            ("tools/bench", "tools/demo"),
            ("tools/bench", "tools/lab"),
            ("apps/volley", "tools/lab"),
            ("xtask", "crates/base/wire"),
            ("xtask", "dev/show"),
            ("dev/show", "crates/base/wire"),
        ];
        assert!(good.iter().all(|(from, to)| may_use(from, to)));
        let wrong: Vec<_> = bad.iter().filter(|(from, to)| may_use(from, to)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_wrong_arrow_is_found_but_not_in_tests() {
        let members: [Sample; 3] = [
            (
                "volley-ip",
                "crates/net/ip",
                &[("volley-l2", false), ("volley-pg", true), ("serde", false)],
            ),
            ("volley-l2", "crates/net/l2", &[]),
            ("volley-pg", "crates/io/pg", &[]),
        ];
        let findings = arrows(&workspace(&members));
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0]
                .text
                .contains("`volley-ip` must not depend on `volley-l2`")
        );
    }

    #[test]
    fn dependencies_and_page_agree_both_ways() {
        let members: [Sample; 2] = [
            ("a", "crates/base/a", &[("serde", false), ("b", false)]),
            ("b", "crates/base/b", &[("loom", true)]),
        ];
        let page = "# x\n\n| crate | why |\n|---|---|\n| `serde` | data in and out |\n| `gone` | was useful |\n";
        let texts: Vec<String> = compare(&workspace(&members), page)
            .into_iter()
            .map(|finding| finding.to_string())
            .collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("`loom` (used by b)"));
        assert!(texts[1].starts_with("docs/dependencies.md:6: `gone`"));
    }

    #[test]
    fn metadata_is_read() {
        let json = r#"{"workspace_root":"/w","packages":[{"name":"a","manifest_path":"/w/crates/net/a/Cargo.toml",
            "dependencies":[{"name":"s","kind":null},{"name":"t","kind":"dev"}]}]}"#;
        let read = Workspace::parse(json).unwrap();
        assert_eq!(read.members[0].dir, "crates/net/a");
        assert_eq!(
            read.members[0].needs,
            [("s".to_owned(), false), ("t".to_owned(), true)]
        );
        assert!(Workspace::parse("{}").is_err());
    }
}
