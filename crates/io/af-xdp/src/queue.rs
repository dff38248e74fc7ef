//! Receiving and transmitting through an XDP socket.

use crate::ring::{RxHalf, TxHalf};
use std::os::fd::{AsFd, BorrowedFd};
use volley_graph::{Column, Consumed, Isa, NewVector, Output, Vector};
use volley_linux::node::{input, transmit};
use volley_linux::{RxQueue, Status, Taken, TxQueue};

/// The receive queue of an XDP socket.
pub struct XdpRx {
    half: RxHalf,
    /// Whether to complete partial checksums, which the kernel does not report.
    mends: bool,
    lost: u64,
}

impl XdpRx {
    /// A queue; the second argument is true for interfaces whose other end is a kernel on this machine.
    pub fn new(half: RxHalf, mends: bool) -> Self {
        let lost = half.lost();
        XdpRx { half, mends, lost }
    }
}

impl RxQueue for XdpRx {
    const INPUT: &'static str = "af-xdp-input";

    fn fd(&self) -> BorrowedFd<'_> {
        self.half.socket().as_fd()
    }

    fn refill<I: Isa>(&mut self, out: &mut Output<'_, I, input::Next>) {
        self.half.refill(out);
    }

    fn ready(&mut self, most: usize) -> usize {
        self.half.waiting().min(most)
    }

    fn receive<'o, I: Isa>(
        &mut self,
        out: &'o mut Output<'_, I, input::Next>,
        rx: u32,
        due: usize,
        bad: &mut Column,
    ) -> Option<(NewVector<'o, I, input::Next>, Taken)> {
        let (mut fresh, whole) = self.half.take(out, rx, due);
        let mut taken = Taken {
            rows: fresh.len(),
            ..Taken::default()
        };
        if !whole {
            taken.rows -= 1;
            taken.no_buffers = 1;
        }
        bad.words_mut(fresh.len()).fill(0);
        if self.mends {
            fresh.prepare(|_, packet| crate::mend::mend(packet));
        }
        Some((fresh, taken))
    }

    fn take<I: Isa>(&mut self, _: &mut NewVector<'_, I, input::Next>, _: &mut [u32]) -> Taken {
        Taken::default()
    }

    fn skip(&mut self, _most: usize) -> usize {
        0
    }

    fn lost(&mut self) -> u64 {
        let now = self.half.lost();
        now.saturating_sub(std::mem::replace(&mut self.lost, now))
    }
}

/// The transmit queue of an XDP socket.
pub struct XdpTx {
    half: TxHalf,
}

impl XdpTx {
    /// A queue.
    pub fn new(half: TxHalf) -> Self {
        XdpTx { half }
    }
}

impl TxQueue for XdpTx {
    const OUTPUT: &'static str = "af-xdp-tx";

    fn send<I: Isa>(
        &mut self,
        v: &mut Vector<'_, I, transmit::Next>,
        verdicts: &mut [u32],
        status: &Status,
    ) {
        self.half.reclaim(v);
        let full = std::io::Error::from_raw_os_error(libc::ENOBUFS);
        for row in 0..v.len() {
            if v.view(row).is_chain() && self.half.is_zero_copy() {
                let long = std::io::Error::from_raw_os_error(libc::EMSGSIZE);
                transmit::mark(&mut verdicts[row..=row], &long);
            } else if !self.half.post(v, row) {
                transmit::mark(&mut verdicts[row..=row], &full);
            }
        }
        if let Err(error) = self.half.flush()
            && transmit::Count::of(&error) == transmit::Count::LinkDown
        {
            status.report(&error);
        }
    }

    fn finish<I: Isa>(&mut self, v: Vector<'_, I, transmit::Next>) -> Consumed {
        v.post_to_device(|_| true)
    }
}
