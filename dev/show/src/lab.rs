//! The items of "The lab" that exist: the search, comparisons, reports and interrupted runs.

use super::list::Sitting;
use super::{Item, Work, item, lab_page, long, test_file};
use std::path::Path;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

pub use xtask::bench::lab as program;

const fn tests(name: &'static str, what: &'static str, words: &'static [&'static str]) -> Item {
    item(name, what, Work::Command(words))
}

/// The tests are built with the features of the whole workspace: see `nodes`.
pub const ITEMS: &[Item] = &[
    tests(
        "search",
        "NDR and PDR of synthetic devices within 1 %, with noise and with loss that is not monotonic",
        &["test", "--workspace", "--lib", "search::"],
    ),
    tests(
        "compare",
        "synthetic samples: the same code is equal, 5 % more cycles are slower",
        &["test", "--workspace", "--lib", "compare::"],
    ),
    item(
        "compare-real",
        "real runs of one figure: two of the same code compare as equal, one with 5 % of cycles burnt in its nodes as slower",
        Work::Call(compare_real),
    ),
    tests(
        "traffic",
        "generator and sink: exact token bucket, probes, histogram, duplicates and order against plain models",
        &["test", "--workspace", "--lib", "traffic::"],
    ),
    item(
        "generator",
        "self-test of the generator: rate error under 0.5 %, time stamps against a delay line within 1 us, in quiet trials",
        Work::Call(self_test),
    ),
    tests(
        "switch",
        "topologies, processes that end or die; nothing is left behind",
        &["test", "--workspace", "--lib", "switch::"],
    ),
    tests(
        "peers",
        "packets pass the kernel's bridge and routers over veth, with and without FRR, XDP programs, Volley's XDP sockets, the kernel of a virtual machine over vhost-user, testpmd and OVS-DPDK over veth, testpmd over memif and vhost-user, as far as they are installed",
        &[
            "test",
            "--workspace",
            "--test",
            "switches",
            "--",
            "--include-ignored",
        ],
    ),
    item(
        "smoke",
        "one or two short points of every figure, under 2 minutes; the page in headless Chromium: keys, dark mode, print",
        Work::Call(|sitting| all(sitting, "smoke", 120)),
    ),
    long(
        "quick",
        "all figures under 10 minutes, each with data, plot and caption in headless Chromium",
        Work::Call(|sitting| all(sitting, "quick", 600)),
    ),
    tests(
        "failures",
        "Ctrl-C and resume, a switch that dies or hangs, a full disk, no root, no programs: reported, and nothing left behind",
        test_file!["failures"],
    ),
    tests(
        "report",
        "every figure of the page has a plot, a caption and a table",
        &["test", "--workspace", "--lib", "every_figure_of_the_page"],
    ),
    tests(
        "resume",
        "an interrupted run resumes without measuring a point again; failed points are measured again",
        &["test", "--workspace", "--lib", "run::"],
    ),
];

/// All figures at a level, within a limit in seconds.
fn all(sitting: &Sitting<'_>, level: &str, limit: u64) -> Outcome {
    match program(sitting.home) {
        Ok(lab) => lab_page::judge(sitting.home, &lab, level, limit),
        Err(why) => Outcome::Fail(why),
    }
}

/// The self-test judges itself, by quiet trials; its exit status says whether it has passed.
fn self_test(sitting: &Sitting<'_>) -> Outcome {
    let lab = match program(sitting.home) {
        Ok(lab) => lab,
        Err(why) => return Outcome::Fail(why),
    };
    let run = Program::new(sitting.home, &lab)
        .args(["self-test"])
        .limit_seconds(120);
    match run.output() {
        Err(why) => Outcome::Fail(why.to_string()),
        Ok(output) => {
            let text = output.stdout.trim().replace('\n', "; ");
            match (output.ok, text.contains("FAIL")) {
                (true, _) => Outcome::Pass(text),
                (false, true) => Outcome::Fail(text),
                (false, false) if output.stderr.contains("the machine is too busy") => {
                    Outcome::Skip(format!("the machine is too busy: {text}"))
                }
                (false, false) => Outcome::Fail(format!("{}\n{}", output.ending, output.tail(5))),
            }
        }
    }
}

