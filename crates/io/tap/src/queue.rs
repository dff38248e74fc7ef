//! A queue of a tap: every packet is one `readv` or `writev`, with the kernel's offload header in front.

use crate::sys::Layer;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use volley_graph::buf::DATA;
use volley_graph::{Isa, MAX_SEGMENTS, NewVector, Offload, Vector};
use volley_iface::{IfIdx, IfTable};
use volley_linux::node::{input, transmit};
use volley_linux::vnet::{self, HEADER};
use volley_linux::{RxQueue, Status, Taken, TxQueue};
use volley_wire::ethertype;

/// The maximum length of a packet, with its Ethernet header and two tags.
const LONGEST: usize = 65_535 + 14 + 8;
/// The number of consecutive short packets after which long ones are no longer expected.
const CALM: u32 = 64;
/// The number of polls that are skipped after the kernel refused a request.
const REST: u32 = 1000;
const ETHERNET: usize = 14;

/// MAC address of the interface that receives a tun's packets. The address may change at any time, and the index of the
/// interface is known only after its queues exist.
#[derive(Clone)]
pub struct OwnMac {
    table: Arc<IfTable>,
    index: Arc<OnceLock<IfIdx>>,
}

impl OwnMac {
    pub fn new(table: Arc<IfTable>) -> Self {
        let index = Arc::default();
        OwnMac { table, index }
    }

    /// Sets the index of the interface, once.
    pub fn set_index(&self, index: IfIdx) {
        // Only the creation of the interface sets it.
        let _ = self.index.set(index);
    }

    fn mac(&self) -> [u8; 6] {
        let bits = self.index.get().map_or(0, |i| self.table.mac(i.0));
        let [_, _, mac @ ..] = bits.to_be_bytes();
        mac
    }
}

/// The receive side of a tap's queue.
pub struct TapRx {
    file: Arc<File>,
    status: Arc<Status>,
    layer: Layer,
    own: OwnMac,
    /// The start of the Ethernet header of every packet of a tun, up to the type.
    addresses: [u8; 12],
    /// The part of a long packet behind the first [`DATA`] bytes, which does not fit the first buffer.
    spill: Box<[u8]>,
    /// The number of short packets after which long ones are not expected any more; 0 = they are not expected.
    long: u32,
    guess: usize,
    rest: u32,
}

impl TapRx {
    /// The receive side of a queue. Packets of a tun get an Ethernet header with the interface's MAC address as destination.
    pub fn new(file: Arc<File>, status: Arc<Status>, layer: Layer, own: OwnMac) -> Self {
        let mut addresses = [0; 12];
        addresses[6..].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        TapRx {
            file,
            status,
            layer,
            own,
            addresses,
            spill: vec![0; DATA + LONGEST].into(),
            long: 0,
            guess: 1,
            rest: 0,
        }
    }

    /// The number of bytes in front of the data that is read.
    fn front(&self) -> usize {
        match self.layer {
            Layer::Ethernet => 0,
            Layer::Ip => ETHERNET,
        }
    }

    /// Read a packet into a row. None when there is no packet; else its header, and whether it is complete.
    fn read<I: Isa>(
        &mut self,
        fresh: &mut NewVector<'_, I, input::Next>,
        row: usize,
    ) -> Option<(vnet::Bytes, bool)> {
        let room = if self.long > 0 { LONGEST } else { DATA };
        let (front, mut header) = (self.front(), [0; HEADER]);
        let (mut result, spill, mut file) = (Ok(0), &mut self.spill[DATA..], &*self.file);
        let stored = fresh.scatter(row, room, |buffers| {
            let mut all: [IoSliceMut<'_>; MAX_SEGMENTS + 2] =
                std::array::from_fn(|_| IoSliceMut::new(&mut []));
            let n = buffers.len();
            all[0] = IoSliceMut::new(&mut header);
            for (at, buffer) in buffers.iter_mut().enumerate() {
                let skip = if at == 0 { front } else { 0 };
                all[at + 1] = IoSliceMut::new(&mut buffer[skip..]);
            }
            all[n + 1] = IoSliceMut::new(spill);
            result = file.read_vectored(&mut all[..n + 2]);
            let read = result.as_ref().map_or(0, |&n| n.saturating_sub(HEADER));
            if front > 0 && read > 0 {
                ethernet(&mut buffers[0], &self.addresses);
            }
            if read > 0 { read + front } else { 0 }
        });
        let Some(stored) = stored else {
            return self.skip_one().then_some((header, false));
        };
        match result {
            Ok(n) if n > HEADER => {
                let len = n - HEADER + front;
                Some((header, self.spilled(fresh, row, stored, len)))
            }
            // An empty packet: ignore it, and read again at the next poll.
            Ok(_) => None,
            Err(error) => {
                self.refused(&error);
                None
            }
        }
    }

    /// Append buffers with the bytes that did not fit the row's buffer. False when no buffers are free.
    fn spilled<I: Isa>(
        &mut self,
        fresh: &mut NewVector<'_, I, input::Next>,
        row: usize,
        stored: usize,
        len: usize,
    ) -> bool {
        self.long = if len > DATA {
            CALM
        } else {
            self.long.saturating_sub(1)
        };
        if len <= stored {
            return true;
        }
        let len = len.min(self.spill.len());
        let first = fresh.view(row).bytes();
        let n = first.len().min(DATA);
        self.spill[..n].copy_from_slice(&first[..n]);
        fresh.write(row, &self.spill[..len])
    }

    fn refused(&mut self, error: &io::Error) {
        if !matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ) {
            self.status.report(error);
            self.rest = REST;
        }
    }

