//! VPP: layer-2 patches between its ports. Written against its documented configuration; tried where the program is in PATH.

use super::adapter::{ALL, Adapter, Reach, write};
use crate::switch::process::Process;
use crate::switch::topology::{Kind, Link, Topology};
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "vpp",
    title: "VPP",
    program: Some("vpp"),
    kinds: ALL,
    choices: &[],
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

/// Names of the interfaces: vhost-user interfaces are numbered in the order in which they are made.
fn names(links: &[Link]) -> Vec<String> {
    let mut vhosts = 0;
    let name = |link: &Link| match link.kind {
        Kind::Memif => format!("memif{}/0", link.number + 1),
        Kind::VirtioUser => {
            vhosts += 1;
            format!("VirtualEthernet0/0/{}", vhosts - 1)
        }
        Kind::Veth | Kind::AfXdp => format!("host-{}", link.device()),
    };
    links.iter().map(name).collect()
}

/// The commands that VPP carries out at its start.
fn commands(topology: &Topology) -> String {
    let names = names(&topology.links);
    let mut text = String::new();
    for (link, name) in topology.links.iter().zip(&names) {
        let socket = link.socket.display();
        match link.kind {
            Kind::Memif => {
                let id = link.number + 1;
                text += &format!("create memif socket id {id} filename {socket}\n");
                text += &format!("create interface memif id 0 socket-id {id} master\n");
            }
            Kind::VirtioUser => text += &format!("create vhost-user socket {socket} server\n"),
            Kind::Veth | Kind::AfXdp => {
                text += &format!("create host-interface name {}\n", link.device())
            }
        }
        text += &format!("set interface state {name} up\n");
    }
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a, b), (b, a)] {
            text += &format!("test l2patch rx {} tx {}\n", names[*rx], names[*tx]);
        }
    }
    text
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    let folder = topology.folder()?;
    let file = write(topology, "vpp.commands", &commands(topology))?;
    let mut command = topology.command("vpp");
    // With a command line on standard input it ends when that is closed.
    command.args(["unix", "{", "interactive", "nobanner", "nosyslog", "exec"]);
    command.arg(&file).arg("runtime-dir").arg(folder).arg("}");
    command.args(["api-segment", "{", "prefix"]);
    command
        .arg(format!("volley-lab-{}", std::process::id()))
        .arg("}");
    command.args(["statseg", "{", "socket-name"]);
    command.arg(folder.join("stats.sock")).arg("}");
    command.args([
        "buffers",
        "{",
        "buffers-per-numa",
        "32768",
        "page-size",
        "default",
        "}",
    ]);
    command.args([
        "plugins",
        "{",
        "plugin",
        "dpdk_plugin.so",
        "{",
        "disable",
        "}",
        "}",
    ]);
    Process::start_until("VPP", command, &topology.sockets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn commands_of_a_chain() {
        let spec = Spec::of("loopback").unwrap();
        let text = commands(&Topology::new(&spec, Path::new("/x"), 0).unwrap());
        for line in [
            "create memif socket id 1 filename /x/0.sock",
            "create vhost-user socket /x/1.sock server",
            "set interface state VirtualEthernet0/0/1 up",
            "test l2patch rx memif1/0 tx VirtualEthernet0/0/0",
            "test l2patch rx VirtualEthernet0/0/1 tx memif4/0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
    }
}
