//! `monitor`: captures for clients, as text or as pcapng.
//!
//! Contract: a client that reads slowly, or not at all, occupies only its own records ([`RECORDS`]): packets that find no free
//! record are counted as lost, and no thread waits for the client. Every part of pcapng ends with a complete block.

use super::Session;
use super::control::{Control, Words, wanted};
use super::query::{Monitor, MonitorReply};
use crate::spool::{CaptureWriter, Describe, Note, Record, WHOLE, wall_base};
use crate::{FileFormat, LinkType, PacketRef, PcapError, Writer, WriterOptions};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use volley_iface::{CapturePoint, Direction, Interfaces};
use volley_model::{ModelError, Timestamp};
use volley_object::{Progress, Run};
use volley_wire::dissect;

/// The maximum number of queued packets of one client.
pub const RECORDS: usize = 1024;
/// The maximum number of clients.
const CLIENTS: usize = 4;
/// The maximum number of packets of one part: lines of text need more time than blocks of bytes.
const LINES: usize = 256;
/// The maximum number of bytes of one part, exceeded by less than a packet.
const PART: usize = 256 << 10;

/// The sessions of all clients.
#[derive(Default)]
pub(super) struct Monitors {
    all: BTreeMap<u32, Arc<Session>>,
    next: u32,
}

impl Monitors {
    pub(super) fn sessions(&self) -> impl Iterator<Item = Arc<Session>> {
        self.all.values().cloned()
    }
}

/// One client's capture. Dropping it ends the capture.
pub struct MonitorSession {
    control: Rc<RefCell<Control>>,
    id: u32,
    spool: Arc<CaptureWriter>,
    count: Option<u64>,
    base_ns: u64,
    form: Form,
    taken: u64,
    /// The number of lost packets that were reported to the client.
    reported: u64,
    stopped: bool,
}

/// The output format.
enum Form {
    Text,
    /// The writer into memory, from which the client takes bytes; the numbers of the interfaces so far.
    PcapNg(Box<Writer<Vec<u8>>>, HashMap<u32, u32>),
}

impl Drop for MonitorSession {
    fn drop(&mut self) {
        self.end();
    }
}

impl MonitorSession {
    /// Start a client's capture.
    pub(crate) fn begin(
        control: &Rc<RefCell<Control>>,
        spec: &Monitor,
    ) -> Result<MonitorSession, ModelError> {
        let mut it = control.borrow_mut();
        if it.monitors.all.len() >= CLIENTS {
            let why = format!("{CLIENTS} clients look on already; try again when one has ended");
            return Err(ModelError::invalid("monitor", why));
        }
        let (interface, filter) = it.asked(spec.interface.as_deref(), spec.filter.as_deref())?;
        let snap = spec.max_bytes_per_packet.map_or(WHOLE, |n| n as usize);
        let spool = CaptureWriter::new(RECORDS, snap, spec.count.unwrap_or(u64::MAX));
        let form = match spec.pcapng {
            false => Form::Text,
            true => pcapng(&spool, interface, &it.interfaces.borrow())
                .map_err(|e| ModelError::invalid("monitor", e))?,
        };
        let base_ns = wall_base(&it.engine.borrow().settings().clock);
        let id = it.monitors.next;
        it.monitors.next = id.wrapping_add(1);
        let session = Session {
            wants: wanted(spec.directions()),
            spool: spool.clone(),
            interface,
            filter,
        };
        it.monitors.all.insert(id, Arc::new(session));
        it.publish();
        drop(it);
        Ok(MonitorSession {
            control: control.clone(),
            id,
            spool,
            count: spec.count,
            base_ns,
            form,
            taken: 0,
            reported: 0,
            stopped: false,
        })
    }

    /// Stop capturing.
    fn end(&mut self) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        let mut control = self.control.borrow_mut();
        control.monitors.all.remove(&self.id);
        control.publish();
    }
}

impl Run for MonitorSession {
    type Reply = MonitorReply;

