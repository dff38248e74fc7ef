//! The report of a run: one HTML page without references to other files, Markdown, CSV and JSON.

use crate::error::LabError;
use crate::figure::shape::Shape;
use crate::figure::{Figure, Scale};
use crate::level::Level;
use crate::meter::DERIVED;
use crate::method;
use crate::plot;
use crate::points;
use crate::run::Run;
use crate::series::{self, Series};
use crate::stats::shown;
use crate::use_cases;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// What the script does, for the reader.
const KEYS: &str =
    "Keys: n and p focus the next and the previous figure, t opens and closes its table.";

/// End of the sentence on a shape that was judged by some of the points.
const MISSING: &str = " Points that were not measured are not judged.";

/// One figure with its curves.
pub(crate) struct Part {
    /// The figure.
    pub figure: &'static Figure,
    /// The curves.
    pub series: Vec<Series>,
    /// Whether the shape agrees.
    pub shape: Shape,
    /// Why points were not measured.
    pub reasons: Vec<String>,
}

/// One figure in the JSON file.
#[derive(Serialize)]
struct Json<'a> {
    name: &'static str,
    paper: &'static str,
    number: &'static str,
    title: &'static str,
    series: &'a [Series],
    paper_shows: crate::figure::Fact,
    published: crate::figure::Numbers,
    compared: crate::figure::Numbers,
    shape: &'a Shape,
    not_measured: &'a [String],
}

/// Write `report.html`, `report.md`, `report.csv`, `report.json` and `points.json` into the folder of the run.
///
/// # Errors
/// If a plot cannot be drawn or a file cannot be written.
pub fn write(run: &Run) -> Result<(), LabError> {
    let parts = parts(run);
    let json: Vec<Json<'_>> = parts.iter().map(json).collect();
    let json = serde_json::to_string_pretty(&json);
    let json = json.map_err(|e| LabError::file(&run.dir.join("report.json"), e))?;
    let files = [
        ("report.html", html(run, &parts)?),
        ("report.md", markdown(run, &parts)),
        ("report.csv", csv(&parts)),
        ("report.json", json),
        (points::FILE, points::json(run)?),
    ];
    store(&run.dir, files)
}

/// Write files with these names into a folder.
pub(crate) fn store(
    dir: &Path,
    files: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> Result<(), LabError> {
    for (name, text) in files {
        let path = dir.join(name);
        let file = volley_file::create(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| LabError::file(&path, e))?;
    }
    Ok(())
}

/// The figures of a run.
pub(crate) fn parts(run: &Run) -> Vec<Part> {
    run.figures().into_iter().map(|f| part(run, f)).collect()
}

fn part(run: &Run, figure: &'static Figure) -> Part {
    let series = series::of(run, figure);
    let mut shape = match run.plan.level {
        Level::Smoke => Shape {
            agrees: None,
            why: "A smoke run judges no shape: its values mean nothing.".to_owned(),
        },
        _ if is_derived(run, figure) => Shape {
            agrees: None,
            why: "Rates that are derived are proportional to the clock in any case, so the shape is not judged."
                .to_owned(),
        },
        _ => series::judge(figure, &series),
    };
    let reasons = reasons(run, figure);
    if shape.agrees.is_some() && !reasons.is_empty() {
        shape.why += MISSING;
    }
    Part {
        figure,
        series,
        shape,
        reasons,
    }
}

/// Whether rates of a figure were not measured: the curve has the shape of the formula.
fn is_derived(run: &Run, figure: &Figure) -> bool {
    let mut ours = run.records.iter().filter(|r| r.figure == figure.name);
    ours.any(|r| r.samples.contains_key(DERIVED))
}

/// A sentence for each reason why points of a figure were not measured, with the number of its points.
fn reasons(run: &Run, figure: &Figure) -> Vec<String> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    let ours = run.records.iter().filter(|r| r.figure == figure.name);
    for record in ours {
        let Some(why) = record.error.as_deref() else {
            continue;
        };
        let name = format!("{} {}", record.series, record.label);
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => all.push((why, vec![name])),
        }
    }
    let sentence = |(why, names): (&str, Vec<String>)| {
        format!(
            "Not measured: {}: {}.",
            names.join(", "),
            why.trim_end_matches('.')
        )
    };
    all.into_iter().map(sentence).collect()
}

