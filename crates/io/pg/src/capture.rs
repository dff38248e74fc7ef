//! Captures of the packets that packet-generator interfaces transmit.

use std::path::PathBuf;
use volley_object::{FieldError, Verb, refuse};

/// Write what a packet-generator interface transmits into a file, or stop.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "pg-capture", machine, check = PgCapture::check)]
#[verb(
    command = "packet-generator capture <interface> (pcap <file> {count <count> | disable@off=on} | disable@off=on)"
)]
#[verb(example = "packet-generator capture pg1 pcap out.pcap")]
pub struct PgCapture {
    /// Packet-generator interface.
    #[verb(needs = "interface")]
    pub interface: String,
    /// File, made with the first packet; it must not exist.
    pub file: Option<PathBuf>,
    /// Stop after this many packets.
    #[verb(range = 1..=u64::MAX)]
    pub count: Option<u64>,
    /// Stop the capture and close its file.
    #[verb(default = false)]
    pub off: bool,
}

impl PgCapture {
    fn check(&self) -> Result<(), FieldError> {
        match (&self.file, self.count) {
            (None, _) if !self.off => refuse("file", "must be given, or off"),
            (None, Some(_)) => refuse("count", "needs a file"),
            _ => Ok(()),
        }
    }
}
