//! The initial configuration of the daemon: the active commit, else the configuration file.

use super::backend::Daemon;
use super::commits::{now_s, parted};
use super::{Args, RunError};
use crate::settings::Settings;
use std::path::{Path, PathBuf};
use tracing::{error, info, warn};
use volley_click::ClickGraph;
use volley_config::Config;
use volley_control::journal::{Commit, Folder, Journal};
use volley_control::{State, TransactionError};
use volley_model::{Client, ModelError, Request, Via};
use volley_object::Startup;

/// What was found at start.
pub struct Found {
    /// The settings that are read at start, overridden by the command line.
    pub settings: Settings,
    /// The same settings without the command line.
    pub read: Startup,
    /// The settings that a commit contains.
    pub carried: Option<Startup>,
    /// The file's requests.
    pub file: Option<Vec<Request>>,
    /// Commits to try, the active one first.
    pub commits: Vec<Commit>,
    /// The request for the graph of the command line.
    pub graph: Option<Request>,
    /// The journal of commits.
    pub journal: Option<Journal<Folder>>,
    /// A commit whose deadline for confirmation has passed, and the one before it.
    pub lapsed: Option<(Option<u64>, Option<u64>)>,
    /// The seed of MAC addresses, and a warning about it; none = the engine's seed.
    pub mac_seed: Option<(u64, Option<String>)>,
    /// Sentences about damage that was found.
    pub notes: Vec<String>,
}

impl Found {
    /// Reads the state directory and the file. The settings of the start are the command line's, else the file's, else
    /// the commit's.
    pub fn look(args: &Args) -> Result<Found, RunError> {
        let folder = args.state_dir.clone().or_else(system_folder);
        let open = match args.fallback {
            true => Journal::open_anyway,
            false => Journal::open,
        };
        let disk = folder.clone().map(Folder::open).transpose()?;
        let mut journal = disk.map(open).transpose()?;
        let mut notes = journal.as_ref().map_or(Vec::new(), |j| j.notes().to_vec());
        let lapsed = journal.as_mut().and_then(|j| lapse(j, &mut notes));
        let usable = |journal| usable(journal, args, &mut notes);
        let commits = journal.as_ref().map_or(Ok(Vec::new()), usable)?;
        let file = args
            .config
            .as_deref()
            .map(volley_config::load)
            .transpose()?;
        let graph = args.graph.as_deref().map(graph).transpose()?;
        if file.is_none() && graph.is_none() && commits.is_empty() && journal.is_none() {
            return Err(RunError::Nothing);
        }
        let carried = commits.first().and_then(|c| c.about.startup.clone());
        let (of_file, file) = match file {
            Some(Config { startup, requests }) => (Some(startup), Some(requests)),
            None => (None, None),
        };
        let read = of_file.or_else(|| carried.clone()).unwrap_or_default();
        let mut settings = Settings::of(&read);
        args.settle(&mut settings);
        let own = settings.engine.seed.is_none();
        let mac_seed = own.then(|| super::identity::mac_seed(folder.as_deref()));
        Ok(Found {
            mac_seed,
            settings,
            read,
            carried,
            file,
            commits,
            graph,
            journal,
            lapsed,
            notes,
        })
    }
}

/// The request for the graph of the command line.
fn graph(path: &Path) -> Result<Request, RunError> {
    let wrong = |why: String| RunError::GraphName {
        file: path.to_owned(),
        why,
    };
    let graph = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
    Request::set(&ClickGraph { graph }).map_err(|error| wrong(error.to_string()))
}

/// The state directory of systemd for a unit with `StateDirectory=`.
fn system_folder() -> Option<PathBuf> {
    let all = std::env::var_os("STATE_DIRECTORY")?;
    let first = all.to_str()?.split(':').next()?;
    (!first.is_empty()).then(|| first.into())
}

/// A commit and the one before it.
type Lapse = (Option<u64>, Option<u64>);

/// Rolls back a commit whose deadline for confirmation has passed; returns its number, and that of the commit before.
fn lapse(journal: &mut Journal<Folder>, notes: &mut Vec<String>) -> Option<Lapse> {
    if journal.head().confirm_by.is_none_or(|by| now_s() < by) {
        return None;
    }
    let (lapsed, before) = (journal.head().current, journal.head().before);
    // The commit is not applied even if the disk cannot record that; the disk is tried again later.
    if let Err(error) = journal.go_back(now_s()) {
        notes.push(error.to_string());
    }
    Some((lapsed, before))
}

