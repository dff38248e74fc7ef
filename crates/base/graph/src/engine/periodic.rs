//! A process that runs only while it has work.

use crate::engine::process::{ProcessInfo, Processes, Watch};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// A task that runs periodically on the control thread.
pub trait PeriodicTask: 'static {
    /// The name and the purpose of the process.
    const PROCESS: ProcessInfo;

    /// The time until the next run; none while no work is pending.
    fn next_run_in(&self) -> Option<Duration>;

    /// Run once.
    fn run(&mut self);
}

/// Runs a task. The process ends when this value is dropped.
pub struct PeriodicRunner<T> {
    task: Rc<RefCell<T>>,
    processes: Processes,
    watch: Option<Watch>,
    runs: Rc<Cell<bool>>,
}

impl<T: PeriodicTask> PeriodicRunner<T> {
    /// A runner without a process.
    pub fn new(processes: &Processes, task: T) -> Self {
        PeriodicRunner {
            task: Rc::new(RefCell::new(task)),
            processes: processes.clone(),
            watch: None,
            runs: Rc::default(),
        }
    }

    /// The task. It does not run while it is borrowed: release it before an await.
    pub fn task(&self) -> &Rc<RefCell<T>> {
        &self.task
    }

    /// Change the task, then start the process if the task has work.
    pub fn with<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.task.borrow_mut());
        self.schedule();
        result
    }

    /// Start the process if the task has work. Call it after every change that may give the task work.
    pub fn schedule(&mut self) {
        if self.runs.get() || self.task.borrow().next_run_in().is_none() {
            return;
        }
        self.runs.set(true);
        let (weak, runs) = (Rc::downgrade(&self.task), self.runs.clone());
        let turn = move || {
            let task = weak.upgrade()?;
            let mut task = task.try_borrow_mut().ok()?;
            task.run();
            task.next_run_in()
        };
        self.watch = Some(self.processes.every(T::PROCESS, move || {
            let span = turn();
            runs.set(span.is_some());
            span
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Countdown(u32);

    impl PeriodicTask for Countdown {
        const PROCESS: ProcessInfo = ProcessInfo {
            name: "countdown",
            text: "counts down",
        };
        fn next_run_in(&self) -> Option<Duration> {
            (self.0 > 0).then_some(Duration::ZERO)
        }
        fn run(&mut self) {
            self.0 -= 1;
        }
    }

    #[test]
    fn it_runs_while_there_is_something_and_begins_again_when_called() {
        let processes = Processes::default();
        let mut runner = PeriodicRunner::new(&processes, Countdown(0));
        let left = |r: &PeriodicRunner<Countdown>| r.task().borrow().0;
        runner.schedule();
        processes.run_manual();
        assert_eq!(left(&runner), 0);
        for _ in 0..2 {
            runner.task().borrow_mut().0 = 2;
            runner.schedule();
            runner.schedule();
            for rest in [1, 0, 0] {
                processes.run_manual();
                assert_eq!(left(&runner), rest);
            }
        }
        runner.task().borrow_mut().0 = 2;
        runner.schedule();
        let task = runner.task().clone();
        drop(runner);
        processes.run_manual();
        assert_eq!(task.borrow().0, 2, "nobody runs it any more");
    }
}
