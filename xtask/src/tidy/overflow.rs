//! Overflow checks: arithmetic that overflows panics in release builds of the control plane, and has no cost on the data
//! path.
//! `overflow-checks` of the release profile is on for exactly the crates of the control plane.

use super::Finding;
use super::layers::Workspace;
use crate::error::Error;
use crate::home::Home;
use std::collections::BTreeSet;

const MANIFEST: &str = "Cargo.toml";
/// Folder of the control plane; the derive macros run in the compiler only.
const CONTROL: &str = "crates/control/";
const IN_THE_COMPILER: &str = "crates/control/object-derive";
/// Other crates of the control plane: the control thread, its file readers, the log, and the Linux control plane.
const MORE: [&str; 5] = [
    "apps/daemon",
    "crates/base/file",
    "crates/base/input",
    "crates/io/log",
    "crates/net/netlink",
];

/// Compares the profile with the members of the workspace.
pub fn checks(home: &Home, workspace: &Workspace) -> Result<Vec<Finding>, Error> {
    let path = home.root.join(MANIFEST);
    let text = std::fs::read_to_string(&path).map_err(Error::file(MANIFEST))?;
    let manifest: toml::Table =
        toml::from_str(&text).map_err(|error| Error::format(MANIFEST, error))?;
    let members = workspace.members.iter();
    let members = members.map(|member| (member.name.as_str(), member.dir.as_str()));
    Ok(compare(&manifest, members))
}

fn compare<'a>(
    manifest: &toml::Table,
    members: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<Finding> {
    let packages = ["profile", "release", "package"]
        .iter()
        .try_fold(manifest, |table, key| table.get(*key)?.as_table());
    let is_on = |settings: &toml::Value| {
        let value = settings.get("overflow-checks");
        value.and_then(toml::Value::as_bool) == Some(true)
    };
    let packages = packages.into_iter().flatten();
    let with: BTreeSet<&str> = packages
        .filter(|(_, settings)| is_on(settings))
        .map(|(name, _)| name.as_str())
        .collect();
    let is_control =
        |dir: &str| (dir.starts_with(CONTROL) && dir != IN_THE_COMPILER) || MORE.contains(&dir);
    members
        .filter(|(name, dir)| is_control(dir) != with.contains(name))
        .map(|(name, dir)| Finding {
            path: MANIFEST.to_owned(),
            line: 0,
            text: match is_control(dir) {
                true => format!(
                    "{dir} is of the control plane: add `overflow-checks = true` to [profile.release.package.{name}]"
                ),
                false => format!(
                    "{dir} is not of the control plane: remove `overflow-checks` from [profile.release.package.{name}]"
                ),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_crates_have_checks_and_others_have_none() {
        let manifest = "[profile.release.package.a]\noverflow-checks = true\n\
            [profile.release.package.c]\noverflow-checks = true\n[profile.release.package.d]\nopt-level = \"s\"\n";
        let manifest: toml::Table = toml::from_str(manifest).unwrap();
        let members = [
            ("a", "crates/control/a"),
            ("b", "crates/net/b"),
            ("c", "crates/net/c"),
            ("d", "crates/control/d"),
            ("e", IN_THE_COMPILER),
            ("f", MORE[0]),
        ];
        let found = compare(&manifest, members.into_iter());
        let message: Vec<&str> = found.iter().map(|f| f.text.as_str()).collect();
        assert_eq!(message.len(), 3, "{message:?}");
        assert!(message[0].starts_with("crates/net/c is not of"));
        assert!(message[1].starts_with("crates/control/d is of"));
        assert!(message[2].starts_with("apps/daemon is of"));
    }
}
