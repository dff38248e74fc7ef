//! ip4-not-enabled, ip6-not-enabled: drop packets of an IP version that is disabled on the interface.

crate::drops::drops_all! {
    /// State of a feature node that drops every packet.
    NotEnabled, NOT_ENABLED,
    /// the IP version is switched off on the receiving interface
    NotEnabled = "not-enabled"
}
