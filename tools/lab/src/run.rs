//! A run is a folder: `run.json` (figures, length, environment) and `samples.jsonl` (one line for each measured point).
//!
//! Contract: a line is written when its point has been measured, so an interruption loses at most one point. A resumed run
//! measures the points that have no line, or whose line has an error. A last line that was cut off is removed.

use crate::environment::Environment;
use crate::error::LabError;
use crate::figure::{self, FIGURES, Figure, Point};
use crate::level::{self, Level};
use crate::meter::{self, Meter, Options, Samples};
use crate::plan::{Estimates, Progress};
use crate::switch::can_make_namespaces;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Largest file of a run.
const MOST: u64 = 256 << 20;
/// Name of the control points, which are measured at the start and at the end of a run.
pub const CONTROL: &str = "control";
/// Part of the time of a run that its points should not exceed: the report comes behind them, and estimates are not exact.
const SAFE: f64 = 0.9;
/// What the control points measure.
const CONTROL_ARGS: &str = "--scenario ip4";

/// The first file of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the figures.
    pub figures: Vec<String>,
    /// Extent of the run.
    #[serde(alias = "quick", deserialize_with = "level::read")]
    pub level: Level,
    /// How its points are measured.
    #[serde(flatten)]
    pub options: Options,
    /// Machine and code.
    pub environment: Environment,
    /// Peers that the run does not have, with the reasons; none in runs of earlier versions.
    #[serde(default)]
    pub skipped: Option<Vec<(String, String)>>,
    /// Whether the run may make network namespaces; none in runs of earlier versions.
    #[serde(default)]
    pub namespaces: Option<bool>,
}

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Figure, or [`CONTROL`].
    pub figure: String,
    /// Curve.
    pub series: String,
    /// Position.
    pub x: f64,
    /// Label of the position.
    pub label: String,
    /// Arguments of the benchmark.
    pub args: String,
    /// Samples by metric; empty if the point could not be measured.
    pub samples: Samples,
    /// Reason why the point could not be measured.
    pub error: Option<String>,
    /// Seconds that the measurement took.
    #[serde(default)]
    pub seconds: f64,
    /// Whether the point has fewer repetitions than others, because the run would have taken too long.
    #[serde(default)]
    pub is_shortened: bool,
}

/// A point of a figure or a control point.
struct Task {
    figure: &'static str,
    point: Point,
}

impl Task {
    fn is_of(&self, record: &Record) -> bool {
        record.figure == self.figure
            && record.series == self.point.series
            && record.x == self.point.x
    }

    /// The record of the point, without samples.
    fn record(&self) -> Record {
        let point = &self.point;
        Record {
            figure: self.figure.to_owned(),
            series: point.series.to_owned(),
            x: point.x,
            label: point.label.clone(),
            args: point.args.clone(),
            samples: Samples::new(),
            error: None,
            seconds: 0.0,
            is_shortened: false,
        }
    }

    fn name(&self) -> String {
        let point = &self.point;
        format!("{} {} {}", self.figure, point.series, point.label)
    }
}

/// A folder with a run.
#[derive(Debug)]
pub struct Run {
    /// The folder.
    pub dir: PathBuf,
    /// Plan of the run.
    pub plan: Plan,
    /// Points measured so far.
    pub records: Vec<Record>,
}

