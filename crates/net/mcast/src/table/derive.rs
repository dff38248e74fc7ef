//! Entries derived from group membership and routes: interfaces with members are egress interfaces of the route that covers the
//! group, in addition to the route's own. A source that members list, and an (S,G) route, gets a separate entry.
//!
//! A derived entry uses the counters of its route. An entry that exists before and after a change keeps its number. The number
//! of a removed entry refers to its route until the slot is reused, so that no packet in flight is lost.

use super::{Branches, DERIVED, Entry, GroupState, Joined, Mfib, Name, PLACE, PLACE_BITS};
use std::collections::BTreeSet;
use std::sync::Arc;
use volley_fib::Family;

impl<F: Family> Mfib<F> {
    /// Replaces the filter states of a group; [`Mfib::publish`] publishes the change.
    pub fn join(&mut self, joined: Joined<F>, wants: Vec<GroupState<F::Addr>>) {
        match wants.is_empty() {
            true => self.wants.remove(&joined),
            false => self.wants.insert(joined, wants),
        };
        self.derive(joined);
    }

    /// Recomputes all derived entries after a change of routes.
    pub(super) fn derive_all(&mut self) {
        let all: BTreeSet<Joined<F>> = self
            .wants
            .keys()
            .chain(self.derived.keys())
            .copied()
            .collect();
        for joined in all {
            self.derive(joined);
        }
    }

    /// The configured route of an exact name.
    fn route(&self, name: &Name<F>) -> Option<Arc<Entry>> {
        let id = self.routes.get(name)?;
        let (_, entry) = self.entries.get((id & PLACE) as usize)?.as_ref()?;
        Some(entry.clone())
    }

    /// The configured (*,G) or (*,G/len) that covers a group.
    fn cover(&self, (table, group): Joined<F>) -> Option<Arc<Entry>> {
        let name = |len| Name {
            table,
            group: F::first(group, len),
            len,
            source: None,
        };
        (0..=F::BITS).rev().find_map(|len| self.route(&name(len)))
    }

    /// Sources of a group that have a configured route.
    fn configured(&self, (table, group): Joined<F>) -> Vec<F::Addr> {
        let name = |source| Name {
            table,
            group,
            len: F::BITS,
            source,
        };
        let all = self.routes.range(name(None)..);
        let of = all.take_while(|(it, _)| (it.table, it.group, it.len) == (table, group, F::BITS));
        of.filter_map(|(it, _)| it.source).collect()
    }

    /// The entries that a group needs.
    fn needed(&self, joined: Joined<F>) -> Vec<(Name<F>, Entry)> {
        let Some(wants) = self.wants.get(&joined) else {
            return Vec::new();
        };
        let name = |source| Name {
            table: joined.0,
            group: joined.1,
            len: F::BITS,
            source,
        };
        let mut sources: BTreeSet<F::Addr> = self.configured(joined).into_iter().collect();
        sources.extend(wants.iter().flat_map(|it| it.sources.iter().copied()));
        let cover = self.cover(joined);
        let all = std::iter::once(None).chain(sources.into_iter().map(Some));
        let entry = |source: Option<F::Addr>| {
            let own = source.and_then(|_| self.route(&name(source)));
            let base = own.or_else(|| cover.clone())?;
            let mut forward = base.forward.to_vec();
            for it in wants.iter().filter(|it| it.takes(source.as_ref())) {
                if !forward.contains(&it.interface) {
                    forward.push(it.interface);
                }
            }
            let entry = Entry {
                accept: base.accept.clone(),
                forward: forward.into(),
                counts: base.counts.clone(),
            };
            Some((name(source), entry))
        };
        all.filter_map(entry).collect()
    }

    fn derive(&mut self, joined: Joined<F>) {
        self.unpublished.any = true;
        let before = self.derived.remove(&joined).unwrap_or_default();
        self.derived_count -= before.len();
        let mut now: Vec<(Name<F>, u32)> = Vec::new();
        for (name, entry) in self.needed(joined) {
            if self.derived_count + now.len() >= DERIVED {
                self.refused += 1;
                break;
            }
            let known = before.iter().find(|(it, _)| *it == name).map(|(_, id)| *id);
            let id = known.unwrap_or_else(|| self.place());
            self.entries[(id & PLACE) as usize] = Some((id, Arc::new(entry)));
            self.branches(name.table, |branches| branches.set(&name, id));
            now.push((name, id));
        }
        for (name, id) in before {
            if now.iter().any(|(it, _)| *it == name) {
                continue;
            }
            let route = self.routes.get(&name).copied();
            self.branches(name.table, |branches| match route {
                Some(route) => branches.set(&name, route),
                None => branches.unset(&name),
            });
            // Packets in flight use the covering route until the slot is reused.
            let base = self.route(&name).or_else(|| self.cover(joined));
            self.entries[(id & PLACE) as usize] = base.map(|base| (id, base));
            self.free.push_back(id.wrapping_add(1 << PLACE_BITS));
        }
        self.derived_count += now.len();
        if !now.is_empty() {
            self.derived.insert(joined, now);
        }
    }

    fn branches(&mut self, table: u32, change: impl FnOnce(&mut Branches<F>)) {
        let branches = self.tables.entry(table).or_default();
        change(Arc::make_mut(branches));
        if branches.is_empty() {
            self.tables.remove(&table);
        }
    }
}
