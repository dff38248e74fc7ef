//! `config ...`: the configuration as a whole, its commits, and rollback.

use super::backend::Daemon;
use super::large::on_helper;
use std::cell::{Cell, RefCell};
use std::rc::Weak;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tracing::{debug, error, info, warn};
use volley_control::journal::{About, Folder, Journal, JournalError, Summary};
use volley_control::{Core, State, TransactionError, requests, without_secrets};
use volley_model::{
    Client, CommitHow, CommitRow, Committed, ConfigAction, ConfigForm, ConfigReply, ConfigSource,
    ModelError, Request, Role, Timestamp, Via,
};
use volley_object::{Class, Startup};

/// Pause before a disk that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The commits of the configuration.
#[derive(Default)]
pub struct Commits {
    /// Commits on disk; none without a state directory. Only helper threads lock the journal, because disks may block.
    journal: Option<Arc<Mutex<Journal<Folder>>>>,
    /// Set while the disk has failed to record which commit is active: the time of the next attempt.
    behind: Cell<Option<Instant>>,
    /// The initial state, which applies while no commit is active.
    initial: RefCell<State>,
    /// The settings that were read at start.
    read: RefCell<Startup>,
    /// The settings for the next start that commits contain.
    startup: RefCell<Option<Startup>>,
    /// The deadline for the confirmation of the newest commit, in seconds since 1970.
    confirm_by: Cell<Option<u64>>,
    /// The state to return to if the pending commit is not confirmed, read while the disk was readable.
    back: RefCell<Option<State>>,
    /// Notified when the deadline changes.
    moved: Notify,
}

/// A configuration that was read.
pub struct Wanted {
    pub(super) state: State,
    startup: Option<Startup>,
    notes: Vec<String>,
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn about_disk(error: JournalError) -> ModelError {
    match error {
        JournalError::NoCommit { .. } => ModelError::invalid("the commit", error),
        other => ModelError::Config {
            errors: vec![other.to_string()],
        },
    }
}

fn no_folder() -> ModelError {
    let why = "there is no state directory: start the daemon with --state-dir DIR";
    ModelError::invalid("config commit", why)
}

impl Commits {
    /// Commits in a journal.
    pub fn new(journal: Option<Journal<Folder>>) -> Commits {
        let behind = journal.as_ref().is_some_and(Journal::is_behind);
        Commits {
            behind: Cell::new(behind.then(Instant::now)),
            journal: journal.map(|journal| Arc::new(Mutex::new(journal))),
            ..Commits::default()
        }
    }

    /// Sets the state that applies while no commit is active.
    pub fn set_initial(&self, state: State) {
        *self.initial.borrow_mut() = state;
    }

    /// Whether a state is the initial one.
    pub fn is_initial(&self, state: &State) -> bool {
        *self.initial.borrow() == *state
    }

    /// Sets the settings that were read at start.
    pub fn set_read(&self, startup: Startup) {
        *self.read.borrow_mut() = startup;
    }

    /// Sentences about tables of the file that have changed and are read only at start.
    fn waiting(&self, startup: Option<&Startup>) -> Vec<String> {
        let read = self.read.borrow();
        let classes = startup.map(|it| read.differing(it)).unwrap_or_default();
        let note = |class: &Class| {
            let name = class.name();
            format!(
                "[{name}] is read at start only, and differs from what was read: it needs a restart"
            )
        };
        classes.iter().map(note).collect()
    }

    /// Sets the settings for the next start that the next commit will contain.
    pub fn set_startup(&self, startup: Option<Startup>) {
        *self.startup.borrow_mut() = startup;
    }

    /// Resumes the wait for a confirmation after a start.
    pub fn wait_until(&self, confirm_by: Option<u64>) {
        self.confirm_by.set(confirm_by);
        self.moved.notify_one();
    }

    /// Sets the state to return to if the pending commit is not confirmed; none = no commit is pending.
    pub fn set_back(&self, state: Option<State>) {
        *self.back.borrow_mut() = state;
    }

    /// The state to return to if a commit that is made now is not confirmed: the last confirmed one.
    async fn way_back(&self) -> Result<State, ModelError> {
        let known = self.back.borrow().clone();
        match known {
            Some(state) => Ok(state),
            None => self.committed().await,
        }
    }

