//! Ports of DPDK.

use crate::field::Section;
use volley_model::{DpdkDevice, DpdkSpec, InterfaceKind, Switch};

/// An interface of kind `dpdk`.
pub(crate) fn kind(section: &Section<'_>) -> Option<InterfaceKind> {
    let text = |key| section.get(key).and_then(|f| f.text().map(str::to_owned));
    let device = match (text("dev"), text("vdev")) {
        (Some(pci), None) => DpdkDevice::Pci(pci),
        (None, Some(vdev)) => DpdkDevice::Vdev(vdev),
        _ => {
            section.error("kind dpdk needs dev (a PCI address) or vdev (a virtual device)");
            return None;
        }
    };
    let usual = DpdkSpec::new(device);
    let number = |key, usual| {
        let field = section.get(key);
        field.map_or(Some(usual), |f| f.uint32(0..=u32::MAX))
    };
    let offload = section.get("offload").map(|f| f.boolean());
    Some(InterfaceKind::Dpdk(DpdkSpec {
        queues: number("queues", usual.queues)?,
        rx_desc: number("rx_desc", usual.rx_desc)?,
        tx_desc: number("tx_desc", usual.tx_desc)?,
        offload: match offload {
            Some(Some(false)) => Switch::Off,
            _ => Switch::On,
        },
        ..usual
    }))
}
