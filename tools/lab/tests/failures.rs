//! Failures of a run: each has its reason in the report and its exit status, and nothing is left behind.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest time of anything that is waited for.
const LIMIT: Duration = Duration::from_secs(100);

/// The program, with temporary files in a folder of the test.
struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Lab { folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn environment(&self, command: &mut Command) {
        command.env("TMPDIR", self.folder.path().join("tmp"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volley-lab"));
        command.args(words);
        self.environment(&mut command);
        command
    }

    /// `run` of figures into the folder.
    fn run(&self, words: &[&str]) -> Command {
        let mut command = self.command(&["run"]);
        command.args(words).arg("--out").arg(self.out());
        command
    }

    fn report(&self) -> String {
        std::fs::read_to_string(self.out().join("report.html")).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.out().join("samples.jsonl"));
        let text = text.unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Files for measurements, and command lines of processes of this test.
    fn left(&self) -> Vec<String> {
        let tmp = self.folder.path().join("tmp");
        let files = std::fs::read_dir(&tmp).unwrap().flatten();
        let files = files.map(|file| file.path().display().to_string());
        let tmp = tmp.display().to_string();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.map(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        });
        files
            .chain(lines.filter(|line| line.contains(&tmp)))
            .collect()
    }

    fn is_clean(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Wait until a closure gives a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "no {what} in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(name: &str, process: u32) {
    let kill = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// The process of the switch that a run has started, once it forwards.
fn switch(lab: &Lab, run: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    until("switch", || {
        let all = std::fs::read_to_string(&children).ok()?;
        let found = all.split_whitespace().find(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("\0router\0")
        })?;
        // Its sockets are made before it forwards.
        let folders = std::fs::read_dir(lab.folder.path().join("tmp")).ok()?;
        let made = folders.flatten().any(|f| f.path().join("1.sock").exists());
        made.then(|| found.parse().ok()).flatten()
    })
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

#[test]
fn an_interrupted_run_says_so_and_resumes() {
    let lab = Lab::new();
    let run = lab.run(&["vpp-7", "vpp-9", "--quick"]).spawn();
    let run = run.unwrap();
    until("point", || (!lab.lines().is_empty()).then_some(()));
    signal("INT", run.id());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(text(&output).contains("volley-lab resume "));
    let before = lab.lines();
    assert!(
        lab.report()
            .contains("No point of this figure was measured.")
    );
    lab.is_clean();
    let mut resume = lab.command(&["resume"]);
    let output = resume.arg(lab.out()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let after = lab.lines();
    // Three control points, and those of the figures.
    assert_eq!(after.len(), 3 + 4 + 3);
    assert_eq!(after[..before.len()], before[..]);
    lab.is_clean();
}

#[test]
fn a_second_interrupt_ends_the_run_at_once_and_leaves_nothing() {
    let lab = Lab::new();
    // A valgrind that does not end.
    let bin = lab.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nexec tail -f \"$TMPDIR/../bin/valgrind\"\n";
    std::fs::write(bin.join("valgrind"), script).unwrap();
    std::fs::set_permissions(bin.join("valgrind"), Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut run = lab.run(&["vpp-6b", "--smoke"]);
    run.env("PATH", format!("{}:{path}", bin.display()));
    let mut run = run.spawn().unwrap();
    let is_tail = |line: &String| line.starts_with("tail ");
    until("valgrind", || lab.left().iter().any(is_tail).then_some(()));
    signal("INT", run.id());
    // The first one waits for the end of the point.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(run.try_wait().unwrap(), None);
    // Without a handler, it would end without its status and leave its files.
    signal("TERM", run.id());
    let status = until("end", || run.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    // The lab has not waited for its processes.
    until("end of valgrind", || lab.left().is_empty().then_some(()));
    // The first control point and the generator.
    assert_eq!(lab.lines().len(), 2);
}

#[test]
fn a_switch_that_dies_is_reported() {
    let lab = Lab::new();
    let run = lab.run(&["switch-p2p", "--smoke"]).spawn().unwrap();
    signal("KILL", switch(&lab, &run));
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let report = lab.report();
    assert!(
        report.contains("Not measured: memif, one way 64: "),
        "{report}"
    );
    assert!(report.contains("the switch ended"), "{report}");
    lab.is_clean();
}

#[test]
fn a_switch_that_hangs_is_reported_and_ended() {
    let lab = Lab::new();
    let run = lab.run(&["switch-p2p", "--smoke"]).spawn().unwrap();
    let switch = switch(&lab, &run);
    signal("STOP", switch);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let report = lab.report();
    let reasons = ["no packet came back", "was not ready after", "the link "];
    assert!(reasons.iter().any(|why| report.contains(why)), "{report}");
    assert!(!Path::new(&format!("/proc/{switch}")).exists());
    lab.is_clean();
}

#[test]
fn a_full_disk_ends_the_run_with_a_sentence() {
    let lab = Lab::new();
    if !is_root() {
        eprintln!("skipped: a file system of a given size can be mounted by root only");
        return;
    }
    // Room for the first file of a run, and not for the samples of all points.
    let script = format!(
        "mount -t tmpfs -o size=8k none \"$1\" && exec '{}' run vpp-7 --smoke --out \"$1/run\"",
        env!("CARGO_BIN_EXE_volley-lab")
    );
    let small = lab.folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", &script, "sh"]);
    command.arg(&small);
    lab.environment(&mut command);
    let output = command.output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    assert!(text.contains(&small.display().to_string()), "{text}");
    lab.is_clean();
}

#[test]
fn without_root_the_report_says_what_is_left_out() {
    let lab = Lab::new();
    let program = env!("CARGO_BIN_EXE_volley-lab");
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let by_user = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(user).args(words);
        command
    };
    let mut command = match is_root() {
        true => by_user(&[program]),
        false => Command::new(program),
    };
    // The lab starts itself as a switch, which needs the right to each folder of the path.
    let look = by_user(&["test", "-x", program]).status();
    if is_root() && !look.unwrap().success() {
        eprintln!("skipped: another user may not start {program}");
        return;
    }
    let all = Permissions::from_mode(0o777);
    let folder = lab.folder.path();
    std::fs::set_permissions(folder, all.clone()).unwrap();
    std::fs::set_permissions(folder.join("tmp"), all).unwrap();
    command.args(["run", "switch-p2p", "--smoke", "--out"]);
    command.arg(lab.out());
    lab.environment(&mut command);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = lab.report();
    assert!(report.contains("This user may not make network namespaces"));
    assert!(report.contains("huge pages "), "{report}");
    lab.is_clean();
}

#[test]
fn without_other_programs_the_report_names_what_is_missing() {
    let lab = Lab::new();
    let mut run = lab.run(&["vpp-6b", "vpp-12", "--smoke"]);
    let output = run.env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let report = lab.report();
    assert!(report.contains("valgrind is not installed"), "{report}");
    assert!(
        report.contains("no program dpdk-testpmd in PATH"),
        "{report}"
    );
    lab.is_clean();
}
