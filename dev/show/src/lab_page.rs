//! Runs all figures of the lab, and looks at the page in headless Chromium.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::{Program, exists};
use xtask::tutorial;

const CHROMIUM: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];
/// Time beyond the limit until a run is ended.
const GRACE: u64 = 120;

/// The figures and tables of the papers, and the entries of the lab that have them.
const FIGURES: [(&str, &[&str]); 27] = [
    ("VPP, figure 5", &["vpp-5"]),
    ("VPP, figure 6", &["vpp-6a", "vpp-6b", "vpp-6c", "vpp-6d"]),
    ("VPP, figure 7", &["vpp-7"]),
    ("VPP, figure 8", &["vpp-8"]),
    ("VPP, figure 9", &["vpp-9"]),
    ("VPP, figure 10", &["vpp-10"]),
    ("VPP, figure 11", &["vpp-11"]),
    ("VPP, figure 12", &["vpp-12"]),
    ("MoonRoute, figure 7", &["moonroute-7"]),
    ("MoonRoute, figure 8", &["moonroute-8"]),
    ("MoonRoute, figure 9", &["moonroute-9"]),
    ("MoonRoute, figure 10", &["moonroute-10"]),
    ("MoonRoute, figure 11", &["moonroute-11"]),
    ("MoonRoute, figure 12", &["moonroute-12"]),
    ("MoonRoute, figure 13", &["moonroute-13"]),
    ("MoonRoute, table 1", &["moonroute-t1"]),
    ("MoonRoute, table 2", &["moonroute-t2"]),
    ("MoonRoute, table 3", &["moonroute-t3"]),
    ("switches, figure 4", &["switch-p2p"]),
    ("switches, figure 5", &["switch-p2v"]),
    ("switches, figure 6", &["switch-v2v"]),
    ("switches, figure 7", &["switch-loopback"]),
    ("switches, figure 8", &["switch-rtt-10"]),
    ("switches, figure 9", &["switch-rtt-50"]),
    ("switches, figure 10", &["switch-rtt-99"]),
    ("PPB, figure 5", &["ppb-5", "ppb-5-misses"]),
    ("the talk, table", &["talk-table"]),
];

/// What is read of `report.json`.
#[derive(Deserialize)]
struct Entry {
    name: String,
    series: Vec<serde_json::Value>,
    not_measured: Vec<String>,
}

/// Run all figures at a level within a limit in seconds, and look at the page.
pub fn judge(home: &Home, lab: &Path, level: &str, limit: u64) -> Outcome {
    match whole(home, lab, level, limit) {
        Err(why) => Outcome::Fail(why),
        Ok((text, None)) => Outcome::Skip(format!(
            "{text}; no Chromium is installed: the page was not opened"
        )),
        Ok((text, Some(seen))) => Outcome::Pass(format!("{text}; {seen}")),
    }
}

/// The result of the run, and of the look at the page.
fn whole(
    home: &Home,
    lab: &Path,
    level: &str,
    limit: u64,
) -> Result<(String, Option<String>), String> {
    let dir = home.target.join(format!("show-lab-{level}"));
    empty(&dir)?;
    let plugin = tutorial::build(home)?;
    let run = Program::new(home, lab)
        .args(["run", &format!("--{level}"), "--plugin"])
        .arg(&plugin)
        .arg("--out")
        .arg(&dir)
        .limit_seconds(limit + GRACE);
    let output = run.output().map_err(|error| error.to_string())?;
    if !["exit code 0", "exit code 2"].contains(&output.ending.as_str()) {
        return Err(format!("{}\n{}", output.ending, output.tail(5)));
    }
    let entries = read(&dir.join("report.json"))?;
    let text = judged(&entries)?;
    let seconds = output.took.as_secs();
    let text = format!("{text} in {seconds} s, at most {limit}");
    if seconds > limit {
        return Err(text);
    }
    let Some(chromium) = CHROMIUM.into_iter().find(|name| exists(name)) else {
        return Ok((text, None));
    };
    look(home, chromium, &dir).map(|seen| (text, Some(seen)))
}

/// Removes the folder of an earlier run.
pub fn empty(dir: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {e}", dir.display()))
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<Vec<Entry>, String> {
    let bad = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| bad(&e))?;
    serde_json::from_str(&text).map_err(|e| bad(&e))
}

