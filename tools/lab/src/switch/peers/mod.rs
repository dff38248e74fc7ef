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

pub use adapter::Adapter;

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
}
