//! Open vSwitch with DPDK's datapath: one OpenFlow rule for each port.

use super::adapter::{ALL, Adapter, DPDK, Reach, dpdk_device, dpdk_memory, script};
use crate::switch::process::{Process, is_installed};
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "ovs-dpdk",
    title: "OVS-DPDK",
    program: Some("ovs-vsctl"),
    kinds: ALL,
    choices: DPDK,
    reach: Reach::Pairs,
    // One transmit queue for its polling thread, and one for its main thread: packets leave by the second one.
    memif_queues: 2,
    start,
    cost: None,
};

/// Debian's program with DPDK; the program of this name in PATH may have none.
const WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Database and switch in the folder of the sockets; nothing of an installed service is used.
const START: &str = r#"
export OVS_RUNDIR="$dir" OVS_LOGDIR="$dir" OVS_DBDIR="$dir"
ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
run ovsdb-server "$dir/conf.db" --remote="punix:$dir/db.sock" --unixctl="$dir/db.ctl"
vsctl() { ovs-vsctl --db="unix:$dir/db.sock" --timeout=25 "$@"; }
while [ ! -S "$dir/db.sock" ]; do await 'socket of ovsdb-server'; done
vsctl --no-wait init
vsctl --no-wait set Open_vSwitch . other_config:dpdk-init=true "other_config:dpdk-extra=$extra"
run "$switch" "unix:$dir/db.sock" --unixctl="$dir/switch.ctl" --log-file="$dir/switch.log" -vconsole:off
vsctl add-br ovs0 -- set bridge ovs0 datapath_type=netdev fail_mode=secure
"#;

/// The script: ports have the number of their link plus one.
fn text(topology: &Topology) -> Result<String, String> {
    let dir = topology.folder()?.display();
    let switch = match is_installed(WITH_DPDK) {
        true => WITH_DPDK,
        false => "ovs-vswitchd",
    };
    // Without this, the switch requests a mode of memory that needs huge pages.
    let extra = format!("--legacy-mem {}", dpdk_memory().join(" "));
    let mut text = format!("dir='{dir}' switch='{switch}' extra='{extra}'{START}");
    for link in &topology.links {
        let (n, device) = (link.number, dpdk_device(link));
        text += &format!(
            "vsctl add-port ovs0 p{n} -- set Interface p{n} type=dpdk ofport_request={} 'options:dpdk-devargs={device}'\n",
            n + 1
        );
    }
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a + 1, b + 1), (b + 1, a + 1)] {
            text += &format!(
                "ovs-ofctl add-flow \"$dir/ovs0.mgmt\" in_port={rx},actions=output:{tx}\n"
            );
        }
    }
    Ok(text)
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    script("OVS-DPDK", topology, &text(topology)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn ports_and_rules_of_a_chain() {
        let spec = Spec::of("loopback --physical veth --ports veth").unwrap();
        let text = text(&Topology::new(&spec, Path::new("/x"), 1).unwrap()).unwrap();
        for part in [
            "set Interface p0 type=dpdk ofport_request=1 'options:dpdk-devargs=net_af_packet0,iface=sw0'",
            "set Interface p1 type=dpdk ofport_request=2 'options:dpdk-devargs=net_af_packet1,iface=sw1'",
            "in_port=1,actions=output:2",
            "in_port=4,actions=output:3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
