//! What the daemon starts with: the last commit that holds, else the configuration file.

use super::backend::Daemon;
use super::commits::{now_s, parted};
use super::{Args, RunError};
use std::path::PathBuf;
use tracing::{error, info, warn};
use volley_config::Config;
use volley_control::journal::{Commit, Folder, Journal};
use volley_control::{State, TransactionError};
use volley_model::{Client, EngineSettings, ModelError, Request, Via};

/// What was found at start.
pub struct Found {
    /// Settings of the engine.
    pub engine: EngineSettings,
    /// Those that a commit carries along.
    pub carried: Option<EngineSettings>,
    /// The file's requests.
    pub file: Option<Vec<Request>>,
    /// Commits to try, the one that holds first.
    pub commits: Vec<Commit>,
    /// Where they are kept.
    pub journal: Option<Journal<Folder>>,
    /// A commit whose time to be confirmed has passed, and the one before it.
    pub lapsed: Option<(Option<u64>, Option<u64>)>,
    /// The seed of MAC addresses, and a warning about it; none = the engine's seed.
    pub mac_seed: Option<(u64, Option<String>)>,
}

impl Found {
    /// Reads the state directory and the file. The engine's settings are the command line's, else the file's, else the
    /// commit's.
    pub fn look(args: &Args) -> Result<Found, RunError> {
        let folder = args.state_dir.clone().or_else(system_folder);
        let mut journal = folder
            .clone()
            .map(Folder::open)
            .transpose()?
            .map(Journal::open)
            .transpose()?;
        let lapsed = journal.as_mut().map_or(Ok(None), lapse)?;
        let usable = |journal| usable(journal, args.fallback);
        let commits = journal.as_ref().map_or(Ok(Vec::new()), usable)?;
        let file = args
            .config
            .as_deref()
            .map(volley_config::load)
            .transpose()?;
        if file.is_none() && commits.is_empty() && journal.is_none() {
            return Err(RunError::Nothing);
        }
        let carried = commits.first().and_then(|c| c.about.engine.clone());
        let (of_file, file) = match file {
            Some(Config { engine, requests }) => (Some(engine), Some(requests)),
            None => (None, None),
        };
        let mut engine = of_file.or_else(|| carried.clone()).unwrap_or_default();
        args.settle(&mut engine);
        let own = engine.seed.is_none();
        let mac_seed = own.then(|| super::identity::mac_seed(folder.as_deref()));
        Ok(Found {
            mac_seed,
            engine,
            carried,
            file,
            commits,
            journal,
            lapsed,
        })
    }
}

/// The folder that systemd makes for a unit with `StateDirectory=`.
fn system_folder() -> Option<PathBuf> {
    let all = std::env::var_os("STATE_DIRECTORY")?;
    let first = all.to_str()?.split(':').next()?;
    (!first.is_empty()).then(|| first.into())
}

/// A commit that was to be confirmed until a time that has passed is rolled back: its number, and that of the one before.
#[expect(
    clippy::type_complexity,
    reason = "two commits, either of which may be none"
)]
fn lapse(journal: &mut Journal<Folder>) -> Result<Option<(Option<u64>, Option<u64>)>, RunError> {
    if journal.head().confirm_by.is_none_or(|by| now_s() < by) {
        return Ok(None);
    }
    let lapsed = journal.head().current;
    Ok(Some((lapsed, journal.go_back(now_s())?)))
}

/// The commits to try: the active one, then those before it, which `fallback` allows.
fn usable(journal: &Journal<Folder>, fallback: bool) -> Result<Vec<Commit>, RunError> {
    let head = journal.head().clone();
    let Some(current) = head.current else {
        return Ok(Vec::new());
    };
    // The commit that waits is followed by the one it would go back to.
    let last = if head.confirm_by.is_some() {
        head.before.unwrap_or(0)
    } else {
        current - 1
    };
    let earlier = journal.numbers().iter().rev().filter(|n| **n <= last);
    let mut earlier = earlier.filter_map(|n| journal.commit(*n).ok()).peekable();
    let damaged = || ModelError::invalid("its file", "it is missing or damaged");
    let active = match (journal.commit(current), fallback) {
        (Ok(commit), _) => Some(commit),
        (Err(_), true) => {
            warn!(target: "config", commit = current, "the active commit {current} is not applied: {}", damaged());
            None
        }
        (Err(_), false) => {
            return Err(RunError::Restore {
                place: journal.place(),
                number: current,
                error: Box::new(damaged()),
                earlier: earlier.peek().map(|commit| commit.number),
            });
        }
    };
    Ok(active.into_iter().chain(earlier).take(4).collect())
}

