//! Packet-generator streams: what packets look like, how their fields change, how many, how fast, where they enter.

mod edit;
mod fields;
mod layer;
mod template;
pub mod vpp_data;

pub use edit::{Edit, EditKind, EditTarget, FieldPath};
pub use layer::{FieldDef, FieldDefault, FieldKind, FieldValue, Layer, LayerKind, Value};
pub use template::Template;

use crate::limits::IMIX_PARTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Its name.
    pub name: String,
    /// Where its packets enter the graph.
    pub enter: Enter,
    /// What they are made from.
    pub source: StreamSource,
    /// How they change from packet to packet. Lengths and checksums that the template leaves open are made right
    /// after the edits.
    #[serde(default)]
    pub edits: Vec<Edit>,
    /// Their lengths.
    #[serde(default)]
    pub sizes: Sizes,
    /// Packets per second; none = as fast as possible.
    #[serde(default)]
    pub rate_pps: Option<u64>,
    /// Packets in all; none = endless for a template, each packet once for a file.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Most packets per vector; none = the engine's vector size.
    #[serde(default)]
    pub max_frame: Option<u32>,
    /// Seed of random edits and sizes; none = the engine's.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Worker that makes them; none = the first.
    #[serde(default)]
    pub worker: Option<u32>,
}

/// Where packets of a stream enter. At least one must be there.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Enter {
    /// Interface they count as received on; without a node they enter where its packets do.
    pub interface: Option<String>,
    /// Node they are handed to.
    pub node: Option<String>,
}

/// What packets of a stream are made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamSource {
    /// Layers written as text.
    Template(Template),
    /// The packets of a pcap or pcapng file in order, over again when the limit is larger.
    File(PathBuf),
}

/// Lengths of packets, in bytes without frame check sequence. Packets longer than their template are filled up at the
/// end of the payload, shorter ones are cut there.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// As the template or file has them.
    #[default]
    AsBuilt,
    /// All the same.
    Fixed(u32),
    /// `min`, `min + 1`, ... `max`, and over again.
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
    /// The classic mix: 64, 594 and 1518 bytes as 7 : 4 : 1.
    pub fn simple_imix() -> Sizes {
        let parts = [(64, 7), (594, 4), (1518, 1)];
        let part = |(size, weight)| ImixPart { size, weight };
        Sizes::Imix(parts.into_iter().map(part).collect())
    }
}

/// One length of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImixPart {
    /// Bytes.
    pub size: u32,
    /// Share, at least 1.
    pub weight: u32,
}

impl FromStr for Sizes {
    type Err = String;

    /// Reads `64`, `64-128`, `random 64-1500`, `imix` and `imix 64:7,594:4,1518:1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let bad = || {
            format!(
                "'{text}' is not a size: write 64, 64-128, random 64-1500, imix or imix 64:7,594:4,1518:1"
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
        sizes.filter(|_| words.next().is_none()).ok_or_else(bad)
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

/// Reads packets per second: `1000`, `250k`, `1.5M`, `1e6`.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "'{text}' is not a rate in packets per second: write one such as 1000, 250k, 1.5M or 1e6"
        )
    };
    let scales = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let scale = scales.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, scale) = match scale {
        Some((unit, scale)) => (text.trim_end_matches(unit), *scale),
        None => (text, 1.0),
    };
    let plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit());
    let rate = number.parse::<f64>().map(|n| n * scale).ok();
    let rate = rate
        .filter(|r| plain && (1.0..=1e9).contains(r))
        .ok_or_else(bad)?;
    Ok(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_are_read() {
        assert_eq!("64-64".parse(), Ok(Sizes::Fixed(64)));
        assert_eq!(
            "random 64-1500".parse(),
            Ok(Sizes::Random { min: 64, max: 1500 })
        );
        assert_eq!("imix".parse(), Ok(Sizes::simple_imix()));
        for bad in ["", "x", "64-", "random", "imix 1:x", "64 64", "imix 64:7 8"] {
            assert!(bad.parse::<Sizes>().is_err(), "{bad}");
        }
        assert_eq!(parse_rate("1.5M"), Ok(1_500_000));
        assert_eq!(parse_rate("1e6"), Ok(1_000_000));
        for bad in ["", "0", "-1", "nan", "inf", "M", "1kk ", "2G"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }
}
