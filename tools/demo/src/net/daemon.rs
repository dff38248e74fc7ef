//! A Volley between the namespaces: a daemon with a configuration file, started as by an operator, and its command line.

use super::error::NetError;
use super::hosts::{Hosts, Space};
use super::programs::{Programs, Started};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use volley_cli::client::Connection;

/// Maximum lifetime in seconds, so that a killed demo leaves no daemon for longer.
const LIFE_SECONDS: u64 = 600;
/// Maximum time in seconds for the start, and for a link.
const READY_SECONDS: u64 = 10;

/// A daemon, which ends when this is dropped.
pub struct Daemon {
    process: Started,
    control: Connection,
    programs: Programs,
}

impl Daemon {
    /// Start a daemon in the middle namespace with the interfaces of `config` and its files in `folder`.
    pub fn start(
        hosts: &Hosts,
        programs: &Programs,
        folder: PathBuf,
        config: &str,
    ) -> Result<Self, NetError> {
        let io = |path: &PathBuf| {
            let path = path.clone();
            move |source| NetError::Io { path, source }
        };
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        let (file, socket) = (folder.join("volley.toml"), folder.join("control"));
        std::fs::write(&file, config).map_err(io(&file))?;
        let program = std::env::current_exe().map_err(io(&PathBuf::from("volley")))?;
        let words = [
            &program.display().to_string(),
            "run",
            "-c",
            &file.display().to_string(),
            "--socket",
            &socket.display().to_string(),
        ];
        let mut process = hosts.start(Space::Middle, LIFE_SECONDS, &words)?;
        let end = Instant::now() + Duration::from_secs(READY_SECONDS);
        let control = loop {
            if let Ok(control) = Connection::open(&socket) {
                break control;
            }
            if !process.is_running() {
                let (_, message, _) = process.outputs();
                let last = message.trim().lines().last().unwrap_or("no message");
                return Err(NetError::Volley(last.trim_start_matches("volley: ").into()));
            }
            if Instant::now() > end {
                let why = format!("its socket does not answer after {READY_SECONDS} s");
                return Err(NetError::Volley(why));
            }
            programs.pause(Duration::from_millis(20))?;
        };
        let programs = programs.clone();
        Ok(Daemon {
            process,
            control,
            programs,
        })
    }

    /// Execute a command.
    pub fn line(&mut self, line: &str) -> Result<(), NetError> {
        if !self.process.is_running() {
            return Err(NetError::Volley("it has ended".into()));
        }
        self.control.exec(line, false)?;
        Ok(())
    }

    /// Patch two interfaces together, in both directions.
    pub fn patch(&mut self, a: &str, b: &str) -> Result<(), NetError> {
        self.line(&format!("test l2patch rx {a} tx {b}"))?;
        self.line(&format!("test l2patch rx {b} tx {a}"))
    }

    /// Wait until an interface passes packets.
    pub fn link(&mut self, name: &str) -> Result<(), NetError> {
        let end = Instant::now() + Duration::from_secs(READY_SECONDS);
        loop {
            let line = format!("show interfaces {name}");
            let data = self.control.exec(&line, true)?.data.unwrap_or_default();
            let rows = data["interfaces"].as_array();
            let row = rows.and_then(|rows| rows.first());
            if row.is_some_and(|row| row["link"] == "up") {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(NetError::NoLink {
                    name: name.to_owned(),
                    seconds: READY_SECONDS,
                    why: row
                        .and_then(|row| row["link_reason"].as_str())
                        .unwrap_or("it does not say why")
                        .to_owned(),
                });
            }
            self.programs.pause(Duration::from_millis(20))?;
        }
    }
}
