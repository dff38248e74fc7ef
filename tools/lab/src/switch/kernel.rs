//! Veth pairs of a measurement, in a network namespace that ends with it.

use super::process::Process;
use super::topology::{Kind, index};
use std::process::Command;

/// Start the process whose network namespace has a veth pair for each link of this kind; none if there is no such link. The
/// generator and VNFs have the ends `lab0`, `lab1`, ..., the switch has `sw0`, `sw1`, ...
///
/// # Errors
/// A sentence, if the pairs cannot be made.
pub fn start(kinds: &[Kind]) -> Result<Option<Process>, String> {
    let numbers = kinds.iter().enumerate();
    let numbers = numbers.filter_map(|(n, kind)| kind.is_veth().then_some(n));
    let pairs: String = numbers.map(pair).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    // No packets of the kernel's own: neither router solicitations nor reports of multicast listeners.
    let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
    let text = format!("{quiet}\nip link set lo up\n{pairs}echo ready\nexec cat");
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-ec", &text]);
    Process::start("the namespace of the veth pairs", command, "ready").map(Some)
}

fn pair(n: usize) -> String {
    let index = index(n);
    format!(
        "ip link add sw{n} index {index} type veth peer name lab{n}\nip link set lab{n} up\nip link set sw{n} up\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_has_its_veth_pairs() {
        // Only root may make a network namespace without one for users.
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP: not root");
            return;
        }
        let mut pairs = start(&[Kind::Veth; 14]).unwrap().unwrap();
        pairs.check().unwrap();
    }
}
