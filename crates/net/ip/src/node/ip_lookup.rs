//! ip4-lookup, ip6-lookup: find the longest matching prefix of the destination in the receiving interface's table, and follow
//! its route. Section 6 of `docs/forwarding-rules.md`.

use crate::family::one_table;
use crate::{Icmp, IpTrace, Step};
use volley_fib::columns::{DPO, DST, DST1, DST2, DST3};
use volley_fib::dataplane::{
    CounterSnap, CounterView, DataPlane, Dpo, DpoKind, DropWhy, MAX_TABLES, View,
};
use volley_graph::{
    Bits, Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Nexts, Node, Vector, all_equal,
    counters, nexts, sum,
};

nexts! {
    /// Edges of the lookup and load-balance nodes, in the order of [`Edge::EDGES`].
    pub struct Edge<F: Icmp> {
        /// To the drop node.
        DROP => "error-drop",
        /// To the rewrite node: a complete adjacency was found.
        REWRITE => F::REWRITE,
        /// To the load-balance node: several paths were found.
        BALANCE => F::LOAD_BALANCE,
        /// To local delivery.
        LOCAL => F::LOCAL,
        /// To the glean node, for unresolved neighbours.
        GLEAN => F::GLEAN,
        /// To the node that sends ICMP errors.
        ERROR => F::ICMP_ERROR,
    }
}

counters! {
    /// What lookups count.
    pub enum Count {
        /// no prefix covers the destination
        NoRoute = "no-route" (Error),
        /// the route says drop
        DropRoute = "drop-route" (Error),
        /// the route says unreachable, or none of its next hops can be reached
        Unreachable = "unreachable" (Error),
        /// the route says administratively prohibited
        Prohibited = "prohibited" (Error),
        /// too many tables send the packet on to each other
        Loop = "lookup-loop" (Error),
        /// the destination is the network or broadcast address of a connected subnet
        SubnetBroadcast = "subnet-broadcast" (Error),
        /// the destination is one that routers do not forward to
        NotForwarded = "not-forwarded" (Error),
        /// the interface behind the route is down
        InterfaceDown = "interface-down" (Error),
    }
}

/// State of a lookup node.
pub struct Lookup<F: Icmp> {
    fib: DataPlane<F>,
    counters: CounterSnap,
    step: Step,
    leaf: Column,
    dpo: Column,
    verdict: Column,
    next: Column,
}

impl<F: Icmp> Lookup<F> {
    /// For vectors of up to `size` packets on a worker.
    pub fn new(fib: DataPlane<F>, worker: usize, size: usize) -> Self {
        let column = || Column::new(size);
        Lookup {
            counters: fib.counters(worker),
            fib,
            step: Step::new(size),
            leaf: column(),
            dpo: column(),
            verdict: column(),
            next: column(),
        }
    }
}

/// Looks up packet by packet in a vector whose receiving interfaces have several tables.
#[cold]
fn lookup_each<F: Icmp, I: Isa>(view: &View<'_, F>, v: &Vector<'_, I, Edge<F>>, leaf: &mut Column) {
    for row in 0..v.len() {
        let table = view.table_of(v.column(Col::RX)[row]);
        leaf.words_mut(v.len())[row] = F::leaf(view.lpm(table), F::dst(v, row));
    }
}

/// Looks up a small vector in one table, packet by packet. True if all packets have complete adjacencies, which are then in the
/// column.
#[inline(always)]
fn few<F: Icmp, I: Isa>(
    view: &View<'_, F>,
    table: &F::LpmView,
    v: &mut Vector<'_, I, Edge<F>>,
) -> bool {
    let leaves = view.leaves();
    let mut odd = 0;
    for row in 0..v.few() {
        let dpo = leaves.resolve(F::leaf(table, F::dst(v, row))).0;
        v.few_of_mut(DPO.col)[row] = dpo;
        odd |= dpo ^ ADJACENT;
    }
    odd >> 28 == 0
}