    /// Runs `work` with the journal on a separate thread, because a disk may block.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal<Folder>) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, ModelError> {
        let journal = self.journal.clone().ok_or_else(no_folder)?;
        let work = move || {
            // After a panic the journal in memory equals the one on disk.
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            (work(&mut journal), journal.is_behind())
        };
        let lost = |e| ModelError::invalid("the journal", e);
        let (done, behind) = tokio::task::spawn_blocking(work).await.map_err(lost)?;
        self.behind.set(behind.then(|| Instant::now() + AGAIN));
        done.map_err(about_disk)
    }

    /// Tries again to record the active commit on a disk that failed.
    async fn settle(&self) {
        if self.behind.get().is_none_or(|at| Instant::now() < at) {
            return;
        }
        let done = self.with(|journal| journal.settle().map(|()| journal.head().current));
        match done.await {
            Ok(current) => {
                let commit = current.unwrap_or_default();
                info!(target: "config", commit, "the state directory can be written again, and names the active commit");
            }
            Err(error) => debug!(target: "config", "{error}"),
        }
    }

    async fn numbered(&self, number: u64) -> Result<State, ModelError> {
        let commit = self.with(move |j| j.commit(number)).await?;
        state_of(commit.requests).await
    }

    /// The state of this commit, or the initial state.
    pub(super) async fn held(&self, number: Option<u64>) -> Result<State, ModelError> {
        match number {
            Some(number) => self.numbered(number).await,
            None => Ok(self.initial.borrow().clone()),
        }
    }

    /// The state of the active commit, or the initial state.
    async fn committed(&self) -> Result<State, ModelError> {
        let current = self.with(|j| Ok(j.head().current)).await?;
        self.held(current).await
    }

    async fn history(&self) -> Result<Vec<CommitRow>, ModelError> {
        let rows = |journal: &mut Journal<Folder>| {
            let numbers = journal.numbers().into_iter().rev();
            Ok(numbers.map(|number| row(journal, number)).collect())
        };
        self.with(rows).await
    }
}

/// The state that requests lead to.
async fn state_of(requests: Vec<Request>) -> Result<State, ModelError> {
    let done = on_helper(move || Core::state_of(&requests)).await?;
    done.map_err(TransactionError::into_model)
}

/// A commit as the history shows it.
fn row(journal: &Journal<Folder>, number: u64) -> CommitRow {
    let head = journal.head();
    let current = head.current == Some(number);
    let lapsed = head.lapsed.iter().find(|l| l.number == number);
    let row = CommitRow {
        number,
        lapsed_s: lapsed.map(|l| l.time_s),
        current,
        confirm_by: head.confirm_by.filter(|_| current),
        ..CommitRow::default()
    };
    match journal.summary(number) {
        Ok(Summary {
            about, requests, ..
        }) => CommitRow {
            time_s: about.time_s,
            user: about.user,
            how: about.how,
            comment: about.comment,
            requests,
            ..row
        },
        Err(fault) => CommitRow {
            fault: Some(fault.to_string()),
            ..row
        },
    }
}

/// Splits the requests of a file into configuration and the observations that it starts.
pub fn parted(requests: Vec<Request>) -> (Vec<Request>, Vec<Request>) {
    requests.into_iter().partition(Request::is_configuration)
}

fn of_file(
    read: Result<volley_config::Config, volley_config::ConfigErrors>,
) -> Result<Wanted, ModelError> {
    let config = read.map_err(|errors| ModelError::Config {
        errors: errors.0.iter().map(ToString::to_string).collect(),
    })?;
    let (requests, observations) = parted(config.requests);
    let note = |r: &Request| format!("`{r}` is no configuration: it is carried out at start only");
    Ok(Wanted {
        state: Core::state_of(&requests).map_err(TransactionError::into_model)?,
        startup: Some(config.startup),
        notes: observations.iter().map(note).collect(),
    })
}

impl Daemon {
    fn wanted_of(&self, state: State) -> Wanted {
        Wanted {
            state,
            startup: None,
            notes: Vec::new(),
        }
    }