    /// Read a packet and discard it; false when there is none.
    fn skip_one(&mut self) -> bool {
        match (&*self.file).read(&mut self.spill) {
            Ok(n) => n > 0,
            Err(error) => {
                self.refused(&error);
                false
            }
        }
    }
}

/// Put an Ethernet header in front of the IP packet in `buffer`.
fn ethernet(buffer: &mut [u8], addresses: &[u8; 12]) {
    let kind = match buffer[ETHERNET] >> 4 {
        6 => ethertype::IP6,
        _ => ethertype::IP4,
    };
    buffer[..12].copy_from_slice(addresses);
    buffer[12..ETHERNET].copy_from_slice(&kind.to_be_bytes());
}

impl RxQueue for TapRx {
    const INPUT: &'static str = "tap-input";

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn ready(&mut self, most: usize) -> usize {
        if self.rest > 0 {
            self.rest -= 1;
            return 0;
        }
        self.guess.min(most)
    }

    fn take<I: Isa>(
        &mut self,
        fresh: &mut NewVector<'_, I, input::Next>,
        bad: &mut [u32],
    ) -> Taken {
        let mut taken = Taken::default();
        if let Layer::Ip = self.layer {
            self.addresses[..6].copy_from_slice(&self.own.mac());
        }
        while taken.rows < fresh.len() {
            let row = taken.rows;
            let Some((header, whole)) = self.read(fresh, row) else {
                break;
            };
            if !whole {
                taken.no_buffers += 1;
                break;
            }
            let first = fresh.view(row).bytes();
            let asked = vnet::parse(&header, first, self.front() as u16);
            let set = asked.and_then(|offload| match offload {
                Offload::NONE => Ok(()),
                _ => fresh.set_offload(row, &offload),
            });
            if set.is_err() {
                bad[row] = 1;
                taken.bad += 1;
            }
            taken.rows += 1;
        }
        self.guess = (taken.rows * 2).max(8);
        taken
    }

    fn skip(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.skip_one()).count()
    }
}

/// The transmit side of a tap's queue.
pub struct TapTx {
    file: Arc<File>,
    layer: Layer,
}

impl TapTx {
    /// The transmit side of a queue.
    pub fn new(file: Arc<File>, layer: Layer) -> Self {
        TapTx { file, layer }
    }
}

impl TxQueue for TapTx {
    const OUTPUT: &'static str = "tap-tx";

    fn send<I: Isa>(
        &mut self,
        v: &mut Vector<'_, I, transmit::Next>,
        verdicts: &mut [u32],
        status: &Status,
    ) {
        let front = match self.layer {
            Layer::Ethernet => 0,
            Layer::Ip => ETHERNET,
        };
        for row in 0..v.len() {
            let view = v.view(row);
            let header = vnet::emit(&behind(view.offload(), front as u16));
            let mut all: [IoSlice<'_>; MAX_SEGMENTS + 2] =
                std::array::from_fn(|_| IoSlice::new(&[]));
            all[0] = IoSlice::new(&header);
            let mut n = 1;
            for segment in view.slices().take(MAX_SEGMENTS + 1) {
                let skip = if n == 1 { front.min(segment.len()) } else { 0 };
                all[n] = IoSlice::new(&segment[skip..]);
                n += 1;
            }
            let written = loop {
                match (&*self.file).write_vectored(&all[..n]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            if let Err(error) = written {
                transmit::mark(&mut verdicts[row..=row], &error);
                if error.kind() != io::ErrorKind::WouldBlock {
                    status.report(&error);
                }
            }
        }
    }
}

/// The same request, with offsets reduced by `front` bytes.
fn behind(mut offload: Offload, front: u16) -> Offload {
    if let Some(sum) = &mut offload.checksum {
        sum.start = sum.start.saturating_sub(front);
    }
    if let Some(gso) = &mut offload.gso {
        gso.headers = gso.headers.saturating_sub(front);
    }
    offload
}
