//! Runs of a clone alone in a folder, without shared data beside it, as a new user has it.

use crate::cargo_test;
use crate::home::Home;
use crate::readme;
use crate::report::Outcome;
use crate::run::Program;
use std::path::Path;

/// The variable with the path of the shared data; empty means that there is none.
const VARIABLE: &str = "VOLLEY_SHARED";

/// Runs everything that depends on the shared data without it: the pages' commands and the tests that read it.
pub fn without_data(home: &Home) -> Outcome {
    Outcome::of(absent(home))
}

fn absent(home: &Home) -> Result<String, String> {
    let pages = match readme::run(home, false) {
        Outcome::Pass(text) => text,
        Outcome::Skip(why) | Outcome::Fail(why) => return Err(why),
    };
    let targets = targets(home)?;
    let mut tests = 0;
    for (package, target) in &targets {
        let run = Program::cargo(home)
            .args(["test", "-p", package, "--test", target])
            .env(VARIABLE, "");
        tests += cargo_test::count(run)?;
    }
    let names: Vec<&str> = targets.iter().map(|(_, target)| target.as_str()).collect();
    Ok(format!("{pages}; {tests} tests of {}", names.join(", ")))
}

/// Packages and test targets whose text refers to the shared data.
fn targets(home: &Home) -> Result<Vec<(String, String)>, String> {
    let found = Program::new(home, "git")
        .args(["grep", "-lE", "VOLLEY_SHARED|support::replay|mod replay"])
        .args(["--", "apps/*/tests/*.rs", "crates/*/tests/*.rs"])
        .require()?;
    let mut all: Vec<(String, String)> = Vec::new();
    for path in found.stdout.lines().map(Path::new) {
        // Only files directly in the folder are targets.
        let (Some(folder), Some(target)) = (path.parent(), path.file_stem()) else {
            continue;
        };
        if folder.ends_with("tests") {
            let manifest = home.root.join(folder).with_file_name("Cargo.toml");
            all.push((package(&manifest)?, target.to_string_lossy().into_owned()));
        }
    }
    if all.is_empty() {
        return Err("no test looks for the shared data".into());
    }
    Ok(all)
}

fn package(manifest: &Path) -> Result<String, String> {
    let complain = |why: String| format!("{}: {why}", manifest.display());
    let text = std::fs::read_to_string(manifest).map_err(|e| complain(e.to_string()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| complain(e.to_string()))?;
    let name = table.get("package").and_then(|p| p.get("name")?.as_str());
    name.map(str::to_owned)
        .ok_or_else(|| complain("it names no package".into()))
}

/// Clones the committed state into a new temporary folder, and runs the README's test command there.
pub fn clone(home: &Home) -> Outcome {
    let folder = std::env::temp_dir().join(format!("volley-fresh-{}", std::process::id()));
    let done = in_clone(home, &folder.join("volley"));
    // Files that cannot be removed now are removed with the other temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    Outcome::of(done)
}

fn in_clone(home: &Home, folder: &Path) -> Result<String, String> {
    let page = std::fs::read_to_string(home.root.join("README.md"));
    let command = test_command(&page.map_err(|e| format!("README.md: {e}"))?)?;
    Program::new(home, "git")
        .args(["clone", "--quiet", "."])
        .arg(folder)
        .require()?;
    let run = Program::new(home, "env")
        .args(["-u", VARIABLE, "-u", "CARGO_TARGET_DIR"])
        .args(["bash", "-c", &command])
        .dir(folder)
        .limit_seconds(7200)
        .output()
        .map_err(|error| error.to_string())?;
    let last = run.stdout.lines().last().unwrap_or_default().to_owned();
    if run.ok {
        return Ok(format!("`{command}`: {last}"));
    }
    let failed: Vec<&str> = run
        .stdout
        .lines()
        .filter(|l| l.starts_with("FAIL"))
        .collect();
    Err(format!(
        "`{command}` in a clone: {}: {}",
        run.ending,
        failed.join("; ")
    ))
}

/// The first command of the page's section "Testing".
fn test_command(page: &str) -> Result<String, String> {
    let section = page.split("\n## Testing\n").nth(1);
    let mut lines = section.into_iter().flat_map(str::lines);
    lines
        .find(|line| line.starts_with("```"))
        .and_then(|_| lines.next())
        .map(str::to_owned)
        .ok_or_else(|| "README.md has no section `Testing` with a command".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_s_command_and_the_tests_that_look_for_data_are_found() {
        let home = Home::find().unwrap();
        let page = std::fs::read_to_string(home.root.join("README.md")).unwrap();
        assert_eq!(test_command(&page).unwrap(), "cargo xtask ci");
        assert!(test_command("# x\n").is_err());
        let found = targets(&home).unwrap();
        let has =
            |package: &str, target: &str| found.iter().any(|(p, t)| p == package && t == target);
        assert!(has("volley-fib", "real") && has("volley-pcap", "captures"));
        assert!(
            has("volley", "replay") && has("volley", "full_table"),
            "{found:?}"
        );
        assert!(!found.iter().any(|(_, target)| target == "mod"));
    }
}
