//! Writes the tables of docs/bench.md and README.md (between their marks) from a run of the lab.

use crate::error::Error;
use crate::home::Home;
use crate::measure::Spread;
use crate::run::Program;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum vector sizes that the bench measures.
pub const VECTOR_SIZES: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
const PAGE: &str = "docs/bench.md";
const FRONT: &str = "README.md";
const BEGIN: &str = "<!-- xtask bench: begin -->";
const END: &str = "<!-- xtask bench: end -->";
/// File of a run, or of its stored report.
const FILE: &str = "points.json";
/// Folder of stored reports.
const REPORTS: &str = "docs/reports";
/// Figures of the lab with the rows, and with the curves by vector size.
const ROWS: &str = "volley-table";
const CURVES: &str = "vpp-6a";
/// Rows of the README.
const FEW: [&str; 6] = [
    "patch",
    "L2 cross-connect",
    "ip4, 1 route",
    "ip4, full table, 64k uniform",
    "ip6, full table, 64k uniform",
    "mix, full tables",
];
/// Longest time of a run in seconds.
const LIMIT: u64 = 3600;

/// The tables of full-size runs, as arguments of `volley bench`: the real ones if they exist, else synthetic ones of the same size.
pub fn big_tables(home: &Home) -> (Vec<String>, &'static str) {
    let v4 = home.data("rib4-ris3333-20260511-nhmodel.txt.xz");
    let v6 = home.data("rib6-ris3333-20260511-nhmodel.txt.xz");
    match (v4, v6) {
        (Ok(v4), Ok(v6)) => {
            let words = [
                "--table".to_owned(),
                v4.display().to_string(),
                "--table6".to_owned(),
                v6.display().to_string(),
            ];
            (words.to_vec(), "real tables (RIPE RIS, 11 May 2026)")
        }
        _ => (vec!["--prefixes".into(), "full".into()], "synthetic tables"),
    }
}

/// A measured point of a run.
#[derive(Deserialize)]
struct Point {
    figure: String,
    series: String,
    label: String,
    quantities: BTreeMap<String, Spread>,
}

/// Where a run was made.
#[derive(Deserialize)]
struct Environment {
    version: String,
    git: String,
    processor: String,
    tsc_ghz: f64,
    kernel: String,
}

/// The file of a run.
#[derive(Deserialize)]
struct Run {
    level: String,
    environment: Environment,
    points: Vec<Point>,
}

/// Writes both tables from the run in a folder; without one, measures them first.
pub fn run(home: &Home, from: Option<PathBuf>, quick: bool) -> Result<(), Error> {
    let folder = match from {
        Some(folder) => folder,
        None => measure(home, quick)?,
    };
    let run = read(&folder)?;
    let link = link(home, &folder);
    put(&home.root.join(PAGE), PAGE, &page(&run, link.as_deref()))?;
    put(&home.root.join(FRONT), FRONT, &front(&run, link.as_deref()))
}

/// Builds the program of the lab; returns its path.
pub fn lab(home: &Home) -> Result<PathBuf, String> {
    let build = ["build", "--release", "--locked", "-p", "volley-lab"];
    Program::cargo(home).args(build).require()?;
    Ok(home.target.join("release/volley-lab"))
}

/// Runs the two figures of the lab.
fn measure(home: &Home, quick: bool) -> Result<PathBuf, Error> {
    let failed = |reason| Error::format("volley-lab", reason);
    let lab = lab(home).map_err(failed)?;
    let folder = home.target.join("bench-lab");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
    }
    let mut run = Program::new(home, &lab).args(["run", ROWS, CURVES, "--out"]);
    run = run.arg(&folder).limit_seconds(LIMIT);
    if quick {
        run = run.arg("--quick");
    }
    run.require().map_err(failed)?;
    Ok(folder)
}

fn read(folder: &Path) -> Result<Run, Error> {
    let path = folder.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    serde_json::from_str(&text).map_err(|error| Error::format(FILE, error))
}

/// The page of a stored report, seen from docs; none for a run elsewhere.
fn link(home: &Home, folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let reports = home.root.join(REPORTS).canonicalize().ok()?;
    let name = folder.strip_prefix(reports).ok()?.to_str()?;
    Some(format!("reports/{name}/README.md"))
}

/// Where the numbers are from, in sentences; links begin with `base`.
fn source(run: &Run, link: Option<&str>, base: &str) -> String {
    let of = &run.environment;
    let report = match link {
        Some(page) => format!(" The whole run: [report]({base}{page})."),
        None => " The report of this run is not stored.".to_owned(),
    };
    format!(
        "From a {} run of [the lab]({base}lab.md) with Volley {} {} on {} (time stamp counter {} GHz), Linux {}.{report}",
        run.level, of.version, of.git, of.processor, of.tsc_ghz, of.kernel
    )
}

fn spread(point: &Point, quantity: &str, digits: usize) -> String {
    match point.quantities.get(quantity) {
        Some(s) => format!(
            "{:.digits$} ({:.digits$} to {:.digits$})",
            s.median, s.min, s.max
        ),
        None => "-".to_owned(),
    }
}

fn of<'a>(run: &'a Run, figure: &'a str) -> impl Iterator<Item = &'a Point> {
    run.points.iter().filter(move |p| p.figure == figure)
}