    /// The packets that were captured since the last call; a part of them, if there are many.
    fn take(&mut self) -> Progress<MonitorReply> {
        let mut reply = MonitorReply::default();
        let control = self.control.borrow();
        let (engine, interfaces) = (control.engine.borrow(), control.interfaces.borrow());
        let words = Words {
            engine: &engine,
            interfaces: &interfaces,
        };
        let (form, base_ns) = (&mut self.form, self.base_ns);
        let mut written = 0;
        for _ in 0..LINES {
            let taken = self.spool.take_some(1, |record| match form {
                Form::Text => {
                    let line = line(record, base_ns, &words);
                    written += line.len();
                    reply.lines.push(line);
                }
                // Writing into memory does not fail.
                Form::PcapNg(writer, numbers) => {
                    let _ = block(writer, numbers, record, base_ns, &words);
                }
            });
            self.taken += taken as u64;
            let held = match form {
                Form::Text => written,
                Form::PcapNg(writer, _) => writer.pending(),
            };
            if taken == 0 || held >= PART {
                break;
            }
        }
        if let Form::PcapNg(writer, _) = form {
            reply.pcapng = writer.take_written();
        }
        let lost = self.spool.lost();
        if matches!(form, Form::Text) && lost > self.reported {
            let more = lost - self.reported;
            let line = format!("{more} packets lost: they come faster than they can be shown");
            reply.lines.push(line);
        }
        self.reported = lost;
        drop((engine, interfaces));
        drop(control);
        let over = self.count.is_some() && self.spool.is_over();
        let mut is_over = false;
        if (self.stopped || over) && self.spool.is_empty() {
            self.end();
            is_over = self.spool.is_empty();
        }
        (reply.packets, reply.lost) = (self.taken, self.spool.lost());
        Progress { reply, is_over }
    }

    /// Stop capturing. The next calls return the remaining packets.
    fn stop(&mut self) {
        self.end();
    }
}

/// A writer of pcapng into memory. All interfaces are described at the start, because readers refuse a capture without any.
fn pcapng(
    spool: &CaptureWriter,
    only: Option<u32>,
    interfaces: &Interfaces,
) -> Result<Form, PcapError> {
    let options = WriterOptions {
        format: FileFormat::PcapNg,
        linktype: LinkType::ETHERNET,
        snaplen: spool.snap() as u32,
    };
    let mut writer = Writer::new(Vec::new(), "standard output", options)?;
    let mut numbers = HashMap::new();
    let shown = |index: u32| only.is_none_or(|only| only == index);
    for interface in interfaces.iter().filter(|i| shown(i.index.0)) {
        let number = writer.add_interface(&interface.name, LinkType::ETHERNET)?;
        numbers.insert(interface.index.0, number);
    }
    Ok(Form::PcapNg(Box::new(writer), numbers))
}

fn block(
    writer: &mut Writer<Vec<u8>>,
    numbers: &mut HashMap<u32, u32>,
    record: &Record,
    base_ns: u64,
    words: &dyn Describe,
) -> Result<(), PcapError> {
    let note = &record.note;
    let interface = match numbers.get(&note.interface) {
        Some(&number) => number,
        None => writer.add_interface(&words.interface(note.interface), LinkType::ETHERNET)?,
    };
    numbers.insert(note.interface, interface);
    let comment = words.comment(note);
    writer.write(PacketRef {
        timestamp_ns: base_ns.saturating_add(note.at_ns),
        orig_len: record.len,
        interface,
        linktype: LinkType::ETHERNET,
        data: &record.bytes,
        comment: comment.as_deref(),
    })
}

/// `04:17:32.123456 lan0 rx IP4: ... / UDP ...`
fn line(record: &Record, base_ns: u64, words: &dyn Describe) -> String {
    let note: &Note = &record.note;
    let at = base_ns.saturating_add(note.at_ns) / 1000;
    let at = Timestamp(at).time_of_day();
    let direction = match note.tag {
        tag if tag == CapturePoint::Passing(Direction::Rx).bit() => "rx",
        tag if tag == CapturePoint::Passing(Direction::Tx).bit() => "tx",
        _ => "drop",
    };
    let name = words.interface(note.interface);
    let packet = dissect::frame(&record.bytes)
        .of(record.len as usize)
        .offloaded(record.unfinished);
    let why = words.comment(note);
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    format!("{at} {name} {direction} {packet}{why}")
}
