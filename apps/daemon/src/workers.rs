//! `workers add` and `workers del`: add and remove workers while packets flow.
//!
//! - A new worker is created here and started without capabilities; then receive queues are distributed again.
//! - A worker that is removed gets no new work. Its queues and streams are moved to other workers by their drivers, which are
//!   notified after this handler. When no work is pending, its thread ends, and [`WorkerManager::tend`] frees its worker id.

use crate::run::{OfWorkers, privileges};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use tracing::info;
use volley_graph::{Engine, Worker, WorkerThreads};
use volley_iface::{Registry, VectorSize, WorkerAdd, WorkerDelete};
use volley_model::{Applied, ModelError, ObjectKind};

/// Creates and removes workers.
pub struct WorkerManager {
    engine: Rc<RefCell<Engine>>,
    /// The worker threads; none if workers are stepped manually.
    running: Option<Weak<RefCell<WorkerThreads>>>,
    /// The filter of system calls of new workers.
    filter: OfWorkers,
    /// New workers that do not run yet.
    fresh: Vec<Worker>,
}

impl WorkerManager {
    /// A manager of the workers of this engine.
    pub fn new(engine: Rc<RefCell<Engine>>) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(WorkerManager {
            engine,
            running: None,
            filter: OfWorkers::default(),
            fresh: Vec::new(),
        }))
    }

    /// Starts new workers in these threads from now on, with this filter.
    pub fn run_by(&mut self, running: &Rc<RefCell<WorkerThreads>>, filter: OfWorkers) {
        self.running = Some(Rc::downgrade(running));
        self.filter = filter;
    }

    /// The worker threads, while they exist.
    pub fn running(&self) -> Option<Rc<RefCell<WorkerThreads>>> {
        self.running.as_ref().and_then(Weak::upgrade)
    }

    /// The new workers, which the caller steps.
    #[cfg(test)]
    pub fn take_fresh(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.fresh)
    }

    /// Removes a worker that was stepped manually and may leave.
    #[cfg(test)]
    pub fn retire(&mut self, worker: Worker) {
        let place = worker.id();
        self.engine.borrow_mut().remove_worker(place, Some(worker));
    }

    /// Frees the ids of workers that have ended; true if no worker is leaving.
    pub fn tend(&mut self) -> bool {
        let mut engine = self.engine.borrow_mut();
        if let Some(running) = self.running.as_ref().and_then(Weak::upgrade) {
            while let Some((place, worker)) = running.borrow_mut().take_exited() {
                engine.remove_worker(place, worker);
                info!(target: "worker", worker = place, "worker {place} is removed");
            }
        }
        let worker_set = engine.worker_set();
        let leaving = worker_set
            .iter()
            .any(|worker| worker_set.is_draining(worker));
        if leaving {
            engine.wake();
        }
        !leaving
    }

    fn add(&mut self, core: Option<u32>) -> Result<Applied, ModelError> {
        let refused = |why: String| ModelError::invalid("workers add", why);
        let core = core.map(|core| core as usize);
        if let Some(core) = core {
            self.check_core(core).map_err(refused)?;
        }
        let worker = self.engine.borrow_mut().add_worker();
        let worker = worker.map_err(|e| refused(e.to_string()))?;
        let place = worker.id();
        let Some(running) = self.running() else {
            self.fresh.push(worker);
            return Ok(added(place));
        };
        match privileges::start_worker(worker, core, self.filter.clone()) {
            Ok(thread) => {
                running.borrow_mut().add(thread);
                info!(target: "worker", worker = place, core, "worker {place} is added");
                Ok(added(place))
            }
            Err(error) => {
                self.engine.borrow_mut().remove_worker(place, None);
                Err(refused(error.to_string()))
            }
        }
    }

    fn set_vector_size(&self, packets: u32) -> Result<Applied, ModelError> {
        let what = format!("vector-size {packets}");
        let mut engine = self.engine.borrow_mut();
        let (packets, buffers) = (packets as usize, engine.settings().buffers);
        if buffers < 2 * packets {
            let why =
                format!("a vector needs at least twice as many buffers, and there are {buffers}");
            return Err(ModelError::invalid(what, why));
        }
        if engine.vector_size() == packets {
            return Ok(Applied::nothing());
        }
        let set = engine.set_vector_size(packets);
        set.map(|()| Applied::one())
            .map_err(|e| ModelError::invalid(what, e.to_string()))
    }

    fn check_core(&self, core: usize) -> Result<(), String> {
        let (cores, running) = (volley_graph::cores(), self.running());
        if !cores.is_empty() && !cores.contains(&core) {
            let all: Vec<String> = cores.iter().map(ToString::to_string).collect();
            return Err(format!(
                "there is no core {core}; there are: {}",
                all.join(", ")
            ));
        }
        let worker_set = self.engine.borrow().worker_set().clone();
        let on =
            |worker: &usize| running.as_ref().and_then(|r| r.borrow().core(*worker)) == Some(core);
        match worker_set.iter().find(on) {
            Some(worker) => Err(format!(
                "core {core} has worker {worker}: choose another core"
            )),
            None => Ok(()),
        }
    }

    fn dismiss(&mut self, worker: u32) -> Result<Applied, ModelError> {
        let (number, engine) = (worker as usize, self.engine.borrow());
        let worker_set = engine.worker_set();
        if !worker_set.has(number) {
            let known = worker_set.iter().map(|w| w.to_string());
            let worker = format!("worker {worker}");
            return Err(ModelError::not_found(ObjectKind::Object, worker, known));
        }
        if worker_set.is_draining(number) {
            return Ok(Applied::nothing());
        }
        if worker_set.accepting().count() == 1 {
            let why = "it is the last one: add another first";
            return Err(ModelError::invalid(format!("workers del {worker}"), why));
        }
        worker_set.set_draining(number, true);
        info!(target: "worker", worker, "worker {worker} is leaving");
        if let Some(running) = self.running() {
            running.borrow().drain_worker(number);
        }
        Ok(Applied::one())
    }
}