impl Run {
    /// Create the folder of a new run. Without names, all figures are part of it.
    ///
    /// # Errors
    /// If a figure is unknown, or the folder already has a run or cannot be written.
    pub fn create(
        dir: &Path,
        names: &[String],
        level: Level,
        options: Options,
    ) -> Result<Run, LabError> {
        let mut figures: Vec<String> = Vec::new();
        for name in names {
            if !figures.contains(name) {
                figures.push(name.clone());
            }
        }
        if figures.is_empty() {
            figures = FIGURES.iter().map(|f| f.name.to_owned()).collect();
        }
        let plan = Plan {
            figures,
            level,
            options,
            environment: Environment::now(),
            skipped: Some(figure::skipped_peers()),
            namespaces: Some(can_make_namespaces()),
        };
        figure::known(&plan.figures)?;
        std::fs::create_dir_all(dir).map_err(|e| LabError::file(dir, e))?;
        let path = dir.join("run.json");
        let file = volley_file::create_new(&path);
        let mut file = file.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => {
                let why = "the folder has a run: choose another one with --out, or `volley-lab resume` to continue the run";
                LabError::file(&path, why)
            }
            _ => LabError::file(&path, e),
        })?;
        let text = serde_json::to_string_pretty(&plan).map_err(|e| LabError::file(&path, e))?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(|e| LabError::file(&path, e))?;
        Ok(Run {
            dir: dir.to_owned(),
            plan,
            records: Vec::new(),
        })
    }

    /// Read a run that shall be continued in an environment.
    ///
    /// # Errors
    /// As [`Run::read`], or if another program or another processor has measured it.
    pub fn read_in(dir: &Path, now: &Environment) -> Result<Run, LabError> {
        let run = Run::read(dir)?;
        let before = &run.plan.environment;
        if before.has_same_origin(now) {
            return Ok(run);
        }
        // Points of one report must be comparable.
        let why = format!(
            "the run was measured by {}, and this is {}: resume it with that program on that machine, or begin another run with `volley-lab run --out FOLDER`",
            before.origin(),
            now.origin()
        );
        Err(LabError::file(&dir.join("run.json"), why))
    }

    /// Read a run.
    ///
    /// # Errors
    /// If a file is missing or is no file of a run.
    pub fn read(dir: &Path) -> Result<Run, LabError> {
        let path = dir.join("run.json");
        let text = volley_file::read_text(&path, MOST).map_err(|e| LabError::file(&path, e))?;
        let plan: Plan = serde_json::from_str(&text).map_err(|e| LabError::file(&path, e))?;
        figure::known(&plan.figures)?;
        let path = dir.join("samples.jsonl");
        let mut records = Vec::new();
        if path.exists() {
            let text = volley_file::read_text(&path, MOST).map_err(|e| LabError::file(&path, e))?;
            // A line without its end was cut off by an interruption.
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for (at, line) in whole.lines().enumerate() {
                let record = serde_json::from_str(line);
                let bad = |e| LabError::file(&path, format!("line {} is no record: {e}", at + 1));
                records.push(record.map_err(bad)?);
            }
        }
        Ok(Run {
            dir: dir.to_owned(),
            plan,
            records,
        })
    }

    /// The figures of the run.
    pub fn figures(&self) -> Vec<&'static Figure> {
        let names = self.plan.figures.iter();
        names.filter_map(|name| figure::find(name)).collect()
    }

    /// The peers that are not part of the run, with the reasons. A run of an earlier version does not have them: they are those of now.
    pub fn skipped_peers(&self) -> Vec<(String, String)> {
        let skipped = self.plan.skipped.clone();
        skipped.unwrap_or_else(figure::skipped_peers)
    }

    /// Whether the run may make network namespaces.
    pub fn has_namespaces(&self) -> bool {
        self.plan.namespaces.unwrap_or_else(can_make_namespaces)
    }

    fn tasks(&self) -> Vec<Task> {
        let of = |series: &'static str, x: f64, label: &str, args: &str| Task {
            figure: CONTROL,
            point: Point {
                series,
                x,
                label: label.to_owned(),
                args: args.to_owned(),
            },
        };
        let control = |x: f64, label: &str| of(CONTROL, x, label, CONTROL_ARGS);
        let mut tasks = vec![
            control(0.0, "start"),
            of(meter::GENERATOR, 0.0, "in memory", meter::GENERATOR),
        ];
        for figure in self.figures() {
            let points = figure.points_of(self.plan.level).into_iter();
            tasks.extend(points.map(|point| Task {
                figure: figure.name,
                point,
            }));
        }
        tasks.push(control(1.0, "end"));
        tasks
    }

    /// Measure all points that are missing, until `stop` is set.
    ///
    /// # Errors
    /// If the run is interrupted, a point cannot be measured, or the folder cannot be written.
    pub fn measure(&mut self, meter: &mut dyn Meter, stop: &AtomicBool) -> Result<(), LabError> {
        let level = self.plan.level;
        let limit = level.limit().map(|seconds| SAFE * seconds);
        self.measure_within(meter, stop, limit, level.end())
    }

    /// As [`Run::measure`]; points have fewer repetitions if the run would take longer than a limit in seconds, and are left out once it
    /// has taken as long as `end`.
    fn measure_within(
        &mut self,
        meter: &mut dyn Meter,
        stop: &AtomicBool,
        limit: Option<f64>,
        end: Option<f64>,
    ) -> Result<(), LabError> {
        self.records.retain(|r| r.error.is_none());
        self.rewrite()?;
        let done = |task: &Task, run: &Run| run.records.iter().any(|r| task.is_of(r));
        let tasks: Vec<Task> = self.tasks();
        let missing: Vec<&Task> = tasks.iter().filter(|task| !done(task, self)).collect();
        let mut estimates = Estimates::default();
        let length = self.plan.level.length();
        let times = missing.iter();
        let times = times.map(|task| estimates.seconds(&task.point.args, length));
        let times: Vec<f64> = times.collect();
        let mut progress = Progress::new(missing.len(), times.iter().sum());
        for (at, (task, time)) in missing.iter().zip(times).enumerate() {
            if stop.load(Ordering::Relaxed) {
                progress.finish();
                return Err(LabError::Interrupted {
                    left: missing.len() - at,
                    dir: self.dir.clone(),
                });
            }
            progress.begin(task.figure, &task.name());
            let is_late = limit.is_some_and(|limit| progress.exceeds(limit));
            match end.filter(|end| progress.elapsed() >= *end) {
                // Without the last control point, the noise of the measured points would be unknown.
                Some(end) if task.figure != CONTROL => self.leave_out(task, end)?,
                _ => self.one(task, meter, is_late)?,
            }
            progress.end(time);
        }
        progress.finish();
        self.failures()
    }

    /// Measure a point, with fewer repetitions if the run is late.
    fn one(&mut self, task: &Task, meter: &mut dyn Meter, is_late: bool) -> Result<(), LabError> {
        let point = &task.point;
        let start = Instant::now();
        let length = match (is_late, self.plan.level.length()) {
            (true, length) => length.shorter(),
            (false, length) => length,
        };
        let (samples, error) = match meter.measure(&point.args, length) {
            Ok(samples) => (rounded(samples), None),
            Err(why) => (Samples::new(), Some(why)),
        };
        self.add(Record {
            samples,
            error,
            seconds: (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            is_shortened: is_late,
            ..task.record()
        })
    }

    /// Note that a point was not measured because the run had taken so many seconds.
    fn leave_out(&mut self, task: &Task, end: f64) -> Result<(), LabError> {
        let minutes = end / 60.0;
        let why = format!(
            "left out because the run had taken {minutes:.0} minutes: `volley-lab resume` measures it"
        );
        self.add(Record {
            error: Some(why),
            ..task.record()
        })
    }

    /// Add a record to the run and to its file.
    fn add(&mut self, record: Record) -> Result<(), LabError> {
        let path = self.dir.join("samples.jsonl");
        let line = serde_json::to_string(&record).map_err(|e| LabError::file(&path, e))? + "\n";
        let file = volley_file::append(&path);
        let written = file.and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_data()
        });
        written.map_err(|e| LabError::file(&path, e))?;
        self.records.push(record);
        Ok(())
    }

    /// Write the lines of the records that remain: a resumed run begins with whole lines and without errors.
    fn rewrite(&self) -> Result<(), LabError> {
        let path = self.dir.join("samples.jsonl");
        let bad = |e: &dyn std::fmt::Display| LabError::file(&path, e);
        let mut text = String::new();
        for record in &self.records {
            text += &serde_json::to_string(record).map_err(|e| bad(&e))?;
            text.push('\n');
        }
        // The old file stays until the new one is complete.
        let new = self.dir.join("samples.jsonl.new");
        let written = volley_file::create(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|e| LabError::file(&new, e))?;
        std::fs::rename(&new, &path).map_err(|e| bad(&e))
    }

    fn failures(&self) -> Result<(), LabError> {
        let mut failed = self.records.iter().filter_map(|r| {
            let why = r.error.as_ref()?;
            Some(format!("{} {} {}: {why}", r.figure, r.series, r.label))
        });
        match failed.next() {
            None => Ok(()),
            Some(first) => Err(LabError::Points {
                count: 1 + failed.count(),
                first,
            }),
        }
    }

    /// Relative difference of the control points at the start and at the end; none if they were not measured.
    pub fn drift(&self) -> Option<f64> {
        let control = self.records.iter().filter(|r| r.series == CONTROL);
        let medians: Vec<f64> = control
            .filter_map(|r| crate::stats::Summary::of(r.samples.get("cycles")?))
            .map(|s| s.median)
            .collect();
        match medians[..] {
            [start, end] if start > 0.0 => Some((end / start - 1.0).abs()),
            _ => None,
        }
    }
}

