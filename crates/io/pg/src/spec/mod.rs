//! Streams: their packets, edits, number, rate, and the node or interface that receives them.

mod data;
mod edit;
mod layer;
mod limits;
mod template;
mod upgrade;

pub use data::ClassicPacket;
pub use edit::{Edit, EditKind, EditTarget, FieldPath};
pub use layer::{FieldDefault, Layer, LayerKind, Value};
pub use limits::PACKET_SIZE;
pub use template::Template;

use limits::{EDITS, IMIX_PARTS};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use volley_model::limits::VECTOR_SIZE;
use volley_model::{ModelError, check_name};
use volley_object::{FieldError, Object, at_most, refuse, syntax_field};

/// Stream of packets: the packet generator makes them from a template, from data in the classic form, or from a file.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "stream", file = "[[stream]]", check = StreamSpec::check, once, last)]
#[object(upgrade = upgrade::request)]
#[object(
    set = "packet-generator new {name <name> | (interface | source) <interface> | node <node> | \
                limit <limit> | rate <rate> | size <size> | (maxframe | max-frame) <max_frame> | seed <seed> | worker <worker> | \
                no-recycle | edit <edits> | template <template> | data <data> | pcap <pcap> | enable@enabled=on}"
)]
#[object(change = "packet-generator enable~-stream@enabled=on [<name>]")]
#[object(change = "packet-generator disable~-stream@enabled=off [<name>]")]
#[object(unset = "packet-generator delete <name>")]
#[object(
    example = "packet-generator new name s0 interface pg0 limit 100 template { eth / ip4 dst 10.0.0.1 / udp / payload 20 }"
)]
pub struct StreamSpec {
    /// Name of the stream.
    #[object(key, example = "s0")]
    pub name: String,
    /// Interface that the packets count as received on; without a node they enter where its packets do.
    #[object(needs = "interface")]
    pub interface: Option<String>,
    /// Node of the graph that gets the packets.
    #[object(needs = "node", example = "ip4-input")]
    pub node: Option<String>,
    /// The packet, layer by layer.
    pub template: Option<Template>,
    /// The packet in the classic form, in place of a template.
    pub data: Option<ClassicPacket>,
    /// File of packets, in place of a template: all of them in order, over again when the limit is larger.
    pub pcap: Option<PathBuf>,
    /// How fields change from packet to packet. Lengths and checksums that the template leaves open are made right after the
    /// edits.
    pub edits: Vec<Edit>,
    /// Lengths of packets, without frame check sequence; those of the template or file where it is not set.
    pub size: Option<Sizes>,
    /// Packets per second; as fast as possible where it is not set.
    #[object(range = 1u64..=1_000_000_000, scaled)]
    pub rate: Option<u64>,
    /// Packets in all; 0 = endless for a template, each packet once for a file.
    #[object(default = 0)]
    pub limit: u64,
    /// Most packets of a vector; the engine's vector size where it is not set.
    #[object(range = VECTOR_SIZE)]
    pub max_frame: Option<u32>,
    /// Where random values begin: the same seed gives the same packets. The engine's where it is not set.
    pub seed: Option<u64>,
    /// Worker that sends the stream; the first where it is not set.
    pub worker: Option<u32>,
    /// Send.
    #[object(default = false)]
    pub enabled: bool,
}

