//! Process nodes: asynchronous tasks on the control thread, with the same clocks as other nodes.

use crate::{NodeReport, NodeState};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What one process did.
#[derive(Default)]
struct Meter {
    calls: Cell<u64>,
    suspends: Cell<u64>,
    clocks: Cell<u64>,
    done: Cell<bool>,
}

/// Name and purpose of a process.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Name in `show runtime`.
    pub name: &'static str,
    /// One sentence.
    pub text: &'static str,
}

type Entry = (ProcessInfo, Rc<Meter>);

/// The process nodes of a daemon. Lives on the control thread.
#[derive(Clone, Default)]
pub struct Processes {
    list: Rc<RefCell<Vec<Entry>>>,
}

/// A future that counts how often it runs and waits.
struct Metered<F> {
    inner: Pin<Box<F>>,
    meter: Rc<Meter>,
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let start = volley_simd::cycles();
        let out = self.inner.as_mut().poll(cx);
        let meter = &self.meter;
        meter.calls.set(meter.calls.get() + 1);
        meter
            .clocks
            .set(meter.clocks.get() + volley_simd::cycles().wrapping_sub(start));
        match out {
            Poll::Pending => meter.suspends.set(meter.suspends.get() + 1),
            Poll::Ready(_) => meter.done.set(true),
        }
        out
    }
}

impl Processes {
    /// Start a process on the current thread's `tokio` local set.
    pub fn spawn<F>(&self, info: ProcessInfo, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        let meter = Rc::new(Meter::default());
        self.list.borrow_mut().push((info, meter.clone()));
        tokio::task::spawn_local(Metered {
            inner: Box::pin(task),
            meter,
        })
    }

    /// Lines for `show runtime`.
    pub fn report(&self) -> Vec<NodeReport> {
        let line = |(info, meter): &Entry| NodeReport {
            name: info.name.to_owned(),
            state: NodeState::Process,
            calls: meter.calls.get(),
            vectors: 0,
            suspends: meter.suspends.get(),
            clocks: meter.clocks.get(),
            largest: 0,
        };
        self.list.borrow().iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_process_is_metered_while_tests_own_the_clock() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let processes = Processes::default();
        let local = tokio::task::LocalSet::new();
        let ticks = local.block_on(&runtime, async {
            let info = ProcessInfo {
                name: "ticker",
                text: "ticks",
            };
            let task = processes.spawn(info, async {
                for _ in 0..3 {
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                }
                3
            });
            task.await.unwrap()
        });
        let report = &processes.report()[0];
        assert_eq!((ticks, report.suspends, report.calls), (3, 3, 4));
    }
}
