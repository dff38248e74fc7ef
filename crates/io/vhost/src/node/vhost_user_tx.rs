//! vhost-user-tx: puts packets into the rings of its interface (vhost-user or virtio-user) and frees them.

use crate::batch::{HEADER, Room};
use crate::device::{End, Reservation, Reserved};
use crate::fault::RingFault;
use crate::header::{self, Words};
use crate::memory::Memory;
use crate::wire::{MAX_PAIRS, RingSlot, Running, VhostPort};
use crate::with_ring;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, PacketView, Vector, counters,
    nexts,
};
use volley_iface::{Direction, IfTable, flow_queue};
use volley_wire::ethertype;

nexts! {
    /// Where vhost-user-tx sends packets that do not leave.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What vhost-user-tx counts.
    pub enum Count {
        /// the peer has no free buffer: it takes packets slower than they come
        NoSlots = "no-tx-slots" (Warn),
        /// longer than the peer's buffers, which may not be merged
        TooLong = "too-long-for-peer" (Error),
        /// no ring is in service: the peer is not connected, or not ready
        NoRing = "no-ring" (Error),
        /// the peer's ring is faulty: see `show vhost-user`
        PeerFault = "peer-fault" (Error),
    }
}

/// Number of buffers to prefetch ahead.
const AHEAD: u16 = 16;

/// Number of packets after which a full ring is read again. The peer writes there, so that each reading waits for its core.
const RETRY: usize = 16;

/// State of an interface's transmit node on one worker.
pub struct VhostTx {
    worker: usize,
    table: Arc<IfTable>,
    wire: Arc<VhostPort>,
    room: Room,
    /// Drop reason of each row; 0 if it is transmitted.
    verdict: Column,
    /// Queue of each row, if there are several queues.
    pick: Column,
}

/// The rows for one ring.
struct Share {
    rows: usize,
    /// Only rows with this value in `pick`.
    only: Option<u32>,
}

impl VhostTx {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub fn new(worker: usize, table: Arc<IfTable>, wire: Arc<VhostPort>, size: usize) -> Self {
        VhostTx {
            worker,
            table,
            wire,
            room: Room::default(),
            verdict: Column::new(size),
            pick: Column::new(size),
        }
    }

    /// The queues that this worker transmits to: its share of those in service, or one that it shares with other workers.
    fn queues(&self, out: &mut [usize; MAX_PAIRS]) -> usize {
        let pairs = self.wire.pairs.load(Relaxed).min(MAX_PAIRS);
        let (mut n, mut live) = (0, [0; MAX_PAIRS]);
        for queue in (0..pairs).filter(|&q| self.wire.tx[q].is_live()) {
            live[n] = queue;
            n += 1;
        }
        if n == 0 {
            return 0;
        }
        let (rank, workers) = self.table.worker_set().rank(self.worker);
        if n <= workers {
            out[0] = live[rank % n];
            return 1;
        }
        let mut mine = 0;
        for at in (0..n).filter(|at| at % workers == rank) {
            out[mine] = live[at];
            mine += 1;
        }
        mine
    }

    #[inline(always)]
    fn lane<I: Isa>(&mut self, v: &Vector<'_, I, Next>, queue: usize, share: &Share) {
        let wire = self.wire.clone();
        let lane = &wire.tx[queue];
        let mut claim = lane.claim();
        let Some(Running {
            ring, memory, call, ..
        }) = claim.as_deref_mut().and_then(Option::as_mut)
        else {
            return self.fail_share(share, Count::NoRing);
        };
        with_ring!(ring, end => {
            let (sent, bytes, tell) = self.ring(v, (&wire, lane), end, memory, share);
            if tell {
                Running::notify(call);
            }
            lane.count(sent, tell);
            let interface = wire.interface.0;
            self.table.count_queue(interface, Direction::Tx, queue, sent as u64, bytes as u64);
        });
    }

    #[cold]
    fn fail_share(&mut self, share: &Share, why: Count) {
        for row in 0..share.rows {
            if share
                .only
                .is_none_or(|only| self.pick.words(share.rows)[row] == only)
            {
                self.verdict.words_mut(share.rows)[row] = why.code();
            }
        }
    }

