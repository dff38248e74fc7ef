//! Interfaces that are ports of DPDK.

use crate::error::ModelError;
use crate::interface::Switch;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use volley_object::quote;

type Check = Result<(), ModelError>;

/// Receive queues of a port.
const QUEUES: RangeInclusive<u32> = 1..=64;
/// Descriptors of a queue.
const DESCRIPTORS: RangeInclusive<u32> = 32..=32_768;
/// Longest name of a device, and longest text about one.
const DEVICE: usize = 63;
const ARGUMENTS: usize = 1024;

/// A port of DPDK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DpdkSpec {
    /// What is behind the port.
    pub device: DpdkDevice,
    /// Receive queues. There is one transmit queue for each worker.
    #[serde(default = "one")]
    pub queues: u32,
    /// Descriptors of each receive queue; the driver may round them.
    #[serde(default = "descriptors")]
    pub rx_desc: u32,
    /// Descriptors of each transmit queue.
    #[serde(default = "descriptors")]
    pub tx_desc: u32,
    /// Whether the port finishes checksums and cuts TCP, where it can.
    #[serde(default = "on")]
    pub offload: Switch,
}

fn one() -> u32 {
    1
}

fn descriptors() -> u32 {
    1024
}

fn on() -> Switch {
    Switch::On
}

/// What is behind a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DpdkDevice {
    /// A device on the PCI bus, by address (`0000:02:00.0`), with arguments of its driver behind a comma.
    Pci(String),
    /// A virtual device (`net_memif0,role=client,socket=/run/m.sock`).
    Vdev(String),
}

impl DpdkSpec {
    /// A port of a device, all else as usual.
    pub fn new(device: DpdkDevice) -> Self {
        DpdkSpec {
            device,
            queues: one(),
            rx_desc: descriptors(),
            tx_desc: descriptors(),
            offload: on(),
        }
    }

    pub(crate) fn validate(&self) -> Check {
        self.device.validate()?;
        within("receive queues", self.queues, QUEUES)?;
        within("num-rx-desc", self.rx_desc, DESCRIPTORS)?;
        within("num-tx-desc", self.tx_desc, DESCRIPTORS)
    }
}

/// A text that goes to DPDK as one word.
fn one_word(what: &str, text: &str) -> Check {
    let plain = |b: u8| b.is_ascii_graphic();
    if text.is_empty() || text.len() > ARGUMENTS || !text.bytes().all(plain) {
        let why = format!("use 1 to {ARGUMENTS} printable ASCII characters without blanks");
        return Err(ModelError::invalid(
            format!("{what} '{}'", text.escape_debug()),
            why,
        ));
    }
    Ok(())
}

fn is_pci(address: &str) -> bool {
    let hex =
        |part: &str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let Some((slot, function)) = address.rsplit_once('.') else {
        return false;
    };
    let parts: Vec<&str> = slot.split(':').collect();
    let place = match parts[..] {
        [bus, device] => hex(bus, 2) && hex(device, 2),
        [domain, bus, device] => hex(domain, 4) && hex(bus, 2) && hex(device, 2),
        _ => false,
    };
    place && matches!(function.as_bytes(), [b'0'..=b'7'])
}

impl DpdkDevice {
    /// As DPDK wants it: a PCI address with its domain.
    pub fn argument(&self) -> String {
        match self {
            DpdkDevice::Pci(text) if text.split(',').next().is_some_and(|a| a.len() == 7) => {
                format!("0000:{text}")
            }
            DpdkDevice::Pci(text) | DpdkDevice::Vdev(text) => text.clone(),
        }
    }

    /// Its name, without arguments.
    pub fn name(&self) -> String {
        let argument = self.argument();
        argument.split(',').next().unwrap_or_default().to_owned()
    }

    fn validate(&self) -> Check {
        match self {
            DpdkDevice::Pci(text) => {
                one_word("PCI device", text)?;
                let address = text.split(',').next().unwrap_or_default();
                let why = "write its address as 0000:02:00.0, which `dpdk-devbind.py -s` shows";
                let bad = || Err(ModelError::invalid(format!("PCI device {address}"), why));
                is_pci(address).then_some(()).map_or_else(bad, Ok)
            }
            DpdkDevice::Vdev(text) => {
                one_word("virtual device", text)?;
                let name = self.name();
                let known = name.starts_with("net_") || name.starts_with("eth_");
                if !known || name.len() > DEVICE {
                    let why = format!(
                        "it begins with net_ and its driver's name, such as net_memif0, and has up to {DEVICE} characters"
                    );
                    return Err(ModelError::invalid(format!("virtual device {name}"), why));
                }
                Ok(())
            }
        }
    }
}

impl Display for DpdkDevice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DpdkDevice::Pci(text) => write!(f, "dev {}", quote(text)),
            DpdkDevice::Vdev(text) => write!(f, "vdev {}", quote(text)),
        }
    }
}

impl Display for DpdkSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.device)?;
        for (value, usual, word) in [
            (self.queues, one(), "num-rx-queues"),
            (self.rx_desc, descriptors(), "num-rx-desc"),
            (self.tx_desc, descriptors(), "num-tx-desc"),
        ] {
            if value != usual {
                write!(f, " {word} {value}")?;
            }
        }
        f.write_str(match self.offload {
            Switch::On => "",
            Switch::Off => " no-offload",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pci(text: &str) -> DpdkDevice {
        DpdkDevice::Pci(text.into())
    }

    fn vdev(text: &str) -> DpdkDevice {
        DpdkDevice::Vdev(text.into())
    }

    #[test]
    fn devices_are_looked_at_before_dpdk_is_asked() {
        for good in [
            pci("0000:02:00.0"),
            pci("02:00.1,iavf=1"),
            vdev("net_null0"),
            vdev("net_pcap0,rx_pcap=/a.pcap"),
        ] {
            assert_eq!(good.validate(), Ok(()), "{good}");
        }
        for bad in [
            pci("02:00"),
            pci("2:0.0"),
            pci("0000:02:00.8"),
            pci("eth0"),
            vdev(""),
            vdev("null0"),
            vdev("net_null0 --foo"),
            vdev("crypto_null0"),
        ] {
            assert!(bad.validate().is_err(), "{bad}");
        }
        assert_eq!(pci("02:00.1,x=1").argument(), "0000:02:00.1,x=1");
        assert_eq!(vdev("net_ring0,a=b").name(), "net_ring0");
    }

    #[test]
    fn numbers_have_ranges() {
        let mut spec = DpdkSpec::new(vdev("net_null0"));
        assert_eq!(spec.validate(), Ok(()));
        spec.queues = 0;
        assert!(spec.validate().is_err());
    }
}
