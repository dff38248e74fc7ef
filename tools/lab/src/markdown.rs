//! The report of a run as Markdown, with a file for each plot: for a folder of a repository.

use crate::error::LabError;
use crate::figure::FIGURES;
use crate::method;
use crate::plot;
use crate::points;
use crate::report::{Part, in_cell, parts, peers, shapes, store};
use crate::run::Run;
use crate::stats::{Summary, shown};
use crate::use_cases;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Most bytes of all files together.
const MOST: usize = 3 << 20;
/// Name of the page, which sites of repositories show for its folder.
const PAGE: &str = "README.md";

/// Name of the file of a figure's plot.
fn plot_file(figure: &str) -> String {
    format!("{figure}.svg")
}

/// Write the page and its plots into a folder, and remove the plots of an earlier report that are not written again; returns the page.
///
/// # Errors
/// If a plot cannot be drawn, a file cannot be written or removed, or the files are too large.
pub fn write(run: &Run, dir: &Path) -> Result<PathBuf, LabError> {
    let parts = parts(run);
    let mut files = vec![
        (PAGE.to_owned(), page(run, &parts)),
        (points::FILE.to_owned(), points::json(run)?),
    ];
    for part in parts.iter().filter(|part| !part.series.is_empty()) {
        let plot = plot::svg(part.figure, &part.series)?;
        files.push((plot_file(part.figure.name), alone(&plot)));
    }
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    if bytes > MOST {
        let why = format!("the report has {bytes} bytes, at most {MOST} are allowed");
        return Err(LabError::file(dir, why));
    }
    std::fs::create_dir_all(dir).map_err(|e| LabError::file(dir, e))?;
    let plots = FIGURES.iter().map(|figure| plot_file(figure.name));
    let old: Vec<String> = plots
        .filter(|plot| !files.iter().any(|(name, _)| name == plot))
        .collect();
    store(dir, files)?;
    remove(dir, &old)?;
    Ok(dir.join(PAGE))
}

/// Remove the files that exist.
fn remove(dir: &Path, names: &[String]) -> Result<(), LabError> {
    for name in names {
        let path = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(LabError::file(&path, e)),
            _ => {}
        }
    }
    Ok(())
}

/// A plot for a separate file: black on white, since no page gives it colours.
fn alone(plot: &str) -> String {
    let ground = "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>";
    match plot.split_once('>') {
        Some((head, rest)) => format!("{head}>\n{ground}{rest}"),
        None => plot.to_owned(),
    }
}

fn page(run: &Run, parts: &[Part]) -> String {
    let mut text = format!(
        "# Volley lab, {} run\n\n{}\n\n## Shapes\n\n{}",
        run.plan.level.name(),
        method::paragraphs(run).join("\n\n"),
        shapes(parts)
    );
    for part in parts {
        section(&mut text, part);
    }
    text + "\n" + &use_cases::markdown(run) + "\n## Skipped peers\n\n" + &peers(run)
}

fn section(text: &mut String, part: &Part) {
    let figure = part.figure;
    let _ = writeln!(
        text,
        "\n## {}: {}\n\n{}, {}. {}\n",
        figure.name,
        figure.title,
        figure.paper,
        figure.place(),
        figure.shown()
    );
    for why in &part.reasons {
        let _ = writeln!(text, "{why}\n");
    }
    if part.series.is_empty() {
        *text += "No point of this figure was measured.\n";
        return;
    }
    let _ = writeln!(
        text,
        "![{}]({}.svg)\n\n{} **Shape {}:** {}\n",
        figure.title,
        figure.name,
        part.caption(),
        part.verdict(),
        part.shape.why
    );
    let _ = writeln!(
        text,
        "| curve | position | {} |\n|---|---|---|",
        figure.y.title
    );
    for (name, cell) in part.cells() {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            in_cell(name),
            in_cell(&cell.label),
            median(&cell.summary)
        );
    }
}

/// Median, with mean and range where there are several samples.
fn median(s: &Summary) -> String {
    match s.count {
        0 => format!("{} (published)", shown(s.median)),
        1 => shown(s.median),
        _ => {
            let [median, mean, min, max] = [s.median, s.mean, s.min, s.max].map(shown);
            format!("{median} (mean {mean}, {min} to {max})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::measured;

    #[test]
    fn every_figure_has_a_plot_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let run = measured(dir.path(), 0.0);
        let to = dir.path().join("markdown");
        let page = write(&run, &to).unwrap();
        let text = std::fs::read_to_string(page).unwrap();
        for figure in run.figures() {
            assert!(text.contains(&format!("({}.svg)", figure.name)));
            let plot = std::fs::read_to_string(to.join(format!("{}.svg", figure.name)));
            let plot = plot.unwrap();
            assert!(plot.starts_with("<svg") && plot.contains("fill=\"#FFFFFF\"/>"));
            assert!(plot.trim_end().ends_with("</svg>"));
        }
        assert_eq!(
            std::fs::read_dir(&to).unwrap().count(),
            run.figures().len() + 2
        );
        assert!(text.contains("| MoonRoute | 4.66 (published) |"), "{text}");
        assert!(text.contains("Volley, table of docs/bench.md. No paper has this table: "));
    }

    #[test]
    fn plots_of_an_earlier_report_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        let to = dir.path().join("markdown");
        write(&run, &to).unwrap();
        // No plot of a figure: it stays.
        std::fs::write(to.join("logo.svg"), "<svg/>").unwrap();
        run.plan.figures = vec!["vpp-9".to_owned()];
        run.records.retain(|record| record.figure == "vpp-9");
        write(&run, &to).unwrap();
        let files = std::fs::read_dir(&to).unwrap().flatten();
        let files = files.map(|file| file.file_name().into_string().unwrap());
        let mut plots: Vec<String> = files.filter(|name| name.ends_with(".svg")).collect();
        plots.sort();
        assert_eq!(plots, ["logo.svg", "vpp-9.svg"]);
    }
}
