//! How the control thread gives scripts to a node on a worker, and gets old ones back.

use crate::state::{ScriptError, ScriptState};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// Scripts that wait to be dropped by the control thread.
const RETURNED: usize = 64;

/// No script.
pub(crate) const NONE: u16 = u16::MAX;

/// The scripts of a node, from now on.
pub(crate) struct Config {
    /// Scripts by their numbers. A script without a state is the one that the node has under this number.
    pub(crate) scripts: Vec<(u64, Option<Box<ScriptState>>)>,
    /// Positions in `scripts` by the index of the interface.
    pub(crate) by_interface: Vec<u16>,
    /// The position for all other interfaces.
    pub(crate) others: u16,
}

/// One node on one worker, seen from both sides.
pub(crate) struct Link {
    config: ArrayQueue<Box<Config>>,
    returned: ArrayQueue<Box<ScriptState>>,
    /// Errors of scripts, with the names of the scripts' files.
    pub(crate) errors: Arc<ArrayQueue<ScriptError>>,
}

impl Link {
    /// A link without scripts.
    pub(crate) fn new(errors: Arc<ArrayQueue<ScriptError>>) -> Arc<Self> {
        Arc::new(Link {
            config: ArrayQueue::new(1),
            returned: ArrayQueue::new(RETURNED),
            errors,
        })
    }

    /// The control thread: give the node its scripts. States in a configuration that the node has not taken yet are not lost.
    pub(crate) fn give(&self, mut config: Box<Config>) {
        if let Some(mut waiting) = self.config.pop() {
            for (number, state) in &mut config.scripts {
                let same = waiting.scripts.iter_mut().find(|it| it.0 == *number);
                if let (None, Some((_, newer))) = (&state, same) {
                    *state = newer.take();
                }
            }
        }
        // Only the control thread pushes: there is room.
        let _ = self.config.push(config);
    }

    /// The control thread: drop what the node has returned.
    pub(crate) fn drop_returned(&self) {
        while self.returned.pop().is_some() {}
    }

    /// The worker: a new configuration.
    pub(crate) fn take(&self) -> Option<Box<Config>> {
        match self.config.is_empty() {
            true => None,
            false => self.config.pop(),
        }
    }

    /// The worker: return a script that it does not use any more.
    pub(crate) fn give_back(&self, state: Box<ScriptState>) {
        // A full queue means that the control thread is late: the script is dropped here.
        let _ = self.returned.push(state);
    }
}