/// The source of a stream's packets.
pub(crate) enum Source<'s> {
    /// Layers.
    Template(&'s Template),
    /// A capture file.
    File(&'s Path),
}

impl StreamSpec {
    /// A stream of a template that is received on an interface, with defaults for everything else.
    pub fn new(name: &str, interface: &str, template: Template) -> StreamSpec {
        StreamSpec {
            name: name.to_owned(),
            interface: Some(interface.to_owned()),
            node: None,
            template: Some(template),
            data: None,
            pcap: None,
            edits: Vec::new(),
            size: None,
            rate: None,
            limit: 0,
            max_frame: None,
            seed: None,
            worker: None,
            enabled: false,
        }
    }

    /// As [`Self::new`], for the packets of a file.
    pub fn of_file(name: &str, interface: &str, file: &Path) -> StreamSpec {
        StreamSpec {
            template: None,
            pcap: Some(file.to_owned()),
            ..StreamSpec::new(name, interface, Template { layers: Vec::new() })
        }
    }

    /// The template, of either form; none for a stream of a file.
    fn layers(&self) -> Option<&Template> {
        let classic = self.data.as_ref().map(|data| &data.template);
        self.template.as_ref().or(classic)
    }

    /// The source of the packets.
    pub(crate) fn source(&self) -> Result<Source<'_>, ModelError> {
        match (self.layers(), &self.pcap) {
            (Some(template), _) => Ok(Source::Template(template)),
            (None, Some(file)) => Ok(Source::File(file)),
            (None, None) => Err(ModelError::invalid(
                format!("stream {}", self.name),
                "it has no packets",
            )),
        }
    }

    /// All edits; those of the classic form are first.
    pub(crate) fn all_edits(&self) -> impl Iterator<Item = &Edit> + Clone {
        let classic = self.data.iter().flat_map(|data| &data.edits);
        classic.chain(&self.edits)
    }

    fn check(&self) -> Result<(), FieldError> {
        if let Err(error) = check_name("object", &self.name) {
            return refuse("name", format!("is refused: {error}"));
        }
        let given = [
            ("template", self.template.is_some()),
            ("data", self.data.is_some()),
            ("pcap", self.pcap.is_some()),
        ];
        let mut given = given.iter().filter(|(_, there)| *there);
        match (given.next(), given.next()) {
            (None, _) => {
                let why = "is missing, as data and pcap are: give one of them";
                return refuse("template", why);
            }
            (Some((first, _)), Some((second, _))) => {
                let why = format!("is one kind of packets too many: there is {first} already");
                return refuse(second, why);
            }
            _ => {}
        }
        if self.interface.is_none() && self.node.is_none() {
            let why = "is missing, as node is: give an interface, a node to enter at, or both";
            return refuse("interface", why);
        }
        at_most("edits", self.all_edits().count(), EDITS)?;
        let template = self.layers();
        let mut outside = self.all_edits().filter_map(|edit| edit.outside(template?));
        outside.next().map_or(Ok(()), |why| refuse("edits", why))
    }
}

impl Edit {
    /// Why the edit does not fit a template; none if it does.
    fn outside(&self, template: &Template) -> Option<String> {
        let EditTarget::Field(path) = self.target else {
            return None;
        };
        let same = template.layers.iter().filter(|l| l.kind == path.layer);
        let same = same.count();
        let why = format!("must fit the template: for {path} it has {same} such layers");
        (usize::from(path.nth) >= same).then_some(why)
    }
}

/// Lengths of packets, in bytes without frame check sequence. Packets longer than their template are padded at the
/// end of the payload, shorter ones are truncated there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(u32),
    /// `min`, `min + 1`, ... `max`, repeated.
    Increment {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Random, uniform in the range.
    Random {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// A mix of lengths by weight, in a fixed interleaved order.
    Imix(Vec<ImixPart>),
}

impl Sizes {
    /// The classic mix: 64, 594 and 1518 bytes in the ratio 7 : 4 : 1.
    pub fn simple_imix() -> Sizes {
        let parts = [(64, 7), (594, 4), (1518, 1)];
        let part = |(size, weight)| ImixPart { size, weight };
        Sizes::Imix(parts.into_iter().map(part).collect())
    }
}

/// One length of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImixPart {
    /// Bytes.
    pub size: u32,
    /// Share, at least 1.
    pub weight: u32,
}

impl FromStr for Sizes {
    type Err = String;

