//! A VNF in a virtual machine: QEMU with an emulated processor boots Debian's kernel, whose bridge forwards between two virtio-net
//! cards. It shows that packets pass a real guest; its speed means nothing.
//!
//! Kernel and busybox are those that `cargo xtask guest` has downloaded into the target folder of the build.

use super::process::{KEEPER, Process, dependent, is_installed};
use super::topology::{Link, Topology};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const QEMU: &str = "qemu-system-x86_64";
/// Variable that names the folder of kernel and busybox.
const VARIABLE: &str = "VOLLEY_LAB_GUEST";
/// Where `cargo xtask guest` stores them, in the target folder of the build that this program is from.
const TREE: &str = "guest/tree";
/// Folders above this program that may be the target folder: it is in `release` or `debug`, a test in `deps` below.
const ABOVE: usize = 4;
/// Modules of the guest's kernel.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_net", "bridge"];
/// Folders of the guest, beside those of its files.
const FOLDERS: [&str; 4] = ["bin", "proc", "sys", "dev"];
/// The line by which the guest says that it forwards.
const READY: &str = "volley-lab: the guest forwards";
/// Longest time until then: the processor is emulated, and a busy machine emulates slowly.
const BOOT: Duration = Duration::from_secs(150);

/// The first program of the guest. The bridge forwards frames between the cards, and nothing else sends any.
const INIT: &str = r#"#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in MODULES; do modprobe $module || echo "no module $module"; done
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add br0 type bridge
for card in eth0 eth1; do
    ip link set $card master br0
    ip link set $card up
done
ip link set br0 up
echo 'READY'
exec sleep 1000000
"#;

/// QEMU with shared memory, which the back end of its cards maps.
const MACHINE: &str = "-nodefaults -no-reboot -display none -accel tcg -cpu max -m 256 -object memory-backend-memfd,id=m,size=256M,share=on -numa node,memdev=m";
const KERNEL: &str = "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check mitigations=off";

/// Folder of kernel and busybox; none if there is no such folder.
fn tree() -> Option<PathBuf> {
    let is_complete = |tree: &PathBuf| tree.join("bin/busybox").is_file();
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return Some(named).filter(is_complete);
    }
    let program = std::env::current_exe().ok()?;
    let above = program.ancestors().skip(1).take(ABOVE);
    above.map(|folder| folder.join(TREE)).find(is_complete)
}

/// Why a VNF cannot be a virtual machine; none if it can.
pub fn missing() -> Option<String> {
    if !is_installed(QEMU) {
        return Some(format!("no program {QEMU} in PATH"));
    }
    match tree() {
        Some(_) => None,
        None => Some(format!(
            "no kernel for virtual machines: `cargo xtask guest -- true` downloads it, or {VARIABLE} names its folder"
        )),
    }
}

fn with_path(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// The only entry of a folder.
fn only(folder: &Path) -> Result<PathBuf, String> {
    let mut all = std::fs::read_dir(folder).map_err(with_path(folder))?;
    let first = all.next().transpose().map_err(with_path(folder))?;
    let first = first.ok_or_else(|| format!("{}: the folder is empty", folder.display()))?;
    Ok(first.path())
}

/// Files of these modules, and of all that they need, by the list of the kernel (`modules.dep`).
fn files(list: &str, names: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut all = BTreeSet::new();
    for name in names {
        let file = format!("/{name}.ko");
        let mut lines = list.lines().filter_map(|line| line.split_once(':'));
        let (own, others) = lines
            .find(|(own, _)| own.ends_with(&file))
            .ok_or_else(|| format!("the kernel for virtual machines has no module {name}"))?;
        all.insert(own.to_owned());
        all.extend(others.split_whitespace().map(str::to_owned));
    }
    Ok(all)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder).map_err(with_path(folder))?;
    std::fs::copy(from, to).map(|_| ()).map_err(with_path(from))
}

