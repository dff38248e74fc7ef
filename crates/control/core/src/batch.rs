//! The steps of a transaction: routes of one source that follow each other in a table are one step.
//!
//! A separate step for each route would take most of the time and of the memory of a transaction with a million routes.

use crate::key::RouteKey;
use crate::plan::{Step, route};
use std::collections::HashMap;
use std::sync::Arc;
use volley_model::{Path, Request, RouteBatch};

/// Most routes of a step: other work of the control thread waits for one step.
pub(crate) const MOST: usize = 4096;

type Paths = Arc<Vec<Path>>;

/// A batch, and where it has which paths.
struct Filling {
    batch: RouteBatch,
    /// Number of a set by the address of its paths: a state has equal paths once.
    places: HashMap<*const Vec<Path>, u32>,
}

impl Filling {
    fn new(of: &RouteKey) -> Filling {
        let batch = RouteBatch::new(of.prefix.family(), of.table, of.source);
        let places = HashMap::new();
        Filling { batch, places }
    }

    /// The route has these paths; none: it is gone.
    fn take(&mut self, of: &RouteKey, paths: Option<&Paths>) {
        let Some(paths) = paths else {
            self.batch.gone.push(of.prefix);
            return;
        };
        let sets = &mut self.batch.sets;
        let set = self.places.entry(Arc::as_ptr(paths)).or_insert_with(|| {
            sets.push(paths.to_vec());
            sets.len() as u32 - 1
        });
        self.batch.put.push((of.prefix, *set));
    }
}

/// Routes that become one step, each with what it was.
struct Open {
    done: Filling,
    undo: Filling,
    /// The step of the first route, which is used when no other follows.
    alone: Step,
}

impl Open {
    fn fits(&self, of: &RouteKey) -> bool {
        let batch = &self.done.batch;
        let same = (batch.family, batch.table, batch.source);
        same == (of.prefix.family(), of.table, of.source) && batch.len() < MOST
    }

    fn close(self) -> Step {
        match self.done.batch.len() {
            1 => self.alone,
            _ => Step {
                request: Request::Routes(self.done.batch),
                undo: vec![Request::Routes(self.undo.batch)],
            },
        }
    }
}

/// Steps in order.
#[derive(Default)]
pub(crate) struct Steps {
    all: Vec<Step>,
    open: Option<Open>,
    /// Number of steps that are no routes.
    others: usize,
}

impl Steps {
    /// Adds a step that is no route.
    pub fn push(&mut self, step: Step) {
        self.close();
        self.all.push(step);
        self.others += 1;
    }

    /// Number of steps that are no routes.
    pub fn count(&self) -> usize {
        self.others
    }

    /// Adds requests that undo the last step that is no route.
    pub fn undo_last(&mut self, requests: Vec<Request>) {
        if let (None, Some(step)) = (&self.open, self.all.last_mut()) {
            step.undo.extend(requests);
        }
    }

    /// Adds a route that changes from one set of paths to another; none: there is no route.
    pub fn route(&mut self, of: &RouteKey, before: Option<&Paths>, now: Option<&Paths>) {
        if !self.open.as_ref().is_some_and(|open| open.fits(of)) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| Open {
            done: Filling::new(of),
            undo: Filling::new(of),
            alone: alone(of, before, now),
        });
        open.done.take(of, now);
        open.undo.take(of, before);
    }

    fn close(&mut self) {
        self.all.extend(self.open.take().map(Open::close));
    }

    /// All steps.
    pub fn finish(mut self) -> Vec<Step> {
        self.close();
        self.all
    }
}

impl Extend<Step> for Steps {
    fn extend<T: IntoIterator<Item = Step>>(&mut self, steps: T) {
        steps.into_iter().for_each(|step| self.push(step));
    }
}