/// Every figure of the papers has data.
fn judged(entries: &[Entry]) -> Result<String, String> {
    let by_name: BTreeMap<&str, &Entry> = entries.iter().map(|e| (e.name.as_str(), e)).collect();
    for (figure, names) in FIGURES {
        for name in names {
            let entry = by_name
                .get(name)
                .ok_or_else(|| format!("{figure}: no entry {name}"))?;
            if entry.series.is_empty() {
                return Err(format!(
                    "{figure} has no data: {}",
                    entry.not_measured.join(" ")
                ));
            }
        }
    }
    let reasons: usize = entries.iter().map(|e| e.not_measured.len()).sum();
    Ok(format!(
        "{} figures of the papers have data, {reasons} reasons for missing points",
        FIGURES.len()
    ))
}

/// Chromium without a window; the page is to follow.
fn browser(home: &Home, chromium: &str) -> Program {
    let options = ["--headless", "--no-sandbox", "--disable-gpu"];
    Program::new(home, chromium).args(options).limit_seconds(60)
}

/// Open the page, and look at each figure.
fn look(home: &Home, chromium: &str, dir: &Path) -> Result<String, String> {
    let page = dir.join("report.html");
    let open = || browser(home, chromium);
    let url = format!("file://{}", page.display());
    let dom = open().args(["--dump-dom", &url]).require()?.stdout;
    let names: BTreeSet<&str> = FIGURES
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let shots = dir.join("screenshots");
    let bad = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(&shots).map_err(|e| bad(&shots, e))?;
    for name in &names {
        seen(&dom, name)?;
        // A page that is scrolled to a figure makes an empty picture.
        let single = shots.join(format!("{name}.html"));
        std::fs::write(&single, cut(&dom, name)?).map_err(|e| bad(&single, e))?;
        let shot = shots.join(format!("{name}.png"));
        let to = format!("--screenshot={}", shot.display());
        let at = format!("file://{}", single.display());
        open()
            .args(["--window-size=900,1000", "--hide-scrollbars", &to, &at])
            .require()?;
        std::fs::remove_file(&single).map_err(|e| bad(&single, e))?;
    }
    let used = use_page(home, chromium, dir)?;
    Ok(format!(
        "{} figures in {chromium}, {used}, screenshots in {}",
        names.len(),
        shots.display()
    ))
}

/// Added to a copy of the page: presses keys, prints, and notes what the page has done in an attribute. Its names are
/// in a block: the page's script may have the same ones.
const PROBE: &str = r#"<script>{
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
["n", "n", "n", "p", "t"].forEach(press);
const at = [...document.querySelectorAll("figure")].indexOf(document.activeElement);
const open = () => document.querySelectorAll("details[open]").length;
const tables = [open()];
dispatchEvent(new Event("beforeprint"));
tables.push(open(), document.querySelectorAll("details").length);
dispatchEvent(new Event("afterprint"));
tables.push(open());
const ground = getComputedStyle(document.body).backgroundColor;
document.body.setAttribute("data-probe", [at, ...tables, ground].join(";"));
}</script>"#;

/// What the page does with keys, when it is printed, and on dark ground.
fn use_page(home: &Home, chromium: &str, dir: &Path) -> Result<String, String> {
    let bad = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let report = dir.join("report.html");
    let page = std::fs::read_to_string(&report).map_err(|e| bad(&report, e))?;
    let probe = dir.join("probe.html");
    std::fs::write(&probe, page.replace("</body>", &format!("{PROBE}</body>")))
        .map_err(|e| bad(&probe, e))?;
    let open = |more: &[&str]| {
        let program = browser(home, chromium).args(more);
        program.require().map(|o| o.stdout)
    };
    let url = format!("file://{}", probe.display());
    let light = noted(&open(&["--dump-dom", &url])?)?;
    let dark = noted(&open(&[
        "--blink-settings=preferredColorScheme=0",
        "--dump-dom",
        &url,
    ])?)?;
    std::fs::remove_file(&probe).map_err(|e| bad(&probe, e))?;
    keys_and_print(&light)?;
    if light.last() == dark.last() {
        return Err(format!(
            "the page has the same ground in light and dark: {dark:?}"
        ));
    }
    let pdf = dir.join("report.pdf");
    let to = format!("--print-to-pdf={}", pdf.display());
    open(&[&to, &format!("file://{}", report.display())])?;
    let bytes = std::fs::metadata(&pdf).map_err(|e| bad(&pdf, e))?.len();
    Ok(format!("keys, dark mode, printed to {} KB", bytes / 1024))
}

