//! States and modes of interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use volley_object::Choice;

/// Administrative state.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum AdminState {
    /// Forward packets from and to the interface.
    Up,
    /// Forward no packets from and to the interface.
    #[default]
    Down,
}

/// Mode of receive queues.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum RxMode {
    /// A worker polls the queue all the time.
    Polling,
    /// A worker polls the queue when the driver signals packets.
    Interrupt,
    /// A worker polls the queue while packets come, and waits for a signal after a short silence.
    #[default]
    Adaptive,
}

/// State of a setting that can be on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl Display for Switch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Switch::On => "on",
            Switch::Off => "off",
        })
    }
}