/// The step of one route, as a command.
fn alone(of: &RouteKey, before: Option<&Paths>, now: Option<&Paths>) -> Step {
    let becomes = |from: Option<&Paths>, to: Option<&Paths>| match (from, to) {
        (_, None) => Request::RouteDel(route(of, &[])),
        (None, Some(to)) => Request::RouteAdd(route(of, to)),
        (Some(_), Some(to)) => Request::RouteReplace(route(of, to)),
    };
    Step {
        request: becomes(before, now),
        undo: vec![becomes(now, before)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Core, Executor, Progress};
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use volley_model::{Applied, ModelError, PathTarget, Prefix, Route, RouteSource};

    /// A FIB that is a plain map, and refuses the request that would make this route.
    #[derive(Default)]
    struct Plain {
        routes: RefCell<BTreeMap<(u32, Prefix), Vec<Path>>>,
        refuses: Option<Prefix>,
        longest: RefCell<usize>,
    }

    impl crate::Probe for Plain {
        fn by_first_name(&self, _: &str) -> Vec<volley_object::Instance> {
            Vec::new()
        }
    }

    impl Executor for Plain {
        fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
            let mut routes = self.routes.borrow_mut();
            let one = |route: &Route| (route.table, route.prefix);
            let mut set = vec![];
            let mut gone = vec![];
            match request {
                Request::RouteAdd(it) | Request::RouteReplace(it) => {
                    set.push((one(it), it.paths.clone()));
                }
                Request::RouteDel(it) => gone.push(one(it)),
                Request::Routes(batch) => {
                    let mut longest = self.longest.borrow_mut();
                    *longest = (*longest).max(batch.len());
                    set.extend(batch.put.iter().map(|(prefix, number)| {
                        let paths = batch.sets[*number as usize].clone();
                        ((batch.table, *prefix), paths)
                    }));
                    gone.extend(batch.gone.iter().map(|prefix| (batch.table, *prefix)));
                }
                _ => {}
            }
            if set
                .iter()
                .any(|((_, prefix), _)| Some(*prefix) == self.refuses)
            {
                return Err(ModelError::invalid("this", "it is refused"));
            }
            routes.extend(set);
            gone.iter().for_each(|it| drop(routes.remove(it)));
            Ok(Applied::one())
        }
    }

    fn prefix(n: u32) -> Prefix {
        let addr = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n * 256);
        Prefix::masked(addr.into(), 24).unwrap()
    }

    /// The change of route `n`: set 0 to 2 of paths, or its removal.
    fn change(n: u32, set: u32, there: bool) -> Option<Request> {
        let mut route = Route::new(prefix(n), Vec::new());
        let targets = [
            PathTarget::Drop,
            PathTarget::Unreachable,
            PathTarget::Prohibit,
        ];
        match targets.get(set as usize) {
            Some(target) => {
                route.paths = vec![Path::to(target.clone())];
                Some(Request::RouteReplace(route))
            }
            None => there.then_some(Request::RouteDel(route)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Transactions lead a map where single requests lead it; one that fails changes nothing.
        #[test]
        fn transactions_do_what_single_requests_do(
            rounds in prop::collection::vec(prop::collection::vec((0u32..40, 0u32..4), 2..60), 1..5),
            refused in prop::option::of(0u32..40),
        ) {
            let (mut core, mut fib) = (Core::default(), Plain::default());
            let mut want = BTreeMap::new();
            for round in rounds {
                let mut then = want.clone();
                let mut requests = Vec::new();
                for (n, set) in round {
                    let key = (0, prefix(n));
                    match change(n, set, then.contains_key(&key)) {
                        Some(Request::RouteReplace(it)) => {
                            then.insert(key, it.paths.clone());
                            requests.push(Request::RouteReplace(it));
                        }
                        Some(other) => {
                            then.remove(&key);
                            requests.push(other);
                        }
                        None => {}
                    }
                }
                fib.refuses = refused.map(prefix);
                match core.run(&requests, &fib) {
                    Ok(_) => want = then,
                    Err(_) => prop_assert!(refused.is_some()),
                }
                prop_assert_eq!(&*fib.routes.borrow(), &want);
            }
        }
    }

    #[test]
    fn many_routes_are_several_steps_and_taken_back_as_several() {
        let many = 3 * MOST as u32 - 5;
        let mut batch = RouteBatch::new(volley_model::Family::V4, 0, RouteSource::Static);
        batch.sets = vec![vec![Path::to(PathTarget::Drop)]];
        batch.put = (0..many).map(|n| (prefix(n), 0)).collect();
        let (mut core, mut fib) = (Core::default(), Plain::default());
        fib.refuses = Some(prefix(many - 1));
        let before = core.state().clone();
        let requests = [Request::Routes(batch)];
        let mut transaction = core.begin(&requests, &fib).unwrap();
        assert_eq!(transaction.steps().len(), 3);
        let mut slices = 0;
        let error = loop {
            match transaction.advance(&fib, 1) {
                Progress::More => slices += 1,
                Progress::Failed(error) => break error.to_string(),
                Progress::Done(_) => panic!("it was to fail"),
            }
        };
        assert!(error.contains("it is refused"), "{error}");
        core.end(transaction, None, &fib);
        assert_eq!((slices, core.state()), (4, &before));
        assert!(fib.routes.borrow().is_empty());

        fib.refuses = None;
        core.run(&requests, &fib).unwrap();
        assert_eq!(fib.routes.borrow().len(), many as usize);
        assert_eq!(*fib.longest.borrow(), MOST);
        let gone = RouteBatch {
            gone: (0..many).map(prefix).collect(),
            ..RouteBatch::new(volley_model::Family::V4, 0, RouteSource::Static)
        };
        core.run(&[Request::Routes(gone)], &fib).unwrap();
        assert!(fib.routes.borrow().is_empty() && core.state().is_empty());
    }

    #[test]
    fn a_batch_is_refused_as_a_whole() {
        let mut batch = RouteBatch::new(volley_model::Family::V4, 0, RouteSource::Static);
        batch.sets = vec![vec![Path::to(PathTarget::Drop)]];
        let refused = |batch: &RouteBatch| {
            let mut core = Core::default();
            let request = [Request::Routes(batch.clone())];
            let error = core.run(&request, &Plain::default()).unwrap_err();
            assert!(core.state().is_empty());
            error.to_string()
        };
        batch.put = vec![(prefix(1), 0), (prefix(2), 1)];
        assert!(refused(&batch).contains("there is no set 1 of paths: `sets` has 1"));
        batch.put = vec![(prefix(1), 0), ("2001:db8::/32".parse().unwrap(), 0)];
        assert!(refused(&batch).contains("all prefixes of a request `routes` are IPv4"));
        batch.put = vec![(prefix(1), 0)];
        batch.gone = vec![prefix(2)];
        assert!(refused(&batch).contains("route 10.0.2.0/24"));
        batch.gone.clear();
        batch.source = RouteSource::Adjacency;
        assert!(refused(&batch).contains("use static"));
        batch.source = RouteSource::Static;
        batch.sets = vec![vec![Path::to(PathTarget::Interface("pg7".into()))]];
        assert!(refused(&batch).contains("no interface pg7"));
        batch.sets = vec![Vec::new()];
        assert!(refused(&batch).contains("set 0 of paths"));
    }
}
