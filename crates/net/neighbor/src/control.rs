//! The control thread's part: owns the neighbour table, reads messages from workers, sends requests and updates the FIB.

use crate::arping::Arpings;
use crate::conflicts::Conflicts;
use crate::dad::state::AddressProbes;
use crate::entry::{Mac, SECOND, Word};
use crate::lane::{
    ControlQueues, End, Frame, HELD, HeldForResolution, NeighborMessage, NeighborMessageKind,
    ResolvedPacket,
};
use crate::proxy::{Proxies, ProxyRanges};
use crate::table::{Effect, Key, Net, Origin, Table};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};
use volley_fib::{Fib, Neighbor};
use volley_graph::{Clock, Engine, HeldPacket};
use volley_iface::{Flag, IfIdx, Interfaces};
use volley_model::{Family, IfAddress};
use volley_router_discovery::link::{Link, is_link_local};
use volley_router_discovery::nd::LONG;
use volley_router_discovery::nd::{self, FRAME, Message, NdMessageOut};
use volley_router_discovery::{MldQueue, Random, RouterDiscovery};
use volley_tables::Publisher;
use volley_wire::arp::ArpPacket;
use volley_wire::{EtherType, IntoBytes, MacAddr};

/// Interval of the process while work is pending.
const BUSY: Duration = Duration::from_millis(1);
/// Interval of the process otherwise.
const QUIET: Duration = Duration::from_millis(10);
/// The process stays busy for this long after the last work.
const BUSY_FOR: u64 = SECOND;
/// Most answers of one worker that one run of the process reads.
const READ: usize = 1024;
/// Most requests of one worker that one run of the process reads: each may change the FIB twice.
const READ_ASKED: usize = 64;
/// Most router advertisements of one worker that one run of the process reads.
const READ_ADVERTS: usize = 32;
/// Interface types without a link: no peer can answer ARP or ND there.
const NO_LINK: [&str; 2] = ["packet-generator", "pcap"];

/// A packet that waits for resolution, and the worker that received it.
pub(crate) struct WaitingPacket {
    key: Key,
    worker: usize,
    family: Family,
    packet: HeldPacket,
}

/// Counters of the control thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighborCounters {
    /// Claims of other hosts on an address of this router.
    pub conflicts: u64,
    /// Messages about configured neighbours; these keep their MAC addresses.
    pub configured: u64,
    /// Messages of senders that are not on the interface's networks.
    pub off_link: u64,
    /// Duplicate addresses: the router does not use them.
    pub duplicates: u64,
    /// Default routers that stopped answering.
    pub silent_routers: u64,
    /// MAC addresses that did not fit into the FIB.
    pub no_room: u64,
    /// Frames that did not fit into a worker's queue.
    pub unsent: u64,
}

/// Callback that receives events for the operator: the interface, and a sentence about it.
type Listener = Box<dyn Fn(&str, &str)>;

pub(crate) struct Control {
    pub(crate) engine: Rc<RefCell<Engine>>,
    pub(crate) interfaces: Rc<RefCell<Interfaces>>,
    pub(crate) fib: Rc<RefCell<Fib>>,
    pub(crate) lanes: Vec<Arc<ControlQueues>>,
    pub(crate) table: Table<WaitingPacket>,
    pub(crate) tally: NeighborCounters,
    pub(crate) listener: Option<Listener>,
    /// Router advertisements, SLAAC and MLD membership.
    pub(crate) discovery: RouterDiscovery,
    /// Queues of MLD messages from workers.
    pub(crate) group_messages: Vec<Arc<MldQueue>>,
    pub(crate) probes: AddressProbes,
    pub(crate) proxies: ProxyRanges,
    pub(crate) random: Random,
    pub(crate) links: BTreeMap<u32, Link>,
    pub(crate) conflicts: Conflicts,
    pub(crate) arpings: Arpings,
    clock: Clock,
    busy_until: u64,
}

