//! The assignment of receive queues to workers: to the worker that the operator chose, otherwise to one with few
//! queues.

use crate::{IfIdx, Interfaces};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A driver's function that moves one of its receive queues (by index) to another worker. Called on the control
/// thread; the queue moves when its present worker passes it on.
pub type QueueMover = Rc<dyn Fn(usize, usize)>;

/// The state of the assignment besides the worker of each queue.
#[derive(Default)]
pub(crate) struct QueueAssignment {
    steers: BTreeMap<IfIdx, QueueMover>,
    /// Queues with a worker that the operator chose.
    pinned_workers: BTreeMap<(IfIdx, usize), usize>,
}

impl QueueAssignment {
    pub(crate) fn remove_interface(&mut self, index: IfIdx) {
        self.steers.remove(&index);
        self.pinned_workers.retain(|(i, _), _| *i != index);
    }
}

/// A queue that is to move to a worker.
struct QueueMove {
    steer: Option<QueueMover>,
    queue: usize,
    worker: usize,
}

/// Moves to make while nothing is borrowed.
pub(crate) struct QueueMoves(Vec<QueueMove>);

impl QueueMoves {
    /// Makes the moves. Returns their number.
    pub(crate) fn make(self) -> usize {
        for it in &self.0 {
            if let Some(steer) = &it.steer {
                steer(it.queue, it.worker);
            }
        }
        self.0.len()
    }
}

impl Interfaces {
    /// Sets the function that moves queues of an interface.
    pub fn set_queue_mover(&mut self, index: IfIdx, steer: QueueMover) {
        self.steering.steers.insert(index, steer);
    }

    /// The number of queues of each worker that accepts new work.
    fn loads(&self) -> BTreeMap<usize, usize> {
        let worker_set = self.table().worker_set();
        let mut loads: BTreeMap<usize, usize> = worker_set.accepting().map(|w| (w, 0)).collect();
        for worker in self.iter().flat_map(|i| &i.rx_queues) {
            loads.entry(*worker).and_modify(|n| *n += 1);
        }
        loads
    }

    /// The worker that the operator chose for a queue, if it exists.
    fn pinned(&self, index: IfIdx, queue: usize) -> Option<usize> {
        let worker = *self.steering.pinned_workers.get(&(index, queue))?;
        let open = self.table().worker_set().accepting().any(|w| w == worker);
        open.then_some(worker)
    }

    /// Chooses a worker for each of this number of new receive queues: the one with the fewest queues, and the lowest id among
    /// those.
    pub fn assign_workers(&self, queues: usize) -> Vec<usize> {
        let mut loads = self.loads();
        (0..queues).map(|_| take_least(&mut loads)).collect()
    }

    /// As [`Self::assign_workers`], for an existing interface: its queues stay on their workers, and queues with a
    /// chosen worker are assigned to that.
    pub fn reassign_workers(&self, index: IfIdx, queues: usize) -> Vec<usize> {
        let (mut loads, had) = (self.loads(), self.get(index));
        let of = |queue: usize| {
            let stays = had.and_then(|i| i.rx_queues.get(queue).copied());
            let place = self.pinned(index, queue).or(stays);
            place.unwrap_or_else(|| take_least(&mut loads))
        };
        (0..queues).map(of).collect()
    }

    /// Chooses a worker for a queue, or returns the queue to the automatic assignment.
    pub(crate) fn pin(&mut self, index: IfIdx, queue: usize, worker: Option<usize>) -> QueueMoves {
        match worker {
            Some(worker) => self.steering.pinned_workers.insert((index, queue), worker),
            None => self.steering.pinned_workers.remove(&(index, queue)),
        };
        let to = self.pinned(index, queue);
        let moved = to.and_then(|worker| self.send(index, queue, worker));
        QueueMoves(moved.into_iter().collect())
    }

