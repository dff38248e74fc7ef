//! ip4-glean, ip6-glean: packets whose next hop has no known MAC address. Neighbours are static yet, so they are dropped
//! by name.

crate::drops::drops_all! {
    /// State of a glean node.
    Glean, GLEAN,
    /// the next hop has no known MAC address
    Unresolved = "unresolved"
}
