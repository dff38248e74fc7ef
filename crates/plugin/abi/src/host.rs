//! The parts of the router that a plugin may use ([`Host`]).

use std::rc::Rc;
use std::sync::Arc;
use volley_graph::Domain;

/// An interface of the router, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInterface {
    /// Name.
    pub name: String,
    /// Index: the word of the columns `Col::RX` and `Col::TX`.
    pub index: u32,
    /// MAC address.
    pub mac: [u8; 6],
    /// MTU: the maximum length of an IP packet that the interface transmits.
    pub mtu: u32,
}

/// The level of a text for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// A fault.
    Error,
    /// An event that an operator should know.
    Warning,
    /// An event of normal operation.
    Info,
}

/// What the router does for a plugin on the control thread.
pub trait HostServices {
    /// The interfaces, in any order.
    fn interfaces(&self) -> Vec<HostInterface>;
    /// Write a text to the log of the router.
    fn log(&self, level: LogLevel, text: &str);
}

/// No router: no interfaces, and no log.
pub struct NoServices;

impl HostServices for NoServices {
    fn interfaces(&self) -> Vec<HostInterface> {
        Vec::new()
    }

    fn log(&self, _: LogLevel, _: &str) {}
}

/// The parts of the router that a plugin may use. A plugin uses it on the control thread.
#[derive(Clone)]
pub struct Host {
    /// The name under which the plugin was loaded.
    pub name: String,
    /// Capacity of vectors in packets.
    pub vector_size: usize,
    /// The maximum number of workers.
    pub workers: usize,
    /// The domain of published tables, for `Publisher::new`.
    pub domain: Arc<Domain>,
    /// Interfaces and the log.
    pub services: Rc<dyn HostServices>,
}

impl Host {
    /// The interfaces of the router, in any order. Indexes of deleted interfaces are used again: ask whenever an object is applied.
    pub fn interfaces(&self) -> Vec<HostInterface> {
        self.services.interfaces()
    }

    /// Write a text to the log of the router.
    pub fn log(&self, level: LogLevel, text: &str) {
        self.services.log(level, text);
    }
}