fn json(part: &Part) -> Json<'_> {
    let figure = part.figure;
    Json {
        name: figure.name,
        paper: figure.paper,
        number: figure.number,
        title: figure.title,
        series: &part.series,
        paper_shows: figure.fact,
        published: figure.published,
        compared: figure.compared,
        shape: &part.shape,
        not_measured: &part.reasons,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Part {
    /// Whether the shape agrees, in a word or two.
    pub fn verdict(&self) -> &'static str {
        match self.shape.agrees {
            Some(true) => "agrees",
            Some(false) => "differs",
            None => "not judged",
        }
    }

    /// What the marks of the plot are, and how the figure was measured.
    pub fn caption(&self) -> String {
        let figure = self.figure;
        let dots = match (figure.is_by_node(), figure.x.scale) {
            (true, _) => "Bars: all repetitions together.",
            _ if figure.is_distribution() => "Points: medians of a quantile over the trials.",
            (_, Scale::Names) => "Bars: medians; lines: from the lowest to the highest repetition.",
            _ => "Points: medians; vertical lines: from the lowest to the highest repetition.",
        };
        let marks = |what: &str, source: &str| match source {
            "" => String::new(),
            source => format!(" {what}: {source}."),
        };
        let sources = marks("Rings", figure.published.source)
            + &marks("Crosses", figure.compared.source)
            + &marks("Published", figure.quoted.source);
        format!("{dots}{sources} {}", figure.method)
    }

    /// All cells with the names of their curves.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &series::Cell)> {
        let all = self.series.iter();
        all.flat_map(|s| s.cells.iter().map(|c| (s.name.as_str(), c)))
    }
}

fn html(run: &Run, parts: &[Part]) -> Result<String, LabError> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Volley lab</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Volley lab, {} run</h1>\n<p class=\"keys\">{KEYS}</p>\n",
        run.plan.level.name()
    );
    contents(&mut page, parts);
    page += "<h2>Method and noise</h2>\n";
    for paragraph in method::paragraphs(run) {
        let _ = writeln!(page, "<p>{}</p>", escape(&paragraph));
    }
    page += "<h2>Shapes</h2>\n<table>\n<tr><th>figure</th><th>shape</th><th>why</th></tr>\n";
    for part in parts {
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td class=\"{1}\">{2}</td><td>{3}</td></tr>",
            part.figure.name,
            class(part),
            part.verdict(),
            escape(&part.shape.why)
        );
    }
    page += "</table>\n";
    for part in parts {
        section(&mut page, part)?;
    }
    used(&mut page, run);
    skipped(&mut page, run);
    let _ = write!(
        page,
        "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    Ok(page)
}

/// Links to the figures.
fn contents(page: &mut String, parts: &[Part]) {
    *page += "<nav aria-label=\"Figures\">\n";
    for part in parts {
        let _ = writeln!(
            page,
            "<a href=\"#{}\">{}: {}</a>",
            part.figure.name,
            part.figure.name,
            escape(part.figure.title)
        );
    }
    *page += "</nav>\n";
}

/// Class of a verdict, for its colour.
fn class(part: &Part) -> &'static str {
    match part.shape.agrees {
        None => "open",
        Some(_) => part.verdict(),
    }
}

/// Table of the switches by use case.
fn used(page: &mut String, run: &Run) {
    let rows = use_cases::rows(run);
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<section id=\"use-cases\">\n<h2>Use cases of switches</h2>\n<p>{}</p>\n<table>\n<tr><th>use case</th><th>unit</th><th>switches, best first</th></tr>\n",
        escape(use_cases::NOTE)
    );
    for row in rows {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(row.name),
            row.unit,
            escape(&row.text())
        );
    }
    *page += "</table>\n</section>\n";
}

/// Table of the peers that are not part of the run.
fn skipped(page: &mut String, run: &Run) {
    *page += "<section id=\"skipped\">\n<h2>Skipped peers</h2>\n<table>\n<tr><th>peer</th><th>reason</th></tr>\n";
    for (peer, why) in run.skipped_peers() {
        let _ = writeln!(page, "<tr><td>{peer}</td><td>{}</td></tr>", escape(&why));
    }
    *page += "</table>\n</section>\n";
}

