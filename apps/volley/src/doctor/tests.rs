//! The doctor on machines that are made of files.

use super::machine::{Machine, Socket};
use super::{Finding, State, checks, text};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use volley_simd::Level;

/// A machine whose files are removed when it is dropped.
struct Made(Machine);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.root);
    }
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("volley-doctor-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn machine(level: Level, socket: Socket, files: &[(&str, &str)]) -> Made {
    let root = folder();
    std::fs::create_dir_all(&root).unwrap();
    files
        .iter()
        .for_each(|(path, text)| write(&root, path, text));
    Made(Machine {
        root,
        xdp: socket,
        packet: socket,
        dpdk: (level == Level::V3).then(|| "24.11.2".to_owned()),
        dpdk_ports: level == Level::V3,
        level,
        program: "/usr/bin/volley".to_owned(),
    })
}

/// A machine on which everything exists.
fn rich() -> Made {
    let huge = "sys/kernel/mm/hugepages/hugepages-2048kB";
    machine(
        Level::V3,
        Socket::Opens,
        &[
            (
                "proc/cpuinfo",
                "vendor_id : GenuineIntel\nmodel name\t: Some Processor\n",
            ),
            (
                "proc/self/status",
                "Name:\tvolley\nCapEff:\t000001ffffffffff\n",
            ),
            (
                "proc/self/limits",
                "Max locked memory         8388608  8388608  bytes\n",
            ),
            ("proc/sys/kernel/osrelease", "6.12.0-amd64\n"),
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("sys/devices/system/cpu/isolated", "1-2\n"),
            ("sys/devices/system/node/node0/meminfo", ""),
            (&format!("{huge}/nr_hugepages"), "1024\n"),
            (&format!("{huge}/free_hugepages"), "1000\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("sys/kernel/btf/vmlinux", ""),
            ("sys/kernel/iommu_groups/0/type", "DMA\n"),
            ("sys/bus/pci/drivers/vfio-pci/bind", ""),
            ("dev/net/tun", ""),
            ("dev/vhost-net", ""),
        ],
    )
}

fn finding<'a>(all: &'a [Finding], name: &str) -> &'a Finding {
    all.iter().find(|f| f.name == name).unwrap()
}

#[test]
fn a_machine_with_everything_needs_nothing() {
    let all = checks::all(&rich().0);
    for f in &all {
        assert_eq!((f.state, &f.fix), (State::Ok, &None), "{f:?}");
    }
    assert_eq!(
        finding(&all, "huge pages").found,
        "1000 of 1024 free of 2 MB"
    );
    let cores = &finding(&all, "cores").found;
    assert_eq!(cores, "5 (0-3,8) on 1 memory nodes, isolated: 1-2");
    assert_eq!(
        finding(&all, "locked memory").found,
        "8192 KB, CAP_IPC_LOCK lifts it"
    );
    assert!(text(&all).contains("19 ok, 0 limited, 0 missing"));
}

#[test]
fn a_bare_machine_gets_the_command_that_corrects_each_fault() {
    let bare = machine(
        Level::Scalar,
        Socket::Forbidden,
        &[
            ("proc/self/status", "CapEff:\t0000000000000000\n"),
            (
                "proc/self/limits",
                "Max locked memory         65536  65536  bytes\n",
            ),
            ("proc/sys/kernel/osrelease", "4.19.0-5\n"),
            ("lib/modules/4.19.0-5/modules.dep", ""),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]\n",
            ),
            (
                "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                "0\n",
            ),
        ],
    );
    let all = checks::all(&bare.0);
    for f in &all {
        assert!(f.state != State::Ok && f.fix.is_some(), "{f:?}");
    }
    let fix = |name| finding(&all, name).fix.clone().unwrap();
    assert_eq!(fix("huge pages"), "sudo sysctl -w vm.nr_hugepages=512");
    assert!(fix("/dev/net/tun").starts_with("sudo modprobe tun"));
    assert!(fix("/dev/vhost-net").starts_with("sudo modprobe vhost_net"));
    let setcap = "sudo setcap cap_net_admin,cap_net_raw,cap_ipc_lock,cap_bpf+ep /usr/bin/volley";
    assert!(fix("CAP_BPF").starts_with(setcap));
    let out = text(&all);
    assert!(
        out.contains("0 ok") && out.contains("fix: sudo modprobe tun"),
        "{out}"
    );
}

#[test]
fn nothing_at_all_is_no_reason_to_fall() {
    let nothing = machine(Level::V4, Socket::Unknown, &[]);
    let all = checks::all(&nothing.0);
    assert_eq!(all.len(), 19);
    assert!(finding(&all, "AF_XDP").found.contains("has none"));
    let vfio = finding(&all, "vfio-pci").fix.as_deref().unwrap();
    assert!(vfio.contains("on the host"), "{vfio}");
    // The machine of this test gives all findings, too.
    assert_eq!(checks::all(&Machine::here()).len(), 19);
}
