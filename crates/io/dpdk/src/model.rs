//! The objects of this crate: the start of DPDK, and an interface on one of its ports.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, refuse, text_field};

/// Longest argument in bytes.
const ARGUMENT: usize = 1024;

/// Pages of DPDK's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum HugePages {
    /// Huge pages where enough are free, else plain pages.
    Auto,
    /// Huge pages.
    Yes,
    /// Plain pages.
    No,
}

/// Start of DPDK: settings of its environment layer, in effect when the first DPDK interface is created.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "dpdk_eal", file = "[dpdk]", machine, formerly = "dpdk-eal")]
#[object(
    set = "set dpdk eal {lcores <lcores> | memory <memory> | huge-pages@huge_pages=yes \
           | no-huge-pages@huge_pages=no | option~s <options>}"
)]
#[object(example = "set dpdk eal lcores 0 memory 128 no-huge-pages")]
pub struct DpdkEal {
    /// Cores that DPDK counts; one core where it is not set.
    pub lcores: Option<Cores>,
    /// Memory of DPDK's own tables; 64 MB, and more for many buffers, where it is not set.
    #[object(range = 16u32..=1_048_576, unit = "MB")]
    pub memory: Option<u32>,
    /// Huge pages for that memory.
    #[object(default = HugePages::Auto)]
    pub huge_pages: HugePages,
    /// Further argument of DPDK's environment layer, as DPDK's manual has it.
    pub options: Vec<Argument>,
}

/// Cores as DPDK writes them: `0`, `0-3`, `0,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub String);

/// An argument that DPDK gets as one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(pub String);

text_field!(Cores, "cores", Numbers, ["0-3", "0", "0,2"]);
text_field!(Argument, "an argument", Any, ["--log-level=8", "--a=b|#"]);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_digit() || b"-,@()".contains(&b);
        match !text.is_empty() && text.len() <= ARGUMENT && text.bytes().all(fits) {
            true => Ok(Cores(text.to_owned())),
            false => Err("write 0, 0-3 or 0,2".to_owned()),
        }
    }
}

impl Display for Cores {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_graphic());
        match !text.is_empty() && text.len() <= ARGUMENT && plain {
            true => Ok(Argument(text.to_owned())),
            false => Err(format!(
                "use 1 to {ARGUMENT} printable ASCII characters without blanks"
            )),
        }
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Interface on a port of DPDK: a card by its PCI address, or a virtual device. For a Volley with feature dpdk.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "dpdk", interface = "dpdk", machine, check = DpdkInterface::check)]
#[object(formerly = "dpdk device.pci=dev device.vdev=vdev")]
#[object(
    set = "create dpdk interface <name> (dev <dev> | vdev <vdev>) {num-rx-queues <queues> | num-rx-desc <rx_desc> | \
           num-tx-desc <tx_desc> | no-offload@offload=off | mac <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete dpdk interface <name>")]
#[object(example = "create dpdk interface wan0 vdev net_null0")]
pub struct DpdkInterface {
    /// Name of the interface.
    #[object(key, example = "wan0")]
    pub name: String,
    /// PCI address of a card, with arguments of its driver behind a comma.
    #[object(example = "0000:02:00.0")]
    pub dev: Option<PciDevice>,
    /// Virtual device of DPDK, with arguments of its driver behind a comma.
    #[object(example = "net_memif0,role=client")]
    pub vdev: Option<VirtualDevice>,
    /// Receive queues. There is one transmit queue for each worker.
    #[object(default = 1, range = 1u32..=64)]
    pub queues: u32,
    /// Descriptors of each receive queue; the driver may round them.
    #[object(default = 1024, range = 32u32..=32_768)]
    pub rx_desc: u32,
    /// Descriptors of each transmit queue; the driver may round them.
    #[object(default = 1024, range = 32u32..=32_768)]
    pub tx_desc: u32,
    /// Let the port finish checksums and cut TCP, where it can.
    #[object(default = true)]
    pub offload: bool,
}

