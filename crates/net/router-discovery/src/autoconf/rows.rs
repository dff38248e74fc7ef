//! Rows of `show` for interfaces with SLAAC.

use super::Autoconfiguration;
use super::routers::{Reachability, router_state};
use super::state::{self, Expiry};
use crate::link::SECOND;
use crate::show::{
    AddressState, AutoconfAddressRow, AutoconfRow, AutoconfState, OnLinkRow, RouterRow,
};
use volley_fib::Fib;
use volley_model::IfAddress;

impl Autoconfiguration {
    /// An interface's autoconfiguration for `show`.
    pub fn row(
        &self,
        iface: u32,
        (fib, now): (&Fib, u64),
        neighbors: &dyn Reachability,
        address_state: impl Fn(IfAddress) -> Option<AddressState>,
    ) -> Option<AutoconfRow> {
        let client = self.clients.get(&iface)?;
        let left = |until: u64| until.saturating_sub(now) / (SECOND / 1000);
        let lasts = |until: Expiry| until.map(left);
        let mut row = AutoconfRow {
            default_route: client.default_route,
            state: AutoconfState::Down,
            solicitations: 0,
            heard: 0,
            refused: 0,
            routers: Vec::new(),
            on_link: Vec::new(),
            addresses: Vec::new(),
        };
        let Some(state) = &client.state else {
            return Some(row);
        };
        row.state = match state {
            _ if state.disabled => AutoconfState::Disabled,
            _ if state.heard > 0 => AutoconfState::Heard,
            _ if state.is_asking() => AutoconfState::Soliciting,
            _ => AutoconfState::Unanswered,
        };
        (row.solicitations, row.heard, row.refused) =
            (state.solicitations, state.heard, state.refused);
        let ways = state.ways();
        let best = ways.iter().map(|(_, place)| *place).min();
        let takes = client.default_route;
        let place = |it: &state::Router| it.reach.place(it.message.preference);
        let router = |it: &state::Router| RouterRow {
            address: it.message.router,
            lifetime_ms: left(it.until),
            in_use: takes && Some(place(it)) == best,
            silent: it.reach.is_silent(),
            neighbor: router_state(fib, neighbors, (iface, it.message.router)),
            preference: it.message.preference,
            hop_limit: it.message.hop_limit,
            mtu: it.message.mtu,
            reachable_ms: it.message.reachable_ms,
            retransmit_ms: it.message.retransmit_ms,
        };
        row.routers = state.routers.iter().map(router).collect();
        let network = |it: &state::Network| OnLinkRow {
            prefix: it.prefix,
            valid_ms: lasts(it.until),
        };
        row.on_link = state.networks.iter().map(network).collect();
        let address = |it: &state::Made| AutoconfAddressRow {
            address: it.address,
            state: address_state(it.address).filter(|_| fib.is_automatic(iface, it.address)),
            valid_ms: lasts(it.valid),
            preferred_ms: lasts(it.preferred),
        };
        row.addresses = state.addresses.iter().map(address).collect();
        Some(row)
    }
}
