//! A daemon that runs graphs: one that is there, or one of this program.

use crate::Host;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use volley_cli::client::{ClientError, Connection};

/// The longest time until a daemon serves its socket.
const START: Duration = Duration::from_secs(20);
/// The longest time until a daemon has ended.
const END: Duration = Duration::from_secs(20);
/// Time between two looks at a daemon that starts or ends.
const LOOK: Duration = Duration::from_millis(20);

/// Why there is no router.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// A file or program cannot be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The daemon runs a graph that is not of this program.
    #[error(
        "{socket}: the daemon runs the graph {graph}: remove it by `delete click graph`, or start another daemon"
    )]
    Runs {
        /// The daemon's control socket.
        socket: String,
        /// The file of its graph.
        graph: String,
    },
    /// The daemon cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Where the graph runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Control socket of a daemon that runs; none: the program starts a daemon.
    pub socket: Option<PathBuf>,
    /// The program `volley`, which is started.
    pub volley: PathBuf,
    /// Configuration of the daemon that is started.
    pub config: Option<PathBuf>,
}

/// A daemon, and the file of the graph that it runs.
pub struct Router {
    options: Options,
    folder: TempDir,
    child: Option<Child>,
    connection: Option<Connection>,
    /// The graph of the file, which the daemon runs.
    running: Option<String>,
}

impl Router {
    /// A router that runs no graph yet. Nothing is started before the first graph.
    pub fn new(options: Options) -> Result<Router, RouterError> {
        let folder = TempDir::with_prefix("volley-snabb-");
        let folder = folder.map_err(|why| file_error(&std::env::temp_dir(), why))?;
        // The daemon may be of another user.
        let open = fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755));
        open.map_err(|why| file_error(folder.path(), why))?;
        Ok(Router {
            options,
            folder,
            child: None,
            connection: None,
            running: None,
        })
    }

    fn graph(&self) -> PathBuf {
        self.folder.path().join("graph.click")
    }

    /// Write the file of the graph. The daemon never reads half a file.
    fn save(&self, text: &str) -> Result<(), RouterError> {
        let (new, file) = (self.folder.path().join("new"), self.graph());
        let written = volley_file::create(&new)
            .and_then(|mut out| out.write_all(text.as_bytes()))
            .and_then(|()| fs::set_permissions(&new, PermissionsExt::from_mode(0o644)))
            .and_then(|()| fs::rename(&new, &file));
        written.map_err(|why| file_error(&file, why))
    }

    fn exec(&mut self, line: &str) -> Result<String, RouterError> {
        self.reply(line, false)
    }

    fn reply(&mut self, line: &str, json: bool) -> Result<String, RouterError> {
        if self.connection.is_none() {
            let socket = self.socket();
            self.connection = Some(Connection::open(&socket)?);
        }
        match &mut self.connection {
            Some(connection) => Ok(connection.exec(line, json)?.text),
            None => Ok(String::new()),
        }
    }

    fn socket(&self) -> PathBuf {
        let own = || self.folder.path().join("socket");
        self.options.socket.clone().unwrap_or_else(own)
    }

    /// Start a daemon, and wait until it serves its socket.
    fn start(&mut self) -> Result<(), RouterError> {
        let program = &self.options.volley;
        let mut command = Command::new(program);
        command.arg("run");
        // A daemon needs a configuration, which may be empty.
        let empty = self.folder.path().join("volley.toml");
        volley_file::create(&empty).map_err(|why| file_error(&empty, why))?;
        let config = self.options.config.as_ref().unwrap_or(&empty);
        command.arg("-c").arg(config);
        command.arg("--socket").arg(self.socket());
        command.args(["--log", "warn"]);
        command.stdin(Stdio::null());
        let child = command.spawn().map_err(|why| file_error(program, why))?;
        self.child = Some(child);
        let start = Instant::now();
        loop {
            let opened = Connection::open(&self.socket());
            let has_ended = match &mut self.child {
                Some(child) => !matches!(child.try_wait(), Ok(None)),
                None => true,
            };
            match opened {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) if has_ended || start.elapsed() > START => return Err(error.into()),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    /// Refuse a daemon that runs another graph.
    fn check_free(&mut self) -> Result<(), RouterError> {
        let reply = self.reply("show click", true)?;
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap_or_default();
        match reply["graph"].as_str() {
            None => Ok(()),
            Some(graph) => Err(RouterError::Runs {
                socket: self.socket().display().to_string(),
                graph: graph.to_owned(),
            }),
        }
    }

    fn replace(&mut self, text: &str) -> Result<(), RouterError> {
        if self.options.socket.is_none() && self.child.is_none() {
            self.start()?;
        }
        if self.options.socket.is_some() && self.running.is_none() {
            self.check_free()?;
        }
        self.save(text)?;
        let line = match self.running {
            Some(_) => "click reload".to_owned(),
            None => format!("set click graph {}", self.graph().display()),
        };
        if let Err(why) = self.exec(&line) {
            // The file is that of the graph that goes on.
            if let Some(before) = &self.running {
                self.save(before)?;
            }
            return Err(why);
        }
        self.running = Some(text.to_owned());
        Ok(())
    }

    /// End: the graph is removed, and a daemon of this program ends.
    pub fn close(mut self) -> Result<(), RouterError> {
        if self.running.take().is_some() {
            self.exec("delete click graph")?;
        }
        Ok(())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if self.running.is_some() {
            // A daemon that has ended has no graph.
            let _ = self.exec("delete click graph");
        }
        if let Some(mut child) = self.child.take() {
            // The number of a process that has ended may be that of another one.
            if matches!(child.try_wait(), Ok(None)) {
                let id = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            }
            let start = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && start.elapsed() < END {
                std::thread::sleep(LOOK);
            }
            // Without effect on a daemon that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Host for Router {
    fn configure(&mut self, text: &str) -> Result<(), String> {
        self.replace(text).map_err(|why| why.to_string())
    }

    fn read(&mut self, handler: &str) -> Result<String, String> {
        let line = format!("show click {handler}");
        let text = self.exec(&line).map_err(|why| why.to_string())?;
        Ok(text.trim_end().to_owned())
    }

    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let line = format!("click write {handler} {value}");
        self.exec(&line).map(drop).map_err(|why| why.to_string())
    }
}

fn file_error(path: &Path, why: std::io::Error) -> RouterError {
    RouterError::File {
        path: path.display().to_string(),
        why,
    }
}
