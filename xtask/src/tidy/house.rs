//! Rules about the checkout as a whole, for `cargo xtask show house`.

use super::imports::{self, Crate};
use super::source::{self, Source};
use super::{Finding, circles, once, retired, rooms, sizes, subjects, supported, tokens};
use crate::error::Error;
use crate::home::Home;

/// The Rust files of the checkout and their imports.
pub struct House<'a> {
    home: &'a Home,
    sources: Vec<Source>,
    crates: Vec<Crate>,
}

impl<'a> House<'a> {
    /// Reads the checkout.
    pub fn read(home: &'a Home) -> Result<Self, Error> {
        let sources = source::all(home)?;
        Ok(House {
            home,
            crates: imports::crates(&sources),
            sources,
        })
    }

    /// Crates whose import circles are too large; an error if there are any.
    pub fn circles(&self) -> Result<String, String> {
        circles::strict(&self.crates)
    }

    /// The order of rooms; an error if one imports a room to its right.
    pub fn arrows(&self) -> Result<String, String> {
        verdict(&rooms::arrows(&self.crates), rooms::summary())
    }

    /// Checks comments and pages for retired words; an error if there are any.
    pub fn words(&self) -> Result<String, String> {
        let findings = retired::words(self.home, &self.sources);
        let mut findings = findings.map_err(|error| error.to_string())?;
        findings.extend(self.sources.iter().flat_map(subjects::pronouns));
        verdict(
            &findings,
            format!("{} Rust files and the pages", self.sources.len()),
        )
    }

    /// Header layouts outside the crate of wire formats; an error if there are any.
    pub fn once(&self) -> Result<String, String> {
        let findings: Vec<_> = self.sources.iter().flat_map(once::layouts).collect();
        verdict(&findings, format!("{} Rust files", self.sources.len()))
    }

    /// The claims of the README and their tests; an error if a claim has no test.
    pub fn claims(&self) -> Result<String, String> {
        let findings = supported::claims(self.home).map_err(|error| error.to_string())?;
        let rows = supported::rows(self.home).map_err(|error| error.to_string())?;
        verdict(
            &findings,
            format!("{rows} claims, each with a test that exists"),
        )
    }

    /// The largest crate, file and function.
    pub fn sizes(&self) -> String {
        sizes::largest(&self.sources)
    }

    /// Path and text of each file outside tests.
    pub fn program(&self) -> impl Iterator<Item = (&str, &str)> {
        let program = self.sources.iter().filter(|source| !source.is_test());
        program.map(|source| (source.path.as_str(), source.text.as_str()))
    }

    /// The code and the doc comments of the files in a folder, tests left out: path, and texts with their lines.
    pub fn code_below(&self, folder: &str) -> impl Iterator<Item = (&str, Vec<(usize, String)>)> {
        let inside = move |source: &&Source| source.path.starts_with(folder) && !source.is_test();
        let code = |source: &Source| {
            let tokens = tokens::outside_tests(&source.text).into_iter();
            tokens.map(|token| (token.line, token.text)).collect()
        };
        let files = self.sources.iter().filter(inside);
        files.map(move |source| (source.path.as_str(), code(source)))
    }
}

/// The summary, or the findings.
fn verdict(findings: &[Finding], summary: String) -> Result<String, String> {
    if findings.is_empty() {
        return Ok(summary);
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(format!("{} findings: {}", findings.len(), lines.join("; ")))
}