fn page(run: &Run, link: Option<&str>) -> String {
    let mut out = source(run, link, "");
    out += " Full tables are synthetic, with the prefix lengths of a real table. Cycles are TSC cycles of all nodes but the source; median (lowest to highest). Together: with the source and the loop, as in the rate.\n\n";
    out += "| scenario | Mpps | cycles per packet | together |\n|---|---|---|---|\n";
    for point in of(run, ROWS) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            point.label,
            spread(point, "mpps", 2),
            spread(point, "cycles", 1),
            spread(point, "together_cycles", 1)
        );
    }
    out += "\n**By vector size** (one route, cycles per packet):\n\n| scenario |";
    let sizes: Vec<String> = VECTOR_SIZES.iter().map(u32::to_string).collect();
    let _ = writeln!(
        out,
        " {} |\n|---|{}",
        sizes.join(" | "),
        "---|".repeat(sizes.len())
    );
    let mut names: Vec<&str> = Vec::new();
    for point in of(run, CURVES) {
        if !names.contains(&point.series.as_str()) {
            names.push(&point.series);
        }
    }
    for name in names {
        let cell = |size: &String| {
            let mut all = of(run, CURVES);
            let point = all.find(|p| p.series == name && p.label == *size);
            let cycles = point.and_then(|p| p.quantities.get("cycles"));
            cycles.map_or("-".to_owned(), |s| format!("{:.1}", s.median))
        };
        let cells: Vec<String> = sizes.iter().map(cell).collect();
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out
}

/// The table of the README: what one core forwards.
fn front(run: &Run, link: Option<&str>) -> String {
    let mut out = source(run, link, "docs/");
    out += "\n\n| one core, packets of 64 bytes from memory | Mpps | cycles per packet in the graph |\n|---|---|---|\n";
    for point in of(run, ROWS).filter(|p| FEW.contains(&p.label.as_str())) {
        let median = |quantity: &str, digits: usize| {
            let value = point.quantities.get(quantity);
            value.map_or("-".to_owned(), |s| format!("{:.digits$}", s.median))
        };
        let (mpps, cycles) = (median("mpps", 1), median("cycles", 1));
        let _ = writeln!(out, "| {} | {mpps} | {cycles} |", point.label);
    }
    out
}

/// Replaces the text between the marks.
fn put(path: &Path, name: &'static str, text: &str) -> Result<(), Error> {
    let page = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let new = splice(&page, text)
        .ok_or_else(|| Error::format(name, format!("the marks `{BEGIN}` and `{END}` are gone")))?;
    std::fs::write(path, new).map_err(Error::file(path))
}

fn splice(page: &str, text: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{text}{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"level":"full","environment":{"version":"1","git":"abc","processor":"P","tsc_ghz":2.6,"kernel":"6.1"},"points":[
{"figure":"volley-table","series":"Volley","label":"patch","args":"--scenario xc","quantities":{"mpps":{"median":67.25,"min":60.0,"max":70.0},"cycles":{"median":11.5,"min":11.0,"max":12.0}}},
{"figure":"vpp-6a","series":"XC","label":"256","args":"","quantities":{"cycles":{"median":11.52,"min":11.0,"max":12.0}}}]}"#;

    #[test]
    fn tables_have_the_numbers_of_the_run() {
        let run: Run = serde_json::from_str(SAMPLE).unwrap();
        let text = page(&run, Some("reports/x/README.md"));
        assert!(text.starts_with("From a full run of [the lab](lab.md) with Volley 1 abc on P (time stamp counter 2.6 GHz), Linux 6.1. The whole run: [report](reports/x/README.md)."), "{text}");
        assert!(
            text.contains("| patch | 67.25 (60.00 to 70.00) | 11.5 (11.0 to 12.0) | - |"),
            "{text}"
        );
        assert!(
            text.contains("| XC | - | - | - | - | - | - | 11.5 | - | - |"),
            "{text}"
        );
        let text = front(&run, Some("reports/x/README.md"));
        assert!(text.contains("| patch | 67.2 | 11.5 |"), "{text}");
        assert!(
            text.contains("[report](docs/reports/x/README.md)"),
            "{text}"
        );
        assert!(front(&run, None).contains("is not stored"));
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nz\n");
        assert_eq!(
            splice(&page, "new\n").unwrap(),
            format!("a\n{BEGIN}\nnew\n{END}\nz\n")
        );
        assert!(splice("a", "b").is_none());
    }

    /// The stored report that docs/bench.md names.
    fn stored(page: &str) -> Option<&str> {
        let (_, rest) = page.split_once("[report](reports/")?;
        rest.split_once("/README.md)").map(|(name, _)| name)
    }

    #[test]
    fn the_pages_are_what_the_stored_report_says() {
        let home = Home::find().unwrap();
        let text = |name: &str| std::fs::read_to_string(home.root.join(name)).unwrap();
        let (pages, front_page) = (text(PAGE), text(FRONT));
        let Some(name) = stored(&pages) else {
            assert!(
                pages.contains("No report is stored"),
                "{PAGE} has the tables of a run that is not stored: see {REPORTS}/README.md"
            );
            return;
        };
        let folder = home.root.join(REPORTS).join(name);
        let (run, link) = (read(&folder).unwrap(), link(&home, &folder));
        let hint = format!("`cargo xtask bench --from {REPORTS}/{name}` writes it");
        assert_eq!(
            splice(&pages, &page(&run, link.as_deref())),
            Some(pages),
            "{hint}"
        );
        let fresh = splice(&front_page, &front(&run, link.as_deref()));
        assert_eq!(fresh, Some(front_page), "{hint}");
    }
}
