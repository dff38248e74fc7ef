//! The checks of processor, memory and privileges. The checks of the kernel are in [`super::kernel`].

use super::machine::Machine;
use super::{Finding, State, kernel};
use volley_simd::Level;

/// All checks, in order.
pub fn all(machine: &Machine) -> Vec<Finding> {
    let mut all = vec![
        processor(machine),
        cores(machine),
        huge_pages(machine),
        transparent(machine),
        memlock(machine),
    ];
    all.extend(CAPABILITIES.iter().map(|c| capability(machine, c)));
    all.extend(kernel::all(machine));
    all
}

fn processor(m: &Machine) -> Finding {
    let model = m.read("/proc/cpuinfo").unwrap_or_default();
    let name = model
        .lines()
        .find_map(|l| Some(l.strip_prefix("model name")?.split_once(": ")?.1));
    let found = format!("{}, {}", m.level, name.unwrap_or("unknown processor"));
    let finding = Finding::ok("processor", "vector code", found);
    match m.level {
        Level::Scalar => finding.but(
            State::Limited,
            "use a processor with AVX2 (x86-64-v3), or pass the host's through: qemu -cpu host",
        ),
        _ => finding,
    }
}

fn cores(m: &Machine) -> Finding {
    let online = m.read("/sys/devices/system/cpu/online");
    let online = online.unwrap_or_else(|| "0".to_owned());
    let isolated = m
        .read("/sys/devices/system/cpu/isolated")
        .unwrap_or_default();
    let nodes = m.list("/sys/devices/system/node");
    let nodes = nodes.iter().filter(|n| is_numbered(n, "node")).count();
    let count = count_list(&online);
    let found = format!(
        "{count} ({online}) on {} memory nodes, isolated: {}",
        nodes.max(1),
        if isolated.is_empty() {
            "none"
        } else {
            &isolated
        }
    );
    let finding = Finding::ok("cores", "a core for each worker, one for control", found);
    match (count, isolated.is_empty()) {
        (0..2, _) => finding.but(
            State::Limited,
            "give the machine a second core: a polling worker takes one for itself",
        ),
        (_, true) => finding.but(
            State::Limited,
            "for steady latency keep other programs off a worker's core: boot with isolcpus=1 nohz_full=1, set \
             worker_core = 1",
        ),
        _ => finding,
    }
}

fn is_numbered(name: &str, kind: &str) -> bool {
    let number = name.strip_prefix(kind);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// How many numbers are in a list such as `0-3,8`.
fn count_list(list: &str) -> u64 {
    let part = |p: &str| {
        let (from, to) = p.split_once('-').unwrap_or((p, p));
        let (from, to) = (from.trim().parse::<u64>(), to.trim().parse::<u64>());
        match (from, to) {
            (Ok(from), Ok(to)) => to.saturating_sub(from) + 1,
            _ => 0,
        }
    };
    list.split(',').map(part).sum()
}

fn huge_pages(m: &Machine) -> Finding {
    let base = "/sys/kernel/mm/hugepages";
    let pool = |name: &String| {
        let kb: u64 = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let number = |file| m.number(&format!("{base}/{name}/{file}")).unwrap_or(0);
        Some((kb, number("nr_hugepages"), number("free_hugepages")))
    };
    let pools: Vec<_> = m.list(base).iter().filter_map(pool).collect();
    let line =
        |(kb, all, free): &(u64, u64, u64)| format!("{free} of {all} free of {} MB", kb / 1024);
    let found: Vec<String> = pools.iter().map(line).collect();
    let free: u64 = pools.iter().map(|(kb, _, free)| kb * free).sum();
    let need = "packet buffers without TLB misses, DPDK, zero-copy AF_XDP";
    if pools.is_empty() {
        let finding = Finding::ok("huge pages", need, "the kernel has none");
        return finding.but(State::Missing, "use a kernel with CONFIG_HUGETLBFS=y");
    }
    let finding = Finding::ok("huge pages", need, found.join(", "));
    match free {
        0 => finding.but(State::Missing, "sudo sysctl -w vm.nr_hugepages=512"),
        _ => finding,
    }
}

fn transparent(m: &Machine) -> Finding {
    let modes = m.read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = modes.as_deref().and_then(|text| {
        let (_, rest) = text.split_once('[')?;
        rest.split_once(']').map(|(mode, _)| mode)
    });
    let need = "packet buffers on large pages where no huge pages are reserved";
    let finding = Finding::ok("transparent huge pages", need, chosen.unwrap_or("none"));
    match chosen {
        Some("always" | "madvise") => finding,
        Some(_) => finding.but(
            State::Limited,
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        None => finding.but(
            State::Missing,
            "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y, or reserve huge pages",
        ),
    }
}

fn memlock(m: &Machine) -> Finding {
    let limits = m.field("/proc/self/limits", "Max locked memory");
    let soft = limits.as_deref().and_then(|l| l.split_whitespace().next());
    let locked_anyway = has(m, 14);
    let found = match soft {
        Some("unlimited") => "unlimited".to_owned(),
        Some(bytes) => {
            let kb = bytes.parse::<u64>().unwrap_or(0) / 1024;
            let cap = if locked_anyway {
                ", CAP_IPC_LOCK lifts it"
            } else {
                ""
            };
            format!("{kb} KB{cap}")
        }
        None => "unknown".to_owned(),
    };
    let finding = Finding::ok("locked memory", "AF_XDP rings, DPDK", found);
    let enough = soft == Some("unlimited") || locked_anyway;
    match enough {
        true => finding,
        false => finding.but(
            State::Limited,
            "ulimit -l unlimited (systemd: LimitMEMLOCK=infinity), or give CAP_IPC_LOCK",
        ),
    }
}

struct Capability {
    name: &'static str,
    bit: u32,
    /// An older capability that includes this one.
    or: Option<u32>,
    needed_for: &'static str,
}

const SYS_ADMIN: u32 = 21;
const CAPABILITIES: [Capability; 4] = [
    Capability {
        name: "CAP_NET_ADMIN",
        bit: 12,
        or: None,
        needed_for: "tap interfaces, AF_XDP programs, promiscuous mode, MAC and MTU of kernel interfaces",
    },
    Capability {
        name: "CAP_NET_RAW",
        bit: 13,
        or: None,
        needed_for: "AF_PACKET and AF_XDP sockets",
    },
    Capability {
        name: "CAP_IPC_LOCK",
        bit: 14,
        or: None,
        needed_for: "locked memory beyond the limit",
    },
    Capability {
        name: "CAP_BPF",
        bit: 39,
        or: Some(SYS_ADMIN),
        needed_for: "loading AF_XDP programs",
    },
];

/// Whether this process has a capability in effect.
fn has(m: &Machine, bit: u32) -> bool {
    let set = m.field("/proc/self/status", "CapEff");
    let set = set.and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    set.is_some_and(|set| set >> bit & 1 == 1)
}

fn capability(m: &Machine, c: &Capability) -> Finding {
    let mine = has(m, c.bit) || c.or.is_some_and(|bit| has(m, bit));
    let found = if mine { "in effect" } else { "not in effect" };
    let finding = Finding::ok(c.name, c.needed_for, found);
    let every = "cap_net_admin,cap_net_raw,cap_ipc_lock,cap_bpf+ep";
    match mine {
        true => finding,
        false => finding.but(
            State::Missing,
            format!("sudo setcap {every} {} (or run it as root)", m.program),
        ),
    }
}
