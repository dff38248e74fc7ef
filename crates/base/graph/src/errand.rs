//! A process that has turns only while there is something for it to do.

use crate::{ProcessInfo, Processes, Watch};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What wants turns on the control thread now and then.
pub trait Errand: 'static {
    /// What the process is called, and why it is there.
    const PROCESS: ProcessInfo;

    /// When it wants its next turn; none while there is nothing to do.
    fn span(&self) -> Option<Duration>;

    /// Have a turn.
    fn turn(&mut self);
}

/// Gives an errand its turns. It ends with this value.
pub struct Runner<T> {
    errand: Rc<RefCell<T>>,
    processes: Processes,
    watch: Option<Watch>,
    runs: Rc<Cell<bool>>,
}

impl<T: Errand> Runner<T> {
    /// One that has no turns yet.
    pub fn new(processes: &Processes, errand: T) -> Self {
        Runner {
            errand: Rc::new(RefCell::new(errand)),
            processes: processes.clone(),
            watch: None,
            runs: Rc::default(),
        }
    }

    /// The errand. It has no turn while it is borrowed: give it back before anything is waited for.
    pub fn errand(&self) -> &Rc<RefCell<T>> {
        &self.errand
    }

    /// Have the process run if there is something for it to do: to be called after whatever may have brought that.
    pub fn call(&mut self) {
        if self.runs.get() || self.errand.borrow().span().is_none() {
            return;
        }
        self.runs.set(true);
        let (weak, runs) = (Rc::downgrade(&self.errand), self.runs.clone());
        let turn = move || {
            let errand = weak.upgrade()?;
            let mut errand = errand.try_borrow_mut().ok()?;
            errand.turn();
            errand.span()
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

    impl Errand for Countdown {
        const PROCESS: ProcessInfo = ProcessInfo {
            name: "countdown",
            text: "counts down",
        };
        fn span(&self) -> Option<Duration> {
            (self.0 > 0).then_some(Duration::ZERO)
        }
        fn turn(&mut self) {
            self.0 -= 1;
        }
    }

    #[test]
    fn it_runs_while_there_is_something_and_begins_again_when_called() {
        let processes = Processes::default();
        let mut runner = Runner::new(&processes, Countdown(0));
        let left = |r: &Runner<Countdown>| r.errand().borrow().0;
        runner.call();
        processes.turn();
        assert_eq!(left(&runner), 0);
        for _ in 0..2 {
            runner.errand().borrow_mut().0 = 2;
            runner.call();
            runner.call();
            for rest in [1, 0, 0] {
                processes.turn();
                assert_eq!(left(&runner), rest);
            }
        }
        runner.errand().borrow_mut().0 = 2;
        runner.call();
        let errand = runner.errand().clone();
        drop(runner);
        processes.turn();
        assert_eq!(errand.borrow().0, 2, "nobody runs it any more");
    }
}
