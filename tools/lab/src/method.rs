//! Method and noise of a run, in sentences.

use crate::level::Level;
use crate::meter::{GENERATOR, Task};
use crate::run::{CONTROL, Record, Run};
use crate::stats::Summary;
use crate::switch::{ADAPTERS, LIMITED, Reach, Spec};
use std::collections::BTreeSet;

/// Difference of the control point, and spread of the repetitions in percent, from which a run is called rough.
const ROUGH: f64 = 10.0;

/// The paragraphs of the report: method, noise, limits of the switches, machine.
pub fn paragraphs(run: &Run) -> Vec<String> {
    let all = [Some(method(run)), Some(noise(run)), limits(run)];
    let all = all.into_iter().flatten();
    all.chain([machine(run)]).collect()
}

fn is_measured(record: &&Record) -> bool {
    record.error.is_none() && record.figure != CONTROL
}

fn method(run: &Run) -> String {
    let length = run.plan.level.length();
    let measured = run.records.iter().filter(is_measured);
    let samples = |r: &Record| r.samples.values().map(Vec::len).max().unwrap_or(0);
    let (points, trials) = measured.fold((0, 0), |(points, trials), record| {
        (points + 1, trials + samples(record))
    });
    let pinned = match run.plan.environment.pinned.as_str() {
        "" => "one processor".to_owned(),
        number => format!("processor {number}"),
    };
    let smoke = match run.plan.level {
        Level::Smoke => {
            "This is a smoke run: it shows that each figure can be measured, and its values mean nothing. "
        }
        _ => "",
    };
    let minutes = run.records.iter().map(|r| r.seconds).sum::<f64>() / 60.0;
    format!(
        "{smoke}Where the caption of a figure does not state otherwise, packets are created and freed in memory, the only worker is pinned to {pinned}, \
         and a point has {} repetitions of {} s, after a warm-up of 0.1 s and a comparison of packets with the reference model. \
         This run has {points} points with {trials} repetitions, in {minutes:.1} minutes of measurements. A point is the median of its repetitions, with the lowest and the highest; \
         confidence intervals (95 %) come from order statistics. Cycles are those of the time stamp counter.{}",
        length.repetitions,
        length.seconds,
        shortened(run)
    )
}

/// The points with fewer repetitions.
fn shortened(run: &Run) -> String {
    let count = run.records.iter().filter(|r| r.is_shortened).count();
    match (count, run.plan.level.limit()) {
        (0, _) | (_, None) => String::new(),
        (count, Some(limit)) => format!(
            " {count} points have at most {} repetitions: the run would have taken longer than {:.0} minutes.",
            run.plan.level.length().shorter().repetitions,
            limit / 60.0
        ),
    }
}

fn noise(run: &Run) -> String {
    let mut text = generator(run);
    text += &match run.drift() {
        None => "The control points were not both measured, so the noise of the run is unknown."
            .to_owned(),
        Some(drift) => format!(
            "The control point (IPv4, one route), measured first and last, differed by {:.1} %: smaller differences are noise.",
            drift * 100.0
        ),
    };
    let spread = |r: &Record| {
        let s = Summary::of(r.samples.get("cycles")?)?;
        (s.median > 0.0).then(|| (s.max - s.min) / s.median * 100.0)
    };
    let measured = || run.records.iter().filter(is_measured);
    let spreads: Vec<f64> = measured().filter_map(spread).collect();
    if let Some(s) = Summary::of(&spreads) {
        text += &format!(
            " Between the lowest and the highest repetition, the cycles of a point differ by {:.1} % (median over the points), at most by {:.1} %.",
            s.median, s.max
        );
    }
    let drift = run.drift().map_or(0.0, |drift| drift * 100.0);
    let spread = Summary::of(&spreads).map_or(0.0, |s| s.median);
    if drift.max(spread) > ROUGH {
        text += " The machine was busy with other programs: only large differences of this run mean anything.";
    }
    let all = |metric: &str| -> Vec<f64> {
        let of = measured().filter_map(|r| r.samples.get(metric));
        of.flatten().copied().collect()
    };
    if let Some(s) = Summary::of(&all("undisturbed")) {
        text += &format!(
            " Slices of 4 ms in which other programs used the core are excluded: {:.0} % of the time counts (median over the points), at least {:.0} %.",
            s.median * 100.0,
            s.min * 100.0
        );
    }
    if let Some(s) = Summary::of(&all("core_speed")) {
        text += &format!(
            " The core ran {:.2} cycles per cycle of the time stamp counter ({:.2} to {:.2}).",
            s.median, s.min, s.max
        );
    }
    text
}

