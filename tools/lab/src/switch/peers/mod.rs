//! Adapters of switches, one file each: a name, the program that must be in PATH, and a function that starts it with the ports of a topology.
//!
//! To add one, write its file and add it to [`ADAPTERS`]. A switch is ready when it prints a line or makes its sockets, and it ends
//! when its standard input is closed; `Topology::kept` is for a program that does not. An adapter whose program is missing is skipped, and the report says so.

mod adapter;
mod bess;
mod fastclick;
mod frr;
mod grout;
mod linux;
mod ovs;
mod snabb;
mod t4p4s;
mod testpmd;
mod volley;
mod vpp;
mod xdp;

pub use adapter::{Adapter, Reach};

use super::spec::Spec;
use super::topology::kinds;
use adapter::Choice;

/// All adapters.
pub const ADAPTERS: [&Adapter; 14] = [
    &volley::ADAPTER,
    &volley::ROUTER,
    &testpmd::ADAPTER,
    &ovs::ADAPTER,
    &linux::BRIDGE,
    &linux::ROUTER,
    &frr::ADAPTER,
    &xdp::ADAPTER,
    &vpp::ADAPTER,
    &fastclick::ADAPTER,
    &grout::ADAPTER,
    &bess::ADAPTER,
    &snabb::ADAPTER,
    &t4p4s::ADAPTER,
];

/// The adapter of a name.
///
/// # Errors
/// If there is none, or its program is not installed.
pub fn find(name: &str) -> Result<&'static Adapter, String> {
    let Some(adapter) = ADAPTERS.into_iter().find(|a| a.name == name) else {
        let known = ADAPTERS.map(|a| a.name).join(", ");
        return Err(format!("no switch is named {name}: choose from {known}"));
    };
    match adapter.missing() {
        Some(why) => Err(format!("{name}: {why}")),
        None => Ok(adapter),
    }
}

