//! Places the threads of a router on processors: control and worker on one core or on two, two workers on one core or on two.

use crate::samples::{Length, Samples};
use clap::ValueEnum;
use std::time::{Duration, Instant};
use volley_bench::{Args, Setup};
use volley_daemon::stack::Stack;
use volley_graph::{NodeState, WorkerThreads};

/// Time before the first repetition.
const WARM_UP: Duration = Duration::from_millis(100);
/// Pause of the control thread, as in the daemon.
const TURN: Duration = Duration::from_micros(500);

/// Which thread runs on which processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allocation {
    /// Control and worker on one core.
    OneCore,
    /// Control and worker on a core each.
    TwoCores,
    /// Two workers on one core, control on another one.
    WorkersOnOne,
    /// Two workers on a core each, control on a third one if there is one.
    TwoWorkers,
}

/// Processors of the threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Of the control thread.
    pub control: usize,
    /// Of each worker.
    pub workers: Vec<usize>,
    /// Of a generator beside the router: without a worker, if there is such a processor.
    pub generator: usize,
}

impl Allocation {
    /// The places on these processors.
    ///
    /// # Errors
    /// If there are too few processors.
    pub fn places(self, processors: &[usize]) -> Result<Places, String> {
        let [first, .., last] = *processors else {
            let one = processors.first().filter(|_| self == Allocation::OneCore);
            let places = one.map(|one| Places {
                control: *one,
                workers: vec![*one],
                generator: *one,
            });
            return places.ok_or_else(|| "this allocation needs two processors".to_owned());
        };
        let workers = match self {
            Allocation::OneCore | Allocation::TwoCores => vec![last],
            Allocation::WorkersOnOne => vec![last, last],
            Allocation::TwoWorkers => processors[processors.len() - 2..].to_vec(),
        };
        let control = match self {
            Allocation::OneCore => last,
            _ => first,
        };
        let mut free = processors.iter().filter(|p| !workers.contains(p));
        Ok(Places {
            generator: free.next().copied().unwrap_or(control),
            control,
            workers,
        })
    }

    /// The places on the processors that this thread may use.
    ///
    /// # Errors
    /// If there are too few.
    pub fn here(self) -> Result<Places, String> {
        self.places(&volley_graph::cores())
    }
}

/// Packets that the sources of all workers have sent.
fn packets(stack: &Stack, workers: usize) -> u64 {
    let engine = stack.engine.borrow();
    let nodes = (0..workers).flat_map(|worker| engine.runtime(worker));
    let sources = nodes.filter(|n| matches!(n.state, NodeState::Polling | NodeState::Interrupt));
    sources.map(|n| n.vectors).sum()
}

/// Act as the control thread for a time.
fn control(stack: &Stack, time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        stack.processes.run_manual();
        stack.settled();
        std::thread::sleep(TURN);
    }
}

/// Measure the rate of all workers together. This thread is pinned.
///
/// # Errors
/// If there are too few processors, the scenario cannot be set up, or a worker dies.
pub fn measure(allocation: Allocation, mut args: Args, length: Length) -> Result<Samples, String> {
    let places = allocation.here()?;
    volley_bench::pin(Some(places.control));
    args.workers = places.workers.len();
    let mut setup = Setup::new(&args).map_err(|e| e.to_string())?;
    setup.enable(true).map_err(|e| e.to_string())?;
    let Setup {
        stack,
        worker,
        others,
        ..
    } = setup;
    let workers = std::iter::once(worker).chain(others).collect();
    let running = WorkerThreads::start(workers, &places.workers).map_err(|e| e.to_string())?;
    control(&stack, WARM_UP);
    let count = places.workers.len();
    let repetition = |_| {
        let (before, start) = (packets(&stack, count), Instant::now());
        control(&stack, Duration::from_secs_f64(length.seconds));
        let sent = packets(&stack, count) - before;
        sent as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    let mpps: Vec<f64> = (0..length.repetitions).map(repetition).collect();
    match running.is_alive() {
        true => Ok(Samples::from([("mpps".to_owned(), mpps)])),
        false => Err("the thread of a worker has ended".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_has_its_places() {
        let of = |allocation: Allocation, processors: &[usize]| {
            let places = allocation.places(processors);
            places.map(|places| (places.control, places.workers, places.generator))
        };
        assert_eq!(of(Allocation::OneCore, &[0, 1]), Ok((1, vec![1], 0)));
        assert_eq!(of(Allocation::TwoCores, &[0, 1]), Ok((0, vec![1], 0)));
        assert_eq!(
            of(Allocation::WorkersOnOne, &[0, 1]),
            Ok((0, vec![1, 1], 0))
        );
        assert_eq!(of(Allocation::TwoWorkers, &[0, 1]), Ok((0, vec![0, 1], 0)));
        assert_eq!(
            of(Allocation::TwoWorkers, &[0, 1, 2]),
            Ok((0, vec![1, 2], 0))
        );
        assert_eq!(of(Allocation::OneCore, &[3]), Ok((3, vec![3], 3)));
        assert!(of(Allocation::TwoCores, &[3]).is_err());
    }

    #[test]
    fn two_workers_forward() {
        volley_daemon::objects::register().unwrap();
        let args = crate::samples::parse("--scenario ip4 --buffers 512").unwrap();
        let length = Length {
            seconds: 0.1,
            repetitions: 3,
            counted: 0,
        };
        // Other tests may have the processors for a whole repetition.
        let sum = |samples: &Samples| samples["mpps"].iter().sum::<f64>();
        for allocation in [Allocation::OneCore, Allocation::WorkersOnOne] {
            if allocation.here().is_err() {
                println!("skipped: {allocation:?} needs two processors");
                continue;
            }
            // The measurement pins its thread.
            let args = args.clone();
            let measured = std::thread::spawn(move || measure(allocation, args, length));
            assert!(sum(&measured.join().unwrap().unwrap()) > 0.0);
        }
    }
}