    /// Reads a configuration, on a helper thread where that takes time. The caller must not be cancelled: see
    /// [`Daemon::with_state`].
    async fn wanted(&self, source: ConfigSource) -> Result<Wanted, ModelError> {
        let state = match source {
            ConfigSource::Running => self.with_state(0, |state| state.clone()).await?,
            ConfigSource::Committed => self.commits.committed().await?,
            ConfigSource::Commit(number) => self.commits.numbered(number).await?,
            ConfigSource::Requests(requests) => state_of(requests).await?,
            ConfigSource::File(_) | ConfigSource::Text(_) => {
                let read = move || {
                    of_file(match &source {
                        ConfigSource::File(file) => volley_config::load(file),
                        ConfigSource::Text(text) => volley_config::parse(text),
                        _ => Ok(volley_config::Config::default()),
                    })
                };
                let lost = |e| ModelError::invalid("the configuration", e);
                return tokio::task::spawn_blocking(read).await.map_err(lost)?;
            }
        };
        Ok(self.wanted_of(state))
    }

    /// As [`Daemon::wanted`], also if the caller is cancelled. It does not wait for a commit that is being written.
    async fn read(&self, source: ConfigSource) -> Result<Wanted, ModelError> {
        self.to_its_end(|me| async move { me.wanted(source).await })
            .await?
    }

    /// Whether a client may not see secrets: clients that may set them see them.
    fn hides_secrets(&self, client: &Client) -> bool {
        self.stack.rights.role(client) != Some(Role::Configure)
    }

    /// Requests as a client may see them.
    pub(super) fn shown(&self, requests: Vec<Request>, client: &Client) -> Vec<Request> {
        match self.hides_secrets(client) {
            true => requests.into_iter().map(without_secrets).collect(),
            false => requests,
        }
    }

    /// Carries out a request about the configuration as a whole, in a client's name.
    pub async fn configuration(
        &self,
        action: ConfigAction,
        client: &Client,
    ) -> Result<ConfigReply, ModelError> {
        action.validate()?;
        Ok(match action {
            ConfigAction::Check { source } => {
                let objects = self.read(source).await?.state.len() as u64;
                ConfigReply::Checked { objects }
            }
            ConfigAction::Show { source, form } => {
                let wanted = self.read(source).await?;
                let hides = self.hides_secrets(client);
                let write = move || {
                    let mut all = requests(&wanted.state.lasting());
                    if hides {
                        all = all.into_iter().map(without_secrets).collect();
                    }
                    written(&all, form)
                };
                let text = on_helper(write).await?;
                ConfigReply::Text { text }
            }
            ConfigAction::Diff { from, to } => {
                let (from, to) = (self.read(from).await?, self.read(to).await?);
                let compare = move || Core::difference(&from.state, &to.state);
                let lines = on_helper(compare).await?;
                ConfigReply::Difference { lines }
            }
            ConfigAction::Commit {
                source,
                confirm_s,
                comment,
            } => {
                let how = CommitHow::Operator;
                let wish = Wish::new(source, confirm_s, comment, how, client);
                let done = self.to_its_end(|me| async move { me.commit(wish).await });
                ConfigReply::Committed(done.await??)
            }
            ConfigAction::Rollback { number } => {
                let (source, how) = (ConfigSource::Commit(number), CommitHow::Rollback);
                let comment = Some(format!("rollback to {number}"));
                let wish = Wish::new(source, None, comment, how, client);
                let done = self.to_its_end(|me| async move { me.commit(wish).await });
                ConfigReply::Committed(done.await??)
            }
            ConfigAction::Confirm {} => {
                let _turn = self.turn.lock().await;
                if !self.commits.with(Journal::confirm).await? {
                    let why = "no commit waits to be confirmed";
                    return Err(ModelError::invalid("config confirm", why));
                }
                self.commits.wait_until(None);
                self.commits.set_back(None);
                let number = self.commits.with(|j| Ok(j.head().current)).await?;
                let number = number.unwrap_or_default();
                let Client {
                    user, via, from, ..
                } = client;
                info!(target: "config", user, %via, from, commit = number, "commit {number} is confirmed");
                ConfigReply::Confirmed { number }
            }
            ConfigAction::History {} => ConfigReply::History {
                commits: self.commits.history().await?,
            },
        })
    }