/// Samples with six decimals: such numbers are the same after they were written and read.
fn rounded(mut samples: Samples) -> Samples {
    for sample in samples.values_mut().flatten() {
        *sample = (*sample * 1e6).round() / 1e6;
    }
    samples
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::level::Length;

    /// Samples about a number that depends on the arguments; counts the calls, and may stop the run or fail.
    #[derive(Default)]
    pub(crate) struct Synthetic {
        pub calls: usize,
        pub slower: f64,
        pub stop_after: Option<usize>,
        pub fail: bool,
    }

    static NEVER: AtomicBool = AtomicBool::new(false);

    impl Meter for (Synthetic, &AtomicBool) {
        fn measure(&mut self, args: &str, _: Length) -> Result<Samples, String> {
            self.0.calls += 1;
            if self.0.stop_after == Some(self.0.calls) {
                self.1.store(true, Ordering::Relaxed);
            }
            if self.0.fail && args.contains("uniform") {
                return Err("no memory".to_owned());
            }
            let mut random = fastrand::Rng::with_seed(self.0.calls as u64);
            let base = 20.0 + args.len() as f64;
            let mut of = |base: f64| -> Vec<f64> {
                (0..10)
                    .map(|_| base * (1.0 + 0.004 * random.f64()))
                    .collect()
            };
            let cycles = base * (1.0 + self.0.slower);
            Ok(Samples::from([
                ("mpps".to_owned(), of(1000.0 / cycles)),
                ("cycles".to_owned(), of(cycles)),
                ("core_cycles".to_owned(), of(cycles)),
                ("node ip4-input".to_owned(), vec![cycles]),
                ("node ip4-lookup".to_owned(), vec![2.0 * cycles]),
                ("share ip4-input".to_owned(), vec![33.0]),
                ("share ip4-lookup".to_owned(), vec![67.0]),
                ("vector_size".to_owned(), of(256.0)),
                ("speedup".to_owned(), vec![1.0]),
                ("path_cycles".to_owned(), of(cycles)),
                ("core_speed".to_owned(), vec![1.0]),
                ("undisturbed".to_owned(), vec![1.0]),
                ("instructions".to_owned(), vec![cycles]),
                ("ipc".to_owned(), of(2.0)),
                ("L1 instruction misses".to_owned(), vec![0.1]),
                ("L1 data misses".to_owned(), vec![0.2]),
                ("L2 misses".to_owned(), vec![0.1]),
                ("branch misses".to_owned(), vec![0.3]),
                ("minimum".to_owned(), of(1.0)),
                ("mean".to_owned(), of(2.0)),
                ("deviation".to_owned(), of(0.5)),
                ("median".to_owned(), of(1.5)),
                ("p90".to_owned(), of(2.5)),
                ("p99".to_owned(), of(3.0)),
                (format!("{}0.1", meter::TIME), of(1.2)),
                (format!("{}0.5", meter::TIME), of(1.5)),
                (format!("{}0.99", meter::TIME), of(3.0)),
                ("gbps".to_owned(), of(4.0)),
                ("per_ghz".to_owned(), of(4.0)),
                ("clocks".to_owned(), of(50.0)),
            ]))
        }
    }

    /// A new quick run of these figures, or of all.
    pub(crate) fn quick(dir: &Path, figures: &[&str]) -> Run {
        let figures: Vec<String> = figures.iter().map(|name| (*name).to_owned()).collect();
        Run::create(dir, &figures, Level::Quick, Options::default()).unwrap()
    }

    pub(crate) fn measured(dir: &Path, slower: f64) -> Run {
        let mut run = quick(dir, &[]);
        let synthetic = Synthetic {
            slower,
            ..Synthetic::default()
        };
        run.measure(&mut (synthetic, &NEVER), &NEVER).unwrap();
        run
    }

    #[test]
    fn an_interrupted_run_resumes_without_measuring_a_point_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        let stop = AtomicBool::new(false);
        let mut meter = (
            Synthetic {
                stop_after: Some(2),
                ..Synthetic::default()
            },
            &stop,
        );
        let error = run.measure(&mut meter, &stop).unwrap_err();
        assert!(
            matches!(error, LabError::Interrupted { left: 4, .. }),
            "{error}"
        );
        assert_eq!(error.status(), 130);
        // The process ended in the middle of a line.
        let path = dir.path().join("samples.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{\"figure\":\"vp").unwrap();

        let mut run = Run::read(dir.path()).unwrap();
        assert_eq!(run.records.len(), 2);
        let mut meter = (Synthetic::default(), &NEVER);
        run.measure(&mut meter, &NEVER).unwrap();
        assert_eq!(meter.0.calls, 4);
        assert!(Run::read(dir.path()).unwrap().records == run.records);
        assert!(run.drift().unwrap() < 0.01);
        run.measure(&mut meter, &NEVER).unwrap();
        assert_eq!(meter.0.calls, 4, "nothing is measured again");
    }

    #[test]
    fn a_run_is_not_continued_by_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let run = quick(dir.path(), &["vpp-9"]);
        let mut now = run.plan.environment;
        assert!(Run::read_in(dir.path(), &now).is_ok());
        let before = now.origin();
        now.version += "-next";
        let error = Run::read_in(dir.path(), &now).unwrap_err();
        assert_eq!(error.status(), 1);
        let text = error.to_string();
        for part in ["run.json", &before, &now.origin(), "volley-lab run --out"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_figure_that_is_named_twice_is_measured_once() {
        let dir = tempfile::tempdir().unwrap();
        let run = quick(dir.path(), &["vpp-9", "vpp-7", "vpp-9"]);
        assert_eq!(run.plan.figures, ["vpp-9", "vpp-7"]);
    }

    /// Takes long for each point, and notes the repetitions.
    struct Slow(Vec<usize>);

    impl Meter for Slow {
        fn measure(&mut self, _: &str, length: Length) -> Result<Samples, String> {
            std::thread::sleep(std::time::Duration::from_millis(100));
            self.0.push(length.repetitions);
            Ok(Samples::from([("cycles".to_owned(), vec![1.0])]))
        }
    }

    #[test]
    fn a_run_that_is_late_has_fewer_repetitions() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        let mut slow = Slow(Vec::new());
        run.measure_within(&mut slow, &NEVER, Some(0.25), None)
            .unwrap();
        let whole = Level::Quick.length();
        // The estimate exceeds the limit from the beginning.
        assert_eq!(slow.0, [whole.shorter().repetitions; 6]);
        assert!(run.records.iter().all(|r| r.is_shortened));
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        let mut slow = Slow(Vec::new());
        run.measure_within(&mut slow, &NEVER, None, None).unwrap();
        assert_eq!(slow.0, [whole.repetitions; 6]);
        assert!(run.records.iter().all(|r| !r.is_shortened));
    }

    #[test]
    fn points_behind_the_end_of_the_time_are_left_out_and_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        let mut meter = (Synthetic::default(), &NEVER);
        let error = run
            .measure_within(&mut meter, &NEVER, None, Some(0.0))
            .unwrap_err();
        assert_eq!(error.status(), 2);
        // Two control points and the generator.
        assert_eq!((run.records.len(), meter.0.calls), (6, 3));
        let left = run.records.iter().filter(|r| r.error.is_some());
        for record in left {
            let why = record.error.as_deref().unwrap();
            assert!(record.figure == "vpp-9" && record.samples.is_empty());
            assert!(why.contains("0 minutes: `volley-lab resume`"), "{why}");
        }
        let mut run = Run::read(dir.path()).unwrap();
        let hour = Some(3600.0);
        run.measure_within(&mut meter, &NEVER, hour, hour).unwrap();
        assert_eq!(meter.0.calls, 6);
        assert!(Level::Quick.end() == Level::Quick.limit() && Level::Smoke.end().is_none());
    }

    #[test]
    fn a_point_that_fails_is_reported_and_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = quick(dir.path(), &["vpp-9"]);
        let failing = Synthetic {
            fail: true,
            ..Synthetic::default()
        };
        let error = run.measure(&mut (failing, &NEVER), &NEVER).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1 of the points could not be measured, the first: vpp-9 IPv4 uniform: no memory"
        );
        assert_eq!(error.status(), 2);
        let mut meter = (Synthetic::default(), &NEVER);
        let mut run = Run::read(dir.path()).unwrap();
        run.measure(&mut meter, &NEVER).unwrap();
        assert_eq!(meter.0.calls, 1);
    }

    #[test]
    fn folders_and_names_that_cannot_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let error = Run::create(
            dir.path(),
            &["vpp-99".to_owned()],
            Level::Quick,
            Options::default(),
        )
        .unwrap_err();
        assert!(error.to_string().starts_with("no figure is named vpp-99"));
        Run::create(dir.path(), &[], Level::Quick, Options::default()).unwrap();
        let again = Run::create(dir.path(), &[], Level::Quick, Options::default()).unwrap_err();
        assert!(
            again.to_string().contains("run.json: the folder has a run"),
            "{again}"
        );
        std::fs::write(dir.path().join("samples.jsonl"), "{}\n").unwrap();
        let error = Run::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("line 1 is no record"), "{error}");
    }
}
