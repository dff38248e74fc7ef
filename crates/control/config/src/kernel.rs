//! Interfaces that stand for, or on, interfaces of the Linux kernel.

use crate::field::Section;
use volley_model::{
    InterfaceKind, PacketSpec, Switch, TapMode, TapSpec, TapVhost, XdpCopy, XdpMode, XdpSpec,
};

fn text(section: &Section<'_>, key: &'static str) -> Option<String> {
    section.get(key).and_then(|f| f.text()).map(str::to_owned)
}

fn offload(section: &Section<'_>) -> Switch {
    match section.get("offload").and_then(|f| f.boolean()) {
        Some(false) => Switch::Off,
        _ => Switch::On,
    }
}

/// A number whose range the request itself checks.
fn number(section: &Section<'_>, key: &'static str) -> Option<u32> {
    section.get(key).and_then(|f| f.uint32(0..=u32::MAX))
}

/// What stands behind an interface of `kind`.
pub(crate) fn kind(section: &Section<'_>, kind: &str) -> Option<InterfaceKind> {
    match kind {
        "tap" => Some(InterfaceKind::Tap(tap(section))),
        "host-interface" => {
            let usual = PacketSpec::default();
            Some(InterfaceKind::HostInterface(PacketSpec {
                host: section.required("host")?.text()?.to_owned(),
                namespace: text(section, "namespace"),
                queues: number(section, "queues").unwrap_or(usual.queues),
                ring: number(section, "ring").unwrap_or(usual.ring),
                offload: offload(section),
                wait: false,
            }))
        }
        "af_xdp" => xdp(section).map(InterfaceKind::AfXdp),
        _ => None,
    }
}

fn tap(section: &Section<'_>) -> TapSpec {
    let modes = [("tap", TapMode::Tap), ("tun", TapMode::Tun)];
    let uses = [
        ("auto", TapVhost::Auto),
        ("on", TapVhost::On),
        ("off", TapVhost::Off),
    ];
    let addresses = section
        .get("host_addresses")
        .map_or(Vec::new(), |f| f.list());
    TapSpec {
        mode: section
            .get("mode")
            .and_then(|f| f.one_of(&modes))
            .unwrap_or_default(),
        host: text(section, "host"),
        namespace: text(section, "namespace"),
        host_mac: section.get("host_mac").and_then(|f| f.read()),
        host_mtu: number(section, "host_mtu"),
        host_addresses: addresses.iter().filter_map(|f| f.read()).collect(),
        queues: number(section, "queues").unwrap_or(TapSpec::default().queues),
        offload: offload(section),
        vhost: section
            .get("vhost")
            .and_then(|f| f.one_of(&uses))
            .unwrap_or_default(),
    }
}

fn xdp(section: &Section<'_>) -> Option<XdpSpec> {
    let modes = [
        ("auto", XdpMode::Auto),
        ("native", XdpMode::Native),
        ("generic", XdpMode::Generic),
    ];
    let copies = [
        ("auto", XdpCopy::Auto),
        ("copy", XdpCopy::Copy),
        ("zero", XdpCopy::Zero),
    ];
    Some(XdpSpec {
        host: section.required("host")?.text()?.to_owned(),
        namespace: text(section, "namespace"),
        queues: number(section, "queues"),
        ring: number(section, "ring").unwrap_or(XdpSpec::default().ring),
        mode: section
            .get("mode")
            .and_then(|f| f.one_of(&modes))
            .unwrap_or_default(),
        copy: section
            .get("copy")
            .and_then(|f| f.one_of(&copies))
            .unwrap_or_default(),
        wait: false,
    })
}
