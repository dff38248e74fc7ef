//! The slow path for 1:n: a packet is sent, dropped, or replaced by packets made from it. Order is kept.

use crate::data::col::Col;
use crate::data::column::Column;
use crate::data::frame::{CHAINED, Frame, IDX, POS, bits};
use crate::data::ids::NodeId;
use crate::data::packet::{Packet, PacketView};
use crate::data::{offload, packet};
use crate::node_api::edges::Nexts;
use crate::node_api::receive::MAX_SEGMENTS;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::dispatch::Dispatch;
use volley_buf::{DATA, Meta, NO_BUFFER, START};
use volley_simd::{Bits, Isa};

/// The action for a packet in [`Vector::replicate`].
#[derive(Clone, Copy)]
pub enum ReplicateAction<X> {
    /// Send the packet to this node.
    Send(NodeId),
    /// Send the packet to the next feature of its arc; to the drop node when it is on none.
    NextFeature,
    /// Send the packet to this edge; [`Packet::fail`] has tagged it.
    Drop(X),
    /// Send the packet's replicas instead of the packet, and free it.
    Replaced,
}

/// The number of replicas that [`Replicator::copy_to_ports`] made, besides the packet itself.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ReplicaCounts {
    /// Copies that were sent.
    pub copied: u64,
    /// Copies that were not made because no buffer was free.
    pub no_buffers: u64,
}

/// Replicas made in [`Vector::replicate`] and packets that are sent, in order.
pub struct Replicator<'a, I: Isa> {
    dispatch: &'a mut Dispatch,
    out: Box<Frame>,
    nodes: Column,
    isa: I,
}

