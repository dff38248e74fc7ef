//! The interface table of the workers: atomics by index, written by the control thread, and counters for each worker.

use crate::capture_hook::{ActivePoints, CaptureHook, CapturePoint};
use crate::listeners::{ListenError, Listened, Listeners};
use crate::states::RxMode;
use crate::sub_interface::Sub;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use volley_graph::{NodeId, WorkerSet};
use volley_model::Family;

/// The maximum number of interfaces with a driver, which have the lowest indexes.
pub const MAX_INTERFACES: usize = 1024;

/// The maximum number of all interfaces: indexes from [`MAX_INTERFACES`] on are of sub-interfaces.
pub const MAX_INTERFACE_INDEXES: usize = 1 << 14;

/// The maximum number of queues of an interface in a direction with own counters; further queues share those of the last one.
pub const MAX_QUEUES: usize = 16;

/// How long an interface in adaptive mode is polled after its last packet, in nanoseconds.
pub const ADAPTIVE_NS: u64 = 200_000;

const ADAPTIVE: u32 = 0;
const POLLING: u32 = 1;
const INTERRUPT: u32 = 2;

/// The index of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IfIdx(pub u32);

/// Properties of an interface that workers read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Flag {
    /// Administratively up, with link.
    Up = 1,
    /// Promiscuous: receives frames for any MAC address.
    Promiscuous = 4,
    /// Has an IPv4 address.
    Ip4 = 8,
    /// Has an IPv6 address.
    Ip6 = 16,
    /// Resolves neighbors.
    ResolveNeighbors = 32,
    /// Has an LCP tap in the Linux kernel.
    HasLcpTap = 64,
    /// Has sub-interfaces.
    HasSubInterfaces = 128,
    /// Sends IPv6 router advertisements.
    RouterAdvertisements = 256,
    /// Has tentative addresses: duplicate address detection reads the messages of other hosts.
    DuplicateAddressDetection = 512,
    /// Answers for addresses that are routed through other interfaces (proxy ARP, proxy ND).
    ProxyNeighbors = 1024,
    /// Reports its multicast group memberships on the link.
    GroupMember = 2048,
    /// Is unnumbered: uses the addresses of another interface and has no connected network.
    Unnumbered = 4096,
    /// Receives packets to multicast groups that are routed.
    Multicast = 8192,
    /// Receives IGMP messages.
    Igmp = 16_384,
    /// Receives MLD messages.
    Mld = 32_768,
    /// Receives router advertisements.
    Slaac = 65_536,
    /// Is an LCP tap.
    IsLcpTap = 131_072,
    /// Receives UDP datagrams to 255.255.255.255 and to link-scope IPv6 groups on the ports of listeners.
    LinkUdp = 262_144,
}

/// The direction of a packet on an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received.
    Rx,
    /// Transmitted.
    Tx,
}

