//! A smoke run of a figure of each kind of measurement: in memory, by rate, latency, cores, switches as processes. The page has each with
//! plot, caption and table. All figures: `cargo xtask show lab --only smoke`, and the stage `lab` of a long run of CI.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Figures, and quantities of which each has samples.
const FIGURES: [(&str, &str); 7] = [
    ("vpp-5", "vector_size"),
    ("vpp-8", "cycles"),
    ("vpp-10", "median"),
    ("vpp-11", "mpps"),
    ("moonroute-t1", "share ip4-lookup"),
    ("switch-p2p", "gbps"),
    ("switch-rtt-50", "time 0.5"),
];

/// Number of samples of a quantity by figure.
fn samples(folder: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(folder.join("samples.jsonl")).unwrap();
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["error"], serde_json::Value::Null, "{line}");
        for (name, samples) in record["samples"].as_object().unwrap() {
            let values: Vec<f64> = samples
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|v| v.as_f64())
                .collect();
            assert!(values.iter().all(|v| *v >= 0.0), "{line}");
            let figure = record["figure"].as_str().unwrap();
            *all.entry(format!("{figure} {name}")).or_default() += values.len();
        }
    }
    all
}

#[test]
fn a_figure_of_each_kind_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_volley-lab"));
    command.arg("run").args(FIGURES.map(|(name, _)| name));
    let output = command
        .args(["--smoke", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let samples = samples(&out);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for (figure, quantity) in FIGURES {
        let name = format!("{figure} {quantity}");
        assert!(samples.get(&name).is_some_and(|n| *n >= 1), "{name}");
        let section = page
            .split(&format!("<section id=\"{figure}\">"))
            .nth(1)
            .unwrap();
        let section = section.split("</section>").next().unwrap();
        for part in ["<svg", "<figcaption>", "<tr><td>"] {
            assert!(section.contains(part), "{figure} has no {part}");
        }
        assert!(!section.contains("Not measured"), "{figure}");
    }
    assert!(
        samples["control mpps"] >= 2,
        "generator and sink by themselves"
    );
    assert!(page.contains("Generator and sink by themselves"), "{page}");
}
