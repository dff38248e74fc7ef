//! Learning: assigns queues to the heaviest paths.
//!
//! Workers sample the signatures of packets that match no rule. Every decision halves the earlier weights, so the weight of a
//! path is its recent share. Free queues are assigned to the heaviest paths; a queue changes its owner only if a path outweighs
//! the owner by the margin at two decisions in a row (hysteresis), one queue at a time.

use crate::table::LearnedPath;
use std::collections::HashMap;

/// Paths that have a weight at a time.
const PATHS: usize = 1024;
/// Samples that a first decision needs.
const ENOUGH: f64 = 64.0;
/// Share of all samples below which a path gets no queue.
const LEAST: f64 = 0.01;

/// Weights of the sampled paths.
#[derive(Default)]
pub(crate) struct Learner {
    weights: HashMap<LearnedPath, f64>,
    total: f64,
    /// Challenger and owner at the last decision.
    rivals: Option<(LearnedPath, LearnedPath)>,
}

impl Learner {
    /// Adds a sampled packet of this path.
    pub(crate) fn sample(&mut self, path: LearnedPath) {
        self.total += 1.0;
        if let Some(weight) = self.weights.get_mut(&path) {
            *weight += 1.0;
        } else if self.weights.len() < PATHS {
            self.weights.insert(path, 1.0);
        }
    }

    /// Recent share of a path in all samples, in percent.
    pub(crate) fn percent(&self, path: &LearnedPath) -> f64 {
        let weight = self.weights.get(path).copied().unwrap_or(0.0);
        100.0 * weight / self.total.max(1.0)
    }

    /// Paths not among `owners`, heaviest first.
    fn others(&self, owners: &[(LearnedPath, u32)]) -> Vec<(f64, LearnedPath)> {
        let owned = |p: &LearnedPath| owners.iter().any(|(o, _)| o == p);
        let all = self.weights.iter().filter(|(p, _)| !owned(p));
        let mut all: Vec<_> = all.map(|(p, w)| (*w, *p)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        all
    }

    /// Decides the owners of the `queues`; true if they changed.
    pub(crate) fn decide(
        &mut self,
        owners: &mut Vec<(LearnedPath, u32)>,
        queues: &[u32],
        margin_percent: u32,
    ) -> bool {
        let before = owners.clone();
        owners.retain(|(_, queue)| queues.contains(queue));
        if self.total >= ENOUGH {
            let alive = |p: &LearnedPath| self.weights.get(p).is_some_and(|w| *w >= 1.0);
            owners.retain(|(path, _)| alive(path));
            let mut others = self.others(owners).into_iter().peekable();
            for queue in queues {
                if owners.iter().any(|(_, q)| q == queue) {
                    continue;
                }
                if let Some((_, path)) = others.next_if(|(w, _)| *w >= LEAST * self.total) {
                    owners.push((path, *queue));
                }
            }
            self.challenge(others.next(), owners, margin_percent);
        }
        self.weights.values_mut().for_each(|w| *w /= 2.0);
        self.weights.retain(|_, w| *w >= 0.25);
        self.total /= 2.0;
        *owners != before
    }

    fn challenge(
        &mut self,
        best: Option<(f64, LearnedPath)>,
        owners: &mut [(LearnedPath, u32)],
        margin_percent: u32,
    ) {
        let weight = |p: &LearnedPath| self.weights.get(p).copied().unwrap_or(0.0);
        let weakest = owners
            .iter_mut()
            .min_by(|a, b| weight(&a.0).total_cmp(&weight(&b.0)));
        let margin = 1.0 + f64::from(margin_percent) / 100.0;
        let rivals = match (best, &weakest) {
            (Some((heavy, path)), Some(owner)) if heavy > margin * weight(&owner.0) => {
                Some((path, owner.0))
            }
            _ => None,
        };
        if let (Some((path, _)), Some(owner), true) = (rivals, weakest, rivals == self.rivals) {
            owner.0 = path;
            self.rivals = None;
        } else {
            self.rivals = rivals;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(n: u64) -> LearnedPath {
        LearnedPath {
            path: n,
            seen: 0,
            values: [0; 4],
        }
    }

    fn traffic(learner: &mut Learner, heavy: [u64; 2]) {
        for n in 0..500u64 {
            learner.sample(path(n % 50));
            learner.sample(path(heavy[(n % 2) as usize]));
        }
    }

    #[test]
    fn the_two_heaviest_of_fifty() {
        let (mut learner, mut owners) = (Learner::default(), Vec::new());
        let queues = [63, 62];
        let names = |owners: &[(LearnedPath, u32)]| {
            let mut names: Vec<u64> = owners.iter().map(|o| o.0.path).collect();
            names.sort_unstable();
            names
        };
        assert!(
            !learner.decide(&mut owners, &queues, 25),
            "nothing was seen"
        );
        traffic(&mut learner, [17, 31]);
        assert!(learner.decide(&mut owners, &queues, 25));
        assert_eq!(names(&owners), [17, 31]);
        traffic(&mut learner, [17, 31]);
        assert!(!learner.decide(&mut owners, &queues, 25));
        // The heavier paths take over after several decisions, never at a single one.
        let mut decisions = 0;
        while names(&owners) != [5, 17] {
            traffic(&mut learner, [17, 5]);
            let changed = learner.decide(&mut owners, &queues, 25);
            assert!(decisions > 0 || !changed, "one decision is not enough");
            decisions += 1;
            assert!(decisions < 8);
        }
        owners.iter().for_each(|o| assert!(queues.contains(&o.1)));
        learner.decide(&mut owners, &queues[..1], 25);
        assert_eq!(owners.len(), 1, "a queue that is taken away is lost");
    }

    #[test]
    fn a_little_more_is_not_enough() {
        let (mut learner, mut owners) = (Learner::default(), Vec::new());
        for round in 0..20 {
            for n in 0..1000u64 {
                // Two paths of nearly the same weight, which alternate as the heavier one.
                learner.sample(path(u64::from(n % 21 < 10 + round % 2)));
            }
            let changed = learner.decide(&mut owners, &[63], 25);
            assert_eq!(changed, round == 0, "round {round}");
        }
    }
}
