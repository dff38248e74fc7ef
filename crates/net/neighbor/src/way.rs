//! FIB lookups for the nodes that check the senders and targets of neighbour messages.

use volley_fib::Family;
use volley_fib::dataplane::{Dpo, DpoKind, View};

/// The FIB table of one interface.
pub(crate) struct InterfaceRoutes<'g, F: Family> {
    pub(crate) view: View<'g, F>,
    pub(crate) rx: u32,
}

impl<F: Family> InterfaceRoutes<'_, F> {
    /// Looks up an address.
    pub(crate) fn to(&self, address: F::Addr) -> Dpo {
        let table = self.view.table_of(self.rx);
        self.view.forward(table, address, 0)
    }

    /// Whether the result leads out by the interface.
    pub(crate) fn leads_back(&self, dpo: Dpo) -> bool {
        match dpo.kind() {
            DpoKind::Glean => dpo.index() == self.rx,
            DpoKind::Adj | DpoKind::Incomplete => {
                self.view.adjs().words(dpo.index()).tx_if == self.rx
            }
            _ => false,
        }
    }

    /// Whether the address is the interface's own, or one that the unnumbered interface uses of another interface.
    pub(crate) fn is_own(&self, dpo: Dpo, address: F::Addr) -> bool {
        let local = dpo.kind() == DpoKind::Local;
        let own = || self.view.own(self.rx).iter().any(|(a, _)| *a == address);
        local && (dpo.index() == self.rx || own())
    }

    /// Whether the result leads out by another interface.
    pub(crate) fn leads_elsewhere(&self, dpo: Dpo) -> bool {
        let out = matches!(
            dpo.kind(),
            DpoKind::Glean | DpoKind::Adj | DpoKind::Incomplete
        );
        out && !self.leads_back(dpo)
    }

    /// Whether the result is an adjacency with this MAC address.
    pub(crate) fn leads_to(&self, dpo: Dpo, mac: [u8; 6]) -> bool {
        dpo.kind() == DpoKind::Adj && self.view.adj(dpo.index()).bytes().get(..6) == Some(&mac)
    }
}
