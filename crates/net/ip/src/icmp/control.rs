//! `set ip icmp`: whether errors are sent, and how many.

use crate::IcmpSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use volley_iface::Registry;
use volley_model::Applied;

/// The settings as workers read them.
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
    /// Take over settings.
    pub fn set(&self, settings: &IcmpSettings) {
        self.errors.store(settings.errors, Relaxed);
        self.rate.store(settings.rate, Relaxed);
        self.burst.store(settings.burst, Relaxed);
        self.receiver_rate.store(settings.receiver_rate, Relaxed);
    }

    /// Whether errors are sent at all.
    pub(crate) fn errors(&self) -> bool {
        self.errors.load(Relaxed)
    }

    /// Errors a second and in one go, of each class; errors a second to each receiver.
    pub(crate) fn limits(&self) -> (u32, u32, u32) {
        (
            self.rate.load(Relaxed),
            self.burst.load(Relaxed),
            self.receiver_rate.load(Relaxed),
        )
    }
}

/// Owns the settings.
pub(crate) fn own(registry: &mut Registry, switches: &Arc<IcmpSwitches>) {
    let switches = switches.clone();
    registry.own(move |_, now: Option<IcmpSettings>| {
        switches.set(&now.unwrap_or_default());
        Ok(Applied::one())
    });
}
