//! Objects of layer 2: patches, cross-connects, bridge domains, their ports and configured stations.

use crate::show::{ShowBridgeDomains, ShowL2, ShowL2Fib};
use std::ops::RangeInclusive;
use volley_model::Mac;
use volley_object::{Class, DefinitionError, FieldError, Object, Query, Verb, refuse};

/// Bridge domain identifiers.
const BRIDGE_DOMAIN: RangeInclusive<u32> = 1..=16_777_215;

/// Patch: frames that an interface receives leave by another one, straight from the driver, without layer-2 processing.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "l2patch", file = "[[l2patch]]", one_of = "l2")]
#[object(group("test", "Layer-2 patches."))]
#[object(set = "test l2patch rx <rx> tx <tx>")]
#[object(
    unset = "delete l2patch <rx>",
    unset = "test l2patch rx <rx> tx <tx> del"
)]
#[object(example = "test l2patch rx pg0 tx pg1")]
pub struct L2Patch {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub rx: String,
    /// Transmitting interface.
    #[object(part_of = "interface", example = "pg1")]
    pub tx: String,
}

/// Cross-connect: frames that an interface receives leave by another one, in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "xconnect", file = "[[xconnect]]", one_of = "l2")]
#[object(set = "set interface l2 xconnect <rx> <tx>")]
#[object(unset = "delete xconnect <rx>")]
#[object(unset_any = "set interface l3 <rx>")]
#[object(example = "set interface l2 xconnect pg0 pg1")]
pub struct Xconnect {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub rx: String,
    /// Transmitting interface.
    #[object(part_of = "interface", example = "pg1")]
    pub tx: String,
}

/// Bounds of the number of stations that a bridge domain learns.
pub const MAC_LIMIT: RangeInclusive<u32> = 0..=1_000_000;

/// Bridge domain: forwards frames between its ports by MAC address (IEEE 802.1Q).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "bridge_domain", file = "[[bridge_domain]]")]
#[object(group("bridge", "Bridge domains and their ports."))]
#[object(group("bridge-domain", "Make and remove bridge domains."))]
#[object(group("set bridge-domain", "Properties of bridge domains."))]
#[object(group("l2fib", "MAC addresses of bridge domains."))]
#[object(group(
    "set interface l2",
    "Layer-2 mode of an interface: bridge, cross-connect."
))]
#[object(instead("show mac-address-table", "use `show l2fib`"))]
#[object(
    set = "(bridge-domain add | create bridge-domain) <id> {no-learn@learn=off | learn@learn=on \
           | no-flood@flood=off | flood@flood=on | no-uu-flood@uu_flood=off | uu-flood@uu_flood=on \
           | no-forward@forward=off | forward@forward=on | mac-age <mac_age> | mac-limit <mac_limit> \
           | group-fwd-mask <group_fwd_mask>}"
)]
#[object(unset = "(bridge-domain del | delete bridge-domain) <id>")]
#[object(example = "bridge-domain add 10 mac-age 5 mac-limit 10000")]
pub struct BridgeDomain {
    /// Bridge domain identifier.
    #[object(key, range = BRIDGE_DOMAIN)]
    pub id: u32,
    /// Learn which station is behind which port.
    #[object(default = true)]
    pub learn: bool,
    /// Flood frames to groups and to all stations.
    #[object(default = true)]
    pub flood: bool,
    /// Flood frames to unknown stations.
    #[object(default = true)]
    pub uu_flood: bool,
    /// Forward frames to known stations.
    #[object(default = true)]
    pub forward: bool,
    // IEEE 802.1Q, table 8-6.
    /// Time after which a silent station is forgotten; 0 = never.
    #[object(default = 5, range = 0u32..=16_666, unit = "minutes")]
    pub mac_age: u32,
    /// Most stations that are learned.
    #[object(default = 65_536, range = MAC_LIMIT)]
    pub mac_limit: u32,
    /// Groups 01:80:c2:00:00:00 to :0f that are flooded, as bits, the first one bit 0.
    #[object(default = 0, range = 0u32..=0xffff)]
    pub group_fwd_mask: u32,
}

/// Port of a bridge domain: an interface whose frames the domain forwards.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "bridge_port", file = "[[bridge_port]]", one_of = "l2")]
#[object(set = "set interface l2 bridge <interface> <domain> [shg <shg>]")]
#[object(unset = "delete bridge-port <interface>")]
#[object(example = "set interface l2 bridge pg0 10 shg 1")]
pub struct BridgePort {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Bridge domain.
    #[object(needs = "bridge_domain", range = BRIDGE_DOMAIN, example = "10")]
    pub domain: u32,
    /// Split-horizon group: no frame goes from a port to another port of the same group; 0 = no group.
    #[object(default = 0, range = 0u32..=255)]
    pub shg: u32,
}

/// Configured station of a bridge domain: the station neither ages nor moves.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "l2fib_entry", file = "[[l2fib]]", check = L2FibEntry::check)]
#[object(set = "l2fib add <mac> <domain> (filter@filter=on | <interface> [static])")]
#[object(unset = "l2fib del <mac> <domain>")]
#[object(example = "l2fib add 02:fe:00:00:00:01 10 pg0 static")]
pub struct L2FibEntry {
    /// Bridge domain.
    #[object(key, needs = "bridge_domain", range = BRIDGE_DOMAIN, example = "10")]
    pub domain: u32,
    /// MAC address of the station.
    #[object(key)]
    pub mac: Mac,
    /// Port behind which the station is.
    #[object(part_of = "interface")]
    pub interface: Option<String>,
    /// Drop frames from and to the station.
    #[object(default = false)]
    pub filter: bool,
}

impl L2FibEntry {
    fn check(&self) -> Result<(), FieldError> {
        if self.mac.is_multicast() || self.mac.0 == [0; 6] {
            let why = "must be a unicast address (first octet even) and not zero, not";
            return refuse("mac", format!("{why} {}", self.mac));
        }
        if self.filter == self.interface.is_some() {
            let why =
                "must be given, the port behind which the station is, or filter = true, not both";
            return refuse("interface", why);
        }
        Ok(())
    }
}

/// Forget learned stations: all, of an interface, of a bridge domain.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "l2-fib-flush", example = "l2fib flush-mac bridge-domain 10")]
#[verb(command = "l2fib flush-mac {interface <interface> | bridge-domain <domain>}")]
pub struct L2FibFlush {
    /// Only stations behind this interface.
    #[verb(needs = "interface")]
    pub interface: Option<String>,
    /// Only stations of this bridge domain.
    #[verb(needs = "bridge_domain", range = BRIDGE_DOMAIN)]
    pub domain: Option<u32>,
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    // Queries and verbs refer to bridge domains.
    let classes = vec![
        L2Patch::class()?,
        Xconnect::class()?,
        BridgeDomain::class()?,
        BridgePort::class()?,
        L2FibEntry::class()?,
    ];
    ShowL2::query()?;
    ShowBridgeDomains::query()?;
    ShowL2Fib::query()?;
    L2FibFlush::verb()?;
    Ok(classes)
}
