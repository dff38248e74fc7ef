//! Runs programs: with a time limit, without stdin, with their output kept or shown.

use crate::error::Error;
use crate::home::Home;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Result of a program.
pub struct Output {
    /// Whether the program ended with 0, in time.
    pub ok: bool,
    /// `exit code 1`, `signal 11`, `no end after 60 s`.
    pub ending: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Time from start to end.
    pub took: Duration,
}

/// A command line under construction.
pub struct Program {
    command: Command,
    text: String,
    limit: Duration,
}

/// The cargo that runs this program, else the one in PATH.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

impl Program {
    /// A program that runs in the checkout's folder, for at most half an hour.
    pub fn new(home: &Home, program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&home.root).stdin(Stdio::null());
        // `cargo run` describes xtask in the environment. A cargo that inherits it would rebuild each crate whose build
        // script reads such a variable (ring), and the next cargo of the user's shell would rebuild it again without.
        let of_xtask = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| of_xtask(name)) {
            command.env_remove(name);
        }
        Self {
            command,
            text: program.as_ref().to_string_lossy().into_owned(),
            limit: Duration::from_secs(1800),
        }
    }

    /// Cargo.
    pub fn cargo(home: &Home) -> Self {
        Self::new(home, cargo()).of_cargo()
    }

    /// Cargo, started by another program, which gets these arguments first.
    pub fn cargo_by(home: &Home, program: &str, args: &[&str]) -> Self {
        Self::new(home, program).args(args).arg(cargo()).of_cargo()
    }

    /// Disables incremental compilation: a single build is faster and smaller without it.
    fn of_cargo(self) -> Self {
        self.env("CARGO_INCREMENTAL", "0")
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg.as_ref());
        self.text = format!("{} {}", self.text, arg.as_ref().to_string_lossy());
        self
    }

    /// Adds arguments.
    pub fn args<T: AsRef<OsStr>>(self, args: impl IntoIterator<Item = T>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Sets the folder that the program runs in.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Sets the time limit, after which the program is killed.
    pub fn limit_seconds(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs the program to its end and keeps its output. Fails only if the program cannot be started.
    pub fn output(mut self) -> Result<Output, Error> {
        // Files instead of pipes: a child with much output never blocks, and no thread is needed to empty a pipe.
        let mut out = scratch_file()?;
        let mut err = scratch_file()?;
        self.command
            .stdout(duplicate(&out)?)
            .stderr(duplicate(&err)?);
        let started = Instant::now();
        let ending = self.wait(started)?;
        Ok(Output {
            ok: ending == "exit code 0",
            ending,
            stdout: text_of(&mut out)?,
            stderr: text_of(&mut err)?,
            took: started.elapsed(),
        })
    }

    /// Runs the program to its end and requires success; the reason of a failure is the last lines of its output.
    pub fn require(self) -> Result<Output, String> {
        let text = self.text.clone();
        let output = self.output().map_err(|error| error.to_string())?;
        if output.ok {
            Ok(output)
        } else {
            Err(format!("`{text}`: {}\n{}", output.ending, output.tail(30)))
        }
    }

    fn wait(&mut self, started: Instant) -> Result<String, Error> {
        use std::os::unix::process::ExitStatusExt;
        let refuse = |text: &str, reason: std::io::Error| Error::Command {
            command: text.to_owned(),
            reason: reason.to_string(),
        };
        let mut child = self
            .command
            .spawn()
            .map_err(|error| refuse(&self.text, error))?;
        loop {
            if let Some(status) = child
                .try_wait()
                .map_err(|error| refuse(&self.text, error))?
            {
                return Ok(match (status.code(), status.signal()) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, signal) => format!("signal {}", signal.unwrap_or(0)),
                });
            }
            if started.elapsed() > self.limit {
                // A failure to kill means that the program has ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(format!("no end after {} s", self.limit.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Output {
    /// The last lines of the output, stderr after stdout.
    pub fn tail(&self, lines: usize) -> String {
        let all: Vec<&str> = self.stdout.lines().chain(self.stderr.lines()).collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Whether the program exists on this machine.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn scratch_file() -> Result<File, Error> {
    let dir = std::env::temp_dir();
    // The name is removed at once; only the open file remains, so nothing must be cleaned up.
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = dir.join(format!("volley-xtask-{}-{number}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(Error::file(&path))?;
    std::fs::remove_file(&path).map_err(Error::file(&path))?;
    Ok(file)
}

fn duplicate(file: &File) -> Result<Stdio, Error> {
    Ok(Stdio::from(
        file.try_clone().map_err(Error::file("temporary file"))?,
    ))
}

fn text_of(file: &mut File) -> Result<String, Error> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .map_err(Error::file("temporary file"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new(&Home::find().unwrap(), "sh")
            .arg("-c")
            .arg(script)
    }

    #[test]
    fn keeps_output_and_ending() {
        let output = shell("echo out; echo err >&2; exit 3").output().unwrap();
        assert!(!output.ok);
        assert_eq!(
            (
                output.stdout.as_str(),
                output.stderr.as_str(),
                output.ending.as_str()
            ),
            ("out\n", "err\n", "exit code 3")
        );
        assert_eq!(output.tail(1), "err");
    }

    #[test]
    fn inherits_nothing_that_describes_xtask() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let names = shell("env").output().unwrap().stdout;
        let mut left = names
            .lines()
            .filter(|line| line.starts_with("CARGO_MANIFEST_") || line.starts_with("CARGO_PKG_"));
        assert_eq!(left.next(), None);
    }

    #[test]
    fn has_no_stdin_and_ends_in_time() {
        assert_eq!(shell("cat").output().unwrap().stdout, "");
        let output = shell("sleep 20").limit_seconds(0).output().unwrap();
        assert_eq!(
            (output.ok, output.ending.as_str()),
            (false, "no end after 0 s")
        );
        assert!(output.took < Duration::from_secs(10));
    }

    #[test]
    fn names_the_signal_and_the_missing_program() {
        assert_eq!(shell("kill -9 $$").output().unwrap().ending, "signal 9");
        let error = Program::new(&Home::find().unwrap(), "no-such-program")
            .arg("x")
            .require()
            .err()
            .unwrap();
        assert!(error.contains("no-such-program x"), "{error}");
        assert!(exists("sh") && !exists("no-such-program"));
    }
}
