//! The element classes: one line each.

mod arp;
mod basic;
mod check;
mod classify;
mod delay;
mod device;
mod dump;
mod ethernet;
mod expression;
mod fragment;
mod icmp;
mod ip;
mod options;
mod ping;
mod print;
mod queue;
mod red;
mod rewrite;
mod route;
mod source;
mod switch;
mod transport;

use crate::spec::Spec;

/// All element classes, in groups.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    GROUPS.iter().flat_map(|(_, specs)| specs.iter())
}

/// The groups of classes, each with its name.
pub static GROUPS: [(&str, &[Spec]); 12] = [
    ("Interfaces and files", device::SPECS),
    ("Capture files", dump::SPECS),
    ("Sources", source::SPECS),
    ("Basic elements", basic::SPECS),
    ("Switches", switch::SPECS),
    ("Queues and rates", queue::SPECS),
    ("Classification", classify::SPECS),
    ("Ethernet and ARP", ethernet::SPECS),
    ("IPv4", ip::SPECS),
    ("Routes and ICMP", route::SPECS),
    ("Transport and rewriting", transport::SPECS),
    ("Printing", print::SPECS),
];

/// The class of a name.
pub fn find(name: &str) -> Option<&'static Spec> {
    all().find(|spec| spec.name == name)
}

/// The names of all classes.
pub fn names() -> Vec<&'static str> {
    all().map(|spec| spec.name).collect()
}
