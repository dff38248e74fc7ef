//! Uses core and journal like the daemon, without its threads.

use super::disk::SimDisk;
use super::expected::Head;
use super::model::requested;
use super::objects::{Objects, command};
use crate::journal::{About, Disk, Journal, JournalError};
use crate::{Core, State, TransactionError, created, requests};
use volley_model::Request;

/// The source of a commit's configuration.
#[derive(Debug)]
pub(super) enum Source {
    Running,
    /// Changes that lead from an empty configuration to it.
    Lines(Vec<String>),
    /// A file with requests, one a line.
    File(&'static str),
    /// An earlier commit.
    Commit(u64),
}

/// The reason of a failure.
#[derive(Debug)]
pub(super) struct Refused {
    /// Writing the commit failed.
    pub(super) is_of_disk: bool,
    _why: String,
}

impl Refused {
    fn by_disk(error: JournalError) -> Refused {
        let (is_of_disk, _why) = (true, error.to_string());
        Refused { is_of_disk, _why }
    }

    fn otherwise(error: impl ToString) -> Refused {
        let (is_of_disk, _why) = (false, error.to_string());
        Refused { is_of_disk, _why }
    }
}

pub(super) struct Router {
    core: Core,
    disk: SimDisk,
    pub(super) journal: Journal<SimDisk>,
    pub(super) objects: Objects,
    confirm_by: Option<u64>,
    /// The configuration that runs again when the waiting commit is not confirmed.
    before: State,
    /// Time of the last check of deadlines.
    pub(super) watched: u64,
}

impl Router {
    /// Starts with the active commit of a disk.
    pub(super) fn start(disk: &SimDisk, now: u64) -> Router {
        let mut journal = Journal::open(disk.clone()).expect("the directory is not damaged");
        if let Some(sizes) = disk.sizes() {
            journal.sizes = sizes;
        }
        if journal.head().confirm_by.is_some_and(|by| now >= by) {
            // The commit is not applied, whether or not the disk accepts that.
            let _ = journal.go_back(now);
        }
        let mut router = Router {
            core: Core::default(),
            disk: disk.clone(),
            confirm_by: journal.head().confirm_by,
            before: State::default(),
            journal,
            objects: Objects::default(),
            watched: 0,
        };
        let wanted = router.committed(router.journal.head().current);
        let wanted = wanted.expect("the active commit can be read");
        router.become_state(&wanted).expect("it can be applied");
        let before = router.journal.head().before;
        router.before = router
            .committed(before)
            .expect("the commit before can be read");
        router
    }

    fn committed(&self, number: Option<u64>) -> Result<State, Refused> {
        let Some(number) = number else {
            return Ok(State::default());
        };
        let commit = self.journal.commit(number).map_err(Refused::otherwise)?;
        Core::state_of(&commit.requests).map_err(Refused::otherwise)
    }

    fn become_state(&mut self, wanted: &State) -> Result<(), TransactionError> {
        let transaction = self.core.begin_state(wanted)?;
        self.core.finish(transaction, &self.objects).map(drop)
    }

    pub(super) fn change(&mut self, lines: &[String]) -> Result<(), Refused> {
        let requests: Vec<Request> = lines.iter().map(|line| requested(line)).collect();
        let done = self.core.run(&requests, &self.objects);
        done.map(drop).map_err(Refused::otherwise)
    }

    /// Applies the configuration, then writes the commit.
    pub(super) fn commit(
        &mut self,
        source: Source,
        id: u64,
        now: u64,
        confirm_by: Option<u64>,
    ) -> Result<u64, Refused> {
        let back_to = match source {
            Source::Commit(number) => Some(number),
            _ => None,
        };
        let wanted = match source {
            Source::Running => self.core.state().clone(),
            Source::Commit(number) => self.committed(Some(number))?,
            Source::Lines(lines) => {
                let requests: Vec<Request> = lines.iter().map(|line| requested(line)).collect();
                Core::state_of(&requests).map_err(Refused::otherwise)?
            }
            Source::File(name) => {
                let bytes = self.disk.read(name).map_err(Refused::otherwise)?;
                let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
                let requests: Result<Vec<Request>, _> = lines.map(serde_json::from_slice).collect();
                let requests = requests.map_err(Refused::otherwise)?;
                Core::state_of(&requests).map_err(Refused::otherwise)?
            }
        };
        let head = self.journal.head();
        let back = match (confirm_by, self.confirm_by) {
            // The configuration for the rollback is read before it is needed.
            (Some(_), None) => Some(self.committed(head.current)?),
            _ => None,
        };
        let running = self.core.state().clone();
        self.become_state(&wanted).map_err(Refused::otherwise)?;
        self.objects.refuse_after.set(None);
        let about = About {
            time_s: now,
            comment: Some(id.to_string()),
            back_to,
            ..About::default()
        };
        let all = requests(&self.core.state().lasting());
        match self.journal.write(about, all, confirm_by) {
            Ok(number) => {
                self.confirm_by = confirm_by;
                self.before = back.unwrap_or_else(|| std::mem::take(&mut self.before));
                Ok(number)
            }
            Err(error) => {
                self.become_state(&running).expect("what ran can run again");
                Err(Refused::by_disk(error))
            }
        }
    }

    pub(super) fn confirm(&mut self) -> Result<bool, JournalError> {
        let confirmed = self.journal.confirm()?;
        if confirmed {
            self.confirm_by = None;
        }
        Ok(confirmed)
    }

    /// Rolls back a commit that was not confirmed in time.
    pub(super) fn watch(&mut self, now: u64) -> Result<(), TransactionError> {
        self.watched = now;
        if self.confirm_by.is_none_or(|by| now < by) {
            return Ok(());
        }
        // The running configuration changes first: the disk may refuse.
        let before = self.before.clone();
        let run = self.become_state(&before);
        if self.journal.head().confirm_by.is_some() {
            let _ = self.journal.go_back(now);
        }
        if run.is_ok() {
            self.confirm_by = None;
        }
        run
    }

    pub(super) fn settle(&mut self) {
        let _ = self.journal.settle();
    }

    /// The head, by the ids in the commits.
    pub(super) fn found(&self) -> Head {
        let id = |number| {
            let commit = self.journal.commit(number).expect("it can be read");
            commit
                .about
                .comment
                .and_then(|id| id.parse().ok())
                .expect("an id")
        };
        let head = self.journal.head();
        Head {
            current: head.current.map(id),
            confirm_by: head.confirm_by,
            before: head.before.map(id),
        }
    }

    /// Ids of commits that can replace the active one.
    pub(super) fn candidates(&self) -> Vec<u64> {
        let before = self.journal.before(u64::MAX);
        before
            .filter_map(|commit| commit.about.comment?.parse().ok())
            .collect()
    }

    /// The commands that create the core's objects, sorted.
    pub(super) fn lines(&self) -> Vec<String> {
        let all = self.core.state().iter();
        let mut lines: Vec<String> = all
            .flat_map(|(key, value)| created(key, value))
            .map(|it| it.to_string())
            .collect();
        lines.sort();
        lines
    }

    /// The commands that give an interface its addresses, in order.
    pub(super) fn addresses(&self, interface: &str) -> Vec<String> {
        let all = self.core.state().objects_of("test_address");
        let own = all.filter(|object| object.key().owner() == Some(interface));
        own.map(command).collect()
    }
}

/// The commit that counts as active when there is no head.
pub(super) fn newest_without_head(disk: SimDisk) -> Option<u64> {
    let journal = Journal::open_anyway(disk).expect("there are commits");
    journal.head().current
}