    /// Commits, and logs the result.
    async fn commit(&self, wish: Wish) -> Result<Committed, ModelError> {
        let (how, client) = (wish.how, wish.client.clone());
        let comment = wish.comment.clone().unwrap_or_default();
        let done = self.make_commit(wish).await;
        let Client {
            user, via, from, ..
        } = &client;
        match &done {
            Ok(Committed {
                number,
                steps,
                confirm_by,
                ..
            }) => {
                let until = confirm_by.map_or_else(String::new, |by| {
                    let by = Timestamp::of_seconds(by).date_and_time();
                    format!("; it is rolled back at {by} unless it is confirmed")
                });
                info!(target: "config", user, %via, from, %how, commit = number, steps, comment, "commit {number} is active{until}");
            }
            Err(error) => {
                warn!(target: "config", user, %via, from, %how, comment, "a commit failed: {error}");
            }
        }
        done
    }

    /// Applies the configuration first, then writes the commit; if it cannot be written, the change is rolled back.
    async fn make_commit(&self, wish: Wish) -> Result<Committed, ModelError> {
        let Wish {
            source,
            confirm_s,
            comment,
            how,
            client,
        } = wish;
        let _turn = self.turn.lock().await;
        self.commits.journal.as_ref().ok_or_else(no_folder)?;
        let back_to = match (how, &source) {
            (CommitHow::Rollback, ConfigSource::Commit(number)) => Some(*number),
            _ => None,
        };
        let is_running = source == ConfigSource::Running;
        let mut wanted = match is_running {
            true => self.wanted_of(State::default()),
            false => self.wanted(source).await?,
        };
        let back = match confirm_s {
            Some(_) => Some(self.commits.way_back().await?),
            None => None,
        };
        let state = (!is_running).then(|| std::mem::take(&mut wanted.state));
        let (before, steps, warnings) = self.replace_state(state, &client).await?;
        let waiting = self.commits.waiting(wanted.startup.as_ref());
        let startup = wanted
            .startup
            .or_else(|| self.commits.startup.borrow().clone());
        let time_s = now_s();
        let confirm_by = confirm_s.map(|span| time_s.saturating_add(span));
        let about = About {
            time_s,
            comment,
            user: Some(client.user.clone()),
            how: Some(how),
            back_to,
            startup: startup.clone(),
        };
        let requests = self
            .with_state(0, |state| requests(&state.lasting()))
            .await?;
        let written = self
            .commits
            .with(move |j| j.write(about, requests, confirm_by));
        match written.await {
            Ok(number) => {
                if let Some(before) = before {
                    on_helper(move || drop(before)).await?;
                }
                self.commits.set_startup(startup);
                self.commits.wait_until(confirm_by);
                self.commits.set_back(back);
                Ok(Committed {
                    number,
                    steps,
                    confirm_by,
                    notes: [warnings, wanted.notes, waiting].concat(),
                })
            }
            Err(error) => {
                if let Some(before) = before {
                    self.become_state(before, &client).await?;
                }
                Err(error)
            }
        }
    }

    /// As [`Daemon::become_state`], where there is another configuration than the running one; returns the previous one too.
    async fn replace_state(
        &self,
        wanted: Option<State>,
        client: &Client,
    ) -> Result<(Option<State>, u64, Vec<String>), ModelError> {
        let Some(wanted) = wanted else {
            return Ok((None, 0, Vec::new()));
        };
        self.admission.check(&wanted)?;
        let before = self.with_state(0, |state| state.clone()).await?;
        self.admission.memory_for_state(&wanted, before.len())?;
        let (steps, warnings) = self.become_state(wanted, client).await?;
        Ok((Some(before), steps, warnings))
    }

