//! The expected state of the journal: which commits were accepted, refused, confirmed and rolled back.

use super::model::Model;
use std::collections::{BTreeMap, BTreeSet};

/// The expected active commit; commits are identified by ids that are unique for each attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) current: Option<u64>,
    pub(super) confirm_by: Option<u64>,
    pub(super) before: Option<u64>,
}

impl Head {
    fn lapsed(&self) -> Head {
        Head {
            current: self.before,
            ..Head::default()
        }
    }

    fn is_due(&self, now: u64) -> bool {
        self.confirm_by.is_some_and(|by| now >= by)
    }
}

#[derive(Debug, Default)]
pub(super) struct Expected {
    /// The running commit.
    pub(super) running: Model,
    head: Head,
    /// Heads that were refused, or replaced by heads that the disk refused: the disk may contain one of them.
    possible: Vec<Head>,
    attempts: BTreeMap<u64, (Model, Head)>,
    /// Accepted commits and their numbers.
    numbers: BTreeMap<u64, u64>,
    /// Commits that must not become active on their own: refused, rolled back, never confirmed.
    never: BTreeSet<u64>,
}

impl Expected {
    pub(super) fn head(&self) -> Head {
        self.head.clone()
    }

    pub(super) fn waits(&self) -> bool {
        self.head.confirm_by.is_some()
    }

    pub(super) fn is_due(&self, now: u64) -> bool {
        self.head.is_due(now)
    }

    /// Number of the active commit.
    pub(super) fn number(&self) -> Option<u64> {
        self.numbers.get(&self.head.current?).copied()
    }

    /// Accepted commits: ids and numbers.
    pub(super) fn known(&self) -> Vec<(u64, u64)> {
        self.numbers
            .iter()
            .map(|(id, number)| (*id, *number))
            .collect()
    }

    /// The id in a commit; `None`: no commit.
    pub(super) fn model(&self, id: Option<u64>) -> Model {
        let found = id.and_then(|id| self.attempts.get(&id));
        found.map(|(model, _)| model.clone()).unwrap_or_default()
    }

    /// Records an attempt to commit; returns its id.
    pub(super) fn attempt(&mut self, model: &Model, confirm_by: Option<u64>) -> u64 {
        let id = self.attempts.len() as u64 + 1;
        let before = match self.head.confirm_by {
            Some(_) => self.head.before,
            None => self.head.current,
        };
        let head = Head {
            current: Some(id),
            confirm_by,
            before: confirm_by.and(before),
        };
        self.attempts.insert(id, (model.clone(), head));
        id
    }

    pub(super) fn accept(&mut self, id: u64, number: u64, back_to: Option<u64>) {
        if self.waits() {
            // A later commit was made before this one was confirmed.
            self.never.extend(self.head.current);
        }
        if let Some(back) = back_to.and_then(|id| self.numbers.get(&id).copied()) {
            let later = self.numbers.iter().filter(|(_, number)| **number > back);
            self.never.extend(later.map(|(id, _)| *id));
        }
        self.numbers.insert(id, number);
        self.set(self.attempts[&id].1.clone());
    }

    fn set(&mut self, head: Head) {
        self.head = head;
        self.possible.clear();
    }

    pub(super) fn refuse(&mut self, id: u64) {
        self.never.insert(id);
        self.possible.push(self.attempts[&id].1.clone());
    }

    pub(super) fn confirm(&mut self, accepted: bool) {
        if !self.waits() {
            return;
        }
        let confirmed = Head {
            current: self.head.current,
            ..Head::default()
        };
        match accepted {
            true => self.set(confirmed),
            false => self.possible.push(confirmed),
        }
    }

    /// The active commit was not confirmed in time.
    pub(super) fn lapse(&mut self) {
        self.never.extend(self.head.current);
        self.possible.push(self.head.clone());
        self.head = self.head.lapsed();
        self.running = self.model(self.head.current);
    }

    /// Whether the journal reports that the disk is up to date.
    pub(super) fn settle(&mut self, is_behind: bool) {
        if !is_behind {
            self.possible.clear();
        }
    }

    /// Checks the head that a start found: the expected one, or one of those that the disk may contain.
    pub(super) fn restart(&mut self, found: Head, now: u64) {
        let all = [&self.head].into_iter().chain(&self.possible);
        let all = all.map(|head| match head.is_due(now) {
            true => head.lapsed(),
            false => head.clone(),
        });
        let all: Vec<Head> = all.collect();
        assert!(
            all.contains(&found),
            "found {found:?}, expected one of {all:?}"
        );
        if self.head.is_due(now) {
            self.never.extend(self.head.current);
        }
        let before = std::mem::replace(&mut self.head, found);
        if let Some(id) = self.head.current {
            // A refused commit that the disk contained nevertheless.
            self.never.remove(&id);
        }
        self.possible.push(before);
        self.running = self.model(self.head.current);
    }

    /// Commits that can replace the active one were accepted, confirmed and not rolled back.
    pub(super) fn check_candidates(&self, ids: Vec<u64>) {
        for id in ids {
            assert!(
                !self.never.contains(&id),
                "#{id} was refused or rolled back"
            );
        }
    }
}