    /// Parses `64`, `64-128`, `random 64-1500`, `imix` and `imix 64:7,594:4,1518:1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let bad = || {
            let shown: String = text.chars().take(64).collect();
            format!(
                "must be 64, 64-128, random 64-1500, imix or imix 64:7,594:4,1518:1, not '{}'",
                shown.escape_debug()
            )
        };
        let (first, second) = (words.next().ok_or_else(bad)?, words.next());
        let sizes = match (first, second) {
            ("imix", None) => Some(Sizes::simple_imix()),
            ("imix", Some(parts)) => imix(parts),
            ("random", Some(text)) => range(text).map(|(min, max)| Sizes::Random { min, max }),
            (text, None) => range(text).map(|(min, max)| match min == max {
                true => Sizes::Fixed(min),
                false => Sizes::Increment { min, max },
            }),
            _ => None,
        };
        let sizes = sizes.filter(|_| words.next().is_none()).ok_or_else(bad)?;
        sizes.check().map(|()| sizes)
    }
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    Some((min.parse().ok()?, max.parse().ok()?))
}

fn imix(text: &str) -> Option<Sizes> {
    let part = |part: &str| {
        let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
        Some(ImixPart {
            size: size.parse().ok()?,
            weight: weight.parse().ok()?,
        })
    };
    let parts: Option<Vec<_>> = text.split(',').take(IMIX_PARTS + 1).map(part).collect();
    parts.map(Sizes::Imix)
}

impl Sizes {
    /// Checks that lengths and ranges are valid; an error is a sentence.
    fn check(&self) -> Result<(), String> {
        let (low, high) = (PACKET_SIZE.start(), PACKET_SIZE.end());
        let size = |n: u32| match PACKET_SIZE.contains(&n) {
            true => Ok(()),
            false => Err(format!("must be lengths from {low} to {high}, not {n}")),
        };
        match self {
            Sizes::Fixed(n) => size(*n),
            Sizes::Increment { min, max } | Sizes::Random { min, max } => {
                size(*min)?;
                size(*max)?;
                match min > max {
                    true => Err(format!("must be a range: {min} is larger than {max}")),
                    false => Ok(()),
                }
            }
            Sizes::Imix(parts) => {
                if parts.is_empty() || parts.len() > IMIX_PARTS {
                    return Err(format!("must have 1 to {IMIX_PARTS} parts such as 64:7"));
                }
                parts.iter().try_for_each(|part| size(part.size))?;
                match parts.iter().find(|p| !(1..=1000).contains(&p.weight)) {
                    Some(p) => Err(format!(
                        "must have weights from 1 to 1000, not {}",
                        p.weight
                    )),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Display for Sizes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(n) => write!(f, "{n}"),
            Sizes::Increment { min, max } => write!(f, "{min}-{max}"),
            Sizes::Random { min, max } => write!(f, "random {min}-{max}"),
            Sizes::Imix(parts) => {
                f.write_str("imix ")?;
                let mut comma = "";
                for part in parts {
                    write!(f, "{comma}{}:{}", part.size, part.weight)?;
                    comma = ",";
                }
                Ok(())
            }
        }
    }
}

syntax_field!(
    Sizes,
    "lengths",
    Numbers,
    ["64", "64-128", "random 64-1500", "imix 64:7,594:4,1518:1"],
    "(<size> | random <range> | imix [<parts>])"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!("64-64".parse(), Ok(Sizes::Fixed(64)));
        assert_eq!(
            "random 64-1500".parse(),
            Ok(Sizes::Random { min: 64, max: 1500 })
        );
        assert_eq!("imix".parse(), Ok(Sizes::simple_imix()));
        let many = format!("imix {}", ["64"; 17].join(","));
        for bad in [
            "",
            "x",
            "64-",
            "random",
            "imix 1:x",
            "64 64",
            "imix 64:7 8",
            "9",
            "99-64",
            "imix 64:0",
            &many,
        ] {
            assert!(bad.parse::<Sizes>().is_err(), "{bad}");
        }
    }
}