/// Percent of all cycles that are burnt in the nodes of a run that must compare as slower.
const BURNT: u32 = 5;
/// How often runs are measured and compared while other programs disturb them.
const COMPARISONS: usize = 2;

/// Runs of one figure that are compared: the first with the same code, and with a part of all cycles burnt in its nodes. All runs read
/// the clock before and after each node, which the burning needs.
fn compare_real(sitting: &Sitting<'_>) -> Outcome {
    let mut outcome = Outcome::Skip("not compared".into());
    for _ in 0..COMPARISONS {
        outcome = match compared(sitting) {
            Err(why) => Outcome::Fail(why),
            Ok(summaries) => judged(&summaries),
        };
        if !matches!(outcome, Outcome::Skip(_)) {
            break;
        }
    }
    outcome
}

/// The verdict on the summaries of the same code and of the burnt run. What burns cannot be told from noise that is as large.
fn judged([same, burnt]: &[String; 2]) -> Outcome {
    let text = format!("the same code: {same}; {BURNT} % burnt: {burnt}");
    let is_noisy =
        |it: &String| !it.contains(" 0 unclear,") || noise(it).is_none_or(|of| of >= BURNT.into());
    let is_same = same.contains(" 0 slower, 0 faster");
    let is_slower = burnt.starts_with("0 equal,") && burnt.contains(" 0 faster");
    match (is_noisy(same) || is_noisy(burnt), is_same && is_slower) {
        // Other programs were running.
        (true, _) => Outcome::Skip(format!("the machine is too busy: {text}")),
        (false, true) => Outcome::Pass(text),
        (false, false) => Outcome::Fail(text),
    }
}

/// The noise in percent that a summary states.
fn noise(summary: &str) -> Option<f64> {
    let (_, noise) = summary.split_once("differences up to ")?;
    noise.split_once(" %")?.0.parse().ok()
}

/// The summaries of both comparisons.
fn compared(sitting: &Sitting<'_>) -> Result<[String; 2], String> {
    let home = sitting.home;
    let lab = program(home)?;
    let runs = [("a", 0), ("b", 0), ("c", BURNT)];
    let dirs = runs.map(|(name, _)| home.target.join(format!("show-lab-{name}")));
    for (dir, (_, burn)) in dirs.iter().zip(runs) {
        lab_page::empty(dir)?;
        Program::new(home, &lab)
            .args([
                "run",
                "vpp-9",
                "--fresh",
                "--burn",
                &burn.to_string(),
                "--out",
            ])
            .arg(dir)
            .limit_seconds(300)
            .require()?;
    }
    let [first, same, burnt] = &dirs;
    Ok([
        summary(home, &lab, first, same)?,
        summary(home, &lab, first, burnt)?,
    ])
}

/// The summary of a comparison. Exit status 3 means that the second run is slower.
fn summary(home: &Home, lab: &Path, first: &Path, second: &Path) -> Result<String, String> {
    let output = Program::new(home, lab)
        .arg("compare")
        .args([first, second])
        .limit_seconds(60)
        .output()
        .map_err(|e| e.to_string())?;
    let mut lines = output.stdout.lines();
    let summary = lines.find(|line| line.contains(" equal, "));
    let summary = summary.ok_or_else(|| {
        format!(
            "`volley-lab compare` printed no summary: {}",
            output.tail(5)
        )
    })?;
    Ok(summary.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_as_large_as_the_burnt_part_decides_nothing() {
        let summary = |counts: &str, noise: &str| {
            format!("{counts}, 0 faster; differences up to {noise} % are noise")
        };
        let same = summary("3 equal, 0 unclear, 0 slower", "2.9");
        let slower = |noise| summary("0 equal, 0 unclear, 3 slower", noise);
        let missed = |noise| summary("2 equal, 0 unclear, 1 slower", noise);
        let of = |burnt: String| judged(&[same.clone(), burnt]);
        assert!(matches!(of(slower("1.3")), Outcome::Pass(_)));
        assert!(matches!(of(missed("4.9")), Outcome::Fail(_)));
        assert!(matches!(of(missed("5.3")), Outcome::Skip(_)));
        assert!(matches!(of("no summary".into()), Outcome::Skip(_)));
        assert!(matches!(
            judged(&[slower("1.0"), slower("1.0")]),
            Outcome::Fail(_)
        ));
    }
}
