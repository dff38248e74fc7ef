//! The router of the Linux kernel with the routes of FRR: zebra and staticd in the network namespace of the veth pairs.

use super::adapter::{Adapter, script};
use super::linux;
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "frr-router",
    title: "Linux router with FRR (veth)",
    program: Some("/usr/lib/frr/zebra"),
    start,
    ..linux::ROUTER
};

/// Both daemons with their files in a folder that belongs to their user. The folder of the measurement is private, so their group gets
/// the right to pass it. The switch forwards when the kernel has the route.
const START: &str = r#"
mkdir "$dir"
chown frr:frr "$dir"
chgrp frr "$dir/.."
chmod g+x "$dir/.."
echo 'ip route 20.0.0.0/8 192.0.2.2' > "$dir/staticd.conf"
: > "$dir/zebra.conf"
daemon() {
    run "/usr/lib/frr/$1" -f "$dir/$1.conf" -i "$dir/$1.pid" -z "$dir/zserv.api" --vty_socket "$dir" -P 0
}
daemon zebra
while [ ! -S "$dir/zserv.api" ]; do await 'socket of zebra'; done
daemon staticd
until ip route show 20.0.0.0/8 | grep -q via; do await 'route of staticd in the kernel'; done
"#;

fn text(topology: &Topology) -> Result<String, String> {
    let dir = topology.folder()?.display();
    let links = linux::links(topology)?;
    Ok(format!("{links}dir='{dir}/frr'\n{START}"))
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    script("FRR", topology, &text(topology)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn the_route_is_that_of_staticd() {
        let spec = Spec::of("p2p --physical veth").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"), 1).unwrap();
        let text = text(&topology).unwrap();
        assert!(text.contains("dir='/x/frr'\n"), "{text}");
        assert!(!text.contains("ip route add"), "{text}");
    }
}