/// A card, by its PCI address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciDevice(pub String);

/// A virtual device of DPDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDevice(pub String);

text_field!(
    PciDevice,
    "a PCI address",
    Any,
    ["0000:02:00.0", "02:00.1,iavf=1"]
);
text_field!(
    VirtualDevice,
    "a virtual device",
    Any,
    ["net_null0", "net_memif0,role=client"]
);

/// Longest name of a device.
const DEVICE: usize = 63;

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

impl FromStr for PciDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Argument(text) = text.parse()?;
        match is_pci(text.split(',').next().unwrap_or_default()) {
            true => Ok(PciDevice(text)),
            false => {
                Err("write its address as 0000:02:00.0, which `dpdk-devbind.py -s` shows".into())
            }
        }
    }
}

impl Display for PciDevice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for VirtualDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Argument(text) = text.parse()?;
        let name = text.split(',').next().unwrap_or_default();
        let known = name.starts_with("net_") || name.starts_with("eth_");
        match known && name.len() <= DEVICE {
            true => Ok(VirtualDevice(text)),
            false => Err(format!(
                "it begins with net_ and its driver's name, such as net_memif0, and has up to {DEVICE} characters"
            )),
        }
    }
}

impl Display for VirtualDevice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DpdkInterface {
    fn check(&self) -> Result<(), FieldError> {
        match (&self.dev, &self.vdev) {
            (None, None) => refuse(
                "dev",
                "must be given (a PCI address), or vdev (a virtual device)",
            ),
            (Some(_), Some(_)) => refuse("vdev", "must not be beside dev: a port has one device"),
            _ => Ok(()),
        }
    }

    /// The device in DPDK's form: a PCI address with its domain.
    pub fn argument(&self) -> String {
        match (&self.dev, &self.vdev) {
            (Some(PciDevice(text)), _) if text.split(',').next().is_some_and(|a| a.len() == 7) => {
                format!("0000:{text}")
            }
            (Some(PciDevice(text)), _) | (_, Some(VirtualDevice(text))) => text.clone(),
            (None, None) => String::new(),
        }
    }

    /// The name of the device, without arguments.
    pub fn device(&self) -> String {
        let argument = self.argument();
        argument.split(',').next().unwrap_or_default().to_owned()
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![DpdkEal::class()?, DpdkInterface::class()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_arguments_are_words_of_dpdk() {
        let eal = |lcores: &str, memory| DpdkEal {
            lcores: Some(Cores(lcores.into())),
            memory: Some(memory),
            ..DpdkEal::default()
        };
        eal("0-3,5", 64).instance().unwrap();
        assert!(eal("a", 64).instance().is_err());
        assert!(eal("0", 1).instance().is_err());
        assert!("--a b".parse::<Argument>().is_err());
    }
    #[test]
    fn devices_are_looked_at_before_dpdk_is_asked() {
        let pci = |text: &str| text.parse::<PciDevice>();
        for good in ["0000:02:00.0", "02:00.1,iavf=1"] {
            pci(good).unwrap();
        }
        for bad in ["02:00", "2:0.0", "0000:02:00.8", "eth0", ""] {
            assert!(pci(bad).is_err(), "{bad}");
        }
        let vdev = |text: &str| text.parse::<VirtualDevice>();
        for good in ["net_null0", "net_pcap0,rx_pcap=/a.pcap"] {
            vdev(good).unwrap();
        }
        for bad in ["", "null0", "net_null0 --foo", "crypto_null0"] {
            assert!(vdev(bad).is_err(), "{bad}");
        }
        let mut port = DpdkInterface {
            vdev: Some(vdev("net_ring0,a=b").unwrap()),
            ..DpdkInterface::default()
        };
        assert_eq!(port.device(), "net_ring0");
        port.dev = Some(pci("02:00.1,x=1").unwrap());
        assert_eq!(port.argument(), "0000:02:00.1,x=1");
        assert!(port.instance().is_err(), "two devices");
    }
}
