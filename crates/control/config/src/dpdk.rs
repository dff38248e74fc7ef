//! Ports of DPDK, and `[dpdk]`: how it is started.

use crate::field::Section;
use crate::read::Plan;
use volley_model::{DpdkDevice, DpdkEal, DpdkSpec, HugePages, InterfaceKind, Request, Switch};

/// `[dpdk]`
pub(crate) fn eal(section: Section<'_>, plan: &mut Plan) {
    let pages = [
        ("auto", HugePages::Auto),
        ("yes", HugePages::Yes),
        ("no", HugePages::No),
    ];
    let options = section.get("options").map_or(Vec::new(), |f| f.list());
    let options = options.iter().filter_map(|f| f.text());
    let eal = DpdkEal {
        lcores: section.get("lcores").and_then(|f| f.text_or_number()),
        memory: section.get("memory").and_then(|f| f.uint32(0..=u32::MAX)),
        huge_pages: section
            .get("huge_pages")
            .and_then(|f| f.one_of(&pages))
            .unwrap_or_default(),
        options: options.map(str::to_owned).collect(),
    };
    plan.before(&section, Request::DpdkEal(eal));
}

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