fn section(page: &mut String, part: &Part) -> Result<(), LabError> {
    let figure = part.figure;
    let _ = writeln!(
        page,
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"paper\">{}, {}</p>\n<p>{}</p>",
        figure.name,
        escape(figure.title),
        escape(figure.paper),
        figure.place(),
        escape(&figure.shown())
    );
    for why in &part.reasons {
        let _ = writeln!(page, "<p class=\"missing\">{}</p>", escape(why));
    }
    let plot = match part.series.is_empty() {
        true => "<p>No point of this figure was measured.</p>\n".to_owned(),
        false => plot::svg(figure, &part.series)?,
    };
    let _ = writeln!(
        page,
        "<figure tabindex=\"0\" aria-label=\"{}\">\n{plot}<figcaption>{} <strong>Shape {}:</strong> {}</figcaption>\n</figure>",
        escape(figure.title),
        escape(&part.caption()),
        part.verdict(),
        escape(&part.shape.why)
    );
    let _ = write!(
        page,
        "<details>\n<summary>Table ({})</summary>\n<table>\n<tr><th>curve</th><th>position</th><th>median</th><th>mean</th><th>minimum</th><th>maximum</th><th>95 % interval</th><th>samples</th></tr>\n",
        escape(figure.y.title)
    );
    for (name, cell) in part.cells() {
        let s = &cell.summary;
        let interval = s.interval.map_or("none".to_owned(), |i| {
            format!("{} to {}", shown(i.low), shown(i.high))
        });
        let [median, mean, min, max] = [s.median, s.mean, s.min, s.max].map(shown);
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{median}</td><td>{mean}</td><td>{min}</td><td>{max}</td><td>{interval}</td><td>{}</td></tr>",
            escape(name),
            escape(&cell.label),
            samples(s.count)
        );
    }
    *page += "</table>\n</details>\n</section>\n";
    Ok(())
}

/// Number of samples, for people.
fn samples(count: usize) -> String {
    match count {
        0 => "published".to_owned(),
        count => count.to_string(),
    }
}

fn markdown(run: &Run, parts: &[Part]) -> String {
    let paragraphs = method::paragraphs(run).join("\n\n");
    let mut text = format!(
        "# Volley lab, {} run\n\n{paragraphs}\n\n{}",
        run.plan.level.name(),
        shapes(parts)
    );
    if parts.iter().any(|part| !part.reasons.is_empty()) {
        text += "\n| figure | not measured |\n|---|---|\n";
    }
    for part in parts {
        for why in &part.reasons {
            let _ = writeln!(text, "| {} | {} |", part.figure.name, in_cell(why));
        }
    }
    text + "\n" + &use_cases::markdown(run) + "\n" + &peers(run)
}

/// A text for a cell of a table in Markdown.
pub(crate) fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The table of shapes as Markdown.
pub(crate) fn shapes(parts: &[Part]) -> String {
    let mut text = "| figure | shape | why |\n|---|---|---|\n".to_owned();
    for part in parts {
        let _ = writeln!(
            text,
            "| {}: {} | {} | {} |",
            part.figure.name,
            part.figure.title,
            part.verdict(),
            in_cell(&part.shape.why)
        );
    }
    text
}

/// The table of peers that were not run, as Markdown.
pub(crate) fn peers(run: &Run) -> String {
    let mut text = "| skipped peer | reason |\n|---|---|\n".to_owned();
    for (peer, why) in run.skipped_peers() {
        let _ = writeln!(text, "| {peer} | {} |", in_cell(&why));
    }
    text
}