/// The commits to try: the active one, and with `--fallback` those before it.
fn usable(
    journal: &Journal<Folder>,
    args: &Args,
    notes: &mut Vec<String>,
) -> Result<Vec<Commit>, RunError> {
    let Some(current) = journal.head().current else {
        // An operator who falls back to the file names one.
        match args.config {
            Some(_) => return Ok(Vec::new()),
            None => return Ok(journal.is_lost().map(|()| Vec::new())?),
        }
    };
    let earlier = |most| journal.before(current).take(most);
    let active = match journal.commit(current) {
        Ok(active) if args.fallback => return Ok([active].into_iter().chain(earlier(3)).collect()),
        Ok(active) => return Ok(vec![active]),
        Err(damaged) => damaged,
    };
    let instead: Vec<Commit> = earlier(if args.fallback { 4 } else { 1 }).collect();
    let number = instead.first().map(|commit| commit.number);
    if !args.fallback || (instead.is_empty() && args.config.is_none()) {
        return Err(RunError::Damaged {
            place: journal.place(),
            number: current,
            error: active,
            earlier: number,
        });
    }
    let instead_of = match number {
        Some(number) => format!(
            "commit {number} is applied instead: make it the active one by `volley config rollback {number}`"
        ),
        None => "the configuration file is applied instead: make it the active one by `volley config commit`".into(),
    };
    notes.push(format!(
        "the active commit {current} is NOT applied: {active}; {instead_of}"
    ));
    Ok(instead)
}

/// Logs what an operator should know of the configuration.
fn log_warnings(notes: &[String]) {
    for text in notes.iter().filter_map(|n| n.strip_prefix("warning: ")) {
        warn!(target: "config", "{text}");
    }
}

impl Daemon {
    /// Applies the configuration that was found.
    async fn begin_with(
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
            // All or nothing, in order of dependence. The last ones (streams) begin when captures exist that record them.
            let (last, first) = requests.into_iter().partition(Request::is_of_last);
            let (applied, _) = self.change(first, &client).await.map_err(refused)?;
            log_warnings(&applied.notes);
            for request in observations {
                self.change(vec![request], &client).await.map_err(refused)?;
            }
            self.change(last, &client).await.map_err(refused)?;
            self.commits.set_initial(self.core.borrow().state().clone());
            return Ok(());
        }
        // The state to return to if there is no commit before the pending one.
        let initial = volley_control::Core::state_of(&requests).unwrap_or_default();
        self.commits.set_initial(initial);
        let mut first: Option<(u64, ModelError)> = None;
        for (i, commit) in commits.iter().enumerate() {
            match self.restore(commit).await {
                Ok(()) => {
                    self.report(args, commit, first.as_ref().map(|(number, _)| *number));
                    // Only the pending commit can be rolled back.
                    self.wait_again(confirm_by.filter(|_| i == 0)).await;
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
        let earlier = match args.fallback {
            true => None,
            false => {
                let before = move |j: &mut Journal<Folder>| Ok(j.before(number).next());
                self.commits.with(before).await.ok().flatten()
            }
        };
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

    /// Applies the configuration that was found, and then the graph of the command line.
    pub async fn begin(
        &self,
        args: &Args,
        file: Option<Vec<Request>>,
        graph: Option<Request>,
        (commits, confirm_by): (Vec<Commit>, Option<u64>),
    ) -> Result<(), RunError> {
        self.begin_with(args, file, commits, confirm_by).await?;
        if let Some(request) = graph {
            let client = Client::internal(Via::Start);
            let done = self.change(vec![request], &client).await;
            done.map_err(|error| RunError::Graph(Box::new(error)))?;
        }
        Ok(())
    }

    /// Resumes the wait for a confirmation, with the state to return to.
    async fn wait_again(&self, confirm_by: Option<u64>) {
        if confirm_by.is_some() {
            let before = |j: &mut Journal<Folder>| Ok(j.head().before);
            let before = self.commits.with(before).await.ok().flatten();
            // A commit that cannot be read now is read when it is needed.
            self.commits.set_back(self.commits.held(before).await.ok());
        }
        self.commits.wait_until(confirm_by);
    }

    async fn restore(&self, commit: &Commit) -> Result<(), ModelError> {
        let wanted: Result<State, TransactionError> =
            volley_control::Core::state_of(&commit.requests);
        let wanted = wanted.map_err(TransactionError::into_model)?;
        let _turn = self.turn.lock().await;
        let client = Client::internal(Via::Start);
        let (_, notes) = self.become_state(wanted, &client).await?;
        log_warnings(&notes);
        Ok(())
    }

    /// Logs what is active now, instead of the commit `failed` if there is one.
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