    /// Replaces the running configuration; returns the number of steps, and what an operator should know. The caller must hold
    /// the lock of transactions.
    pub(super) async fn become_state(
        &self,
        wanted: State,
        client: &Client,
    ) -> Result<(u64, Vec<String>), ModelError> {
        let count = wanted.len();
        let begin = move |state: &mut State| state.begin_state(&wanted);
        let begun = self.with_state(count, begin).await?;
        let mut transaction = begun.map_err(TransactionError::into_model)?;
        transaction.user.clone_from(&client.user);
        let steps = transaction.steps().len() as u64;
        let done = self.carry_out(transaction).await;
        done.map(|(applied, _)| (steps, applied.notes))
            .map_err(TransactionError::into_model)
    }

    /// Rolls back a commit whose deadline has passed without a confirmation.
    async fn take_back(&self) -> Result<(), ModelError> {
        let _turn = self.turn.lock().await;
        // It may have been confirmed or replaced meanwhile.
        if self.commits.confirm_by.get().is_none_or(|by| now_s() < by) {
            return Ok(());
        }
        let head = self.commits.with(|j| Ok(j.head().clone())).await?;
        // The journal is rolled back once; the running configuration is tried again until it succeeds.
        let is_first = head.confirm_by.is_some();
        let before = if is_first { head.before } else { head.current };
        if is_first {
            log_lapsed(head.current, before);
        }
        // The running configuration comes first, because the disk may fail.
        let client = Client::internal(Via::Daemon);
        let known = self.commits.back.borrow().clone();
        let back = match known {
            Some(state) => Ok(state),
            None => self.commits.held(before).await,
        };
        let run = match back {
            Ok(back) => self.become_state(back, &client).await.map(drop),
            Err(error) => Err(error),
        };
        if is_first {
            let time_s = now_s();
            let kept = self.commits.with(move |j| j.go_back(time_s)).await;
            if let Err(error) = &kept {
                let number = head.current.unwrap_or_default();
                error!(target: "config", how = "deadline", commit = number, "the state directory does not take the rollback of commit {number}, and is tried again every second: {error}");
            }
        }
        if run.is_ok() {
            self.commits.wait_until(None);
            self.commits.set_back(None);
        }
        run
    }
}

/// A commit that an operator requests.
struct Wish {
    source: ConfigSource,
    confirm_s: Option<u64>,
    comment: Option<String>,
    how: CommitHow,
    client: Client,
}

impl Wish {
    fn new(
        source: ConfigSource,
        confirm_s: Option<u64>,
        comment: Option<String>,
        how: CommitHow,
        client: &Client,
    ) -> Wish {
        Wish {
            source,
            confirm_s,
            comment,
            how,
            client: client.clone(),
        }
    }
}

/// Logs that the deadline of a commit has passed.
pub fn log_lapsed(lapsed: Option<u64>, to: Option<u64>) {
    let lapsed = lapsed.unwrap_or_default();
    let to = match to {
        Some(to) => format!("commit {to}"),
        None => "what the daemon began with".to_owned(),
    };
    warn!(target: "config", how = "deadline", commit = lapsed, "commit {lapsed} was not confirmed in time and is rolled back to {to}");
}

/// Requests as text.
fn written(all: &[Request], form: ConfigForm) -> String {
    let line = |text: String| text + "\n";
    match form {
        ConfigForm::Toml => volley_config::write(all),
        ConfigForm::Commands => all.iter().map(|r| line(r.to_string())).collect(),
        ConfigForm::Json => {
            let json = all.iter().filter_map(|r| serde_json::to_string(r).ok());
            json.map(line).collect()
        }
    }
}

/// Waits for deadlines of confirmations, and for a disk that failed.
pub async fn watch_confirmations(daemon: Weak<Daemon>) {
    while let Some(daemon) = daemon.upgrade() {
        let commits = &daemon.commits;
        let mut failed = false;
        if commits.confirm_by.get().is_some_and(|by| now_s() >= by)
            && let Err(error) = daemon.take_back().await
        {
            failed = true;
            error!(target: "config", how = "deadline", "the rollback of a commit that was not confirmed failed, and is tried again: {error}");
        }
        commits.settle().await;
        // Wall-clock time counts, and it may be set: check often.
        let pause = match commits.confirm_by.get() {
            Some(_) if !failed => Duration::from_millis(200),
            _ => AGAIN,
        };
        let _ = tokio::time::timeout(pause, commits.moved.notified()).await;
    }
}
