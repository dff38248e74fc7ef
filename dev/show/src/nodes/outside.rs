//! The tests of plugins in a daemon, with the sample built as a project outside of the workspace.

use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

/// The project, from the root.
const PROJECT: &str = "tests/outside-plugin/Cargo.toml";

/// Builds the sample outside of the workspace, and runs the tests with it.
pub fn judge(home: &Home) -> Outcome {
    Outcome::of(show(home))
}

fn show(home: &Home) -> Result<String, String> {
    let folder = home.target.join("outside-plugin");
    Program::cargo(home)
        .args(["build", "--offline", "--manifest-path", PROJECT])
        .env("CARGO_TARGET_DIR", &folder)
        .require()?;
    let library = folder.join("debug/libvolley_outside_plugin.so");
    let tests = ["test", "--workspace", "--test", "plugins"];
    let ran = Program::cargo(home)
        .args(tests)
        .env("VOLLEY_SAMPLE", &library)
        .require()?;
    let passed: usize = ran.stdout.lines().filter_map(super::click::passed).sum();
    match passed {
        0 => Err("no test ran".to_owned()),
        n => Ok(format!("{n} tests with {}", library.display())),
    }
}