    #[inline(always)]
    fn ring<I: Isa, E: End>(
        &mut self,
        v: &Vector<'_, I, Next>,
        (wire, lane): (&VhostPort, &RingSlot),
        ring: &mut E,
        memory: &Memory,
        share: &Share,
    ) -> (usize, usize, bool) {
        let offloads = wire.offloads.load(Relaxed) && v.has(Col::OFFLOAD);
        let (mut sent, mut bytes, mut tell) = (0, 0, false);
        let mut fault = ring.prepare(memory, share.rows).err();
        let mut full_until = 0;
        let Self {
            room,
            verdict,
            pick,
            ..
        } = self;
        let (verdict, pick) = (verdict.words_mut(share.rows), pick.words(share.rows));
        let lens = v.column(Col::LEN);
        let ahead = |ring: &E, nth: u16, row: usize| {
            let len = lens.get(row).map_or(0, |len| *len as usize);
            ring.ahead(memory, nth, HEADER + len);
        };
        (0..AHEAD).for_each(|nth| ahead(ring, nth, nth.into()));
        for row in 0..share.rows {
            if share.only.is_some_and(|only| pick[row] != only) {
                continue;
            }
            ahead(ring, AHEAD, row + usize::from(AHEAD));
            let view = v.view(row);
            let (len, first) = (HEADER + view.len(), view.bytes());
            let is_whole = fault.is_none() && first.len() == view.len();
            let plain = is_whole.then(|| ring.plain(memory, room, len)).flatten();
            if let Some(place) = plain {
                head(ring, &view, 1, offloads).store(place);
                place.write(HEADER, first);
                verdict[row] = 0;
                (sent, bytes) = (sent + 1, bytes + first.len());
            } else {
                let reserved = match fault {
                    Some(_) => Err(RingFault::Shrunk),
                    None if row < full_until => Ok(Reserved::Full),
                    None => ring.reserve(memory, room, len),
                };
                match reserved {
                    Ok(Reserved::Room) => {
                        fill(ring, memory, room, &view, offloads);
                        (sent, bytes) = (sent + 1, bytes + view.len());
                    }
                    Ok(Reserved::Full) if row >= full_until => full_until = row + RETRY,
                    Err(why) => _ = fault.get_or_insert(why),
                    Ok(_) => {}
                }
                verdict[row] = code(&reserved);
            }
            if room.is_full() {
                tell |= ring.flush(memory, room);
            }
        }
        tell |= ring.flush(memory, room);
        if memory.is_broken() {
            fault = Some(memory.fault());
        }
        if let Some(fault) = fault {
            wire.fail(lane, fault);
        }
        (sent, bytes, tell)
    }

    /// Transmit to several queues; all packets of a flow use the same queue.
    #[inline(never)]
    fn spread<I: Isa>(&mut self, v: &Vector<'_, I, Next>, queues: &[usize]) {
        let rows = v.len();
        for row in 0..rows {
            let words = flow(v.view(row).bytes()).iter();
            let words = words.map(|word| u32::from_ne_bytes(*word));
            self.pick.words_mut(rows)[row] = flow_queue(words, queues.len());
        }
        for (at, &queue) in queues.iter().enumerate() {
            let share = Share {
                rows,
                only: Some(at as u32),
            };
            self.lane(v, queue, &share);
        }
    }
}

/// The drop reason of a packet; 0 if it has buffers.
fn code(reserved: &Reservation) -> u32 {
    match reserved {
        Ok(Reserved::Room) => 0,
        Ok(Reserved::Full) => Count::NoSlots.code(),
        Ok(Reserved::TooLong) => Count::TooLong.code(),
        Err(_) => Count::PeerFault.code(),
    }
}

/// Write one packet into the reserved buffers.
#[inline(always)]
fn fill<E: End>(ring: &E, memory: &Memory, room: &mut Room, view: &PacketView<'_>, offloads: bool) {
    let head = head(ring, view, room.buffers(), offloads);
    let first = view.bytes();
    if first.len() == view.len() {
        room.fill(memory, head, first);
    } else {
        room.fill_parts(memory, head, |each| view.slices().for_each(each));
    }
}

/// The header of a packet in this number of buffers.
#[inline(always)]
fn head<E: End>(ring: &E, view: &PacketView<'_>, buffers: usize, offloads: bool) -> Words {
    let buffers = ring.buffer_count(buffers);
    if offloads {
        header::write(&view.offload(), buffers)
    } else {
        header::plain(buffers)
    }
}

/// Addresses and ports of a packet, whose headers have no options.
fn flow(bytes: &[u8]) -> &[[u8; 4]] {
    let six = bytes.get(12..14) == Some(&ethertype::IP6.to_be_bytes());
    let (from, to) = if six { (22, 58) } else { (26, 38) };
    let part = &bytes[from.min(bytes.len())..to.min(bytes.len())];
    part.as_chunks().0
}

impl Node for VhostTx {
    const NAME: &'static str = "vhost-user-tx";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let (rows, interface) = (v.len(), self.wire.interface.0);
        let mut queues = [0; MAX_PAIRS];
        let n = self.queues(&mut queues);
        let all = Share { rows, only: None };
        match n {
            0 => self.fail_share(&all, Count::NoRing),
            1 => self.lane(&v, queues[0], &all),
            _ => self.spread(&v, &queues[..n]),
        }
        v.drop_out(cx, &self.verdict, |_: Count| Next::Drop);
        let lost = (rows - v.len()) as u64;
        if lost > 0 {
            self.table
                .count_errors(self.worker, interface, Direction::Tx, lost);
        }
        let bytes = volley_graph::sum(v.column(Col::LEN));
        self.table
            .count(self.worker, interface, Direction::Tx, v.len() as u64, bytes);
        v.free()
    }
}