    /// Assigns every queue to its chosen worker and distributes the others evenly, after workers were added or began to drain.
    pub(crate) fn rebalance(&mut self) -> QueueMoves {
        let mut moves = Vec::new();
        let all = self.iter().map(|i| (i.index, i.rx_queues.clone()));
        let all: Vec<(IfIdx, Vec<usize>)> = all.collect();
        let queues = || {
            let of = |(index, workers): &(IfIdx, Vec<usize>)| {
                let index = *index;
                (0..workers.len())
                    .map(move |queue| (index, queue))
                    .collect::<Vec<_>>()
            };
            all.iter().flat_map(of)
        };
        for (index, queue) in queues() {
            let open = self.table().worker_set().accepting().collect::<Vec<_>>();
            let stays = self.worker_of(index, queue).filter(|w| open.contains(w));
            let to = self.pinned(index, queue).or(stays);
            let to = to.unwrap_or_else(|| take_least(&mut self.loads()));
            moves.extend(self.send(index, queue, to));
        }
        for (index, queue) in queues() {
            let mut loads = self.loads();
            let here = self.worker_of(index, queue);
            let mine = here.and_then(|w| loads.get(&w).copied()).unwrap_or(0);
            let least = loads.values().copied().min().unwrap_or(0);
            if self.pinned(index, queue).is_none() && mine > least + 1 {
                let to = take_least(&mut loads);
                moves.extend(self.send(index, queue, to));
            }
        }
        QueueMoves(moves)
    }

    fn worker_of(&self, index: IfIdx, queue: usize) -> Option<usize> {
        self.get(index)?.rx_queues.get(queue).copied()
    }

    fn send(&mut self, index: IfIdx, queue: usize, worker: usize) -> Option<QueueMove> {
        if self.worker_of(index, queue)? == worker {
            return None;
        }
        self.put_queue(index, queue, worker);
        let steer = self.steering.steers.get(&index).cloned();
        Some(QueueMove {
            steer,
            queue,
            worker,
        })
    }
}

/// The worker with the fewest queues, and the lowest id among those. Its count increases by one.
fn take_least(loads: &mut BTreeMap<usize, usize>) -> usize {
    let least = loads.iter_mut().min_by_key(|(worker, n)| (**n, **worker));
    least.map_or(0, |(worker, n)| {
        *n += 1;
        *worker
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IfTable, NewInterface};
    use std::cell::RefCell;
    use std::sync::Arc;
    use volley_graph::{NodeId, WorkerSet};

    fn interface(all: &mut Interfaces, name: &str, queues: usize) -> IfIdx {
        let new = NewInterface {
            rx_queues: all.assign_workers(queues),
            ..NewInterface::new(name, "test")
        };
        all.create(new, NodeId(1)).unwrap()
    }

    #[test]
    fn queues_go_where_few_are_and_where_somebody_wants_them() {
        let worker_set = Arc::new(WorkerSet::from_ids([0, 1, 2]));
        let mut all = Interfaces::new(IfTable::with_workers(8, worker_set.clone()));
        let a = interface(&mut all, "a", 4);
        let b = interface(&mut all, "b", 1);
        let at = |all: &Interfaces, i| all.get(i).unwrap().rx_queues.clone();
        assert_eq!((at(&all, a), at(&all, b)), (vec![0, 1, 2, 0], vec![1]));
        let made: Rc<RefCell<Vec<(usize, usize)>>> = Rc::default();
        let sink = made.clone();
        all.set_queue_mover(a, Rc::new(move |q, w| sink.borrow_mut().push((q, w))));
        all.pin(a, 2, Some(0)).make();
        assert_eq!((at(&all, a), made.take()), (vec![0, 1, 0, 0], vec![(2, 0)]));
        // The chosen worker does not exist: the queue stays, and moves when that worker is added.
        all.pin(a, 1, Some(5)).make();
        assert_eq!((at(&all, a), made.take()), (vec![0, 1, 0, 0], vec![]));
        // The first worker is drained: its queues are distributed evenly.
        worker_set.set_draining(0, true);
        all.rebalance().make();
        let left = [at(&all, a), at(&all, b)].concat();
        let count = |w| left.iter().filter(|x| **x == w).count();
        assert_eq!((count(0), count(1) + count(2)), (0, 5));
        assert!(count(1).abs_diff(count(2)) <= 1, "{left:?}");
        // The draining is cancelled: the queue with this chosen worker moves back, and the others make the
        // distribution even.
        worker_set.set_draining(0, false);
        all.rebalance().make();
        assert_eq!(at(&all, a)[2], 0);
        let left = [at(&all, a), at(&all, b)].concat();
        let count = |w| left.iter().filter(|x| **x == w).count();
        assert!(
            [0, 1, 2].map(count).iter().all(|n| (1..=2).contains(n)),
            "{left:?}"
        );
        assert_eq!(all.reassign_workers(a, 6).len(), 6);
    }
}