/// Names of the adapters for which something is so, in a sentence.
fn named(is_so: impl Fn(&Adapter) -> bool) -> String {
    let all = ADAPTERS.into_iter().filter(|adapter| is_so(adapter));
    let names: Vec<&str> = all.map(|adapter| adapter.name).collect();
    match &names[..] {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

/// Why an option of a point would have no effect; none if it has one, or is not made.
fn ignored(adapter: &Adapter, spec: &Spec, choice: Choice) -> Option<String> {
    let option = choice.option();
    if !choice.is_made(spec) {
        return None;
    }
    if !adapter.choices.contains(&choice) {
        let peers = named(|other| other.choices.contains(&choice));
        return Some(format!(
            "{option}: {} does not have this option: leave it out, or choose --peer {peers}",
            adapter.name
        ));
    }
    let wanted = choice.kinds();
    let has_one = kinds(spec).iter().any(|kind| wanted.contains(kind));
    let names: Vec<String> = wanted.iter().map(|kind| kind.to_string()).collect();
    (!wanted.is_empty() && !has_one).then(|| {
        format!(
            "{option}: {} would have no port that it is for: leave it out, or choose {} ports",
            adapter.name,
            names.join(" or ")
        )
    })
}

/// Why a switch cannot be measured by the arguments of a point; none if it can. No option is without effect.
pub fn refusal(adapter: &Adapter, spec: &Spec) -> Option<String> {
    let name = adapter.name;
    if !adapter.has(&kinds(spec)) {
        let names: Vec<String> = adapter.kinds.iter().map(|kind| kind.to_string()).collect();
        return Some(format!(
            "{name} does not have these ports: choose --physical and --ports among {}",
            names.join(", ")
        ));
    }
    if let Some(why) = adapter.out_of_reach(spec) {
        return Some(why);
    }
    if spec.cost && adapter.cost.is_none() {
        let peers = named(|other| other.cost.is_some());
        return Some(format!(
            "--cost: {name} does not report what a packet costs: leave it out, or choose --peer {peers}"
        ));
    }
    let mut all = Choice::ALL.into_iter();
    all.find_map(|choice| ignored(adapter, spec, choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_adapters() {
        assert!(find("volley").is_ok());
        let error = find("none").err().unwrap();
        assert!(
            error
                .starts_with("no switch is named none: choose from volley, volley-router, testpmd")
        );
        let missing = Adapter {
            program: Some("no-such-program-of-any-package"),
            ..*ADAPTERS[2]
        };
        assert!(missing.missing().unwrap().contains("in PATH"));
    }

    /// The refusal of a point of a peer.
    fn refused(peer: &str, args: &str) -> Option<String> {
        let adapter = ADAPTERS.into_iter().find(|a| a.name == peer).unwrap();
        refusal(
            adapter,
            &Spec::of(&format!("{args} --peer {peer}")).unwrap(),
        )
    }

    /// Peers that have an option, by the table of the page.
    fn on_the_page(option: &str) -> Vec<&'static str> {
        let page = include_str!("../../../../../docs/lab.md");
        let (_, table) = page.split_once("| option | peers |").unwrap();
        let quoted = format!("`{option}`");
        let mut rows = table.lines().filter_map(|row| row.split_once(" | "));
        let (_, peers) = rows.find(|(options, _)| options.contains(&quoted)).unwrap();
        let (own, dpdk) = peers.split_once("programs of DPDK").unwrap_or((peers, ""));
        let names = [own, dpdk]
            .into_iter()
            .flat_map(|text| text.split('`').skip(1).step_by(2));
        names.collect()
    }

    #[test]
    fn no_option_is_ignored() {
        let options = [
            "--cores two-cores",
            "--cost",
            "--mac",
            "--rx-mode polling",
            "--swap",
            "--packed",
        ];
        for adapter in ADAPTERS {
            let args = match adapter.kinds {
                [only] => format!("v2v --ports {only}"),
                _ => "v2v".to_owned(),
            };
            assert_eq!(refused(adapter.name, &args), None, "{}", adapter.name);
            for words in options {
                let (option, _) = words.split_once(' ').unwrap_or((words, ""));
                let peers = on_the_page(option);
                let has_it = peers.contains(&adapter.name);
                let refused = refused(adapter.name, &format!("{args} {words}"));
                assert_eq!(refused.is_none(), has_it, "{option} {}", adapter.name);
                if let Some(why) = refused {
                    assert!(why.starts_with(&format!("{option}: {} ", adapter.name)));
                    let last = peers.last().unwrap();
                    assert!(why.contains(" --peer ") && why.ends_with(last), "{why}");
                }
            }
        }
        assert_eq!(
            refused("linux-bridge", "p2p --physical veth --mac").unwrap(),
            "--mac: linux-bridge does not have this option: leave it out, or choose --peer testpmd"
        );
    }

    #[test]
    fn options_of_ports_need_such_a_port() {
        assert_eq!(
            refused("testpmd", "p2p --packed").unwrap(),
            "--packed: testpmd would have no port that it is for: leave it out, or choose virtio-user ports"
        );
        let why = refused("volley", "p2p --physical veth --swap").unwrap();
        assert!(
            why.ends_with("or choose memif or virtio-user ports"),
            "{why}"
        );
        assert_eq!(refused("volley", "p2p --swap"), None);
        assert_eq!(refused("volley", "p2v --packed"), None);
        let why = refused("linux-bridge", "p2p").unwrap();
        assert!(
            why.ends_with("choose --physical and --ports among veth"),
            "{why}"
        );
        let why = refused("xdp", "p2p --physical veth --cost").unwrap();
        assert!(
            why.ends_with("or choose --peer volley, volley-router or testpmd"),
            "{why}"
        );
    }

    #[test]
    fn routers_forward_one_way_between_one_pair() {
        let args = "p2p --physical veth";
        for router in ["volley-router", "linux-router", "frr-router"] {
            assert_eq!(refused(router, args), None);
            for more in ["--both", "--reverse"] {
                let why = refused(router, &format!("{args} {more}")).unwrap();
                assert!(
                    why.starts_with(&format!("{more}: {router} routes ")),
                    "{why}"
                );
            }
        }
        for peer in ["volley-router", "t4p4s"] {
            let why = refused(peer, "loopback").unwrap();
            assert!(
                why.ends_with("choose p2p, p2v or v2v instead of loopback"),
                "{why}"
            );
        }
        assert_eq!(refused("t4p4s", "p2p --both"), None);
        assert_eq!(refused("linux-bridge", &format!("{args} --both")), None);
    }
}
