//! Group membership on the links of queriers (IGMP: RFC 3376, 2236, 1112; MLD: RFC 3810, 2710). Members become egress
//! interfaces of the multicast routes that cover their groups ([`crate::table`]).

mod handler;
pub mod lane;
pub mod packet;
pub mod querier;
pub(crate) mod show;

pub(crate) use handler::MembersHandler;

use crate::handler::{Control, Side};
use crate::table::GroupState;
use lane::{ControlQueue, ReceivedMessage};
use packet::{MembershipMessage, MembershipProtocol, addresses, kind, records};
use querier::{Group, MS, Querier, RecordType};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volley_fib::{Fib, V4, V6};
use volley_graph::Clock;
use volley_iface::{Flag, IfIdx, IfTable, LinkLocalSender, LinkSource};

/// Interval of the process.
const TURN: Duration = Duration::from_millis(5);
/// Interval of the process if no interface is a querier, so that an idle daemon sleeps.
const UNASSIGNED: Duration = Duration::from_millis(100);
/// Interval of the checks of all group timers.
const TIMERS: u64 = 50 * MS;
/// Most messages of a worker that one run of the process reads.
const READ: usize = 64;

/// An interface with a querier.
pub(crate) struct Port<F: MembershipProtocol> {
    pub querier: Querier<F::Addr>,
    /// Number of the interface's table.
    table: u32,
}

/// Querier interfaces of one IP version.
pub(crate) type Ports<F> = BTreeMap<u32, Port<F>>;

/// Control thread state of group membership.
pub(crate) struct Members {
    pub v4: Ports<V4>,
    pub v6: Ports<V6>,
    routes: Rc<RefCell<Control>>,
    fib: Rc<RefCell<Fib>>,
    sender: Rc<dyn LinkLocalSender>,
    lanes: Vec<Arc<ControlQueue>>,
    table: Arc<IfTable>,
    clock: Clock,
    timers_at: u64,
}

/// Per-family state of group membership.
pub(crate) trait MembershipState: MembershipProtocol + Side {
    const FLAG: Flag;
    fn ports(members: &Members) -> &Ports<Self>;
    fn ports_mut(members: &mut Members) -> &mut Ports<Self>;
    /// The router's source address on a link.
    fn own(link: &LinkSource) -> Option<Self::Addr>;
}

impl MembershipState for V4 {
    const FLAG: Flag = Flag::Igmp;
    fn ports(members: &Members) -> &Ports<V4> {
        &members.v4
    }
    fn ports_mut(members: &mut Members) -> &mut Ports<V4> {
        &mut members.v4
    }
    fn own(link: &LinkSource) -> Option<u32> {
        link.ip4.map(u32::from)
    }
}

impl MembershipState for V6 {
    const FLAG: Flag = Flag::Mld;
    fn ports(members: &Members) -> &Ports<V6> {
        &members.v6
    }
    fn ports_mut(members: &mut Members) -> &mut Ports<V6> {
        &mut members.v6
    }
    fn own(link: &LinkSource) -> Option<u128> {
        link.ip6.map(u128::from)
    }
}

/// The filter state of a group on an interface.
fn want<A: Copy + Ord>(interface: u32, group: &Group<A>) -> GroupState<A> {
    let named = group.sources.iter();
    // In EXCLUDE mode the blocked sources are listed, in INCLUDE mode the requested ones.
    let counts = named.filter(|(_, it)| (it.until == 0) == group.exclude);
    GroupState {
        interface,
        exclude: group.exclude,
        sources: counts.map(|(source, _)| *source).collect(),
    }
}

impl Members {
    pub fn new(
        (routes, fib): (Rc<RefCell<Control>>, Rc<RefCell<Fib>>),
        sender: Rc<dyn LinkLocalSender>,
        lanes: Vec<Arc<ControlQueue>>,
        (table, clock): (Arc<IfTable>, Clock),
    ) -> Self {
        Members {
            v4: Ports::<V4>::new(),
            v6: Ports::<V6>::new(),
            routes,
            fib,
            sender,
            lanes,
            table,
            clock,
            timers_at: 0,
        }
    }

