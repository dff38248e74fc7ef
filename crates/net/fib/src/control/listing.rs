//! Long replies in slices: a table may have a million routes, and the control thread answers others meanwhile. The prefixes are
//! those at the beginning; a route that is deleted meanwhile is left out.

use crate::family::{Af, Prefix, V4, V6};
use crate::show::{FibReply, FibSelect, ShowFib};
use crate::show::{RouteCounterRow, RouteCountersReply, ShowRouteCounters};
use crate::source::{Fib, Side};
use volley_model::{ModelError, ObjectKind};

/// A reply while it is made: the list is begun, then sorted, then read.
pub trait Listing: Send + 'static {
    /// The reply.
    type Reply;
    /// Number of routes.
    fn count(&self) -> usize;
    /// Sorts the routes. Needs no FIB, so that another thread can do it.
    fn sort(&mut self);
    /// Reads the next routes, at most so many; true if others remain.
    fn read(&mut self, fib: &Fib, most: usize) -> bool;
    /// What was read.
    fn reply(self) -> Self::Reply;
}

/// The reply to `show ip fib`.
pub enum RouteList {
    /// Of IPv4.
    Ip4(Routes<V4>),
    /// Of IPv6.
    Ip6(Routes<V6>),
}

/// Routes of one family.
pub struct Routes<F: Side> {
    /// The reply, with the heads of the tables.
    reply: FibReply,
    /// Prefixes of each table of the reply.
    waiting: Vec<Vec<Prefix<F>>>,
    /// Most routes of the reply.
    room: usize,
    /// The next table, and the next of its prefixes.
    next: (usize, usize),
}

impl<F: Side> Routes<F> {
    fn of(fib: &Fib, asked: &ShowFib) -> Result<Self, ModelError> {
        let (table, select) = (asked.table, asked.select());
        let numbers = match table {
            Some(number) => vec![number],
            None => fib.numbers(F::AF),
        };
        let room = asked.limit.map(usize::try_from);
        let mut list = Routes {
            reply: FibReply::default(),
            waiting: Vec::new(),
            room: room.and_then(Result::ok).unwrap_or(usize::MAX),
            next: (0, 0),
        };
        for number in numbers {
            let index = fib.model_result(fib.table_index(F::AF, number))?;
            let mut head = fib.table_head::<F>(number, index);
            let mut prefixes = fib.selected::<F>(index, select);
            if let (FibSelect::Exact(asked), true) = (select, prefixes.is_empty()) {
                (prefixes, head.absent) = fib.around::<F>(index, asked);
            }
            let one = matches!(select, FibSelect::Exact(_) | FibSelect::Match(_));
            if !one || !prefixes.is_empty() {
                list.reply.tables.push(head);
                list.waiting.push(prefixes);
            }
        }
        let asked = match select {
            FibSelect::Exact(prefix) => prefix.to_string(),
            FibSelect::Match(address) => address.to_string(),
            _ => return Ok(list),
        };
        if list.reply.tables.is_empty() {
            let place = table.map_or("any table".to_owned(), |number| format!("table {number}"));
            let what = format!("route to {asked} in {place}: packets to it are dropped");
            return Err(ModelError::not_found::<String>(
                ObjectKind::Object,
                what,
                [],
            ));
        }
        Ok(list)
    }

    fn count(&self) -> usize {
        self.waiting.iter().map(Vec::len).sum()
    }

    fn sort(&mut self) {
        for prefixes in &mut self.waiting {
            prefixes.sort_unstable();
            let shown = prefixes.len().min(self.room);
            self.room -= shown;
            self.reply.more += (prefixes.len() - shown) as u64;
            prefixes.truncate(shown);
        }
    }

    fn read(&mut self, fib: &Fib, mut most: usize) -> bool {
        while most > 0
            && let Some(prefixes) = self.waiting.get(self.next.0)
        {
            let left = &prefixes[self.next.1..];
            let slice = &left[..most.min(left.len())];
            let table = &mut self.reply.tables[self.next.0];
            // The index of a table that was deleted may be that of another one.
            let index = fib.table_index(F::AF, table.table).ok();
            let shown = |prefix: &Prefix<F>| fib.show(index?, *prefix);
            let routes = slice.iter().filter_map(shown);
            let number = table.table;
            let rows = routes.filter_map(|route| fib.fib_route(number, &route));
            table.routes.extend(rows);
            most -= slice.len();
            self.next = match slice.len() == left.len() {
                true => (self.next.0 + 1, 0),
                false => (self.next.0, self.next.1 + slice.len()),
            };
        }
        self.next.0 < self.waiting.len()
    }
}

