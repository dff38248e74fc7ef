//! The queue of packets from workers to a file.
//!
//! Contract: workers call [`CaptureWriter::give`], which copies into a preallocated record, never waits, never allocates, and
//! counts the packets that it could not take. The control thread calls [`Sink::drain`], which writes the packets in order and
//! returns the records. If a burst between two drains is longer than the number of records, packets are lost.

use crate::{FileFormat, LinkType, PacketRef, PcapError, Writer, WriterOptions};
use crossbeam_queue::ArrayQueue;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use volley_graph::{Clock, PacketView};

/// The default number of records.
pub const RECORDS: usize = 2048;
/// The maximum length of a packet.
pub const WHOLE: usize = 65_535;

/// Metadata of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Nanoseconds on the worker's clock.
    pub at_ns: u64,
    /// The interface that the packet passed.
    pub interface: u32,
    /// A value that producer and consumer define.
    pub tag: u32,
    /// Word of the `ERR` column, if the packet was dropped.
    pub reason: Option<u32>,
}

/// One packet.
pub struct Record {
    /// The metadata of the packet.
    pub note: Note,
    /// The length of the packet.
    pub len: u32,
    /// The first bytes of the packet.
    pub bytes: Vec<u8>,
    /// The start of a checksum that the device has still to complete.
    pub unfinished: Option<usize>,
}

/// The result of [`CaptureWriter::give`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedPacket {
    /// The packet is queued.
    Taken,
    /// The requested number of packets is reached.
    Over,
    /// No record was free.
    Lost,
}

/// The queue between workers and the control thread.
pub struct CaptureWriter {
    empty: ArrayQueue<Box<Record>>,
    full: ArrayQueue<Box<Record>>,
    snap: usize,
    left: AtomicU64,
    lost: AtomicU64,
}

impl CaptureWriter {
    /// A queue of `records` records of up to `snap` bytes (longer packets are truncated), for `max` packets in total.
    pub fn new(records: usize, snap: usize, max: u64) -> Arc<CaptureWriter> {
        let snap = snap.min(WHOLE);
        let empty = ArrayQueue::new(records.max(1));
        // Unused memory costs address space only, so each record may have the length of a whole packet.
        let record = || Record {
            note: Note::default(),
            len: 0,
            bytes: Vec::with_capacity(snap),
            unfinished: None,
        };
        while empty.push(Box::new(record())).is_ok() {}
        Arc::new(CaptureWriter {
            full: ArrayQueue::new(empty.capacity()),
            empty,
            snap,
            left: AtomicU64::new(max),
            lost: AtomicU64::new(0),
        })
    }

    /// Copy a packet, from `back` bytes in front of its position.
    pub fn give(&self, note: Note, packet: &PacketView<'_>, back: usize) -> QueuedPacket {
        if self.left.load(Relaxed) == 0 {
            return QueuedPacket::Over;
        }
        let Some(mut record) = self.empty.pop() else {
            self.lost.fetch_add(1, Relaxed);
            return QueuedPacket::Lost;
        };
        let claimed = self
            .left
            .fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
        if claimed.is_err() {
            let _ = self.empty.push(record);
            return QueuedPacket::Over;
        }
        record.note = note;
        record.len = (packet.len() + back) as u32;
        let sum = packet.offload().checksum;
        record.unfinished = sum.map(|sum| usize::from(sum.start) + back);
        record.bytes.clear();
        packet.segments(back, |segment| {
            let room = self.snap - record.bytes.len();
            record
                .bytes
                .extend_from_slice(&segment[..segment.len().min(room)]);
        });
        // Both queues have capacity for all records.
        let _ = self.full.push(record);
        QueuedPacket::Taken
    }

    /// Pass the queued packets to `each`, oldest first; returns their number.
    pub fn take(&self, each: impl FnMut(&Record)) -> usize {
        // Bounded, so that a worker that produces continuously cannot keep the control thread here.
        self.take_some(2 * self.full.capacity(), each)
    }

    /// As [`Self::take`], for at most `most` packets.
    pub fn take_some(&self, most: usize, mut each: impl FnMut(&Record)) -> usize {
        let mut taken = 0;
        while taken < most {
            let Some(record) = self.full.pop() else { break };
            each(&record);
            let _ = self.empty.push(record);
            taken += 1;
        }
        taken
    }

    /// The number of packets for which there is a free record.
    pub fn room(&self) -> usize {
        self.empty.len()
    }

    /// Packets that found no record.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    /// The maximum length of a packet that is not truncated.
    pub fn snap(&self) -> usize {
        self.snap
    }

    /// Whether the total number of packets is reached.
    pub fn is_over(&self) -> bool {
        self.left.load(Relaxed) == 0
    }
}

/// The consumer's end of the queue, on the control thread: writes a file.
pub struct Sink {
    spool: Arc<CaptureWriter>,
    path: PathBuf,
    options: WriterOptions,
    writer: Option<Writer>,
    /// The numbers in the file of the interfaces so far (pcapng).
    numbers: HashMap<u32, u32>,
    base_ns: u64,
    /// Packets after a failure to write, and packets of the failed write that are not in the file.
    unwritten: u64,
    fault: Option<Fault>,
}

/// Why a file is incomplete.
struct Fault {
    why: String,
    /// Whether [`Sink::news`] has reported the failure.
    reported: bool,
}

