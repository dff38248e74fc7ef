//! Receive from the ring, and send in batches.

use crate::ring::{Frame, RxRing};
use crate::sys::{BATCH, Batch, clear_error};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use volley_graph::{Isa, NewVector, Offload, Vector};
use volley_linux::node::{input, transmit};
use volley_linux::{RxQueue, Status, Taken, TxQueue, vnet};

const TAG: usize = 4;
/// Bytes of the two MAC addresses, which precede a VLAN tag.
const ADDRESSES: usize = 12;

/// The receive queue of a host interface.
pub struct PacketRx {
    ring: RxRing,
    /// Scratch buffer for a frame with its restored tag.
    whole: Vec<u8>,
}

impl PacketRx {
    /// A queue that reads this ring.
    pub fn new(ring: RxRing) -> Self {
        PacketRx {
            ring,
            whole: Vec::with_capacity(1 << 17),
        }
    }
}

/// The frame with its tag restored.
fn with_tag<'a>(whole: &'a mut Vec<u8>, frame: &Frame<'_>, (kind, value): (u16, u16)) -> &'a [u8] {
    let (front, back) = frame.bytes.split_at(ADDRESSES.min(frame.bytes.len()));
    whole.clear();
    whole.extend_from_slice(front);
    whole.extend_from_slice(&kind.to_be_bytes());
    whole.extend_from_slice(&value.to_be_bytes());
    whole.extend_from_slice(back);
    whole
}

impl RxQueue for PacketRx {
    const INPUT: &'static str = "af-packet-input";

    fn fd(&self) -> BorrowedFd<'_> {
        self.ring.socket().as_fd()
    }

    fn ready(&mut self, most: usize) -> usize {
        self.ring.waiting(most)
    }

    fn take<I: Isa>(
        &mut self,
        fresh: &mut NewVector<'_, I, input::Next>,
        bad: &mut [u32],
    ) -> Taken {
        let (mut taken, rows) = (Taken::default(), fresh.len());
        // A lost frame takes no row; the next frame uses its row.
        for _ in 0..rows {
            let Some(frame) = self.ring.first() else {
                break;
            };
            let row = taken.rows;
            let bytes = match frame.tag {
                None => frame.bytes,
                Some(tag) => with_tag(&mut self.whole, &frame, tag),
            };
            if frame.is_cut || bytes.is_empty() {
                taken.too_long += 1;
            } else if !fresh.write(row, bytes) {
                taken.no_buffers += 1;
            } else {
                taken.rows += 1;
                let inserted = if frame.tag.is_some() { TAG as u16 } else { 0 };
                let header = frame.header;
                let set =
                    match header[0] | header[1] {
                        0 => Ok(()),
                        _ => vnet::parse(&header, fresh.view(row).bytes(), inserted).and_then(
                            |asked| match asked {
                                Offload::NONE => Ok(()),
                                _ => fresh.set_offload(row, &asked),
                            },
                        ),
                    };
                if set.is_err() {
                    bad[row] = 1;
                    taken.bad += 1;
                }
            }
            self.ring.release();
        }
        taken
    }

    fn skip(&mut self, most: usize) -> usize {
        let n = self.ring.waiting(most);
        (0..n).for_each(|_| self.ring.release());
        n
    }

    fn lost(&mut self) -> u64 {
        clear_error(self.ring.socket());
        self.ring.dropped()
    }
}

/// The transmit queue of a host interface.
pub struct PacketTx {
    socket: Arc<OwnedFd>,
    batch: Batch,
}

impl PacketTx {
    /// A queue that sends by this socket.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        PacketTx {
            socket,
            batch: Batch::default(),
        }
    }
}

impl TxQueue for PacketTx {
    const OUTPUT: &'static str = "af-packet-tx";

    fn send<I: Isa>(
        &mut self,
        v: &mut Vector<'_, I, transmit::Next>,
        verdicts: &mut [u32],
        status: &Status,
    ) {
        let mut row = 0;
        while row < v.len() {
            let end = (row + BATCH).min(v.len());
            let packets = (row..end).map(|row| v.view(row));
            match self.batch.send(&self.socket, packets) {
                Ok(sent) => row += sent.max(1),
                // The error concerns only the first packet of the batch; the packets after it may succeed.
                Err(error) => {
                    transmit::mark(&mut verdicts[row..=row], &error);
                    if transmit::Count::of(&error) == transmit::Count::LinkDown {
                        status.report(&error);
                        transmit::mark(&mut verdicts[row..], &error);
                        return;
                    }
                    row += 1;
                }
            }
        }
    }
}