/// Write the archive that the guest boots into.
fn pack(tree: &Path, folder: &Path) -> Result<PathBuf, String> {
    let root = folder.join("guest");
    for name in FOLDERS {
        let path = root.join(name);
        std::fs::create_dir_all(&path).map_err(with_path(&path))?;
    }
    let busybox = tree.join("bin/busybox");
    copy(&busybox, &root.join("bin/busybox"))?;
    let modules = only(&tree.join("lib/modules"))?;
    let inside = root.join(modules.strip_prefix(tree).unwrap_or(&modules));
    let list = modules.join("modules.dep");
    copy(&list, &inside.join("modules.dep"))?;
    let text = volley_file::read_text(&list, 16 << 20).map_err(with_path(&list))?;
    for file in files(&text, &MODULES)? {
        copy(&modules.join(&file), &inside.join(&file))?;
    }
    let init = root.join("init");
    let text = INIT
        .replace("MODULES", &MODULES.join(" "))
        .replace("READY", READY);
    let written = volley_file::create(&init).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(with_path(&init))?;
    let script = "chmod 755 init && find . | \"$1\" cpio -o -H newc 2>/dev/null > ../initrd";
    let mut archive = Command::new("sh");
    archive.args(["-c", script, "sh"]).arg(&busybox);
    let status = archive.current_dir(&root).status();
    match status.map_err(with_path(&root))?.success() {
        true => Ok(folder.join("initrd")),
        false => Err("the files of a virtual machine cannot be packed".to_owned()),
    }
}

/// A card of the guest, whose back end is the switch.
fn card(number: usize, link: &Link) -> [String; 6] {
    // `vectors=0`: with MSI-X, QEMU 7.2 dies when the guest sets up the control queue of such a card.
    [
        "-chardev".to_owned(),
        format!("socket,id=c{number},path={}", link.socket.display()),
        "-netdev".to_owned(),
        format!("vhost-user,id=n{number},chardev=c{number}"),
        "-device".to_owned(),
        format!(
            "virtio-net-pci,netdev=n{number},mac=02:fe:00:00:00:0{number},vectors=0,mrg_rxbuf=on"
        ),
    ]
}

/// Start the VNF of this number of a chain as a virtual machine, and wait until it forwards.
///
/// # Errors
/// A sentence, if something is missing, or the guest does not boot.
pub fn start(topology: &Topology, number: usize) -> Result<Process, String> {
    if let Some(why) = missing() {
        return Err(why);
    }
    let tree = tree().ok_or("no kernel for virtual machines")?;
    let folder = topology.folder()?;
    let initrd = match folder.join("initrd") {
        packed if packed.exists() => packed,
        _ => pack(&tree, folder)?,
    };
    let mut command = dependent("sh");
    command
        .args(["-c", KEEPER, "sh", QEMU])
        .args(MACHINE.split(' '));
    command.arg("-kernel").arg(only(&tree.join("boot"))?);
    command.arg("-initrd").arg(initrd);
    command.args(["-append", KERNEL]);
    command.args(["-chardev", "file,id=out,path=/dev/stdout"]);
    command.args(["-serial", "chardev:out"]);
    // Links 1 and 2, 3 and 4, ... have the VNFs.
    let links = topology.links.iter().skip(2 * number + 1).take(2);
    for (at, link) in links.enumerate() {
        command.args(card(at, link));
    }
    Process::start_within("the virtual machine", command, READY, BOOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_with_what_they_need() {
        let list = "net/bridge/bridge.ko: net/802/stp.ko net/llc/llc.ko\nnet/802/stp.ko: net/llc/llc.ko\nnet/x.ko:\n";
        let all = files(list, &["bridge"]).unwrap();
        let wanted = ["net/802/stp.ko", "net/bridge/bridge.ko", "net/llc/llc.ko"];
        assert_eq!(all.into_iter().collect::<Vec<_>>(), wanted);
        assert!(
            files(list, &["ridge"])
                .unwrap_err()
                .ends_with("no module ridge")
        );
    }
}
