//! A process that has turns only while there is something for it to do.

use crate::{ProcessInfo, Processes, Watch};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What wants turns on the control thread now and then.
pub trait PeriodicTask: 'static {
    /// What the process is called, and why it is there.
    const PROCESS: ProcessInfo;

    /// When it wants its next turn; none while there is nothing to do.
    fn next_run_in(&self) -> Option<Duration>;

    /// Have a turn.
    fn run(&mut self);
}

/// Gives an errand its turns. It ends with this value.
pub struct PeriodicRunner<T> {
    task: Rc<RefCell<T>>,
    processes: Processes,
    watch: Option<Watch>,
    runs: Rc<Cell<bool>>,
}

impl<T: PeriodicTask> PeriodicRunner<T> {
    /// One that has no turns yet.
    pub fn new(processes: &Processes, task: T) -> Self {
        PeriodicRunner {
            task: Rc::new(RefCell::new(task)),
            processes: processes.clone(),
            watch: None,
            runs: Rc::default(),
        }
    }

    /// The errand. It has no turn while it is borrowed: give it back before anything is waited for.
    pub fn task(&self) -> &Rc<RefCell<T>> {
        &self.task
    }

    /// Have the process run if there is something for it to do: to be called after whatever may have brought that.
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