/// The notes of the probe.
fn noted(dom: &str) -> Result<Vec<String>, String> {
    let (_, rest) = dom
        .split_once("data-probe=\"")
        .ok_or("the script of the page has failed")?;
    let text = rest.split('"').next().unwrap_or_default();
    Ok(text.split(';').map(str::to_owned).collect())
}

/// Three figures forward and one back; one table open, all of them in print, and one again behind it.
fn keys_and_print(notes: &[String]) -> Result<(), String> {
    let [at, open, printed, all, after, _] = notes else {
        return Err(format!("the probe noted {notes:?}"));
    };
    let is_right = at == "1" && open == "1" && printed == all && all != "0" && after == "1";
    match is_right {
        true => Ok(()),
        false => Err(format!("keys or print: the probe noted {notes:?}")),
    }
}

/// The section of a figure, behind the beginning of its tag.
fn section<'a>(dom: &'a str, name: &str) -> Result<&'a str, String> {
    let mut all = dom.split("<section ");
    let found = all.find(|s| s.starts_with(&format!("id=\"{name}\"")));
    found.ok_or_else(|| format!("{name} is not on the page"))
}

/// A page with one figure only.
fn cut(dom: &str, name: &str) -> Result<String, String> {
    let head = dom.split("<main>").next().unwrap_or_default();
    let section = section(dom, name)?;
    Ok(format!(
        "{head}<main><section {section}</main></body></html>"
    ))
}

/// A figure of the page has a plot, a caption and a table.
fn seen(dom: &str, name: &str) -> Result<(), String> {
    let section = section(dom, name)?;
    let caption = section.split("<figcaption>").nth(1).unwrap_or_default();
    let caption = caption.split("</figcaption>").next().unwrap_or_default();
    let missing = [
        (
            "plot",
            section.contains("<svg") && section.contains("<text"),
        ),
        ("caption", caption.trim().len() > 40),
        ("table", section.contains("<tr><td>")),
    ];
    match missing.iter().find(|(_, is_there)| !is_there) {
        None => Ok(()),
        Some((what, _)) => Err(format!("{name} has no {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_data_are_found() {
        let mut names: Vec<&str> = FIGURES
            .iter()
            .flat_map(|(_, n)| n.iter().copied())
            .collect();
        names.dedup();
        let entry = |name: &&str| Entry {
            name: (*name).to_owned(),
            series: vec![serde_json::Value::Null],
            not_measured: Vec::new(),
        };
        let mut entries: Vec<Entry> = names.iter().map(entry).collect();
        assert!(judged(&entries).unwrap().starts_with("27 figures"));
        entries[7].series.clear();
        entries[7]
            .not_measured
            .push("Not measured: no valgrind.".to_owned());
        let error = judged(&entries).unwrap_err();
        assert!(
            error.ends_with("has no data: Not measured: no valgrind."),
            "{error}"
        );
        entries.truncate(5);
        assert!(judged(&entries).unwrap_err().contains("no entry "));
    }

    #[test]
    fn notes_of_the_probe_are_judged() {
        let of =
            |text: &str| keys_and_print(&noted(&format!("<body data-probe=\"{text}\">")).unwrap());
        assert!(of("1;1;32;32;1;rgb(255, 255, 255)").is_ok());
        assert!(of("-1;0;32;32;0;rgb(255, 255, 255)").is_err());
        assert!(of("1;1;1;32;1;rgb(255, 255, 255)").is_err());
        assert!(noted("<body>").is_err());
    }

    #[test]
    fn plots_and_captions_are_looked_for() {
        let good = "<section id=\"a\"><svg><text>1</text></svg><figcaption>Bars: medians; lines: from the lowest to the highest.</figcaption><tr><td>";
        assert!(seen(good, "a").is_ok());
        assert!(seen(good, "b").unwrap_err().contains("not on the page"));
        let without = good.replace("<svg>", "");
        assert_eq!(seen(&without, "a").unwrap_err(), "a has no plot");
        let page = format!("<head></head><main>{good}<section id=\"c\"></main>");
        let single = cut(&page, "a").unwrap();
        assert!(single.starts_with("<head></head><main><section id=\"a\">"));
        assert!(!single.contains("id=\"c\""));
    }
}
