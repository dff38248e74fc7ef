//! ip4-not-enabled, ip6-not-enabled: the feature that switches an IP version off on an interface.

crate::drops::drops_all! {
    /// State of a feature node that lets nothing pass.
    NotEnabled, NOT_ENABLED,
    /// the IP version is switched off on the receiving interface
    NotEnabled = "not-enabled"
}
