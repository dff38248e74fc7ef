//! Items between network namespaces: the demo of all drivers, and the probe stream.

use super::Sitting;
use serde::Deserialize;
use xtask::measure;
use xtask::report::{Fail, Outcome, Pass, Skip};
use xtask::run::{Program, exists};

/// The parts of the output of `volley demo --net --json` that are used here.
#[derive(Deserialize)]
struct Demo {
    ways: Vec<Way>,
}

#[derive(Deserialize)]
struct Way {
    way: String,
    figures: Option<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    tcp_gbps: f64,
    jumbo_tcp_gbps: Option<f64>,
}

/// The reason why namespaces cannot be created here.
fn hindrance(sitting: &Sitting<'_>, programs: &[&str]) -> Option<String> {
    if let Some(missing) = programs.iter().find(|program| !exists(program)) {
        return Some(format!("{missing} is not installed"));
    }
    let space = format!("vshow{}", std::process::id());
    let netns = |verb: &str| {
        Program::new(sitting.home, "ip")
            .args(["netns", verb, &space])
            .limit_seconds(10)
            .require()
    };
    match netns("add").and_then(|_| netns("del")) {
        Ok(_) => None,
        Err(_) => Some("network namespaces cannot be made (are we root?)".into()),
    }
}

/// Every kind of connection must carry ping, TCP, UDP and frames of 9000 bytes; TCP is reported as a multiple of the
/// bridge's rate.
pub fn demo(sitting: &Sitting<'_>) -> Outcome {
    if let Some(why) = hindrance(sitting, &["ip", "ping", "iperf3"]) {
        return Skip(why);
    }
    let seconds = sitting.seconds.to_string();
    let args = ["demo", "--net", "--seconds", &seconds];
    Outcome::of(measure::json(sitting.home, &args, 300).and_then(|demo: Demo| verdict(&demo)))
}

fn verdict(demo: &Demo) -> Result<String, String> {
    let tcp = |way: &Way| way.figures.as_ref().map(|f| f.tcp_gbps);
    let bridge = demo.ways.iter().find(|way| way.way == "linux bridge");
    let bridge = bridge.and_then(tcp).ok_or("the bridge carried nothing")?;
    let mut cells = Vec::new();
    for way in &demo.ways {
        let figures = way.figures.as_ref();
        let figures = figures.ok_or_else(|| format!("{} carried nothing", way.way))?;
        let jumbo = figures.jumbo_tcp_gbps;
        jumbo.ok_or_else(|| format!("{} carried no jumbo frames", way.way))?;
        let times = figures.tcp_gbps / bridge;
        cells.push(format!(
            "{} {:.1} Gbit/s ({times:.2}x)",
            way.way, figures.tcp_gbps
        ));
    }
    Ok(format!("TCP: {}", cells.join(", ")))
}

/// The measurement judges itself; its last output is the figure.
pub fn gap(sitting: &Sitting<'_>) -> Outcome {
    if let Some(why) = hindrance(sitting, &["ip", "tcpdump", "taskset"]) {
        return Skip(why);
    }
    let words = [
        "test",
        "-p",
        "volley",
        "--test",
        "gap",
        "--",
        "--ignored",
        "--nocapture",
    ];
    let run = Program::cargo(sitting.home).args(words).limit_seconds(900);
    let output = match run.output() {
        Ok(output) => output,
        Err(error) => return Fail(error.to_string()),
    };
    let unjudged = |l: &&str| l.trim().starts_with("not judged");
    if let Some(why) = output.stdout.lines().find(unjudged) {
        return Skip(why.trim().to_owned());
    }
    match figures(&output.stdout) {
        Ok(line) if output.ok => Pass(line),
        Ok(line) => Fail(line),
        Err(_) => Fail(format!("{}\n{}", output.ending, output.tail(3))),
    }
}

/// The lines with the control, the operations, and the difference.
fn figures(text: &str) -> Result<String, String> {
    let line = |start: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(start))
            .ok_or_else(|| format!("the measurement has no line `{start}`"))
    };
    Ok(format!(
        "{}, at most 1 ms ({}; {})",
        line("operations add")?,
        line("idle control")?,
        line("with operations")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_must_carry_everything() {
        let demo = |jumbo: &str| -> Demo {
            let text = format!(
                r#"{{"seconds":1,"ways":[{{"way":"linux bridge","figures":{{"tcp_gbps":8.0,"jumbo_tcp_gbps":9.0}}}},
                {{"way":"tap","figures":{{"tcp_gbps":4.0,"jumbo_tcp_gbps":{jumbo}}}}}]}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        assert!(
            verdict(&demo("5.0"))
                .unwrap()
                .contains("tap 4.0 Gbit/s (0.50x)")
        );
        assert!(verdict(&demo("null")).is_err());
        assert!(verdict(&Demo { ways: Vec::new() }).is_err());
    }

    #[test]
    fn the_probe_prints_what_is_looked_for() {
        let text = "  idle control      median 0.1\n  with operations   median 0.2\noperations add 0.1 ms\n";
        let line = figures(text).unwrap();
        assert!(
            line.starts_with("operations add 0.1 ms, at most 1 ms (idle control"),
            "{line}"
        );
        assert!(figures("nothing").is_err());
    }
}