/// The rate of generator and sink by themselves, beside the largest rate of a switch.
fn generator(run: &Run) -> String {
    let control = run.records.iter().find(|r| r.series == GENERATOR);
    let own = control.and_then(|r| Summary::of(r.samples.get("mpps")?));
    let Some(own) = own else {
        return "Generator and sink were not measured by themselves. ".to_owned();
    };
    let switches = run
        .records
        .iter()
        .filter(|r| Task::of(&r.args).is_ok_and(|t| t.is_switch()));
    let rates = switches.filter_map(|r| Some(Summary::of(r.samples.get("mpps")?)?.median));
    let most = rates.fold(0.0, f64::max);
    let most = match most > 0.0 {
        true => format!(
            "; the largest rate of a switch in this run is {most:.2} Mpps, {:.0} % of it",
            most / own.median * 100.0
        ),
        false => String::new(),
    };
    let limited = run.records.iter().filter(|r| {
        let all = r.samples.get(LIMITED).into_iter().flatten();
        all.copied().any(|limited| limited > 0.0)
    });
    let names: Vec<String> = limited
        .map(|r| format!("{} {}", r.figure, r.series))
        .collect();
    let limited = match names.is_empty() {
        true => String::new(),
        false => format!(
            "The generator sent no faster than these switches forwarded, so their largest rate is not known: {}. ",
            names.join("; ")
        ),
    };
    format!(
        "Generator and sink by themselves, in memory on one core, reach {:.2} Mpps with packets of 64 bytes ({:.2} to {:.2}){most}. {limited}",
        own.median, own.min, own.max
    )
}

/// What switches of the run cannot do: points that they do not have.
fn limits(run: &Run) -> Option<String> {
    let specs = run.records.iter();
    let specs = specs.filter_map(|r| Spec::of(r.args.strip_prefix("switch ")?).ok());
    let names: BTreeSet<String> = specs.map(|spec| spec.peer).collect();
    let of = |reach: Reach| {
        let all = ADAPTERS.into_iter();
        let all = all.filter(|a| a.reach == reach && names.contains(a.name));
        let titles: Vec<&str> = all.map(|a| a.title).collect();
        (!titles.is_empty()).then(|| titles.join(", "))
    };
    let routes = of(Reach::Route).map(|titles| {
        format!(
            "Routers forward from the first port to the second one: no point in both directions, reversed or with a chain was measured of {titles}."
        )
    });
    let pairs = of(Reach::Pair)
        .map(|titles| format!("Between one pair of ports, not in chains, forward: {titles}."));
    let all: Vec<String> = routes.into_iter().chain(pairs).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn machine(run: &Run) -> String {
    let e = &run.plan.environment;
    let debug = match e.debug_build {
        true => " This was a debug build: its figures are not those of a release.",
        false => "",
    };
    let pages = match e
        .huge_pages
        .iter()
        .find(|line| line.starts_with("HugePages_Total"))
    {
        Some(line) if line.ends_with(" 0") => "none",
        Some(_) => "reserved",
        None => "unknown",
    };
    let clocks = match e.clocks.as_str() {
        "" => "cannot be set".to_owned(),
        range => format!("can be set ({range})"),
    };
    let user = match run.has_namespaces() {
        true => "",
        false => {
            " This user may not make network namespaces: switches with veth pairs are left out, and VNFs share the namespace of the lab."
        }
    };
    format!(
        "Machine: {}, {} processors, time stamp counter {} GHz, the clock {clocks}, Linux {}, huge pages {pages}, load averages at the start {}.{user} Code: Volley {}{}.{debug}",
        e.processor,
        e.processors,
        e.tsc_ghz,
        e.kernel,
        averages(&e.load),
        e.version,
        match e.git.as_str() {
            "" => String::new(),
            commit => format!(", commit {commit}"),
        }
    )
}

/// The load averages of 1, 5 and 15 minutes in the text of /proc/loadavg; numbers of processes are behind them.
fn averages(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::measured;

    #[test]
    fn the_noise_is_computed_from_the_samples() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        let points = run.records.len() - 3;
        let text = method(&run);
        let wanted = format!("{points} points with {} repetitions", points * 10);
        assert!(text.contains(&wanted), "{text}");
        for record in &mut run.records {
            let cycles = record.samples.get_mut("cycles").unwrap();
            *cycles = vec![9.0, 10.0, 11.0];
            record.samples.insert("undisturbed".to_owned(), vec![0.5]);
        }
        let text = noise(&run);
        assert!(text.contains("differed by 0.0 %"), "{text}");
        assert!(text.contains("differ by 20.0 % (median"), "{text}");
        assert!(text.contains("50 % of the time counts"), "{text}");
        assert!(text.contains("The machine was busy"), "{text}");
        assert!(limits(&run).unwrap().contains("measured of Volley router"));
        run.records.clear();
        assert_eq!(limits(&run), None);
        assert!(noise(&run).contains("The control points were not both measured"));
    }

    #[test]
    fn points_with_less_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        assert_eq!(shortened(&run), "");
        assert!(!noise(&run).contains("no faster than"));
        let search = run.records.iter_mut().find(|r| r.args.contains("--search"));
        let search = search.unwrap();
        search.is_shortened = true;
        search.samples.insert(LIMITED.to_owned(), vec![0.0, 1.0]);
        let name = format!("{} {}", search.figure, search.series);
        let text = noise(&run);
        assert!(text.contains(&format!("is not known: {name}. ")), "{text}");
        assert_eq!(
            shortened(&run),
            " 1 points have at most 4 repetitions: the run would have taken longer than 10 minutes."
        );
    }

    #[test]
    fn the_machine_is_described_without_numbers_of_processes() {
        assert_eq!(averages("0.50 1.25 2.00 3/456 7890"), "0.50, 1.25, 2.00");
        assert_eq!(averages(""), "");
        let dir = tempfile::tempdir().unwrap();
        let mut run = measured(dir.path(), 0.0);
        run.plan.environment.git = String::new();
        let version = &run.plan.environment.version;
        assert!(machine(&run).contains(&format!("Code: Volley {version}.")));
    }
}
