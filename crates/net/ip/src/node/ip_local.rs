//! ip4-local, ip6-local: packets for the router itself. No local protocol listens yet, so they are dropped by name.

crate::drops::drops_all! {
    /// State of a local delivery node.
    Local, LOCAL,
    /// the destination is an address of the router, and nothing local listens yet
    Local = "local"
}