/// Counts packets on the routes of their leaves. Not inlined: usually no route is counted.
#[inline(never)]
fn count(counters: CounterView<'_>, leaves: &[u32], lens: &[u32]) {
    match leaves {
        &[leaf, ..] if all_equal(leaves) => counters.add(leaf, leaves.len() as u64, sum(lens)),
        _ => {
            for (&leaf, &len) in leaves.iter().zip(lens) {
                counters.add(leaf, 1, len.into());
            }
        }
    }
}

/// Writes the objects of a column of leaves. True if all are complete adjacencies.
#[inline(always)]
fn resolve<F: Icmp>(view: &View<'_, F>, leaves: &[u32], dpo: &mut [u32]) -> bool {
    if all_equal(leaves) {
        // One prefetch would be too late to help.
        let one = view.resolve(leaves.first().map_or(0, |&leaf| leaf));
        dpo.fill(one.0);
        return one.is_adj();
    }
    view.resolve_batch(leaves, dpo);
    let adjs = view.adjs();
    for &word in &*dpo {
        adjs.prefetch(Dpo(word).index());
    }
    !odd(dpo)
}

/// Follows routes to other tables. A subnet broadcast is forwarded only from another interface. `kinds` is a scratch column.
#[cold]
fn follow<F: Icmp, I: Isa>(
    view: &View<'_, F>,
    counters: CounterView<'_>,
    v: &Vector<'_, I, Edge<F>>,
    dpo: &mut Column,
    kinds: &mut Column,
) {
    let odd = adjacent(v.isa(), dpo.words(v.len()), kinds).inverted();
    for row in odd.iter() {
        let word = &mut dpo.words_mut(v.len())[row];
        for _ in 0..MAX_TABLES {
            if Dpo(*word).kind() != DpoKind::LookupIn {
                break;
            }
            let leaf = F::leaf(view.lpm(Dpo(*word).index()), F::dst(v, row));
            if counters.is_on() {
                counters.add(leaf, 1, v.column(Col::LEN)[row].into());
            }
            *word = view.resolve(leaf).0;
        }
        let found = Dpo(*word);
        if found.kind() == DpoKind::Broadcast {
            let there = view.adjs().words(found.index()).tx_if;
            *word = match there == v.column(Col::RX)[row] {
                true => Dpo::drop(DropWhy::SubnetBroadcast).0,
                false => Dpo::new(DpoKind::Adj, found.index()).0,
            };
        }
    }
}

/// Reason to drop a packet with this object; none if it is forwarded.
fn refusal(dpo: Dpo) -> Option<Count> {
    Some(match dpo.kind() {
        DpoKind::Adj | DpoKind::Multi | DpoKind::Local | DpoKind::Glean | DpoKind::Incomplete => {
            return None;
        }
        // A group of paths never contains this object, and the lookup has handled those of a route.
        DpoKind::Broadcast => Count::SubnetBroadcast,
        DpoKind::Unreachable => Count::Unreachable,
        DpoKind::Prohibit => Count::Prohibited,
        DpoKind::LookupIn => Count::Loop,
        DpoKind::Drop => match dpo.why() {
            DropWhy::NoRoute => Count::NoRoute,
            DropWhy::Blackhole => Count::DropRoute,
            DropWhy::Unresolved | DropWhy::RecursionLoop => Count::Unreachable,
            DropWhy::SubnetBroadcast => Count::SubnetBroadcast,
            DropWhy::InterfaceDown => Count::InterfaceDown,
            DropWhy::Unspecified
            | DropWhy::Multicast
            | DropWhy::Reserved
            | DropWhy::Broadcast
            | DropWhy::LinkLocal => Count::NotForwarded,
        },
    })
}

/// The edge for a packet whose object is not refused.
fn edge<F: Icmp>(dpo: Dpo) -> Edge<F> {
    match dpo.kind() {
        DpoKind::Adj => Edge::REWRITE,
        DpoKind::Multi => Edge::BALANCE,
        DpoKind::Local => Edge::LOCAL,
        DpoKind::Glean | DpoKind::Incomplete => Edge::GLEAN,
        _ => Edge::DROP,
    }
}

/// Type bits of a complete adjacency.
const ADJACENT: u32 = (DpoKind::Adj as u32) << 28;