    pub fn now(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Enables, changes or disables the querier of an interface.
    pub fn set<F: MembershipState>(
        &mut self,
        iface: u32,
        settings: Option<crate::model::GroupQuerier>,
    ) {
        let (now, table) = (self.now(), self.table_of::<F>(iface));
        let Some(settings) = settings else {
            return self.drop_port::<F>(iface);
        };
        self.table.set(IfIdx(iface), F::FLAG, true);
        let ports = F::ports_mut(self);
        match ports.get_mut(&iface) {
            Some(port) => port.querier.set(settings, now),
            None => {
                let querier = Querier::new(settings);
                ports.insert(iface, Port { querier, table });
            }
        }
        self.timers_at = 0;
    }

    fn drop_port<F: MembershipState>(&mut self, iface: u32) {
        if let Some(port) = F::ports_mut(self).remove(&iface) {
            // The interface index may be reused soon.
            self.table.set(IfIdx(iface), F::FLAG, false);
            let groups = port.querier.iter().map(|(group, _)| *group);
            let groups: BTreeSet<_> = groups.map(|group| (port.table, group)).collect();
            self.publish::<F>(groups);
        }
    }

    /// Removes a deleted interface.
    pub fn forget(&mut self, iface: u32) {
        self.drop_port::<V4>(iface);
        self.drop_port::<V6>(iface);
    }

    fn table_of<F: MembershipState>(&self, iface: u32) -> u32 {
        let fib = self.fib.borrow();
        let number = fib.interface_table(iface, F::AF);
        fib.table_index(F::AF, number).unwrap_or(0)
    }

    /// One run of the process; returns the time until the next run.
    pub fn turn(&mut self) -> Duration {
        let now = self.now();
        for lane in self.lanes.clone() {
            for heard in std::iter::from_fn(|| lane.0.pop()).take(READ) {
                match heard.family {
                    volley_model::Family::V4 => self.hear::<V4>(now, &heard),
                    volley_model::Family::V6 => self.hear::<V6>(now, &heard),
                }
            }
        }
        let timers = now >= self.timers_at;
        if timers {
            self.timers_at = now + TIMERS;
        }
        self.serve::<V4>(now, timers);
        self.serve::<V6>(now, timers);
        if V4::ports(self).is_empty() && V6::ports(self).is_empty() {
            return UNASSIGNED;
        }
        TURN
    }

    fn hear<F: MembershipState>(&mut self, now: u64, heard: &ReceivedMessage) {
        let Some(port) = F::ports_mut(self).get_mut(&heard.rx) else {
            return;
        };
        let querier = &mut port.querier;
        let Ok(opened) = F::open(heard.packet()) else {
            return;
        };
        match F::parse_message(&opened) {
            Ok(MembershipMessage::Query(query, sources)) => {
                let sources: Vec<F::Addr> = addresses::<F>(sources).collect();
                return querier.hear(now, opened.from, &query, &sources);
            }
            Ok(MembershipMessage::OldReport(version, group)) if F::may_forward(group) => {
                // MLDv1 is handled like IGMPv2, and MLDv2 like IGMPv3.
                querier.old_report(now, version, group);
            }
            Ok(MembershipMessage::Leave(group)) if F::may_forward(group) => {
                querier.report(now, RecordType::ChangeToInclude, group, &[]);
            }
            Ok(MembershipMessage::Report(report)) => {
                for (code, group, sources) in records::<F>(report).flatten() {
                    let group = F::take(group).filter(|group| F::may_forward(*group));
                    if let (Some(kind), Some(group)) = (kind(code), group) {
                        let sources: Vec<F::Addr> = addresses::<F>(sources).collect();
                        querier.report(now, kind, group, &sources);
                    }
                }
            }
            Ok(_) | Err(_) => return,
        }
        querier.reports += 1;
    }

    /// Sends due queries, and publishes changed groups.
    fn serve<F: MembershipState>(&mut self, now: u64, timers: bool) {
        let mut changed = BTreeSet::new();
        let sender = self.sender.clone();
        let ifaces: Vec<u32> = F::ports(self).keys().copied().collect();
        for iface in ifaces {
            let (table, link) = (self.table_of::<F>(iface), sender.link_source(iface));
            let Some(port) = F::ports_mut(self).get_mut(&iface) else {
                continue;
            };
            if port.table != table {
                let groups = port.querier.iter().map(|(group, _)| *group);
                changed.extend(groups.flat_map(|group| [(port.table, group), (table, group)]));
                port.table = table;
            }
            let own = link.as_ref().and_then(F::own);
            port.querier.set_own(own, now);
            if link.is_none() {
                port.querier.clear();
            }
            let fresh = !port.querier.changed.is_empty();
            if timers || fresh {
                let asks = port.querier.turn(now);
                if let (Some(link), Some(own)) = (link, own) {
                    for ask in asks {
                        let frame = F::query((link.mac, own), port.querier.settings(), &ask);
                        sender.send(iface, &frame);
                    }
                }
            }
            let groups = std::mem::take(&mut port.querier.changed);
            changed.extend(groups.into_iter().map(|group| (table, group)));
        }
        self.publish::<F>(changed);
    }

    /// Publishes the filter states of groups.
    fn publish<F: MembershipState>(&mut self, groups: BTreeSet<(u32, F::Addr)>) {
        if groups.is_empty() {
            return;
        }
        let routes = self.routes.clone();
        let mut routes = routes.borrow_mut();
        let mfib = F::side_mut(&mut routes);
        for (table, group) in groups {
            let ports = F::ports(self).iter();
            let there = ports.filter(|(_, port)| port.table == table);
            let wants = there.filter_map(|(iface, port)| {
                let it = port.querier.group(group)?;
                Some(want(*iface, it))
            });
            mfib.join((table, group), wants.collect());
        }
        mfib.publish();
    }
}