impl<I: Isa> Replicator<'_, I> {
    /// Make a packet of `len` bytes from `template` for `node`: it has the columns of the template, but no mark ([`crate::ColumnKind::Mark`])
    /// and no offload request. `fill` is called for each buffer, in order. Returns the bytes of the first buffer, to
    /// be completed; none when no buffer is free.
    pub fn build(
        &mut self,
        template: &PacketView<'_>,
        node: NodeId,
        len: usize,
        mut fill: impl FnMut(&mut [u8]),
    ) -> Option<&mut [u8]> {
        let mut idx = [0u32; MAX_SEGMENTS];
        let n = len.div_ceil(DATA).clamp(1, MAX_SEGMENTS);
        let got = self.dispatch.bufs.alloc(&mut idx[..n]);
        if got < n {
            self.dispatch.bufs.free(&idx[..got]);
            return None;
        }
        let len = len.min(n * DATA);
        for (at, &this) in idx[..n].iter().enumerate() {
            let part = (len - at * DATA).min(DATA);
            let next = idx[..n].get(at + 1).copied().unwrap_or(NO_BUFFER);
            let pool = self.dispatch.bufs.pool();
            // SAFETY: the buffer was just allocated and is owned here; DATA bytes follow START.
            unsafe {
                *pool.meta(this) = Meta {
                    next,
                    end: (START + part) as u32,
                    ..Meta::default()
                };
                fill(std::slice::from_raw_parts_mut(pool.at(this, START), part));
            }
        }
        self.append(template.frame, template.row, node);
        let row = self.out.n - 1;
        let chained = if n > 1 { CHAINED } else { 0 };
        let mine = [
            (IDX, idx[0]),
            (POS, START as u32 | chained),
            (Col::LEN.at(), len as u32),
            (Col::OFFLOAD.at(), 0),
            (Col::MARK.at(), 0),
        ];
        for (col, word) in mine {
            self.out.cols[col].words_mut(row + 1)[row] = word;
        }
        // SAFETY: as above; the row is not sent before the borrow ends.
        let first = unsafe {
            std::slice::from_raw_parts_mut(
                self.dispatch.bufs.pool().at(idx[0], START),
                len.min(DATA),
            )
        };
        Some(first)
    }

    /// Make a copy of the packet for `node`, with the same bytes, columns and offload requests. Returns false when no
    /// buffer is free, or when the packet is longer than a new packet can be.
    pub fn clone_packet(&mut self, packet: &PacketView<'_>, node: NodeId) -> bool {
        if packet.len() > MAX_SEGMENTS * DATA {
            return false;
        }
        let mut slices = packet.slices();
        let mut rest: &[u8] = &[];
        let made = self.build(packet, node, packet.len(), |mut to| {
            while !to.is_empty() {
                if rest.is_empty() {
                    let Some(slice) = slices.next() else { break };
                    rest = slice;
                }
                let n = rest.len().min(to.len());
                let (head, tail) = std::mem::take(&mut to).split_at_mut(n);
                head.copy_from_slice(&rest[..n]);
                (to, rest) = (tail, &rest[n..]);
            }
        });
        if made.is_none() {
            return false;
        }
        let row = self.out.n - 1;
        let first = packet.len().min(DATA);
        let pool = self.dispatch.bufs.own_pool();
        // An offload request that fits the packet fits the copy, unless its headers are split over buffers differently.
        let offload = packet.offload();
        if offload::set(&pool, &mut self.out, row, &offload, first).is_err() {
            self.out.n -= 1;
            let idx = self.out.cols[IDX].all()[row];
            packet::free_members(&mut self.dispatch.bufs, idx);
            self.dispatch.bufs.free(&[idx]);
            return false;
        }
        true
    }

    /// Send a packet out of every one of `ports`, through `node`: the last port gets the packet itself and the others
    /// get copies. Returns none, and does nothing, when there is no port.
    pub fn copy_to_ports(
        &mut self,
        packet: &mut Packet<'_>,
        node: NodeId,
        mut ports: impl Iterator<Item = u32>,
    ) -> Option<ReplicaCounts> {
        let mut port = ports.next()?;
        let mut copies = ReplicaCounts::default();
        for next in ports {
            packet.set(Col::TX, port);
            if self.clone_packet(&packet.view(), node) {
                copies.copied += 1;
            } else {
                copies.no_buffers += 1;
            }
            port = next;
        }
        packet.set(Col::TX, port);
        Some(copies)
    }

    /// Append a row of `frame`.
    fn append(&mut self, frame: &Frame, row: usize, node: NodeId) {
        if self.out.n >= self.dispatch.vector_size {
            self.flush();
        }
        let out = &mut self.out;
        let zero = out.common_columns(frame.valid);
        for col in bits(out.valid) {
            let word = match zero & 1 << col {
                0 => frame.words(col)[row],
                _ => 0,
            };
            out.cols[col].all_mut()[out.n] = word;
        }
        let known = node.index() < self.dispatch.queues.len();
        let node = if known { node } else { self.dispatch.drop_node };
        self.nodes.words_mut(out.n + 1)[out.n] = u32::from(node.0);
        out.n += 1;
    }

    /// Send the collected rows.
    fn flush(&mut self) {
        let fresh = self.dispatch.frame();
        let full = std::mem::replace(&mut self.out, fresh);
        let codes = self.nodes.words(full.n);
        let node = |code| NodeId(code as u16);
        self.dispatch.split(self.isa, full, codes, node);
    }
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Choose an action for each packet, one at a time. Packets for a node, new or old, arrive there in order.
    pub fn replicate(
        mut self,
        mut body: impl FnMut(&mut Packet<'_>, &mut Replicator<'_, I>) -> ReplicateAction<X>,
    ) -> Consumed {
        self.frame.make_valid(Col::OFFLOAD, 0);
        self.frame.make_valid(Col::FEATURE, 0);
        let pool = self.dispatch.bufs.own_pool();
        let mut replicator = Replicator {
            out: self.dispatch.frame(),
            nodes: std::mem::take(&mut self.dispatch.targets),
            dispatch: self.dispatch,
            isa: self.isa,
        };
        let rows = self.frame.n;
        // Most dropped packets leave by one edge: they are sent together, and without other actions the frame itself
        // is moved.
        let (mut leave, mut by) = (Bits::none(rows), None);
        for row in 0..rows {
            let mut packet = Packet {
                pool: &pool,
                frame: &mut self.frame,
                row,
            };
            match body(&mut packet, &mut replicator) {
                ReplicateAction::Send(node) => replicator.append(&self.frame, row, node),
                ReplicateAction::NextFeature => {
                    let word = &mut self.frame.cols[Col::FEATURE.at()].all_mut()[row];
                    let step = replicator.dispatch.arcs.next_on_arc(*word);
                    let (node, place) = step.unwrap_or((replicator.dispatch.drop_node, 0));
                    *word = place;
                    replicator.append(&self.frame, row, node);
                }
                ReplicateAction::Drop(next) => {
                    let edge = self.raw.edges[next.index()];
                    let before = by.replace(edge).filter(|before| *before != edge);
                    if let Some(before) = before {
                        let dispatch = &mut *replicator.dispatch;
                        dispatch.push_set(self.isa, before, &self.frame, &leave);
                        leave = Bits::none(rows);
                    }
                    leave.set(row);
                }
                ReplicateAction::Replaced => {
                    let idx = self.frame.words(IDX)[row];
                    if self.frame.words(POS)[row] & CHAINED != 0 {
                        packet::free_members(&mut replicator.dispatch.bufs, idx);
                    }
                    replicator.dispatch.bufs.free(&[idx]);
                }
            }
        }
        replicator.flush();
        let Replicator {
            dispatch,
            out,
            nodes,
            ..
        } = replicator;
        dispatch.targets = nodes;
        dispatch.recycle(out);
        match by {
            Some(edge) if leave.count() == rows => dispatch.push_frame(edge, self.frame),
            Some(edge) => {
                dispatch.push_set(self.isa, edge, &self.frame, &leave);
                dispatch.recycle(self.frame);
            }
            None => dispatch.recycle(self.frame),
        }
        Consumed(())
    }
}
