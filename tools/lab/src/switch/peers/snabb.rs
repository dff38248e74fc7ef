//! Snabb: a design of port apps, linked in both directions. Written against its documented apps; tried where the program is in
//! PATH. It has no memif port.

use super::adapter::{Adapter, Reach, write};
use crate::switch::process::Process;
use crate::switch::topology::{Kind, Link, Topology};
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "snabb",
    title: "Snabb (veth)",
    program: Some("snabb"),
    kinds: &[Kind::VirtioUser, Kind::Veth],
    choices: &[],
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

/// The app of a port, with its argument.
fn app(link: &Link) -> String {
    match link.kind {
        Kind::Veth | Kind::AfXdp => format!("RawSocket, \"{}\"", link.device()),
        _ => format!(
            "VhostUser, {{socket_path=\"{}\", is_server=true}}",
            link.socket.display()
        ),
    }
}

/// The design, a script in Lua.
fn design(topology: &Topology) -> String {
    let mut text = String::from(
        "local VhostUser = require(\"apps.vhost.vhost_user\").VhostUser
local RawSocket = require(\"apps.socket.raw\").RawSocket
local c = config.new()
",
    );
    for link in &topology.links {
        text += &format!("config.app(c, \"p{}\", {})\n", link.number, app(link));
    }
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a, b), (b, a)] {
            text += &format!("config.link(c, \"p{rx}.tx -> p{tx}.rx\")\n");
        }
    }
    text + "engine.configure(c)\nprint(\"ready\")\nio.flush()\nengine.main()\n"
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    let file = write(topology, "lab.lua", &design(topology))?;
    let mut command = topology.kept("snabb");
    command.arg("snsh").arg(file);
    Process::start("Snabb", command, "ready")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn apps_and_links_of_two_ports() {
        let spec = Spec::of("p2v --physical veth").unwrap();
        let text = design(&Topology::new(&spec, Path::new("/x"), 1).unwrap());
        for line in [
            "config.app(c, \"p0\", RawSocket, \"sw0\")",
            "config.app(c, \"p1\", VhostUser, {socket_path=\"/x/1.sock\", is_server=true})",
            "config.link(c, \"p1.tx -> p0.rx\")",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
