//! Runs the matrix of `volley bench` and writes docs/bench.md (between its marks), docs/bench.json and a chart.

use crate::chart::{Series, Titles, svg};
use crate::error::Error;
use crate::home::Home;
use crate::measure::{self, Bench};
use std::fmt::Write;
use std::path::Path;

/// Maximum vector sizes that the bench measures.
pub const VECTOR_SIZES: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
const CURVES: [&str; 3] = ["xc", "ip4", "mix"];
const PAGE: &str = "docs/bench.md";
const PICTURE: &str = "docs/vector-size.svg";
const DATA: &str = "docs/bench.json";
const BEGIN: &str = "<!-- xtask bench: begin -->";
const END: &str = "<!-- xtask bench: end -->";

/// The tables of full-size runs: the real ones if they exist, else synthetic ones of the same size.
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
        _ => (
            vec!["--prefixes".into(), "1042325".into()],
            "synthetic tables",
        ),
    }
}

/// Splits words into strings; tables follow the scenario's words.
fn line(words: &str, tables: &[String]) -> Vec<String> {
    words
        .split_whitespace()
        .map(str::to_owned)
        .chain(tables.iter().cloned())
        .collect()
}

/// Name in the table, and arguments.
fn matrix(tables: &[String]) -> Vec<(String, Vec<String>)> {
    let none: &[String] = &[];
    let rows: [(&str, &str, &[String]); 14] = [
        ("patch", "--scenario xc", none),
        ("L2 cross-connect", "--scenario l2xc", none),
        ("ip4, 1 route", "--scenario ip4", none),
        (
            "ip4, full table, 64k uniform",
            "--scenario ip4 --destinations uniform",
            tables,
        ),
        (
            "ip4, full table, 1M uniform",
            "--scenario ip4 --destinations uniform --distinct 1048576",
            tables,
        ),
        (
            "ip4, full table, any address",
            "--scenario ip4 --destinations any",
            tables,
        ),
        ("ip6, 1 route", "--scenario ip6", none),
        (
            "ip6, full table, 64k uniform",
            "--scenario ip6 --destinations uniform",
            tables,
        ),
        ("mix, 1 route", "--scenario mix", none),
        (
            "mix, full tables",
            "--scenario mix --destinations uniform",
            tables,
        ),
        (
            "ip4, full table, packet by packet",
            "--scenario ip4 --destinations uniform --style rtc",
            tables,
        ),
        (
            "mix, full tables, packet by packet",
            "--scenario mix --destinations uniform --style rtc",
            tables,
        ),
        (
            "ip4, full table, cold buffers",
            "--scenario ip4 --destinations uniform --buffers 65536",
            tables,
        ),
        (
            "ip4, full table, scalar kernels",
            "--scenario ip4 --destinations uniform --isa scalar",
            tables,
        ),
    ];
    rows.iter()
        .map(|(name, words, tables)| ((*name).to_owned(), line(words, tables)))
        .collect()
}

/// Runs everything and writes the page; each run lasts `seconds` (2 when not given).
pub fn run(home: &Home, seconds: Option<u64>, quick: bool) -> Result<(), Error> {
    let seconds = seconds.unwrap_or(if quick { 1 } else { 2 });
    let (tables, which) = big_tables(home);
    let mut rows = Vec::new();
    for (name, args) in matrix(&tables) {
        let run = once(home, &args, seconds)?;
        println!(
            "{name}: {:.2} Mpps, {:.1} cycles per packet",
            run.mpps.median, run.cycles_per_packet.median
        );
        rows.push((name, run));
    }
    let curves = curves(home, if quick { 1 } else { seconds })?;
    let text = page(&rows, &curves, which);
    put(&home.root.join(PAGE), &text)?;
    write_file(&home.root.join(PICTURE), &picture(&curves))?;
    let runs: Vec<&Bench> = rows
        .iter()
        .map(|(_, run)| run)
        .chain(curves.iter().flatten())
        .collect();
    let json = serde_json::to_string_pretty(&runs).map_err(|error| Error::format(DATA, error))?;
    write_file(&home.root.join(DATA), &(json + "\n"))
}

fn once(home: &Home, args: &[String], seconds: u64) -> Result<Bench, Error> {
    let duration = seconds.to_string();
    let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
    words.extend(["--seconds", &duration]);
    measure::bench(home, &words, seconds).map_err(|reason| Error::format("bench", reason))
}