/// Log what an operator should know of the configuration.
fn log_warnings(notes: &[String]) {
    for text in notes.iter().filter_map(|n| n.strip_prefix("warning: ")) {
        warn!(target: "config", "{text}");
    }
}

impl Daemon {
    /// Brings in force what was found.
    pub async fn begin_with(
        &self,
        args: &Args,
        file: Option<Vec<Request>>,
        commits: Vec<Commit>,
        confirm_by: Option<u64>,
    ) -> Result<(), RunError> {
        let client = Client::internal(Via::Start);
        let (requests, observations) = parted(file.unwrap_or_default());
        if commits.is_empty() {
            let refused = |error| RunError::Refused {
                file: args.config.clone().unwrap_or_default(),
                error: Box::new(error),
            };
            // All of it or nothing, in order of dependence; streams send when captures are there to see them.
            let sends = |r: &Request| matches!(r, Request::StreamEnable { .. });
            let (last, first) = requests.into_iter().partition(sends);
            let (applied, _) = self.change(first, &client).await.map_err(refused)?;
            log_warnings(&applied.notes);
            for request in observations {
                self.change(vec![request], &client).await.map_err(refused)?;
            }
            self.change(last, &client).await.map_err(refused)?;
            self.commits.set_initial(self.core.borrow().state().clone());
            return Ok(());
        }
        // Where the way back ends when there is no commit before the one that waits.
        let initial = volley_control::Core::state_of(&requests).unwrap_or_default();
        self.commits.set_initial(initial);
        let mut first: Option<(u64, ModelError)> = None;
        for (i, commit) in commits.iter().enumerate() {
            match self.restore(commit).await {
                Ok(()) => {
                    self.report(args, commit, first.as_ref().map(|(number, _)| *number));
                    // Only the commit that waits is taken back.
                    self.commits.wait_until(confirm_by.filter(|_| i == 0));
                    return Ok(());
                }
                Err(error) => {
                    error!(target: "config", commit = commit.number, "commit {} cannot be applied: {error}", commit.number);
                    first.get_or_insert((commit.number, error));
                    if !args.fallback {
                        break;
                    }
                }
            }
        }
        let (number, error) = first.unwrap_or((0, ModelError::Config { errors: Vec::new() }));
        let earlier = commits.get(1).filter(|_| !args.fallback);
        Err(RunError::Restore {
            place: args
                .state_dir
                .clone()
                .or_else(system_folder)
                .unwrap_or_default(),
            number,
            error: Box::new(error),
            earlier: earlier.map(|commit| commit.number),
        })
    }

    async fn restore(&self, commit: &Commit) -> Result<(), ModelError> {
        let wanted: Result<State, TransactionError> =
            volley_control::Core::state_of(&commit.requests);
        let wanted = wanted.map_err(TransactionError::into_model)?;
        let _turn = self.turn.lock().await;
        let client = Client::internal(Via::Start);
        let (_, notes) = self.become_state(&wanted, &client).await?;
        log_warnings(&notes);
        Ok(())
    }

    /// What is in force now, instead of the commit `failed` where there is one.
    fn report(&self, args: &Args, commit: &Commit, failed: Option<u64>) {
        let number = commit.number;
        if let Some(failed) = failed {
            warn!(target: "config", commit = number, "commit {number} is in force, NOT commit {failed}, which `config history` shows as the active one: remove the cause, then apply it by `config rollback {failed}`");
            return;
        }
        let differs = !self
            .commits
            .is_initial(&self.core.borrow().state().lasting());
        let file = args.config.as_ref().map_or_else(String::new, |file| {
            let file = file.display();
            let apply = match differs {
                true => format!(
                    "; it differs from the commit, and `volley config commit {file}` applies it"
                ),
                false => String::new(),
            };
            format!("; {file} gives the [engine] settings only{apply}")
        });
        info!(target: "config", commit = number, "commit {number} is in force{file}");
    }
}
