//! Replacement of a plugin under load: the tests, then 1,000 replacements while a generator in memory sends 10 million packets a
//! second, and in a daemon while its packet generator sends.

use crate::at_most;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

/// Replacements.
const TIMES: u64 = 1_000;
/// Million packets a second.
const RATE: f64 = 10.0;
/// Maximum growth of the memory in kB, from the first tenth of the replacements to the last one.
const GROWTH: f64 = 1_024.0;
/// The beginnings of the names of the tests.
const TESTS: [&str; 3] = [
    "a_plugin_comes_and_goes",
    "a_plugin_is_replaced_a_thousand_times",
    "traces_of_a_plugin_outlive_it",
];

/// Runs the tests of plugins with these names; returns their output.
fn tests(home: &Home, names: &[&str], more: &[&str]) -> Result<String, String> {
    let all = ["test", "--workspace", "--test", "plugins", "--"];
    let program = Program::cargo(home).args(all).args(names).args(more);
    program.require().map(|done| done.stdout)
}

/// In an engine whose worker has a thread.
pub fn judge(home: &Home) -> Outcome {
    Outcome::of(tests(home, &TESTS, &[]).and_then(|_| in_memory(home)))
}

/// In a daemon: the line of the test's figures.
pub fn daemon(home: &Home) -> Outcome {
    let ran = tests(home, &["replacements_under_traffic"], &["--nocapture"]);
    Outcome::of(ran.and_then(|text| figures(&text)))
}

/// The figures and the bars that the test prints.
fn figures(text: &str) -> Result<String, String> {
    let found = text.lines().find_map(|it| it.split_once("figures: "));
    let (_, figures) = found.ok_or("the test has printed no figures")?;
    match figures.contains("(bars: ") {
        true => Ok(format!(
            "{figures}; the packet generator sends as fast as the debug build can"
        )),
        false => Err(format!("the test has printed no bars: {figures}")),
    }
}

fn in_memory(home: &Home) -> Result<String, String> {
    let build = ["build", "--release", "--locked", "-p", "volley-plugin-host"];
    let program = Program::cargo(home).args(build);
    program.args(["--example", "replacements"]).require()?;
    let library = home.target.join("release/deps/libvolley_plugin_sample.so");
    let ran = Program::new(home, home.target.join("release/examples/replacements"))
        .arg(&library)
        .args([TIMES.to_string(), RATE.to_string()])
        .limit_seconds(300)
        .require()?;
    verdict(&ran.stdout)
}

/// The line of the example.
fn verdict(line: &str) -> Result<String, String> {
    let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
    let numbers = numbers.map_err(|error| format!("`{line}`: {error}"))?;
    let [sent, seen, arrived, dropped, packets, seconds, early, late] = numbers[..] else {
        return Err(format!("`{line}` has not eight numbers"));
    };
    let rate = packets / seconds / 1e6;
    let reached = match rate >= 0.95 * RATE {
        true => "as asked",
        false => "the most that this machine makes beside the replacements",
    };
    let figures = format!(
        "{TIMES} replacements in {seconds:.1} s at {rate:.2} Mpps ({reached}; {RATE:.0} asked), {sent:.0} packets sent, {arrived:.0} arrived, {seen:.0} of them through the plugin, {dropped:.0} dropped, memory {early:.0} kB after {} replacements and {late:.0} kB at the end",
        TIMES / 10
    );
    if sent != arrived || dropped != 0.0 || seen > arrived || seen < packets {
        return Err(format!("packets are lost or doubled: {figures}"));
    }
    let judged = at_most(late - early, GROWTH, "kB more");
    let add = |text: String| format!("0 lost, {text}: {figures}");
    judged.map(add).map_err(add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_packets_and_growing_memory_fail() {
        let good = "1000 900 1000 0 900 0.0001 5000 5100";
        assert!(verdict(good).unwrap().starts_with("0 lost, "));
        for bad in [
            "1000 900 999 0 900 0.0001 5000 5100",
            "1000 900 1000 1 900 0.0001 5000 5100",
            "1000 800 1000 0 900 0.0001 5000 5100",
            "1000 900 1000 0 900 0.0001 5000 9000",
            "1000",
        ] {
            assert!(verdict(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn figures_come_with_the_bars_of_the_test() {
        let text =
            "running 1 test\nfigures: 200 replacements, 0 lost (bars: none lost, 5 kB more)\n";
        let line = figures(text).unwrap();
        assert!(line.starts_with("200 replacements, 0 lost (bars: none lost, 5 kB more); "));
        assert!(
            figures("figures: 200 replacements\n")
                .unwrap_err()
                .contains("no bars")
        );
        assert!(figures("test a ... ok\n").is_err());
    }
}
