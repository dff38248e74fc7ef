//! The checks of the kernel: devices, socket families, IOMMU, and the DPDK library.

use super::machine::{Machine, Socket};
use super::{Finding, State};

/// All checks, in order.
pub(super) fn all(m: &Machine) -> Vec<Finding> {
    vec![
        version(m),
        device(m, &TUN),
        device(m, &VHOST),
        af_packet(m),
        af_xdp(m),
        btf(m),
        iommu(m),
        vfio(m),
        dpdk(m),
        dpdk_ports(m),
    ]
}

fn version(m: &Machine) -> Finding {
    let release = m.read("/proc/sys/kernel/osrelease");
    let found = release.unwrap_or_else(|| "unknown".to_owned());
    let mut numbers = found.split(['.', '-']).map(|n| n.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let finding = Finding::ok("kernel", "every kernel interface", found);
    match version < (5, 10) {
        false => finding,
        true => finding.but(
            State::Limited,
            "use kernel 5.10 or newer: AF_XDP need-wakeup and shared rings came with 5.4 to 5.10",
        ),
    }
}

/// The command that loads a kernel module if modules of this kernel are installed; else where to run it.
fn modprobe(m: &Machine, module: &str) -> String {
    let release = m.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    match m.path(&format!("/lib/modules/{release}")).is_dir() && !release.is_empty() {
        true => format!("sudo modprobe {module}"),
        false => format!(
            "sudo modprobe {module} on the host (no modules of this kernel are installed here), and pass it in"
        ),
    }
}

struct Device {
    name: &'static str,
    module: &'static str,
    needed_for: &'static str,
}

const TUN: Device = Device {
    name: "/dev/net/tun",
    module: "tun",
    needed_for: "tap interfaces",
};
const VHOST: Device = Device {
    name: "/dev/vhost-net",
    module: "vhost_net",
    needed_for: "taps whose packets the kernel carries (vhost-net), not a system call for each",
};

fn device(m: &Machine, device: &Device) -> Finding {
    let finding = |found: String| Finding::ok(device.name, device.needed_for, found);
    match m.opens(device.name) {
        Some(Ok(())) => finding("opens".to_owned()),
        Some(Err(error)) => finding(format!("does not open: {error}")).but(
            State::Missing,
            format!(
                "sudo setfacl -m u:$USER:rw {} (or run it as root)",
                device.name
            ),
        ),
        None => finding("not there".to_owned()).but(State::Missing, modprobe(m, device.module)),
    }
}

fn af_packet(m: &Machine) -> Finding {
    let need = "host interfaces (AF_PACKET, TPACKET rings)";
    let finding = |found| Finding::ok("AF_PACKET", need, found);
    match m.packet {
        Socket::Opens => finding("opens"),
        Socket::Forbidden => {
            finding("not for this user").but(State::Missing, "give CAP_NET_RAW, see above")
        }
        Socket::Unknown => {
            finding("the kernel has none").but(State::Missing, modprobe(m, "af_packet"))
        }
    }
}

fn af_xdp(m: &Machine) -> Finding {
    let need = "AF_XDP interfaces";
    let finding = |found| Finding::ok("AF_XDP", need, found);
    match m.xdp {
        Socket::Opens => finding("opens"),
        Socket::Forbidden => {
            finding("not for this user").but(State::Missing, "give CAP_NET_RAW, see above")
        }
        Socket::Unknown => finding("the kernel has none").but(
            State::Missing,
            "use a kernel with CONFIG_XDP_SOCKETS=y (Debian's and Ubuntu's have it)",
        ),
    }
}

fn btf(m: &Machine) -> Finding {
    let there = m.path("/sys/kernel/btf/vmlinux").exists();
    let found = if there { "there" } else { "not there" };
    let finding = Finding::ok(
        "BTF",
        "BPF programs of other tools; Volley's own do without",
        found,
    );
    match there {
        true => finding,
        false => finding.but(
            State::Limited,
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y; Volley itself does without",
        ),
    }
}

fn iommu(m: &Machine) -> Finding {
    let groups = m.list("/sys/kernel/iommu_groups").len();
    let finding = Finding::ok(
        "IOMMU",
        "network cards driven by DPDK through vfio-pci",
        format!("{groups} groups"),
    );
    if groups > 0 {
        return finding;
    }
    let model = m.read("/proc/cpuinfo").unwrap_or_default();
    let argument = match model.contains("GenuineIntel") {
        true => "intel_iommu=on iommu=pt",
        false => "iommu=pt",
    };
    finding.but(
        State::Missing,
        format!("boot with {argument}, with the IOMMU switched on in the firmware"),
    )
}

fn vfio(m: &Machine) -> Finding {
    let there = m.path("/sys/bus/pci/drivers/vfio-pci").exists();
    let found = if there { "loaded" } else { "not loaded" };
    let finding = Finding::ok("vfio-pci", "network cards driven by DPDK", found);
    match there {
        true => finding,
        false => finding.but(State::Missing, modprobe(m, "vfio-pci")),
    }
}

fn dpdk(m: &Machine) -> Finding {
    let need = "the cargo feature dpdk, and comparisons with dpdk-testpmd";
    match &m.dpdk {
        Some(version) => Finding::ok("DPDK library", need, version.as_str()),
        None => Finding::ok("DPDK library", need, "pkg-config does not find libdpdk").but(
            State::Missing,
            "sudo apt-get install dpdk dpdk-dev pkg-config",
        ),
    }
}

fn dpdk_ports(m: &Machine) -> Finding {
    let need = "interfaces of kind dpdk";
    match m.dpdk_ports {
        true => Finding::ok("DPDK ports", need, "compiled in"),
        false => Finding::ok("DPDK ports", need, "not compiled in").but(
            State::Missing,
            "sudo apt-get install libdpdk-dev dpdk pkg-config, and cargo build --release --features dpdk",
        ),
    }
}