/// A method of the routes of either family.
macro_rules! of_either {
    ($list:expr, $routes:ident => $body:expr) => {
        match $list {
            RouteList::Ip4($routes) => $body,
            RouteList::Ip6($routes) => $body,
        }
    };
}

impl Listing for RouteList {
    type Reply = FibReply;

    fn count(&self) -> usize {
        of_either!(self, routes => routes.count())
    }

    fn sort(&mut self) {
        of_either!(self, routes => routes.sort());
    }

    fn read(&mut self, fib: &Fib, most: usize) -> bool {
        of_either!(self, routes => routes.read(fib, most))
    }

    fn reply(self) -> FibReply {
        of_either!(self, routes => routes.reply)
    }
}

/// The reply to `show ip route-counters`.
#[derive(Default)]
pub struct CounterList {
    ip4: Waiting<V4>,
    ip6: Waiting<V6>,
    rows: Vec<RouteCounterRow>,
}

/// Prefixes with the numbers of their tables, and how many of them were read.
struct Waiting<F: Side> {
    all: Vec<(u32, Prefix<F>)>,
    read: usize,
}

impl<F: Side> Default for Waiting<F> {
    fn default() -> Self {
        Waiting {
            all: Vec::new(),
            read: 0,
        }
    }
}

impl<F: Side> Waiting<F> {
    fn of(fib: &Fib) -> Self {
        let mut all = Vec::new();
        for number in fib.numbers(F::AF) {
            let index = fib.table_index(F::AF, number);
            let prefixes = index.map(|index| fib.counted_prefixes::<F>(index));
            all.extend(
                prefixes
                    .into_iter()
                    .flatten()
                    .map(|prefix| (number, prefix)),
            );
        }
        Waiting { all, read: 0 }
    }

    /// Reads the counts of the next routes, at most so many; returns how many more are possible.
    fn read(&mut self, fib: &Fib, most: usize, rows: &mut Vec<RouteCounterRow>) -> usize {
        let left = &self.all[self.read..];
        let slice = &left[..most.min(left.len())];
        for (number, prefix) in slice {
            rows.extend(row::<F>(fib, *number, *prefix));
        }
        self.read += slice.len();
        most - slice.len()
    }

    fn is_read(&self) -> bool {
        self.read == self.all.len()
    }
}

fn row<F: Side>(fib: &Fib, number: u32, prefix: Prefix<F>) -> Option<RouteCounterRow> {
    let index = fib.table_index(F::AF, number).ok()?;
    let count = fib.counted_route::<F>(index, prefix)?;
    let prefix = volley_model::Prefix::masked(F::ip(prefix.addr()), prefix.len());
    Some(RouteCounterRow {
        prefix: prefix.ok()?,
        table: number,
        packets: count.packets,
        bytes: count.bytes,
    })
}

impl Fib {
    /// The routes of the reply to `show ip fib`; an error if there is no such table or route.
    pub fn route_list(&self, asked: &ShowFib) -> Result<RouteList, ModelError> {
        match asked.family() {
            Af::V4 => Routes::of(self, asked).map(RouteList::Ip4),
            Af::V6 => Routes::of(self, asked).map(RouteList::Ip6),
        }
    }

    /// The routes of the reply to `show ip route-counters`.
    pub fn counter_list(&self, asked: &ShowRouteCounters) -> CounterList {
        let mut list = CounterList::default();
        if asked.family != Some(Af::V6) {
            list.ip4 = Waiting::of(self);
        }
        if asked.family != Some(Af::V4) {
            list.ip6 = Waiting::of(self);
        }
        list
    }
}

impl Listing for CounterList {
    type Reply = RouteCountersReply;

    fn count(&self) -> usize {
        self.ip4.all.len() + self.ip6.all.len()
    }

    fn sort(&mut self) {
        self.ip4.all.sort_unstable();
        self.ip6.all.sort_unstable();
        self.rows.reserve_exact(self.count());
    }

    fn read(&mut self, fib: &Fib, most: usize) -> bool {
        let left = self.ip4.read(fib, most, &mut self.rows);
        self.ip6.read(fib, left, &mut self.rows);
        !self.ip4.is_read() || !self.ip6.is_read()
    }

    fn reply(self) -> RouteCountersReply {
        RouteCountersReply { routes: self.rows }
    }
}
