//! memif interfaces of the file.

use crate::field::Section;
use crate::schema::MEMIF;
use volley_model::{InterfaceKind, MemifRole, MemifSpec};

/// `memif = { ... }` of an interface; all of it may be left out.
pub(crate) fn kind(section: &Section<'_>) -> Option<InterfaceKind> {
    let mut memif = MemifSpec::default();
    let Some(field) = section.get("memif") else {
        return Some(InterfaceKind::Memif(memif));
    };
    let inner = field.section(&MEMIF)?;
    let number = |key, usual| match inner.get(key) {
        Some(field) => field.uint32(0..=u32::MAX),
        None => Some(usual),
    };
    memif.id = number("id", memif.id)?;
    memif.socket_id = number("socket", memif.socket_id)?;
    memif.ring_size = number("ring_size", memif.ring_size)?;
    memif.buffer_size = number("buffer_size", memif.buffer_size)?;
    memif.rx_queues = number("rx_queues", memif.rx_queues)?;
    memif.tx_queues = number("tx_queues", memif.tx_queues)?;
    if let Some(field) = inner.get("role") {
        memif.role = field.one_of(&[("master", MemifRole::Master), ("slave", MemifRole::Slave)])?;
    }
    if let Some(field) = inner.get("secret") {
        memif.secret = Some(field.text()?.to_owned());
    }
    Some(InterfaceKind::Memif(memif))
}
