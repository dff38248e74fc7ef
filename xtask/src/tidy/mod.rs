//! House rules that the compiler does not check. Each rule is a function from a file (or the workspace) to findings, and
//! has tests with samples that violate it. `cargo test -p xtask` also runs all rules over the checkout.

mod circles;
mod files;
mod finding;
mod house;
mod imports;
mod layers;
mod once;
mod overflow;
mod retired;
mod rooms;
mod shared;
mod sizes;
pub mod source;
mod subjects;
mod supported;
pub mod tokens;
mod unsafe_code;
mod words;

use crate::error::Error;
use crate::home::Home;
use crate::report::{Fail, Outcome, Pass};
use finding::Finding;
pub use house::House;
use source::Source;

/// Applies every rule to the whole checkout; also returns the number of files.
pub fn check(home: &Home) -> Result<(Vec<Finding>, usize), Error> {
    let sources = source::all(home)?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(check_file).collect();
    findings.extend(unsafe_code::crate_roots(&sources));
    let crates = imports::crates(&sources);
    findings.extend(circles::circles(&crates));
    findings.extend(rooms::arrows(&crates));
    let workspace = layers::Workspace::read(home)?;
    findings.extend(layers::arrows(&workspace));
    findings.extend(layers::documented(home, &workspace)?);
    findings.extend(overflow::checks(home, &workspace)?);
    findings.extend(shared::copies(home)?);
    findings.extend(supported::claims(home)?);
    findings.extend(retired::words(home, &sources)?);
    Ok((findings, sources.len()))
}

fn check_file(source: &Source) -> Vec<Finding> {
    let mut findings = sizes::lines(source);
    findings.extend(sizes::functions(source));
    findings.extend(unsafe_code::places(source));
    findings.extend(unsafe_code::reasons(source));
    findings.extend(words::banned(source));
    findings.extend(words::x86(source));
    findings.extend(words::node_head(source));
    findings.extend(files::opened(source));
    findings.extend(once::layouts(source));
    findings.extend(imports::unreadable(source));
    findings.extend(subjects::pronouns(source));
    findings
}

/// The stage of `ci`.
pub fn run(home: &Home) -> Outcome {
    match check(home) {
        Ok((findings, files)) if findings.is_empty() => Pass(format!("{files} files")),
        Ok((findings, _)) => {
            let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
            Fail(format!("{} findings\n{}", findings.len(), list.join("\n")))
        }
        Err(error) => Fail(error.to_string()),
    }
}

/// The command: the stage, and statistics of the code.
pub fn command(home: &Home) -> Result<bool, Error> {
    for line in sizes::statistics(&source::all(home)?) {
        println!("{line}");
    }
    Ok(crate::report::single("tidy", run(home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_tidy() {
        let (findings, files) = check(&Home::find().unwrap()).unwrap();
        assert!(files > 20, "only {files} files were found");
        let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}
