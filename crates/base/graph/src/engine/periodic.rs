//! A process that runs only while it has work.

use crate::engine::process::{ProcessInfo, Processes, Watch};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A task that runs periodically on the control thread.
pub trait PeriodicTask: 'static {
    /// The name and the purpose of the process.
    const PROCESS: ProcessInfo;

    /// The time until the next run; none while no work is pending.
    fn next_run_in(&self) -> Option<Duration>;

    /// Run once.
    fn run(&mut self);
}

/// A next run that is later by less than this is on time: computing the time takes time.
const ON_TIME: Duration = Duration::from_millis(1);

/// Runs a task. The process ends when this value is dropped.
pub struct PeriodicRunner<T> {
    task: Rc<RefCell<T>>,
    processes: Processes,
    watch: Option<Watch>,
    /// The time of the next run; none: the process has ended.
    next: Rc<Cell<Option<Instant>>>,
}

impl<T: PeriodicTask> PeriodicRunner<T> {
    /// A runner without a process.
    pub fn new(processes: &Processes, task: T) -> Self {
        PeriodicRunner {
            task: Rc::new(RefCell::new(task)),
            processes: processes.clone(),
            watch: None,
            next: Rc::default(),
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

    /// Start the process if the task has work before the next run. Call it after every change that may give the task work.
    pub fn schedule(&mut self) {
        let now = Instant::now();
        // A task that runs now is asked afterwards.
        let Ok(task) = self.task.try_borrow() else {
            return;
        };
        let Some(wait) = task.next_run_in() else {
            return;
        };
        drop(task);
        if self
            .next
            .get()
            .is_some_and(|next| next <= now + wait + ON_TIME)
        {
            return;
        }
        self.next.set(Some(now));
        let (weak, next) = (Rc::downgrade(&self.task), self.next.clone());
        let turn = move || {
            let task = weak.upgrade()?;
            let mut task = task.try_borrow_mut().ok()?;
            task.run();
            task.next_run_in()
        };
        self.watch = Some(self.processes.every(T::PROCESS, move || {
            let span = turn();
            next.set(span.map(|span| Instant::now() + span));
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

    /// A task whose next run may come nearer.
    struct Alarm(Duration, u32);

    impl PeriodicTask for Alarm {
        const PROCESS: ProcessInfo = Countdown::PROCESS;
        fn next_run_in(&self) -> Option<Duration> {
            Some(self.0)
        }
        fn run(&mut self) {
            self.1 += 1;
        }
    }

    #[test]
    fn work_that_is_due_earlier_does_not_wait_for_the_next_run() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let hour = Duration::from_secs(3600);
            let mut runner = PeriodicRunner::new(&Processes::default(), Alarm(hour, 0));
            let runs = |r: &PeriodicRunner<Alarm>| r.task().borrow().1;
            runner.schedule();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(runs(&runner), 1);
            runner.schedule();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(runs(&runner), 1, "nothing is due earlier");
            runner.task().borrow_mut().0 = Duration::from_millis(100);
            runner.schedule();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(runs(&runner) > 5, "{}", runs(&runner));
        });
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
