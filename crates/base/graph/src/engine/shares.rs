//! Shares of the engine's buffer pool.

use crate::data::error::GraphError;
use crate::data::shares::{Share, ShareReport};
use crate::engine::state::Engine;
use std::sync::Arc;

impl Engine {
    /// A share of the pool for a type of holder, in sixteenths. Refused if less than [`crate::RESERVE`] sixteenths would be
    /// left.
    pub fn add_share(
        &mut self,
        name: &'static str,
        parts: usize,
    ) -> Result<Arc<Share>, GraphError> {
        self.shares
            .add(name, parts, self.pool.total(), &self.worker_set)
    }

    /// Every share, in the order in which they were added.
    pub fn shares(&self) -> Vec<ShareReport> {
        self.shares.reports()
    }

    /// Buffers that no holder may touch: they are for forwarding.
    pub fn reserved_buffers(&self) -> u64 {
        (self.pool.total() - self.shares.limit()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::Settings;
    use volley_buf::Pool;
    use volley_tables::qsbr::Domain;

    fn engine(buffers: usize, workers: usize) -> Engine {
        let settings = Settings {
            buffers,
            workers,
            ..Settings::default()
        };
        Engine::new(settings, Pool::new(buffers).unwrap(), Domain::new()).unwrap()
    }

    #[test]
    fn half_of_the_pool_is_never_given_out() {
        let mut engine = engine(16_384, 1);
        assert_eq!(engine.reserved_buffers(), 16_384);
        engine.add_share("a", 5).unwrap();
        engine.add_share("b", 3).unwrap();
        assert_eq!(engine.reserved_buffers(), 8192);
        let refused = engine.add_share("c", 1).err();
        let want = GraphError::ShareOfBuffers {
            name: "c",
            parts: 1,
            left: 0,
        };
        assert_eq!(refused, Some(want));
    }

    #[test]
    fn workers_that_come_lower_the_limit_of_the_others() {
        let mut engine = engine(16_384, 8);
        let share = engine.add_share("a", 1).unwrap();
        let _workers = engine.build_first(1).unwrap();
        assert_eq!(share.each(), 1024);
        let _more: Vec<_> = (1..8).map(|_| engine.add_worker().unwrap()).collect();
        assert_eq!(share.each(), 128);
        share.set_held(0, 100);
        share.set_held(7, 28);
        share.count_evicted(7, 2);
        share.count_evicted(7, 1);
        share.count_refused(3, 5);
        let want = ShareReport {
            name: "a",
            limit: 1024,
            each: 128,
            held: 128,
            evicted: 3,
            refused: 5,
        };
        assert_eq!(engine.shares(), [want]);
    }
}
