//! The object of this crate: an interface of the packet generator.

use crate::capture::PgCapture;
use crate::show::ShowPacketGenerator;
use crate::spec::StreamSpec;
use volley_object::{Class, DefinitionError, Object, Query, Verb};

/// Packet-generator interface: receives what streams make, transmits into a capture or nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "pg", interface = "pg", formerly = "pg")]
#[object(starts("capture", "pg-capture", "pcap file of what it transmits"))]
#[object(group(
    "packet-generator",
    "Streams of packets, and captures of what is transmitted."
))]
#[object(set = "create packet-generator interface <name> {mac <+mac> | mtu <+mtu>}")]
#[object(unset = "delete packet-generator interface <name>")]
#[object(example = "create packet-generator interface pg0")]
pub struct PgInterface {
    /// Name of the interface.
    #[object(key, example = "pg0")]
    pub name: String,
}

/// The classes of this crate; also registers its query and its verb.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowPacketGenerator::query()?;
    PgCapture::verb()?;
    Ok(vec![PgInterface::class()?, StreamSpec::class()?])
}