/// One curve per scenario, each over all vector sizes.
pub fn curves(home: &Home, seconds: u64) -> Result<Vec<Vec<Bench>>, Error> {
    let curve = |scenario: &&str| {
        let point = |size: &u32| {
            once(
                home,
                &line(&format!("--scenario {scenario} --vector-size {size}"), &[]),
                seconds,
            )
        };
        VECTOR_SIZES.iter().map(point).collect()
    };
    CURVES.iter().map(curve).collect()
}

fn page(rows: &[(String, Bench)], curves: &[Vec<Bench>], which: &str) -> String {
    let mut out = format!(
        "Full tables are {which}. Cycles are TSC cycles of all nodes but the source; median (lowest to highest). Together: with the source, and what rounds cost beside nodes.\n\n"
    );
    out.push_str("| scenario | vector | ISA | Mpps | cycles per packet | source | together |\n|---|---|---|---|---|---|---|\n");
    for (name, run) in rows {
        let (speed, cost) = (run.mpps, run.cycles_per_packet);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {:.2} ({:.2} to {:.2}) | {:.1} ({:.1} to {:.1}) | {:.1} | {:.1} |",
            run.vector_size,
            run.isa,
            speed.median,
            speed.min,
            speed.max,
            cost.median,
            cost.min,
            cost.max,
            run.source_cycles_per_packet.median,
            run.together_cycles_per_packet.median
        );
    }
    out.push_str("\n## By vector size\n\n![cycles per packet by vector size](vector-size.svg)\n\n| scenario |");
    for size in VECTOR_SIZES {
        let _ = write!(out, " {size} |");
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(VECTOR_SIZES.len()));
    for curve in curves {
        let cells: Vec<String> = curve
            .iter()
            .map(|run| format!(" {:.1} |", run.cycles_per_packet.median))
            .collect();
        let _ = writeln!(
            out,
            "| {} |{}",
            curve.first().map_or("", |run| run.scenario.as_str()),
            cells.concat()
        );
    }
    out
}

fn picture(curves: &[Vec<Bench>]) -> String {
    let series: Vec<Series> = curves
        .iter()
        .map(|curve| Series {
            name: curve
                .first()
                .map_or_else(String::new, |run| run.scenario.clone()),
            points: curve
                .iter()
                .map(|run| (f64::from(run.vector_size), run.cycles_per_packet.median))
                .collect(),
        })
        .collect();
    let titles = Titles {
        title: "Cost of a packet by vector size (1 route)",
        x: "packets per vector",
        y: "TSC cycles per packet",
    };
    svg(&titles, &series)
}

/// Replaces the text between the marks.
fn put(path: &Path, text: &str) -> Result<(), Error> {
    let page = std::fs::read_to_string(path).map_err(Error::file(path))?;
    write_file(
        path,
        &splice(&page, text).ok_or_else(|| {
            Error::format(PAGE, format!("the marks `{BEGIN}` and `{END}` are gone"))
        })?,
    )
}

fn splice(page: &str, text: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{text}{END}{tail}"))
}

fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(size: u32) -> Bench {
        let text = crate::measure::tests::SAMPLE;
        let mut run: Bench = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        run.vector_size = size;
        run
    }

    #[test]
    fn the_page_has_a_row_per_run_and_a_column_per_size() {
        let curve: Vec<Bench> = VECTOR_SIZES.map(sample).to_vec();
        let text = page(
            &[("ip4, full".into(), sample(256))],
            std::slice::from_ref(&curve),
            "real tables",
        );
        assert!(text.contains("| ip4, full | 256 | x86-64-v3 | 55.50 (50.00 to 60.00) | 33.2 (30.0 to 40.0) | 9.0 |"), "{text}");
        assert!(
            text.contains(&format!("| ip4 |{}", " 33.2 |".repeat(VECTOR_SIZES.len()))),
            "{text}"
        );
        assert_eq!(
            picture(&[curve]).matches("<circle").count(),
            VECTOR_SIZES.len()
        );
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

    #[test]
    fn tables_stand_only_where_they_are_wanted() {
        let rows = matrix(&["--prefixes".into(), "9".into()]);
        assert!(
            rows.iter()
                .any(|(name, args)| name == "ip4, 1 route" && args == &["--scenario", "ip4"])
        );
        assert!(
            rows.iter()
                .filter(|(name, _)| name.contains("full"))
                .all(|(_, args)| args.ends_with(&["--prefixes".into(), "9".into()]))
        );
    }
}
