//! `set ip icmp`: whether errors are sent, and how many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use volley_model::{Applied, Handler, IcmpSettings, ModelError, Query, Reply, Request, Switch};

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
        self.errors.store(settings.errors == Switch::On, Relaxed);
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

/// Carries out `set ip icmp`.
pub(crate) struct IcmpHandler(pub(crate) Arc<IcmpSwitches>);

impl Handler for IcmpHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let Request::Icmp(settings) = request else {
            return None;
        };
        self.0.set(settings);
        Some(Ok(Applied::one()))
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