/// A field of a CSV file (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn csv(parts: &[Part]) -> String {
    let mut text = "figure,curve,x,label,unit,samples,min,q1,median,mean,q3,max\n".to_owned();
    for part in parts {
        for (name, cell) in part.cells() {
            let s = &cell.summary;
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{}",
                part.figure.name,
                field(name),
                cell.x,
                field(&cell.label),
                field(part.figure.y.title),
                s.count,
                s.min,
                s.q1,
                s.median,
                s.mean,
                s.q3,
                s.max
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{measured, quick};

    /// Reads tags in order, and fails if one is not closed by its own end.
    fn check_nesting(page: &str) -> usize {
        let mut open: Vec<&str> = Vec::new();
        let mut count = 0;
        let body = &page[page.find("</style>").unwrap() + "</style>".len()..];
        for tag in body.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect(tag);
            let name = tag.split_whitespace().next().unwrap();
            count += 1;
            match name.strip_prefix('/') {
                Some(name) if ["head", "html"].contains(&name) => {}
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        count
    }

    #[test]
    fn every_figure_of_the_page_has_a_plot_a_caption_and_a_table() {
        let dir = tempfile::tempdir().unwrap();
        let run = measured(dir.path(), 0.0);
        write(&run).unwrap();
        let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
        assert!(check_nesting(&page) > 200);
        let sections: Vec<&str> = page.split("<section ").skip(1).collect();
        // Behind the figures: use cases, skipped peers.
        assert_eq!(sections.len(), run.figures().len() + 2);
        let skipped = sections.last().unwrap();
        let rows = skipped.matches("<tr><td>").count();
        assert_eq!(rows, run.skipped_peers().len());
        for (section, figure) in sections.iter().zip(run.figures()) {
            assert!(section.starts_with(&format!("id=\"{}\"", figure.name)));
            let dots = match figure.x.scale {
                Scale::Names => section.matches("<rect").count(),
                _ => section.matches("<circle").count(),
            };
            let rows = section.matches("<tr><td>").count();
            assert!(dots >= rows && rows >= 1, "{}: {dots} {rows}", figure.name);
            let caption = section.split("<figcaption>").nth(1).unwrap();
            assert!(caption.contains("<strong>Shape "), "{}", figure.name);
            assert!(!section.contains("http://") || !section.contains("href=\"http"));
        }
        let csv = std::fs::read_to_string(dir.path().join("report.csv")).unwrap();
        let cells: usize = run
            .figures()
            .iter()
            .flat_map(|f| series::of(&run, f))
            .map(|s| s.cells.len())
            .sum();
        assert_eq!(csv.lines().count(), 1 + cells);
        let columns = csv.lines().next().unwrap().split(',').count();
        for line in csv.lines() {
            assert_eq!(fields(line), columns, "{line}");
        }
        assert!(csv.contains("\"virtio-user, one way\""), "{csv}");
        let json = std::fs::read_to_string(dir.path().join("report.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json.as_array().unwrap().len(), run.figures().len());
        let summary = std::fs::read_to_string(dir.path().join("report.md")).unwrap();
        assert!(summary.contains("control point (IPv4"), "{summary}");
    }

    /// Number of fields of a line of a CSV file, by a reader that shares no code with the writer.
    fn fields(line: &str) -> usize {
        let (mut count, mut is_quoted) = (1, false);
        for letter in line.chars() {
            match letter {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => count += 1,
                _ => {}
            }
        }
        count
    }

    #[test]
    fn texts_of_programs_do_not_break_tables() {
        assert_eq!(in_cell("a | b\nc"), "a \\| b c");
        assert_eq!(field("say \"a, b\""), "\"say \"\"a, b\"\"\"");
        assert_eq!(field("plain"), "plain");
    }

    #[test]
    fn a_smoke_run_judges_no_shape() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        assert!(parts(&run).iter().any(|part| part.shape.agrees.is_some()));
        run.plan.level = Level::Smoke;
        assert!(parts(&run).iter().all(|part| part.shape.agrees.is_none()));
        assert!(markdown(&run, &parts(&run)).contains("# Volley lab, smoke run"));
    }

    #[test]
    fn a_shape_that_is_judged_by_some_of_the_points_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        let figure = crate::figure::find("vpp-5").unwrap();
        assert!(!part(&run, figure).shape.why.contains(MISSING));
        let mut records = run.records.iter_mut();
        let last = records.rfind(|r| r.figure == figure.name).unwrap();
        last.error = Some("no memory".to_owned());
        last.samples.clear();
        let shape = part(&run, figure).shape;
        assert!(shape.why.ends_with(MISSING), "{}", shape.why);
    }

    #[test]
    fn rates_that_were_derived_judge_no_shape() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        let clock = crate::figure::find("moonroute-7").unwrap();
        assert!(part(&run, clock).shape.agrees.is_some());
        for record in &mut run.records {
            record.samples.insert(DERIVED.to_owned(), vec![1.0]);
        }
        assert_eq!(part(&run, clock).shape.agrees, None);
    }

    #[test]
    fn peers_that_were_skipped_are_those_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        run.plan.skipped = Some(vec![("A switch".to_owned(), "no program x".to_owned())]);
        let text = "| skipped peer | reason |\n|---|---|\n| A switch | no program x |\n";
        assert_eq!(peers(&run), text);
    }

    #[test]
    fn a_figure_without_points_is_reported_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let run = quick(dir.path(), &["vpp-9"]);
        write(&run).unwrap();
        let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
        assert!(page.contains("No point of this figure was measured."));
        assert!(page.contains("not judged"));
        assert!(page.contains("<p>The paper: One destination is fastest"));
    }

    #[test]
    fn text_of_the_machine_cannot_change_the_page() {
        assert_eq!(
            escape("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }
}
