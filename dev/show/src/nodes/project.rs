//! A project that `volley plugin new` writes: from the template to a node that packets pass.

use serde_json::Value;
use std::fs;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

/// Name of the project.
const NAME: &str = "ttl-guard";

/// Writes the project, runs its test, builds it, and lets packets pass its node in a router.
pub fn judge(home: &Home) -> Outcome {
    Outcome::of(show(home))
}

fn show(home: &Home) -> Result<String, String> {
    // They count the lines.
    let tests = ["test", "--workspace", "--bin", "volley", "plugin::"];
    Program::cargo(home).args(tests).require()?;
    let folder = home.target.join("show-new");
    crate::lab_page::empty(&folder)?;
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let build = ["build", "--release", "--locked", "-p", "volley"];
    Program::cargo(home).args(build).require()?;
    Program::new(home, home.volley())
        .args(["plugin", "new", NAME, "--sdk"])
        .arg(home.root.join("crates/plugin/sdk"))
        .dir(&folder)
        .require()?;
    let built = home.target.join("show-new-built");
    let cargo = |word: &str| {
        Program::cargo(home)
            .args([word, "--release", "--offline"])
            .dir(&folder.join(NAME))
            .env("CARGO_TARGET_DIR", &built)
            .require()
    };
    let tested = cargo("test")?;
    let passed: usize = tested.stdout.lines().filter_map(super::click::passed).sum();
    if passed == 0 {
        return Err("the project has no test".to_owned());
    }
    cargo("build")?;
    let library = built.join(format!("release/lib{}.so", NAME.replace('-', "_")));
    let ran = Program::new(home, home.volley())
        .args(["bench", "plugin", "--no-counts", "--json"])
        .arg(&library)
        .require()?;
    let report: Value = serde_json::from_str(&ran.stdout).map_err(|e| e.to_string())?;
    let row = &report["rows"][0];
    let cycles = row.pointer("/clocks/median").and_then(Value::as_f64);
    match (row["node"].as_str(), row["packets"].as_u64(), cycles) {
        (Some(NAME), Some(packets), Some(cycles)) if packets > 0 => Ok(format!(
            "at most 40 lines, {passed} test passes; {packets} packets passed its node in a router, {cycles:.1} cycles each"
        )),
        _ => Err(format!("no packet passed the node: {}", ran.stdout.trim())),
    }
}
