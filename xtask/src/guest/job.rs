//! The job of a guest: words that end with NUL, so no quoting or parsing is necessary.

use crate::error::Error;
use pico_args::Arguments;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const SECONDS: u64 = 600;
const USAGE: &str = "cargo xtask guest [--seconds N] -- PROGRAM [ARGS...]";

/// A program with its arguments, environment and time limit.
#[derive(Debug)]
pub struct Job {
    /// The program, searched in PATH, and its arguments.
    pub program: Vec<OsString>,
    /// The current folder.
    pub dir: PathBuf,
    /// `NAME=value`: the complete environment of the program.
    pub environment: Vec<OsString>,
    /// Time limit of the guest in seconds, boot included.
    pub seconds: u64,
}

impl Job {
    /// A job with the current folder and environment of this process.
    pub fn new(program: Vec<OsString>, seconds: u64) -> Result<Self, Error> {
        let own = std::env::vars_os().filter(|(name, _)| goes_along(&name.to_string_lossy()));
        let environment = own.map(|(mut pair, value)| {
            pair.push("=");
            pair.push(value);
            pair
        });
        Ok(Self {
            program,
            dir: std::env::current_dir().map_err(Error::file("."))?,
            environment: environment.collect(),
            seconds,
        })
    }

    /// Parses the command line: options come before `--`, the program after it.
    pub fn from_words(mut words: Vec<OsString>) -> Result<Self, Error> {
        let usage = |why: &str| Error::Usage(format!("{why}; it goes `{USAGE}`"));
        let Some(at) = words.iter().position(|word| word == "--") else {
            return Err(usage("`--` and a program behind it are missing"));
        };
        let program = words.split_off(at + 1);
        words.pop();
        let mut options = Arguments::from_vec(words);
        let seconds = options.opt_value_from_str("--seconds");
        let seconds = seconds.map_err(Error::usage)?.unwrap_or(SECONDS);
        if let Some(word) = options.finish().first() {
            let why = format!("`{}` was not understood", word.to_string_lossy());
            return Err(usage(&why));
        }
        if program.is_empty() {
            return Err(usage("no program behind `--`"));
        }
        Self::new(program, seconds)
    }

    /// Arguments for the guest's env(1), each terminated by NUL, which no argument can contain.
    pub fn words(&self) -> Vec<u8> {
        let dir = [
            OsString::from("-C"),
            self.dir.clone().into_os_string(),
            OsString::from("--"),
        ];
        let all = dir.iter().chain(&self.environment).chain(&self.program);
        let ended = all.map(|word| word.as_bytes().iter().copied().chain([0]));
        ended.flatten().collect()
    }
}

/// Whether a variable is passed on: many variables describe this machine and do not apply to the guest, and some are
/// private.
fn goes_along(name: &str) -> bool {
    let wanted = ["PATH", "HOME", "LANG", "USER"];
    wanted.contains(&name) || name.starts_with("RUST_") || name.starts_with("VOLLEY_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn parse(words: &[&str]) -> Result<Job, String> {
        let words = words.iter().map(OsString::from).collect();
        Job::from_words(words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_before_the_dashes_program_behind() {
        let job = parse(&["--seconds", "5", "--", "ip", "--seconds", "7", "--"]).unwrap();
        assert_eq!(job.seconds, 5);
        assert_eq!(job.program, ["ip", "--seconds", "7", "--"]);
        assert_eq!(parse(&["--", "true"]).unwrap().seconds, SECONDS);
        for (words, why) in [
            (&["true"][..], "are missing"),
            (&["--"], "no program"),
            (&["--fast", "--", "true"], "`--fast`"),
            (&["--seconds", "soon", "--", "true"], "soon"),
        ] {
            let message = parse(words).unwrap_err();
            assert!(message.contains(why), "{words:?}: {message}");
        }
    }

    #[test]
    fn the_words_arrive_as_they_are() {
        let odd = OsString::from_vec(b"\xff $(x) 'y' \"z\"\n\\".to_vec());
        let job = Job {
            program: vec!["echo".into(), odd, "".into()],
            dir: "/a b".into(),
            environment: vec!["HOME=/root".into()],
            seconds: 1,
        };
        let expected = b"-C\0/a b\0--\0HOME=/root\0echo\0\xff $(x) 'y' \"z\"\n\\\0\0";
        assert_eq!(job.words(), expected);
    }

    #[test]
    fn little_of_the_environment_goes_along() {
        assert!(goes_along("PATH") && goes_along("VOLLEY_SMALL") && goes_along("RUST_BACKTRACE"));
        assert!(!goes_along("PATHS") && !goes_along("SSH_AUTH_SOCK"));
    }
}
