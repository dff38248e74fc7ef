//! The tasks of a version of a plugin, which run on the control thread.

use std::time::{Duration, Instant};
use volley_plugin_abi::PluginTask;

/// Limits of a period: a task that always ran again at once would take the control thread, and a time must not overflow.
const PERIODS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(365 * 86_400));

fn period(task: &PluginTask) -> Duration {
    task.period().clamp(PERIODS.0, PERIODS.1)
}

/// Tasks and the times of their next runs.
#[derive(Default)]
pub(crate) struct Tasks(Vec<(Instant, PluginTask)>);

impl Tasks {
    /// The first run of each task is one period from now.
    pub(crate) fn new(tasks: Vec<PluginTask>) -> Self {
        let now = Instant::now();
        let due = |task: PluginTask| (now + period(&task), task);
        Tasks(tasks.into_iter().map(due).collect())
    }

    /// The time until the next run; none without tasks.
    pub(crate) fn next_run_in(&self) -> Option<Duration> {
        let next = self.0.iter().map(|(due, _)| *due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Run the tasks that are due. A task that panics is removed.
    pub(crate) fn run(&mut self, plugin: &str) {
        let now = Instant::now();
        self.0.retain_mut(|(due, task)| {
            if *due > now {
                return true;
            }
            *due = now + period(task);
            match task.run() {
                Ok(()) => true,
                Err(text) => {
                    tracing::error!(target: "plugin", plugin, "plugin {plugin}: a task panicked and does not run again: {text}");
                    false
                }
            }
        });
    }
}
