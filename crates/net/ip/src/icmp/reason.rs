//! Maps the reason for a drop to an ICMP error.

use super::message::ErrorReason;
use super::protocol::Icmp;
use crate::node::{
    ip_full_reassembly, ip_local, ip_lookup, ip_rewrite, ip4_input, ip4_options, ip6_hop_by_hop,
    ip6_input,
};
use volley_fib::Af;
use volley_graph::{Counters, Engine, GraphError, Node};

/// Values of the `ERR` column with their ICMP reasons, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons(Vec<(u32, ErrorReason)>);

impl Reasons {
    /// The reasons of a family's nodes, which must all be in the graph.
    pub(crate) fn of<F: Icmp>(engine: &Engine) -> Result<Self, GraphError> {
        let mut all = Reasons::default();
        use ip_lookup::Count as Lookup;
        let lookups = [
            (Lookup::NoRoute, ErrorReason::NoRoute),
            (Lookup::InterfaceDown, ErrorReason::NoRoute),
            (Lookup::Unreachable, ErrorReason::Unreachable),
            (Lookup::Prohibited, ErrorReason::Prohibited),
        ];
        for node in [F::LOOKUP, F::LOAD_BALANCE] {
            all.add(engine, node, &lookups)?;
        }
        use ip_local::Count as Local;
        let local = [
            (Local::PortUnreachable, ErrorReason::Port),
            (Local::ProtocolUnreachable, ErrorReason::Protocol),
        ];
        all.add(engine, F::LOCAL, &local)?;
        use ip_full_reassembly::Count as Fragment;
        let fragments = [
            (Fragment::Timeout, ErrorReason::Reassembly),
            (Fragment::BadLength, ErrorReason::FragmentLength),
            (Fragment::TooLong, ErrorReason::FragmentOffset),
            (Fragment::Tiny, ErrorReason::HeaderChain),
        ];
        all.add(engine, F::REASSEMBLY, &fragments)?;
        match F::AF {
            Af::V4 => all.only4(engine, F::REWRITE)?,
            Af::V6 => all.only6(engine, F::REWRITE, F::LOCAL)?,
        }
        all.by_name(
            engine,
            F::REWRITE_MCAST,
            "packet-too-big",
            ErrorReason::TooBig,
        );
        all.by_name(engine, F::GLEAN, "unresolved", ErrorReason::Unreachable);
        all.0.sort_unstable_by_key(|(word, _)| *word);
        Ok(all)
    }

    fn only4(&mut self, engine: &Engine, rewrite: &str) -> Result<(), GraphError> {
        let expired = [(ip4_input::Count::TtlExpired, ErrorReason::Expired)];
        self.add(engine, ip4_input::Ip4Input::NAME, &expired)?;
        let options = [(ip4_options::Count::BadOptions, ErrorReason::Problem)];
        self.add(engine, ip4_options::Ip4Options::NAME, &options)?;
        let too_big = [(ip_rewrite::Count::FragNeeded, ErrorReason::TooBig)];
        self.add(engine, rewrite, &too_big)
    }

    fn only6(&mut self, engine: &Engine, rewrite: &str, local: &str) -> Result<(), GraphError> {
        let expired = [(ip6_input::Count::HopLimit, ErrorReason::Expired)];
        self.add(engine, ip6_input::Ip6Input::NAME, &expired)?;
        use ip6_hop_by_hop::Count;
        let hop_by_hop = [Count::Jumbogram, Count::Bad, Count::UnknownOption];
        let hop_by_hop = hop_by_hop.map(|count| (count, ErrorReason::Problem));
        self.add(engine, ip6_hop_by_hop::Ip6HopByHop::NAME, &hop_by_hop)?;
        use ip_local::Count as Local;
        let problems = [Local::Malformed, Local::UnknownOption, Local::SourceRoute];
        let problems = problems.map(|count| (count, ErrorReason::Problem));
        self.add(engine, local, &problems)?;
        let too_big = [(ip_rewrite::Count::TooBig, ErrorReason::TooBig)];
        self.add(engine, rewrite, &too_big)
    }

    fn add<C: Counters>(
        &mut self,
        engine: &Engine,
        node: &str,
        all: &[(C, ErrorReason)],
    ) -> Result<(), GraphError> {
        let id = engine.node(node)?;
        let word = |(count, why): &(C, ErrorReason)| (id.reason(count.index()), *why);
        self.0.extend(all.iter().map(word));
        Ok(())
    }

    /// Adds a counter of another crate's node by name, if the node exists.
    fn by_name(&mut self, engine: &Engine, node: &str, counter: &str, why: ErrorReason) {
        let Ok(id) = engine.node(node) else { return };
        let names = (0..).map_while(|n| Some((n, engine.counter_info(id, n)?.name)));
        if let Some((n, _)) = names.into_iter().find(|(_, name)| *name == counter) {
            self.0.push((id.reason(n), why));
        }
    }

    /// A single reason, for tests.
    #[cfg(test)]
    pub(crate) fn one(word: u32, why: ErrorReason) -> Self {
        Reasons(vec![(word, why)])
    }

    /// The ICMP reason for a value of the `ERR` column; none for a drop that causes no ICMP error.
    pub(crate) fn find(&self, word: u32) -> Option<ErrorReason> {
        let at = self.0.binary_search_by_key(&word, |(w, _)| *w).ok()?;
        Some(self.0[at].1)
    }
}
