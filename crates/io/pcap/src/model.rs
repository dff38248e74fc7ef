//! The object of this crate: an interface of capture files.

use crate::filter_text::{CAPTURED_BYTES, FilterText, TRACE_PACKETS};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;
use volley_model::runtime_folder;
use volley_object::{
    Choice, Class, DefinitionError, FieldError, Object, Query, Verb, refuse, text_field,
};

/// Interface of capture files: receives the packets of one file, transmits into another.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "pcap", interface = "pcap", machine, check = PcapInterface::check)]
#[object(group("pcap", "Captures into files."))]
#[object(group("trace", "Trace packets through the graph."))]
#[object(instead(
    "debug",
    "use `trace add NODE COUNT` and `show trace`, `monitor`, or `set log level`"
))]
#[object(formerly = "pcap repeat.times=loop repeat=loop")]
#[object(
    set = "create pcap interface <name> {rx <rx> | tx <tx> | loop <loop> | pace <pace> | mac <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete pcap interface <name>")]
#[object(example = "create pcap interface pcap0 rx in.pcap tx out.pcap")]
pub struct PcapInterface {
    /// Name of the interface.
    #[object(key, example = "pcap0")]
    pub name: String,
    /// File whose packets the interface receives (pcap or pcapng).
    #[object(example = "in.pcap")]
    pub rx: Option<PathBuf>,
    /// File for packets that the interface transmits (pcap; overwritten); without one, they are dropped and counted as sent.
    #[object(example = "out.pcap")]
    pub tx: Option<PathBuf>,
    /// Number of times that the packets of the file are received, or forever: until the interface goes down.
    #[object(default = Repeat::Times(1))]
    pub r#loop: Repeat,
    /// Pace at which the packets of the file are received.
    #[object(default = Pace::Fast)]
    pub pace: Pace,
}

/// The number of times that a file is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// This many times (at least once).
    Times(u64),
    /// Until the interface goes down.
    Forever,
}

text_field!(
    Repeat,
    "a number of times from 1, or forever",
    Numbers,
    ["1", "3", "forever"]
);

impl FromStr for Repeat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(times @ 1..) if digits => Ok(Repeat::Times(times)),
            _ if text == "forever" => Ok(Repeat::Forever),
            _ => Err("write 1, 2 or forever"),
        }
    }
}

impl Display for Repeat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Repeat::Times(times) => write!(f, "{times}"),
            Repeat::Forever => f.write_str("forever"),
        }
    }
}

/// The pace at which a file is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Pace {
    /// Receive packets as fast as the graph takes them.
    Fast,
    /// Receive packets at the times that the file has.
    Recorded,
}

impl PcapInterface {
    fn check(&self) -> Result<(), FieldError> {
        if self.rx.is_none() && self.tx.is_none() {
            return refuse(
                "rx",
                "must be given, or tx, or both: the interface has no file",
            );
        }
        if self.rx.is_some() && self.rx == self.tx {
            let why = "must be another file than rx, which would be overwritten while it is read";
            return refuse("tx", why);
        }
        Ok(())
    }
}

/// Capture packets into a pcap file (volley.pcap in /run/volley or $XDG_RUNTIME_DIR, 1000 packets, any interface), in place of
/// the capture that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Verb)]
#[verb(name = "pcap-trace-on", machine, check = PcapTraceOn::check)]
#[verb(
    command = "pcap trace {rx@rx=on | tx@tx=on | drop@drop=on | max <max> | intfc (<interface> | any) | file <file> | \
               max-bytes-per-packet <max_bytes_per_packet> | filter <filter>}"
)]
#[verb(example = "pcap trace rx tx max 100 intfc pg0 file /tmp/a.pcap")]
pub struct PcapTraceOn {
    /// Packets on receipt.
    #[verb(default = false)]
    pub rx: bool,
    /// Packets on transmission.
    #[verb(default = false)]
    pub tx: bool,
    /// Packets that are dropped, with the reason.
    #[verb(default = false)]
    pub drop: bool,
    /// End after this many packets.
    #[verb(default = 1000, range = TRACE_PACKETS)]
    pub max: u64,
    /// Only packets of this interface.
    #[verb(needs = "interface")]
    pub interface: Option<String>,
    /// File to write (overwritten).
    #[verb(derived = PcapTraceOn::usual_file)]
    pub file: PathBuf,
    /// Keep the first bytes of each packet only.
    #[verb(range = CAPTURED_BYTES, unit = "bytes")]
    pub max_bytes_per_packet: Option<u32>,
    /// Only packets that match this expression.
    pub filter: Option<FilterText>,
}

impl PcapTraceOn {
    fn usual_file(&self) -> PathBuf {
        runtime_folder().join("volley.pcap")
    }

    fn check(&self) -> Result<(), FieldError> {
        match self.rx || self.tx || self.drop {
            true => Ok(()),
            false => refuse("rx", "must be given, or tx, drop or several of them"),
        }
    }
}

/// Stop the capture and close its file.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "pcap-trace-off", machine, command = "pcap trace off")]
#[verb(example = "pcap trace off")]
pub struct PcapTraceOff;

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    crate::trace::ShowPcapTrace::query()?;
    crate::trace::Monitor::query()?;
    PcapTraceOn::verb()?;
    PcapTraceOff::verb()?;
    Ok(vec![PcapInterface::class()?])
}