impl Control {
    pub fn new(
        engine: Rc<RefCell<Engine>>,
        interfaces: Rc<RefCell<Interfaces>>,
        fib: Rc<RefCell<Fib>>,
        (lanes, group_messages): (Vec<Arc<ControlQueues>>, Vec<Arc<MldQueue>>),
        proxies: Publisher<Proxies>,
    ) -> Self {
        let clock = engine.borrow().settings().clock.clone();
        Control {
            engine,
            interfaces,
            fib,
            lanes,
            table: Table::default(),
            tally: NeighborCounters::default(),
            listener: None,
            discovery: RouterDiscovery::default(),
            group_messages,
            probes: AddressProbes::default(),
            proxies: ProxyRanges::new(proxies),
            random: Random::default(),
            links: BTreeMap::new(),
            conflicts: Conflicts::default(),
            arpings: Arpings::default(),
            clock,
            busy_until: 0,
        }
    }

    pub fn now(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Re-reads interfaces and addresses that have changed.
    pub fn refresh(&mut self) {
        let touched = self.fib.borrow_mut().take_touched();
        if touched.is_empty() {
            return;
        }
        for iface in touched {
            self.follow_addresses(iface);
            let new = self.read_link(iface);
            let old = match &new {
                Some(link) => self.links.insert(iface, link.clone()),
                None => self.links.remove(&iface),
            };
            match (&old, &new) {
                (Some(_), None) => {
                    self.table.forget_interface(iface);
                    self.proxies.forget(iface);
                    self.probes.configured.remove(&iface);
                    self.conflicts.forget(iface);
                }
                (Some(old), Some(new)) => self.lost(iface, old, new),
                (None, _) => {}
            }
            self.follow_discovery(iface, old != new);
            if let Some(new) = new.filter(|new| new.up && new.learns) {
                let known = old.filter(|old| old.up && old.mac == new.mac);
                let known = known.map_or(Vec::new(), |old| old.addresses);
                let known: HashSet<IfAddress> = known.into_iter().collect();
                let news = new.addresses.iter().filter(|a| !known.contains(a));
                news.for_each(|a| self.announce(iface, a.addr()));
            }
        }
        self.carry_out();
    }

    /// Reads the state of an interface and publishes its flags to workers.
    fn read_link(&self, iface: u32) -> Option<Link> {
        let (fib, interfaces) = (self.fib.borrow(), self.interfaces.borrow());
        let info = fib.interface(iface)?;
        let index = IfIdx(iface);
        let link = Link {
            mac: info.mac,
            mtu: info.mtu,
            up: info.up,
            learns: !NO_LINK.contains(&interfaces.driver_kind(index)),
            addresses: fib.used_addresses(iface).collect(),
            automatic: fib.automatic_addresses(iface).to_vec(),
            networks: fib.on_link(iface).to_vec(),
            is_unnumbered: fib.numbered(iface).is_some(),
        };
        let flags = [
            (Flag::Ip4, link.has(Family::V4)),
            (Flag::Ip6, link.has(Family::V6)),
            (Flag::ResolveNeighbors, link.learns),
            (Flag::Unnumbered, link.is_unnumbered),
        ];
        for (flag, on) in flags {
            interfaces.table().set(index, flag, on);
        }
        Some(link)
    }

    /// Whether the interface has a link on which neighbours are resolved.
    pub(crate) fn learns(&self, iface: u32) -> bool {
        !NO_LINK.contains(&self.interfaces.borrow().driver_kind(IfIdx(iface)))
    }

    /// Deletes neighbours that are no longer on-link after a change of the interface.
    fn lost(&mut self, iface: u32, old: &Link, new: &Link) {
        if !new.up {
            self.table.forget_all(|(on, _)| on == iface);
        } else if (&old.addresses, &old.networks, old.is_unnumbered)
            != (&new.addresses, &new.networks, new.is_unnumbered)
        {
            let ends = old.is_unnumbered && !new.is_unnumbered;
            let gone = |addr| (ends || old.on_link(addr)) && !new.on_link(addr);
            self.table
                .forget_all(|(on, addr)| on == iface && gone(addr));
        }
    }

    /// One run of the process; returns the time until the next run.
    pub fn turn(&mut self) -> Duration {
        self.refresh();
        let (now, mut some) = (self.now(), false);
        let mut advertised = BTreeSet::new();
        for worker in 0..self.lanes.len() {
            let lane = self.lanes[worker].clone();
            let groups = self.group_messages[worker].clone();
            let heard = std::iter::from_fn(|| lane.received_messages.pop()).take(READ);
            let asked = std::iter::from_fn(|| lane.received_requests.pop()).take(READ_ASKED);
            for heard in heard.chain(asked) {
                some = true;
                self.hear(heard, now);
            }
            some |= self.discover_at(now, |it, moment| {
                it.listeners.read(&groups, READ_ASKED, moment)
            });
            for (iface, output) in std::iter::from_fn(|| lane.adverts.pop()).take(READ_ADVERTS) {
                some = true;
                self.hear_router(iface, &output, now);
                advertised.insert(iface);
            }
            for heard in std::iter::from_fn(|| lane.probe_messages.pop()).take(READ) {
                self.arpings.hear(heard);
            }
            for iface in std::mem::take(&mut advertised) {
                self.discover(|it, moment| it.autoconf.settle(iface, moment));
            }
            // Received messages must be in the FIB before waiting packets are compared with it.
            self.carry_out();
            for gleaned in std::iter::from_fn(|| lane.waiting_packets.pop()).take(HELD) {
                some = true;
                self.wait(worker, gleaned, now);
            }
            self.carry_out();
            let waiting = lane.away().saturating_sub(lane.resolved_packets.len());
            let over = waiting.saturating_sub(lane.for_untrusted());
            self.table.relieve(worker, over);
        }
        self.table.turn(now);
        self.turn_discovery(now);
        self.turn_probes(now);
        self.turn_arpings(now);
        self.carry_out();
        some |= !self.arpings.is_empty();
        if some || self.lanes.iter().any(|lane| lane.away() > 0) {
            self.busy_until = now + BUSY_FOR;
        }
        if now < self.busy_until { BUSY } else { QUIET }
    }

    fn wait(&mut self, worker: usize, gleaned: HeldForResolution, now: u64) {
        let HeldForResolution {
            key,
            family,
            is_next_hop,
            packet,
        } = gleaned;
        let held = WaitingPacket {
            key,
            worker,
            family,
            packet,
        };
        let known = self.fib.borrow().neighbor(key.0, key.1);
        if known.is_some() && is_link_local(key.1) {
            return self.table.effects.push(Effect::Release(vec![held]));
        }
        if known.is_some_and(|n| !n.learned) {
            // The neighbour was configured a moment ago: packets that arrive later use its adjacency.
            return self.table.effects.push(Effect::GiveUp(vec![held]));
        }
        if known.is_none() && self.table.mac(key).flatten().is_some() {
            // The entry was deleted from the FIB by another component.
            self.table.forget(key);
        }
        let origin = Origin {
            net: self.net_of(key),
            worker,
            trusted: is_next_hop,
        };
        self.table.wait(key, origin, held, now);
    }

    /// The network of an address: the longest matching network of the interface.
    fn net_of(&self, (iface, addr): Key) -> Net {
        let link = self.links.get(&iface);
        let own = link.into_iter().flat_map(Link::own_addresses);
        let networks = link
            .into_iter()
            .flat_map(|link| link.networks.iter().copied());
        let all = own.map(|a| a.subnet()).chain(networks);
        let mine = all.filter(|n| n.contains(addr)).max_by_key(|n| n.len());
        match mine {
            Some(net) => (iface, net.addr(), net.len()),
            None => (iface, Ipv6Addr::UNSPECIFIED.into(), 0),
        }
    }

    pub(crate) fn hear(&mut self, heard: NeighborMessage, now: u64) {
        let key = (heard.rx, heard.addr);
        if heard.what == NeighborMessageKind::Conflict {
            return self.conflict(key, heard.mac, now);
        }
        if heard.what == NeighborMessageKind::OwnMac {
            return self.same_mac(heard.rx, heard.mac, now);
        }
        if heard.what == NeighborMessageKind::Claim {
            return self.claimed(heard.rx, heard.addr, heard.mac);
        }
        if heard.what == NeighborMessageKind::Routers {
            let host = heard.rx;
            self.discover_at(now, |it, moment| it.advertisers.solicited(host, moment));
            if heard.addr.is_unspecified() || heard.mac == Mac::default() {
                return;
            }
        }
        let known = self.fib.borrow().neighbor(key.0, key.1);
        if known.is_some_and(|n| !n.learned) {
            self.tally.configured += 1;
            return;
        }
        let Some(link) = self.links.get(&heard.rx).filter(|l| l.up && l.learns) else {
            return;
        };
        // An interface without a network: routes determine which neighbours may be on the link.
        let routed = link.is_unnumbered
            && link.has(Family::of(heard.addr))
            && self.fib.borrow().may_be_on(key.0, key.1);
        if !link.on_link(heard.addr) && !routed && self.table.mac(key).is_none() {
            self.tally.off_link += 1;
            return;
        }
        let answer = |solicited| Word::Answer {
            mac: Some(heard.mac),
            solicited,
            overrides: true,
        };
        let word = match heard.what {
            NeighborMessageKind::Question | NeighborMessageKind::Routers => {
                Word::Question(heard.mac)
            }
            NeighborMessageKind::Answer => answer(true),
            NeighborMessageKind::Advertisement {
                solicited,
                overrides,
            } => Word::Answer {
                mac: Some(heard.mac).filter(|mac| *mac != Mac::default()),
                solicited,
                overrides,
            },
            NeighborMessageKind::Announcement
            | NeighborMessageKind::Conflict
            | NeighborMessageKind::Claim
            | NeighborMessageKind::OwnMac => answer(false),
        };
        self.table.hear(key, word, now);
    }

    /// Another host claims an address of this router (RFC 5227, 2.4): at a limited rate, announces the address on the link and
    /// notifies the operator.
    fn conflict(&mut self, (iface, addr): Key, mac: Mac, now: u64) {
        self.tally.conflicts += 1;
        if !self.conflicts.address((iface, addr), now) {
            return;
        }
        // On an interface without a link there is no peer to receive the announcement.
        if self.links.get(&iface).is_some_and(|link| link.learns) {
            self.announce(iface, addr);
        }
        let what = format!(
            "another station ({}) has the address {addr} too: give one of them another address",
            MacAddr(mac)
        );
        self.tell(iface, &what);
    }

    /// A host sends with the interface's MAC address: switches then deliver the frames of one to the other.
    fn same_mac(&mut self, iface: u32, mac: Mac, now: u64) {
        if !self.conflicts.mac(iface, now) {
            return;
        }
        let what = format!(
            "frames come in with the interface's own MAC address {} as their source: another station has the same address \
             (give one of them another by `set interface mac address`), or the link is a loop",
            MacAddr(mac)
        );
        self.tell(iface, &what);
    }

    /// Reports an event on an interface to the operator.
    pub(crate) fn tell(&self, iface: u32, what: &str) {
        if let Some(listener) = &self.listener {
            let name = self.interfaces.borrow().name(iface);
            listener(&name, what);
        }
    }

    /// Announces an address of this router: gratuitous ARP or an unsolicited neighbour advertisement.
    fn announce(&mut self, iface: u32, addr: IpAddr) {
        let Some(mac) = self.links.get(&iface).map(|link| link.mac) else {
            return;
        };
        match addr {
            IpAddr::V4(addr) => self.arp(iface, mac, None, addr, addr),
            // RFC 4861, 7.2.6.
            IpAddr::V6(addr) => self.say(
                iface,
                Message {
                    say: NdMessageOut::Advertise { solicited: false },
                    target: addr,
                    from: addr,
                    to: nd::ALL_NODES,
                    own: mac,
                    to_mac: nd::group_mac(nd::ALL_NODES),
                },
            ),
        }
    }

    fn say(&mut self, tx: u32, message: Message) {
        let (mut bytes, len) = ([0; FRAME], FRAME);
        message.write(&mut bytes);
        let probe = None;
        self.send(Frame {
            tx,
            len,
            bytes,
            probe,
        });
    }

    /// Sends a neighbour solicitation (RFC 4861, 7.2.2): to the solicited-node group, or by unicast to a known MAC address.
    fn solicit(&mut self, iface: u32, target: Ipv6Addr, to_mac: Option<Mac>) {
        let Some(link) = self.links.get(&iface) else {
            return;
        };
        let group = nd::solicited_node(target);
        let message = Message {
            say: NdMessageOut::Solicit,
            target,
            from: link.source6(target),
            to: to_mac.map_or(group, |_| target),
            own: link.mac,
            to_mac: to_mac.unwrap_or_else(|| nd::group_mac(group)),
        };
        self.say(iface, message);
    }

    pub(crate) fn ask(&mut self, (iface, addr): Key, to: Option<Mac>) {
        let target = match addr {
            IpAddr::V4(target) => target,
            IpAddr::V6(target) => return self.solicit(iface, target, to),
        };
        let asked = self.links.get(&iface).and_then(|link| {
            let source = link.source(target)?;
            Some((link.mac, source))
        });
        if let Some((mac, source)) = asked {
            self.arp(iface, mac, to, source, target);
        }
    }

    pub(crate) fn arp(
        &mut self,
        tx: u32,
        own: Mac,
        to: Option<Mac>,
        source: Ipv4Addr,
        target: Ipv4Addr,
    ) {
        let arp = ArpPacket::request(MacAddr(own), source, target);
        let to = to.map_or(MacAddr::BROADCAST, MacAddr);
        let frame = [
            to.as_bytes(),
            &own,
            &EtherType::ARP.value().to_be_bytes(),
            arp.as_bytes(),
        ]
        .concat();
        self.send(Frame::new(tx, &frame));
    }

    /// The queues of the worker that sends frames of the control thread.
    fn sender(&self) -> Option<&ControlQueues> {
        let worker = self.engine.borrow().worker_set().accepting().next()?;
        self.lanes.get(worker).map(|lane| &**lane)
    }

    pub(crate) fn send(&mut self, mut frame: Frame) {
        frame.probe = self.arpings.asked_by;
        let sent = self
            .sender()
            .is_some_and(|lane| lane.frames.push(frame).is_ok());
        self.tally.unsent += u64::from(!sent);
    }

    pub(crate) fn send_long(&mut self, frame: Frame<LONG>) {
        let sent = self
            .sender()
            .is_some_and(|lane| lane.large_frames.push(frame).is_ok());
        self.tally.unsent += u64::from(!sent);
    }

    /// Carries out the effects that the table has queued.
    pub fn carry_out(&mut self) {
        while !self.table.effects.is_empty() {
            for effect in std::mem::take(&mut self.table.effects) {
                match effect {
                    Effect::Ask(key, to) => self.ask(key, to),
                    Effect::Publish(key, mac) => self.publish(key, mac),
                    Effect::Withdraw((iface, addr)) => {
                        self.fib.borrow_mut().forget_neighbor(iface, addr);
                    }
                    Effect::Release(held_packets) => self.give_back(held_packets, End::Resumed),
                    Effect::GiveUp(held_packets) => self.give_back(held_packets, End::Lost),
                    Effect::Evict(held_packets) => self.give_back(held_packets, End::Evicted),
                }
            }
        }
        if self.lanes.iter().any(|lane| lane.is_waiting()) {
            self.engine.borrow().wake();
        }
    }

    fn publish(&mut self, key: Key, mac: Mac) {
        self.log_learned(key, mac);
        let done = self
            .fib
            .borrow_mut()
            .set_neighbor(key.0, key.1, Neighbor::learned(mac));
        if done.is_err() {
            self.tally.no_room += 1;
            self.table.forget(key);
        }
    }

    /// Logs the new MAC address of a neighbour.
    fn log_learned(&self, (iface, addr): Key, mac: Mac) {
        let before = self.fib.borrow().neighbor(iface, addr);
        let interface = || self.interfaces.borrow().name(iface);
        match before {
            Some(before) if before.mac == mac => {}
            Some(before) => {
                let old = MacAddr(before.mac);
                info!(target: "neighbor", interface = interface(), "{addr} moved from {old} to {}", MacAddr(mac));
            }
            None => {
                debug!(target: "neighbor", interface = interface(), "{addr} is at {}", MacAddr(mac));
            }
        }
    }

    /// What happens to a packet that waited for a neighbour. No lookup finds a link-local address, so a packet to one is sent
    /// straight to the interface.
    fn end_of(&self, (tx, addr): Key, end: End) -> End {
        if end != End::Resumed || !is_link_local(addr) {
            return end;
        }
        let neighbor = self.fib.borrow().neighbor(tx, addr);
        match (self.links.get(&tx), neighbor) {
            (Some(link), Some(neighbor)) => End::OnLink {
                tx,
                from: link.mac,
                to: neighbor.mac,
            },
            _ => End::Lost,
        }
    }

    fn give_back(&self, held_packets: Vec<WaitingPacket>, end: End) {
        for held in held_packets {
            let back = ResolvedPacket {
                family: held.family,
                end: self.end_of(held.key, end),
                packet: held.packet,
            };
            // The capacity of the queue is the number of packets that a worker may have outside the graph.
            let full = self.lanes[held.worker].resolved_packets.push(back).is_err();
            debug_assert!(!full, "the queue back has room for all that may wait");
        }
    }
}