fn added(place: usize) -> Applied {
    let applied = Applied::one().named(place.to_string());
    applied.note(format!("worker {place}"))
}

/// Registers the owner of the verbs of workers. It must be the first: other owners then read the current workers.
pub fn register(registry: &mut Registry) -> Rc<RefCell<WorkerManager>> {
    let worker_set = WorkerManager::new(registry.engine.clone());
    let shared = worker_set.clone();
    registry.perform(move |it: WorkerAdd| shared.borrow_mut().add(it.core));
    let shared = worker_set.clone();
    registry.perform(move |it: WorkerDelete| shared.borrow_mut().dismiss(it.worker));
    let shared = worker_set.clone();
    registry.perform(move |it: VectorSize| shared.borrow().set_vector_size(it.packets));
    worker_set
}

#[cfg(test)]
mod tests {
    use crate::settings::EngineSettings;
    use crate::stack::Stack;
    use volley_graph::{Clock, Worker};
    use volley_iface::WorkerDelete;
    use volley_model::Request;

    const CONFIG: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
        [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";

    struct Bench {
        stack: Stack,
        workers: Vec<Worker>,
    }

    impl Bench {
        /// Runs a round of every worker, and removes those that may leave.
        fn round(&mut self) {
            self.workers
                .extend(self.stack.worker_set.borrow_mut().take_fresh());
            self.workers.iter_mut().for_each(|w| _ = w.step());
            let worker_set = self.stack.engine.borrow().worker_set().clone();
            let done = |w: &mut Worker| worker_set.is_draining(w.id()) && w.can_exit();
            for worker in self.workers.extract_if(.., done) {
                self.stack.worker_set.borrow_mut().retire(worker);
            }
            self.stack.settled();
        }

        fn line(&self, line: &str) {
            let action = volley_cli::parse_line(line).unwrap().action;
            let volley_cli::Action::Request(request) = action else {
                panic!("{line} is no request");
            };
            self.stack.apply(&request).unwrap();
        }

        /// Counts of packets received, transmitted, and dropped.
        fn passed(&self) -> (u64, u64, u64) {
            let asked = volley_iface::ShowInterfaces { name: None };
            let all = self.stack.ask(&asked).unwrap();
            let [from, to] = &all.interfaces[..] else {
                panic!("not two");
            };
            (from.rx.packets, to.tx.packets, from.drops)
        }
    }

    #[test]
    fn workers_come_and_go_and_no_packet_is_lost() {
        let settings = EngineSettings {
            workers: 2,
            ..EngineSettings::default()
        };
        let (stack, workers) = Stack::new(&settings, Clock::manual()).unwrap();
        for request in volley_config::parse(CONFIG).unwrap().requests {
            stack.apply(&request).unwrap();
        }
        let mut bench = Bench { stack, workers };
        for worker in 0..2 {
            bench.line(&format!(
                "packet-generator new name s{worker} interface pg0 worker {worker} limit 60000 \
                 template {{ eth / ip4 dst 10.0.0.1 / udp / payload 20 }}"
            ));
        }
        _ = bench.stack.pg.switch(None, true).unwrap();
        for round in 0..2_000 {
            match round {
                20 | 60 => bench.line("workers add"),
                40 => bench.line("workers del 0"),
                80 => bench.line("workers del 1"),
                90 => bench.line("packet-generator new name late interface pg0 worker 2 limit 1000 template { eth / payload 50 }"),
                91 => _ = bench.stack.pg.switch(Some("late"), true).unwrap(),
                _ => {}
            }
            bench.round();
        }
        assert_eq!(bench.passed(), (121_000, 121_000, 0));
        let worker_set = bench.stack.engine.borrow().worker_set().clone();
        // Workers 0 and 1 were removed; the first new worker after the removal of 0 got its id.
        assert_eq!(worker_set.iter().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(bench.workers.len(), 2);
        bench.workers.clear();
        assert_eq!(bench.stack.engine.borrow().pool().report().in_use(), 0);
        let last = |worker| Request::of(&WorkerDelete { worker }).unwrap();
        bench.stack.apply(&last(2)).unwrap();
        let refused = bench.stack.apply(&last(0)).unwrap_err();
        assert!(
            refused.to_string().contains("it is the last one"),
            "{refused}"
        );
        assert!(bench.stack.apply(&last(7)).is_err());
    }
}
