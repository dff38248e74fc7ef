//! `set ip icmp`: enables ICMP errors and limits their rate.

use crate::IcmpSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use volley_iface::Registry;
use volley_model::Applied;

/// The ICMP settings for workers.
pub struct IcmpSwitches {
    errors: AtomicBool,
    rate: AtomicU32,
    burst: AtomicU32,
    receiver_rate: AtomicU32,
}

impl Default for IcmpSwitches {
    fn default() -> Self {
        let switches = IcmpSwitches {
            errors: AtomicBool::new(false),
            rate: AtomicU32::new(0),
            burst: AtomicU32::new(0),
            receiver_rate: AtomicU32::new(0),
        };
        switches.set(&IcmpSettings::default());
        switches
    }
}

impl IcmpSwitches {
    /// Applies new settings.
    pub fn set(&self, settings: &IcmpSettings) {
        self.errors.store(settings.errors, Relaxed);
        self.rate.store(settings.rate, Relaxed);
        self.burst.store(settings.burst, Relaxed);
        self.receiver_rate.store(settings.receiver_rate, Relaxed);
    }

    /// Whether ICMP errors are sent.
    pub(crate) fn errors(&self) -> bool {
        self.errors.load(Relaxed)
    }

    /// Rate and burst of each class, and rate to each receiver, in errors per second.
    pub(crate) fn limits(&self) -> (u32, u32, u32) {
        (
            self.rate.load(Relaxed),
            self.burst.load(Relaxed),
            self.receiver_rate.load(Relaxed),
        )
    }
}

/// Registers the owner of the settings.
pub(crate) fn own(registry: &mut Registry, switches: &Arc<IcmpSwitches>) {
    let switches = switches.clone();
    registry.own(move |_, now: Option<IcmpSettings>| {
        switches.set(&now.unwrap_or_default());
        Ok(Applied::one())
    });
}
