//! Process nodes: asynchronous tasks on the control thread, with the same clocks as other nodes.

use crate::engine::stats::{NodeReport, NodeState};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

/// The pause between two calls for a descriptor whose peer has closed.
const CLOSED_FD_PAUSE: Duration = Duration::from_millis(1);

/// The statistics of one process.
#[derive(Default)]
struct ProcessStats {
    calls: Cell<u64>,
    suspends: Cell<u64>,
    clocks: Cell<u64>,
    done: Cell<bool>,
}

/// The name and the purpose of a process.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// The name in `show runtime`.
    pub name: &'static str,
    /// One sentence.
    pub text: &'static str,
}

type Entry = (ProcessInfo, Rc<ProcessStats>);

/// The process nodes of a daemon. They run on the control thread.
///
/// Without a tokio runtime (benchmarks, tests that step their workers) the functions of [`Processes::watch`] and
/// [`Processes::every`] are called by [`Processes::run_manual`].
#[derive(Clone, Default)]
pub struct Processes {
    list: Rc<RefCell<Vec<Entry>>>,
    run_manually: Rc<RefCell<Vec<ManualTask>>>,
}

/// The result of a call of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// Everything was read until the descriptor would block: call again when it is ready.
    Idle,
    /// There is more work: call again after the other processes.
    Again,
    /// The process has ended.
    Done,
}

/// A running process. Dropping this value ends it.
#[must_use = "dropping a watch ends it"]
pub struct Watch {
    task: Option<AbortHandle>,
    over: Rc<Cell<bool>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.set(true);
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

struct ManualTask {
    body: Box<dyn FnMut() -> bool>,
    over: Rc<Cell<bool>>,
}

/// A future that counts its polls and its pauses.
struct MeteredTask<F> {
    inner: Pin<Box<F>>,
    meter: Rc<ProcessStats>,
}

impl<F: Future> Future for MeteredTask<F> {
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
        let meter = self.meter(info);
        tokio::task::spawn_local(MeteredTask {
            inner: Box::pin(task),
            meter,
        })
    }

    /// The statistics of a name: processes with the same name (one for each interface, for example) share a line.
    fn meter(&self, info: ProcessInfo) -> Rc<ProcessStats> {
        let mut list = self.list.borrow_mut();
        if let Some((_, meter)) = list.iter().find(|(i, _)| i.name == info.name) {
            return meter.clone();
        }
        let meter = Rc::new(ProcessStats::default());
        list.push((info, meter.clone()));
        meter
    }

    /// Call `body` on the control thread when `fd` (non-blocking) is readable or hung up, and once at the start.
    pub fn watch(
        &self,
        info: ProcessInfo,
        fd: OwnedFd,
        mut body: impl FnMut() -> Activation + 'static,
    ) -> std::io::Result<Watch> {
        if tokio::runtime::Handle::try_current().is_err() {
            drop(fd);
            return Ok(self.run_manually(move || body() != Activation::Done));
        }
        // SAFETY: an `OwnedFd` is one open descriptor during its lifetime, and it is moved in.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let task = self.spawn(info, async move {
            loop {
                match body() {
                    Activation::Done => break,
                    Activation::Again => tokio::task::yield_now().await,
                    Activation::Idle => {
                        let Ok(mut ready) = fd.readable().await else {
                            break;
                        };
                        let closed = ready.ready().is_read_closed();
                        // The descriptor is edge-triggered: data that arrive from here on make it ready again.
                        ready.clear_ready();
                        if closed {
                            // A hang-up cannot be cleared: the descriptor stays ready, and without a pause neither
                            // other processes nor the end of this watch would run.
                            tokio::time::sleep(CLOSED_FD_PAUSE).await;
                        }
                    }
                }
            }
        });
        Ok(watch_of(task.abort_handle()))
    }

    /// Call `body` on the control thread now, and each time after the duration that it returned; none ends the
    /// process.
    pub fn every(
        &self,
        info: ProcessInfo,
        mut body: impl FnMut() -> Option<Duration> + 'static,
    ) -> Watch {
        if tokio::runtime::Handle::try_current().is_err() {
            return self.run_manually(move || body().is_some());
        }
        let task = self.spawn(info, async move {
            while let Some(span) = body() {
                tokio::time::sleep(span).await;
            }
        });
        watch_of(task.abort_handle())
    }

    fn run_manually(&self, body: impl FnMut() -> bool + 'static) -> Watch {
        let over = Rc::new(Cell::new(false));
        self.run_manually.borrow_mut().push(ManualTask {
            body: Box::new(body),
            over: over.clone(),
        });
        Watch { task: None, over }
    }

    /// Call each process that is run manually once: see [`Processes`].
    pub fn run_manual(&self) {
        let mut waiting = std::mem::take(&mut *self.run_manually.borrow_mut());
        waiting.retain_mut(|w| !w.over.get() && (w.body)() && !w.over.get());
        let mut list = self.run_manually.borrow_mut();
        waiting.append(&mut list);
        *list = waiting;
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

fn watch_of(task: AbortHandle) -> Watch {
    Watch {
        task: Some(task),
        over: Rc::new(Cell::new(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    const INFO: ProcessInfo = ProcessInfo {
        name: "reader",
        text: "reads",
    };

    fn reader(mut from: UnixStream, got: Rc<RefCell<Vec<u8>>>) -> impl FnMut() -> Activation {
        move || {
            let mut some = [0; 1];
            match from.read(&mut some) {
                Ok(0) => Activation::Done,
                Ok(_) => {
                    got.borrow_mut().push(some[0]);
                    Activation::Again
                }
                Err(_) => Activation::Idle,
            }
        }
    }

    #[test]
    fn a_watch_reads_what_comes_with_and_without_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let got = Rc::new(RefCell::new(Vec::new()));
        let processes = Processes::default();
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            (ours.try_clone().unwrap().into(), ours, theirs)
        };
        let (fd, ours, mut theirs) = pair();
        let watch = processes
            .watch(INFO, fd, reader(ours, got.clone()))
            .unwrap();
        theirs.write_all(b"ab").unwrap();
        (0..4).for_each(|_| processes.run_manual());
        assert_eq!(*got.borrow(), b"ab");
        drop(watch);
        theirs.write_all(b"x").unwrap();
        processes.run_manual();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let (fd, ours, mut theirs) = pair();
            let watch = processes
                .watch(INFO, fd, reader(ours, got.clone()))
                .unwrap();
            for text in [&b"cd"[..], b"e"] {
                theirs.write_all(text).unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(*got.borrow(), b"abcde");
            drop(watch);
            theirs.write_all(b"x").unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        });
        assert_eq!(
            *got.borrow(),
            b"abcde",
            "nobody is woken after the watch has gone"
        );
        assert_eq!(processes.report().len(), 1);
    }

    #[test]
    fn a_closed_descriptor_leaves_others_their_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (processes, calls) = (Processes::default(), Rc::new(Cell::new(0)));
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let seen = calls.clone();
            let body = move || {
                seen.set(seen.get() + 1);
                assert!(seen.get() < 1000, "it is called without a pause");
                Activation::Idle
            };
            let watch = processes.watch(INFO, ours.into(), body).unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            drop(theirs);
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(watch);
            let before = calls.replace(0);
            assert!(before >= 2, "it was told of the end");
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert_eq!(calls.get(), 0, "the watch has gone");
        });
    }

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
