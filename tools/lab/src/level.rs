//! How much a run measures: everything, a shorter version of everything, or just enough to see that every figure can be measured.

use clap::ValueEnum;
use serde::{Deserialize, Deserializer, Serialize};

/// Extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One or two short points of each figure: proves that each can be measured. The figures mean nothing.
    Smoke,
    /// Fewer points, shorter repetitions.
    Quick,
    /// All points.
    Full,
}

/// Length of the measurement of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Seconds of a repetition.
    pub seconds: f64,
    /// Number of repetitions.
    pub repetitions: usize,
    /// Packets of the shorter one of two runs under callgrind.
    pub counted: u64,
}

impl Length {
    /// With half of the repetitions.
    pub fn shorter(self) -> Length {
        Length {
            repetitions: self.repetitions.div_ceil(2),
            ..self
        }
    }
}

impl Level {
    /// Seconds that a run should not exceed; none for any time.
    pub fn limit(self) -> Option<f64> {
        match self {
            Level::Smoke => Some(120.0),
            Level::Quick => Some(600.0),
            Level::Full => None,
        }
    }

    /// Seconds after which a run begins no further point; none for a run that measures each. A smoke run shows that each can be measured.
    pub fn end(self) -> Option<f64> {
        match self {
            Level::Quick => self.limit(),
            Level::Smoke | Level::Full => None,
        }
    }

    /// Length of each point.
    pub fn length(self) -> Length {
        let (seconds, repetitions, counted) = match self {
            Level::Smoke => (0.03, 2, 2_560),
            Level::Quick => (0.1, 7, 12_800),
            Level::Full => (0.5, 10, 51_200),
        };
        Length {
            seconds,
            repetitions,
            counted,
        }
    }

    /// Whether all points are measured.
    pub fn is_full(self) -> bool {
        self == Level::Full
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Smoke => "smoke",
            Level::Quick => "quick",
            Level::Full => "full",
        }
    }
}

/// Read a level, which earlier versions wrote as `true` for a quick run.
///
/// # Errors
/// If it is neither a level nor a truth value.
pub fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Level, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Quick(bool),
        Level(Level),
    }
    Ok(match Written::deserialize(from)? {
        Written::Quick(true) => Level::Quick,
        Written::Quick(false) => Level::Full,
        Written::Level(level) => level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_earlier_versions() {
        #[derive(Deserialize)]
        struct Plan {
            #[serde(alias = "quick", deserialize_with = "read")]
            level: Level,
        }
        for (text, level) in [
            ("{\"quick\":true}", Level::Quick),
            ("{\"quick\":false}", Level::Full),
            ("{\"level\":\"smoke\"}", Level::Smoke),
        ] {
            let plan: Plan = serde_json::from_str(text).unwrap();
            assert_eq!(plan.level, level, "{text}");
        }
        assert!(serde_json::from_str::<Plan>("{\"level\":3}").is_err());
    }
}