/// The result of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that are not in the file: no record was free, or they could not be written.
    pub lost: u64,
    /// Why packets could not be written.
    pub fault: Option<String>,
}

impl Ending {
    /// One sentence for the operator about the file of this name; an error when the file could not be written.
    pub fn sentence(&self, path: &Path) -> Result<String, String> {
        let (packets, lost) = (self.packets, self.lost);
        match &self.fault {
            None => Ok(format!(
                "{packets} packets in {}, {lost} lost",
                path.display()
            )),
            Some(why) => Err(format!(
                "the capture ended early, with {packets} packets in the file and {lost} lost: {why}"
            )),
        }
    }
}

/// Texts for captured packets.
pub trait Describe {
    /// Name of an interface.
    fn interface(&self, index: u32) -> String;
    /// The comment of a packet, if any.
    fn comment(&self, note: &Note) -> Option<String>;
}

/// No comments: for files of one interface.
pub struct Plain;

impl Describe for Plain {
    fn interface(&self, index: u32) -> String {
        format!("interface {index}")
    }
    fn comment(&self, _note: &Note) -> Option<String> {
        None
    }
}

impl Sink {
    /// A sink that creates the file with the first packet.
    pub fn lazy(spool: Arc<CaptureWriter>, path: &Path, format: FileFormat, clock: &Clock) -> Sink {
        let options = WriterOptions {
            format,
            linktype: LinkType::ETHERNET,
            snaplen: spool.snap as u32,
        };
        let base_ns = wall_base(clock);
        Sink {
            spool,
            path: path.to_owned(),
            options,
            writer: None,
            numbers: HashMap::new(),
            base_ns,
            unwritten: 0,
            fault: None,
        }
    }

    /// A sink that creates the file now (an existing file is replaced).
    pub fn create(
        spool: Arc<CaptureWriter>,
        path: &Path,
        format: FileFormat,
        clock: &Clock,
    ) -> Result<Sink, PcapError> {
        let mut sink = Sink::lazy(spool, path, format, clock);
        sink.writer = Some(Writer::create(path, sink.options)?);
        Ok(sink)
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The producers' end.
    pub fn spool(&self) -> &Arc<CaptureWriter> {
        &self.spool
    }

    /// The state of the capture: packets in the file, lost packets, and the fault.
    pub fn state(&self) -> Ending {
        Ending {
            packets: self.writer.as_ref().map_or(0, Writer::packets_written),
            lost: self.spool.lost() + self.unwritten,
            fault: self.fault.as_ref().map(|fault| fault.why.clone()),
        }
    }

    /// Whether writing has failed: later packets are lost.
    pub fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    /// A sentence about a failure that has not been reported yet.
    pub fn news(&mut self) -> Option<String> {
        let fault = self.fault.as_mut().filter(|fault| !fault.reported)?;
        fault.reported = true;
        let sentence = self.state().sentence(&self.path).err()?;
        Some(format!("{}: {sentence}", self.path.display()))
    }

    fn open(&mut self) -> Result<(), PcapError> {
        if self.writer.is_none() {
            self.writer = Some(Writer::create(&self.path, self.options)?);
        }
        Ok(())
    }

    /// Write the queued packets, with comments from `words`; returns the number of packets.
    pub fn drain(&mut self, words: &dyn Describe) -> usize {
        let spool = self.spool.clone();
        let before = self.state().packets;
        let mut came = 0;
        let taken = spool.take(|record| {
            came += 1;
            if self.fault.is_none()
                && let Err(error) = self.put(record, words)
            {
                self.fail(&error);
            }
        });
        // Flush: packets that are counted as written are in the file, and a full disk is detected at once.
        if let Some(writer) = &mut self.writer
            && self.fault.is_none()
            && let Err(error) = writer.flush()
        {
            self.fail(&error);
        }
        let written = self.state().packets - before;
        self.unwritten += came - written;
        taken
    }

    fn fail(&mut self, error: &PcapError) {
        let why = match error {
            PcapError::Write { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let file = self.path.display();
        tracing::warn!(target: "capture", %file, "the capture cannot be written: {why}");
        self.fault = Some(Fault {
            why,
            reported: false,
        });
    }

    fn put(&mut self, record: &Record, words: &dyn Describe) -> Result<(), PcapError> {
        self.open()?;
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let (note, mut interface) = (record.note, 0);
        if self.options.format == FileFormat::PcapNg {
            interface = match self.numbers.get(&note.interface) {
                Some(&number) => number,
                None => {
                    let name = words.interface(note.interface);
                    writer.add_interface(&name, self.options.linktype)?
                }
            };
            self.numbers.insert(note.interface, interface);
        }
        let comment = words.comment(&note);
        writer.write(PacketRef {
            timestamp_ns: self.base_ns.saturating_add(note.at_ns),
            orig_len: record.len,
            interface,
            linktype: self.options.linktype,
            data: &record.bytes,
            comment: comment.as_deref(),
        })
    }

    /// Write the rest and close the file.
    pub fn finish(mut self, words: &dyn Describe) -> Ending {
        self.drain(words);
        self.state()
    }
}

/// The offset from a worker's time to nanoseconds since 1970; 0 for a manual clock of tests.
pub(crate) fn wall_base(clock: &Clock) -> u64 {
    if matches!(clock, Clock::Manual(_)) {
        return 0;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_nanos() as u64);
    now.saturating_sub(clock.now_ns())
}