#[derive(Default)]
#[repr(align(64))]
struct Slot {
    flags: AtomicU32,
    tx_node: AtomicU32,
    patch_peer: AtomicU32,
    /// 1 + the interface's LCP tap, 0 for none.
    lcp_tap: AtomicU32,
    caps: AtomicU32,
    mode: AtomicU32,
    mtu: AtomicU32,
    /// The listeners for datagrams to all hosts of the link, as bits.
    link_listeners: AtomicU32,
    mac: AtomicU64,
    /// [`Sub`] as a word, 0 for an interface with a driver.
    sub: AtomicU64,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// Counters of one queue, written only by the worker of the queue, on separate cache lines: the neighbours are
/// counters of other workers' queues.
#[derive(Default)]
#[repr(align(64))]
struct QueueCounters {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Counters of one interface on one worker, written only by that worker.
#[derive(Default)]
#[repr(align(64))]
struct InterfaceCounters {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
    drops: AtomicU64,
    rx_errors: AtomicU64,
    tx_errors: AtomicU64,
    missed: AtomicU64,
}

/// Counters of one interface.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IfCounts {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets transmitted.
    pub tx_packets: u64,
    /// Bytes transmitted.
    pub tx_bytes: u64,
    /// Packets received on the interface and dropped by any node.
    pub drops: u64,
    /// Packets lost on receive.
    pub rx_errors: u64,
    /// Packets lost on transmit.
    pub tx_errors: u64,
    /// Packets that the kernel or the device had no free buffer for.
    pub missed: u64,
}

/// A value for each interface index. The compiler knows the length, so that an index modulo the length needs no check.
type ByIndex<T> = Box<[T; MAX_INTERFACE_INDEXES]>;

fn by_index<T: Default>() -> ByIndex<T> {
    let all = std::iter::repeat_with(T::default);
    let all: Box<[T]> = all.take(MAX_INTERFACE_INDEXES).collect();
    match all.try_into() {
        Ok(all) => all,
        Err(_) => unreachable!("the iterator has as many values as the array"),
    }
}

/// The interface table of the workers.
pub struct IfTable {
    slots: ByIndex<Slot>,
    /// By worker.
    cells: Box<[ByIndex<InterfaceCounters>]>,
    /// Allocated with the first interface of the index.
    queues: ByIndex<OnceLock<Box<[QueueCounters]>>>,
    worker_set: Arc<WorkerSet>,
    listeners: Listeners,
    tap: OnceLock<(Arc<ActivePoints>, Arc<dyn CaptureHook>)>,
}

#[inline(always)]
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl IfTable {
    /// A table for `workers` workers, all interfaces down.
    pub fn new(workers: usize) -> Arc<Self> {
        Self::with_workers(workers, Arc::new(WorkerSet::from_ids(0..workers)))
    }

    /// A table for at most `workers` workers; the existing ones are in `worker_set`.
    pub fn with_workers(workers: usize, worker_set: Arc<WorkerSet>) -> Arc<Self> {
        Arc::new(IfTable {
            slots: by_index(),
            cells: (0..workers).map(|_| by_index()).collect(),
            queues: by_index(),
            worker_set,
            listeners: Listeners::default(),
            tap: OnceLock::new(),
        })
    }

    /// The existing workers.
    #[inline(always)]
    pub fn worker_set(&self) -> &WorkerSet {
        &self.worker_set
    }

    #[inline(always)]
    fn slot(&self, interface: u32) -> &Slot {
        &self.slots[interface as usize % MAX_INTERFACE_INDEXES]
    }

    /// Whether an interface has a property.
    #[inline(always)]
    pub fn has(&self, interface: u32, flag: Flag) -> bool {
        self.slot(interface).flags.load(Relaxed) & flag as u32 != 0
    }

    /// All properties of an interface as [`Flag`] bits.
    #[inline(always)]
    pub fn flags(&self, interface: u32) -> u32 {
        self.slot(interface).flags.load(Relaxed)
    }

    /// The MAC address in the low 48 bits, first byte highest.
    #[inline(always)]
    pub fn mac(&self, interface: u32) -> u64 {
        self.slot(interface).mac.load(Relaxed)
    }

    /// The MTU: the maximum length of an IP packet that is transmitted on the interface.
    #[inline(always)]
    pub fn mtu(&self, interface: u32) -> u32 {
        self.slot(interface).mtu.load(Relaxed)
    }

    /// The transmit node.
    #[inline(always)]
    pub fn tx_node(&self, interface: u32) -> NodeId {
        NodeId(self.slot(interface).tx_node.load(Relaxed) as u16)
    }

    /// The other interface of an L2 cross-connect or patch.
    #[inline(always)]
    pub fn patch_peer(&self, interface: u32) -> u32 {
        self.slot(interface).patch_peer.load(Relaxed)
    }

    /// The offloads of the transmit node: [`crate::driver::Caps`] as bits.
    #[inline(always)]
    pub fn caps(&self, interface: u32) -> u32 {
        self.slot(interface).caps.load(Relaxed)
    }

    /// The parent of a sub-interface, and the tags.
    #[inline(always)]
    pub fn sub(&self, interface: u32) -> Option<Sub> {
        Sub::from_word(self.sub_word(interface))
    }

    /// As [`IfTable::sub`], as a word: 0 for an interface with a driver.
    #[inline(always)]
    pub fn sub_word(&self, interface: u32) -> u64 {
        self.slot(interface).sub.load(Relaxed)
    }

    /// Sets the parent and the tags of a sub-interface.
    pub fn set_sub(&self, interface: IfIdx, sub: Option<Sub>) {
        let word = sub.map_or(0, Sub::word);
        self.slot(interface.0).sub.store(word, Relaxed);
    }

    /// Sets the offloads of the transmit node.
    pub fn set_caps(&self, interface: IfIdx, caps: u32) {
        self.slot(interface.0).caps.store(caps, Relaxed);
    }

    /// Whether the interface lets a worker sleep `idle_ns` after its last packet. A source calls this in
    /// [`volley_graph::Source::may_sleep`] for each of its interfaces.
    #[inline]
    pub fn may_sleep(&self, interface: u32, idle_ns: u64) -> bool {
        let slot = self.slot(interface);
        let up = slot.flags.load(Relaxed) & Flag::Up as u32 != 0;
        match slot.mode.load(Relaxed) {
            POLLING => !up,
            INTERRUPT => true,
            _ => !up || idle_ns >= ADAPTIVE_NS,
        }
    }

    /// Sets the receive mode.
    pub fn set_rx_mode(&self, interface: IfIdx, mode: RxMode) {
        let word = match mode {
            RxMode::Adaptive => ADAPTIVE,
            RxMode::Polling => POLLING,
            RxMode::Interrupt => INTERRUPT,
        };
        self.slot(interface.0).mode.store(word, Relaxed);
    }

    /// Sets or clears a property of an interface.
    pub fn set(&self, interface: IfIdx, flag: Flag, on: bool) {
        let flags = &self.slot(interface.0).flags;
        if on {
            flags.fetch_or(flag as u32, Relaxed)
        } else {
            flags.fetch_and(!(flag as u32), Relaxed)
        };
    }

    /// Sets the MTU.
    pub fn set_mtu(&self, interface: IfIdx, mtu: u32) {
        self.slot(interface.0).mtu.store(mtu, Relaxed);
    }

    /// Sets the MAC address.
    pub fn set_mac(&self, interface: IfIdx, mac: [u8; 6]) {
        let [a, b, c, d, e, f] = mac;
        self.slot(interface.0)
            .mac
            .store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), Relaxed);
    }

    /// Sets the transmit node.
    pub fn set_tx_node(&self, interface: IfIdx, node: NodeId) {
        self.slot(interface.0)
            .tx_node
            .store(u32::from(node.0), Relaxed);
    }

    /// Sets the other interface of an L2 cross-connect or patch.
    pub fn set_peer(&self, interface: IfIdx, peer: IfIdx) {
        self.slot(interface.0).patch_peer.store(peer.0, Relaxed);
    }

    /// The LCP tap of an interface, if it has one.
    #[inline(always)]
    pub fn lcp_tap(&self, interface: u32) -> Option<u32> {
        self.slot(interface).lcp_tap.load(Relaxed).checked_sub(1)
    }

    /// Sets or removes the LCP tap of an interface.
    pub fn set_lcp_tap(&self, interface: IfIdx, lcp_tap: Option<IfIdx>) {
        let word = lcp_tap.map_or(0, |t| t.0 + 1);
        self.slot(interface.0).lcp_tap.store(word, Relaxed);
        self.set(interface, Flag::HasLcpTap, lcp_tap.is_some());
    }

    /// The node that receives the UDP datagrams for the router on a port, if a feature listens there.
    #[inline(always)]
    pub fn udp_listener(&self, family: Family, port: u16) -> Option<NodeId> {
        self.listeners.node(Listened::Udp(family, port))
    }

    /// The node that receives the frames of an EtherType, if a feature listens to it.
    #[inline(always)]
    pub fn ethertype_listener(&self, ethertype: u16) -> Option<NodeId> {
        self.listeners.node(Listened::EtherType(ethertype))
    }

    /// Makes `node` the listener of an EtherType, or removes it. An error if another node listens to it. Listeners do not
    /// receive IPv4, IPv6 and tagged frames.
    pub fn listen_ethertype(
        &self,
        ethertype: u16,
        node: NodeId,
        on: bool,
    ) -> Result<(), ListenError> {
        let protocol = Listened::EtherType(ethertype);
        self.listeners.set(protocol, node, on)
    }

    /// The node that receives the packets of an IP protocol for the router, if a feature listens to it.
    #[inline(always)]
    pub fn ip_listener(&self, family: Family, protocol: u8) -> Option<NodeId> {
        self.listeners.node(Listened::Ip(family, protocol))
    }

    /// Makes `node` the listener of an IP protocol, or removes it. An error if another node listens to it. Listeners do not
    /// receive ICMP, TCP and UDP.
    pub fn listen_ip(
        &self,
        family: Family,
        protocol: u8,
        node: NodeId,
        on: bool,
    ) -> Result<(), ListenError> {
        let protocol = Listened::Ip(family, protocol);
        self.listeners.set(protocol, node, on)
    }

    /// Whether an interface receives UDP datagrams to all hosts of the link on a port, for the listener there.
    pub fn hears_link(&self, interface: u32, family: Family, port: u16) -> bool {
        let heard = self.slot(interface).link_listeners.load(Relaxed);
        heard & self.listeners.bit(Listened::Udp(family, port)) != 0
    }

    /// Makes an interface receive UDP datagrams to all hosts of the link on a port with a listener, or stops this.
    pub fn hear_link(&self, interface: IfIdx, family: Family, port: u16, on: bool) {
        let bit = self.listeners.bit(Listened::Udp(family, port));
        self.set_link_listeners(interface.0, bit, on);
    }

    fn set_link_listeners(&self, interface: u32, bits: u32, on: bool) {
        let slot = self.slot(interface);
        let before = slot.link_listeners.load(Relaxed);
        let now = if on { before | bits } else { before & !bits };
        slot.link_listeners.store(now, Relaxed);
        self.set(IfIdx(interface), Flag::LinkUdp, now != 0);
    }

    /// Makes `node` the listener of a UDP port, or removes it on all interfaces. An error if another node listens there.
    pub fn listen_udp(
        &self,
        family: Family,
        port: u16,
        node: NodeId,
        on: bool,
    ) -> Result<(), ListenError> {
        let protocol = Listened::Udp(family, port);
        let bit = self.listeners.bit(protocol);
        self.listeners.set(protocol, node, on)?;
        if !on && bit != 0 {
            (0..self.slots.len() as u32).for_each(|it| self.set_link_listeners(it, bit, false));
        }
        Ok(())
    }

    /// Counts packets that were received or transmitted on `interface` by `worker`.
    #[inline(always)]
    pub fn count(
        &self,
        worker: usize,
        interface: u32,
        direction: Direction,
        packets: u64,
        bytes: u64,
    ) {
        let cells = &self.cells[worker][interface as usize % MAX_INTERFACE_INDEXES];
        let (p, b) = match direction {
            Direction::Rx => (&cells.rx_packets, &cells.rx_bytes),
            Direction::Tx => (&cells.tx_packets, &cells.tx_bytes),
        };
        bump(p, packets);
        bump(b, bytes);
    }

    /// Allocates the counters of an interface's queues, on the control thread.
    pub(crate) fn allocate_queue_counters(&self, interface: IfIdx) {
        let room = || {
            (0..2 * MAX_QUEUES)
                .map(|_| QueueCounters::default())
                .collect()
        };
        self.queues[interface.0 as usize % MAX_INTERFACE_INDEXES].get_or_init(room);
    }

    #[inline(always)]
    fn queue(&self, interface: u32, direction: Direction, queue: usize) -> Option<&QueueCounters> {
        let cells = self.queues[interface as usize % MAX_INTERFACE_INDEXES].get()?;
        let queue = queue.min(MAX_QUEUES - 1);
        cells.get(direction as usize * MAX_QUEUES + queue)
    }

    /// Counts packets of one queue. [`IfTable::count`] counts those of the interface.
    #[inline(always)]
    pub fn count_queue(
        &self,
        interface: u32,
        direction: Direction,
        queue: usize,
        packets: u64,
        bytes: u64,
    ) {
        let Some(cells) = self.queue(interface, direction, queue) else {
            return;
        };
        if queue + 1 < MAX_QUEUES {
            bump(&cells.packets, packets);
            bump(&cells.bytes, bytes);
        } else {
            // This slot has the counters of several queues, so several workers write it.
            cells.packets.fetch_add(packets, Relaxed);
            cells.bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Packets and bytes of one queue.
    pub fn queue_counts(&self, interface: IfIdx, direction: Direction, queue: usize) -> (u64, u64) {
        let cells = self.queue(interface.0, direction, queue);
        let both = |c: &QueueCounters| (c.packets.load(Relaxed), c.bytes.load(Relaxed));
        cells.map(both).unwrap_or_default()
    }

    /// Counts packets lost at `interface` itself.
    #[inline(always)]
    pub fn count_errors(&self, worker: usize, interface: u32, direction: Direction, packets: u64) {
        let cells = &self.cells[worker][interface as usize % MAX_INTERFACE_INDEXES];
        bump(
            if direction == Direction::Rx {
                &cells.rx_errors
            } else {
                &cells.tx_errors
            },
            packets,
        );
    }

    /// Counts packets that the kernel or the device had no free buffer for.
    pub fn count_missed(&self, worker: usize, interface: u32, packets: u64) {
        let cells = &self.cells[worker][interface as usize % MAX_INTERFACE_INDEXES];
        bump(&cells.missed, packets);
    }

    /// Counts a packet that was received on `interface` and dropped.
    #[inline(always)]
    pub fn count_drop(&self, worker: usize, interface: u32) {
        bump(
            &self.cells[worker][interface as usize % MAX_INTERFACE_INDEXES].drops,
            1,
        );
    }

    /// The counters of an interface: the sum of all workers.
    pub fn counts(&self, interface: IfIdx) -> IfCounts {
        self.cells.iter().fold(IfCounts::default(), |sum, cells| {
            let c = &cells[interface.0 as usize % MAX_INTERFACE_INDEXES];
            IfCounts {
                rx_packets: sum.rx_packets + c.rx_packets.load(Relaxed),
                rx_bytes: sum.rx_bytes + c.rx_bytes.load(Relaxed),
                tx_packets: sum.tx_packets + c.tx_packets.load(Relaxed),
                tx_bytes: sum.tx_bytes + c.tx_bytes.load(Relaxed),
                drops: sum.drops + c.drops.load(Relaxed),
                rx_errors: sum.rx_errors + c.rx_errors.load(Relaxed),
                tx_errors: sum.tx_errors + c.tx_errors.load(Relaxed),
                missed: sum.missed + c.missed.load(Relaxed),
            }
        })
    }

    /// Sets the capture hook. Returns false if there is one already.
    pub fn set_capture_hook(&self, tap: Arc<dyn CaptureHook>) -> bool {
        self.tap.set((tap.active_points(), tap)).is_ok()
    }

    /// The capture hook, if it captures packets of `direction`.
    #[inline(always)]
    pub fn tap(&self, direction: Direction) -> Option<&dyn CaptureHook> {
        self.hook(CapturePoint::Passing(direction))
    }

    /// The capture hook, if it captures dropped packets.
    pub fn drop_hook(&self) -> Option<&dyn CaptureHook> {
        self.hook(CapturePoint::Dropped)
    }

    #[inline(always)]
    fn hook(&self, point: CapturePoint) -> Option<&dyn CaptureHook> {
        let (active, tap) = self.tap.get()?;
        active.has(point).then_some(tap.as_ref())
    }
}