/// Whether any object is not a complete adjacency.
#[inline(always)]
fn odd(dpo: &[u32]) -> bool {
    dpo.iter().fold(0, |odd, word| odd | (word ^ ADJACENT)) >> 28 != 0
}

/// Sends packets by the objects in `dpo`: all to the rewrite if all are complete adjacencies, otherwise each by its object.
#[inline(always)]
pub(crate) fn send<F: Icmp, I: Isa>(
    cx: &Cx<'_, Count>,
    mut v: Vector<'_, I, Edge<F>>,
    dpo: &mut Column,
    verdict: &mut Column,
    next: &mut Column,
) -> Consumed {
    let odd = odd(dpo.words(v.len()));
    v.put(DPO.col, dpo);
    if !odd {
        return v.send_all(Edge::REWRITE);
    }
    tell_apart(cx, v, verdict, next)
}

/// The rows with complete adjacencies; `kinds` gets the types of all rows. Most rows usually have one: this pass has no
/// branches, and only the few other rows are handled one by one after it.
#[inline(always)]
fn adjacent<I: Isa>(isa: I, dpo: &[u32], kinds: &mut Column) -> Bits {
    let kinds = kinds.words_mut(dpo.len());
    for (kind, word) in kinds.iter_mut().zip(dpo) {
        *kind = word >> 28;
    }
    isa.rows_equal(kinds, ADJACENT >> 28)
}

#[inline(never)]
fn tell_apart<F: Icmp, I: Isa>(
    cx: &Cx<'_, Count>,
    mut v: Vector<'_, I, Edge<F>>,
    verdict: &mut Column,
    next: &mut Column,
) -> Consumed {
    let n = v.len();
    let odd = adjacent(v.isa(), v.column(DPO.col), next).inverted();
    verdict.words_mut(n).fill(0);
    for row in odd.iter() {
        if let Some(why) = refusal(Dpo(v.column(DPO.col)[row])) {
            verdict.words_mut(n)[row] = why.code();
        }
    }
    v.drop_out(cx, verdict, |count| match count {
        Count::NoRoute | Count::Unreachable | Count::Prohibited | Count::InterfaceDown => {
            Edge::ERROR
        }
        _ => Edge::DROP,
    });
    let n = v.len();
    let odd = adjacent(v.isa(), v.column(DPO.col), next).inverted();
    next.words_mut(n).fill(Edge::<F>::REWRITE.index() as u32);
    for row in odd.iter() {
        let dpo = Dpo(v.column(DPO.col)[row]);
        next.words_mut(n)[row] = edge::<F>(dpo).index() as u32;
    }
    v.send_by(next)
}

impl<F: Icmp> Node for Lookup<F> {
    const NAME: &'static str = F::LOOKUP;
    type Next = Edge<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO, DST, DST1, DST2, DST3];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Edge<F>>) -> Consumed {
        let n = v.len();
        F::require_dst(&mut v);
        let Lookup {
            fib,
            counters,
            step,
            leaf,
            dpo,
            verdict,
            next,
        } = self;
        let view = fib.read(cx.guard());
        let counters = counters.read(cx.guard());
        if I::FEW
            && !counters.is_on()
            && let Some(rx) = v.same(Col::RX)
        {
            let table = view.lpm(view.table_of(rx));
            if few(&view, table, &mut v) {
                return v.send_all(Edge::REWRITE);
            }
            v.take(DPO.col, dpo);
            follow(&view, counters, &v, dpo, next);
            return send(cx, v, dpo, verdict, next);
        }
        match one_table(&view, v.column(Col::RX)) {
            Some(table) => F::lookup_all(&v, view.lpm(table), step, leaf.words_mut(n)),
            None => lookup_each(&view, &v, leaf),
        }
        if counters.is_on() {
            count(counters, leaf.words(n), v.column(Col::LEN));
        }
        if resolve(&view, leaf.words(n), dpo.words_mut(n)) {
            v.put(DPO.col, dpo);
            return v.send_all(Edge::REWRITE);
        }
        follow(&view, counters, &v, dpo, next);
        send(cx, v, dpo, verdict, next)
    }
}

#[cfg(test)]
mod tests;
