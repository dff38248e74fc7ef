//! Packets on their way from workers into a file.
//!
//! Contract: [`CaptureWriter::give`] is for workers: it copies into a record made beforehand, never waits, never allocates, and
//! counts what it could not take. [`Sink::drain`] is for the control thread: it writes what came, in order, and gives the
//! records back. The number of records bounds what can be lost of: a burst longer than that between two drains.

use crate::{FileFormat, LinkType, PacketRef, PcapError, Writer, WriterOptions};
use crossbeam_queue::ArrayQueue;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use volley_graph::{Clock, PacketView};

/// Records of a spool, unless its maker knows better.
pub const RECORDS: usize = 2048;
/// The longest packet there is.
pub const WHOLE: usize = 65_535;

/// What is told about a packet besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Nanoseconds on the worker's clock.
    pub at_ns: u64,
    /// The interface it passed.
    pub interface: u32,
    /// Whatever the two ends agree on.
    pub tag: u32,
    /// Word of the `ERR` column, where it was dropped.
    pub reason: Option<u32>,
}

/// One packet.
pub struct Record {
    /// What is told about it.
    pub note: Note,
    /// Bytes it has in all.
    pub len: u32,
    /// The first of them.
    pub bytes: Vec<u8>,
    /// Where the bytes begin that a checksum is over which the device has still to finish.
    pub unfinished: Option<usize>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedPacket {
    /// It is on its way.
    Taken,
    /// The number of packets asked for is reached.
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
    /// A spool with room for `records` packets of up to `snap` bytes (longer ones are cut), which takes `max` in all.
    pub fn new(records: usize, snap: usize, max: u64) -> Arc<CaptureWriter> {
        let snap = snap.min(WHOLE);
        let empty = ArrayQueue::new(records.max(1));
        // Memory that is not written to costs address space only, so whole packets may be provided for.
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
        // Both queues have room for all records there are.
        let _ = self.full.push(record);
        QueuedPacket::Taken
    }

    /// Hand what came to `each`, oldest first; returns how many.
    pub fn take(&self, each: impl FnMut(&Record)) -> usize {
        // Bounded, so that a worker that never stops cannot keep the control thread here.
        self.take_some(2 * self.full.capacity(), each)
    }

    /// The same for so many packets at most.
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

    /// Packets that found no record.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Whether nothing waits to be handed out.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    /// The longest packet that is kept whole.
    pub fn snap(&self) -> usize {
        self.snap
    }

    /// Whether all packets that it may take were taken.
    pub fn is_over(&self) -> bool {
        self.left.load(Relaxed) == 0
    }
}

/// The control thread's end of a spool: a file.
pub struct Sink {
    spool: Arc<CaptureWriter>,
    path: PathBuf,
    options: WriterOptions,
    writer: Option<Writer>,
    /// Numbers in the file of interfaces met so far (pcapng).
    numbers: HashMap<u32, u32>,
    base_ns: u64,
    /// Packets that came after writing had failed, and those of the last write that are not in the file.
    unwritten: u64,
    fault: Option<Fault>,
}

/// Why a file is not whole.
struct Fault {
    why: String,
    /// It has been reported by [`Sink::news`].
    reported: bool,
}

/// How a capture ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that are not in it: there was no record for them, or they could not be written.
    pub lost: u64,
    /// Why they could not be written.
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

/// Who knows what a capture says about packets in words.
pub trait Describe {
    /// Name of an interface.
    fn interface(&self, index: u32) -> String;
    /// What to say about a packet.
    fn comment(&self, note: &Note) -> Option<String>;
}

/// Nothing to say: for files of one interface.
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
    /// A sink whose file is made with the first packet.
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

    /// A sink whose file is made now (an older one is replaced).
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

    /// The workers' end.
    pub fn spool(&self) -> &Arc<CaptureWriter> {
        &self.spool
    }

    /// How the capture stands: what is in the file, what is lost and why.
    pub fn state(&self) -> Ending {
        Ending {
            packets: self.writer.as_ref().map_or(0, Writer::packets_written),
            lost: self.spool.lost() + self.unwritten,
            fault: self.fault.as_ref().map(|fault| fault.why.clone()),
        }
    }

    /// Whether writing has failed: packets that come afterwards are lost.
    pub fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    /// A sentence about a failure that was not reported yet.
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

    /// Write what came, with what `words` says about it; returns how many packets came.
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
        // What is counted as written is in the file, and a full disk shows at once.
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

/// What to add to a worker's time to get nanoseconds since 1970; nothing for a clock that tests move by hand.
pub(crate) fn wall_base(clock: &Clock) -> u64 {
    if matches!(clock, Clock::Manual(_)) {
        return 0;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_nanos() as u64);
    now.saturating_sub(clock.now_ns())
}
