//! Router discovery on the control thread: calls its state machines and carries out their effects.

use crate::control::{Control, WaitingPacket};
use crate::lane::{Frame, NeighborMessage, NeighborMessageKind};
use crate::table::{Key, Table};
use std::net::Ipv6Addr;
use volley_iface::{Flag, IfIdx};
use volley_model::Family;
use volley_router_discovery::NeighborState;
use volley_router_discovery::{
    AutoconfMode, AutoconfRow, Effect, Moment, Reachability, ReceivedAdvert, RouterDiscovery, nd,
};

impl Reachability for Table<WaitingPacket> {
    fn state(&self, key: Key) -> Option<NeighborState> {
        Table::state(self, key)
    }

    fn seek(&mut self, key: Key, now: u64) {
        Table::seek(self, key, now);
    }

    fn ask_once(&mut self, key: Key, now: u64) {
        Table::ask_once(self, key, now);
    }

    fn used(&mut self, key: Key, now: u64) {
        Table::used(self, key, now);
    }
}

impl Control {
    /// Calls a state machine of router discovery now, and carries out its effects.
    pub(crate) fn discover<T>(
        &mut self,
        call: impl FnOnce(&mut RouterDiscovery, &mut Moment<'_>) -> T,
    ) -> T {
        self.discover_at(self.now(), call)
    }

    /// Calls a state machine at the time `now`, and carries out its effects.
    pub(crate) fn discover_at<T>(
        &mut self,
        now: u64,
        call: impl FnOnce(&mut RouterDiscovery, &mut Moment<'_>) -> T,
    ) -> T {
        self.discover_with(now, |discovery, _, moment| call(discovery, moment))
    }

    fn discover_with<T>(
        &mut self,
        now: u64,
        call: impl FnOnce(&mut RouterDiscovery, &mut Table<WaitingPacket>, &mut Moment<'_>) -> T,
    ) -> T {
        let mut fib = self.fib.borrow_mut();
        let mut moment = Moment {
            now,
            links: &self.links,
            fib: &mut fib,
            random: &mut self.random,
            effects: Vec::new(),
        };
        let result = call(&mut self.discovery, &mut self.table, &mut moment);
        let effects = moment.effects;
        drop(fib);
        for effect in effects {
            self.carry_out_one(effect, now);
        }
        result
    }

    fn carry_out_one(&mut self, effect: Effect, now: u64) {
        match effect {
            Effect::Send(iface, frame) => self.send_long(Frame::new(iface, &frame)),
            Effect::SendShort(iface, frame) => self.send(Frame::new(iface, &frame)),
            Effect::Mark(iface, flag, on) => {
                let interfaces = self.interfaces.borrow();
                interfaces.table().set(IfIdx(iface), flag, on);
            }
            Effect::Tell(iface, what) => self.tell(iface, &what),
            Effect::Learn(rx, router, mac) => {
                let heard = NeighborMessage {
                    rx,
                    addr: router.into(),
                    mac,
                    what: NeighborMessageKind::Question,
                };
                self.hear(heard, now);
            }
            Effect::NoRoom => self.tally.no_room += 1,
            Effect::SilentRouter => self.tally.silent_routers += 1,
        }
    }

    /// Follows an interface that was added, deleted or changed; `link` is true if its link attributes changed.
    pub(crate) fn follow_discovery(&mut self, iface: u32, link: bool) {
        let lcp_tap = self.interfaces.borrow().table().has(iface, Flag::HasLcpTap);
        self.discover(|it, moment| {
            it.autoconf.follow(iface, moment);
            it.listeners.follow(iface, lcp_tap, moment);
            if link {
                it.advertisers.follow(iface, moment);
            }
        });
    }

    /// Sets what an interface accepts from the routers of its link (SLAAC).
    pub(crate) fn autoconfigure(&mut self, iface: u32, mode: AutoconfMode) {
        self.discover(|it, moment| it.autoconf.set_mode(iface, mode, moment));
        self.renew_probes(iface);
        self.discover(|it, moment| it.autoconf.follow(iface, moment));
        self.refresh();
    }

    /// Handles a router advertisement; the caller calls `autoconf.settle` afterwards.
    pub(crate) fn hear_router(&mut self, iface: u32, message: &ReceivedAdvert, now: u64) {
        self.discover_at(now, |it, moment| {
            it.advertisers.compare(iface, message, moment);
            it.autoconf.hear(iface, message, moment);
        });
    }

    /// Does everything in router discovery that is due.
    pub(crate) fn turn_discovery(&mut self, now: u64) {
        let failed = std::mem::take(&mut self.table.failed);
        for (iface, addr) in &failed {
            let interface = || self.interfaces.borrow().name(*iface);
            tracing::info!(target: "neighbor", interface = interface(), "{addr} does not answer");
        }
        self.discover_with(now, |it, table, moment| {
            it.advertisers.turn(moment);
            it.autoconf.turn(table, &failed, moment);
            it.listeners.turn(moment);
        });
    }

    /// Before the daemon ends, sends a final advertisement on every advertising interface. True if there is one.
    pub(crate) fn farewell(&mut self) -> bool {
        let some = self.discover(|it, moment| {
            it.advertisers.farewell(moment);
            !moment.effects.is_empty()
        });
        self.engine.borrow().wake();
        some
    }

    /// An interface's autoconfiguration for `show`.
    pub(crate) fn autoconf_row(&self, iface: u32) -> Option<AutoconfRow> {
        let (fib, states) = (self.fib.borrow(), self.address_rows(iface));
        let state = |address| {
            let row = states.iter().find(|row| row.address == address);
            row.map(|row| row.state)
        };
        let autoconf = &self.discovery.autoconf;
        autoconf.row(iface, (&fib, self.now()), &self.table, state)
    }

    /// The link-local address of an interface with an IPv6 address.
    pub(crate) fn link_local(&self, iface: u32) -> Option<Ipv6Addr> {
        let link = self.links.get(&iface).filter(|link| link.has(Family::V6))?;
        Some(nd::link_local(link.mac))
    }

    /// A new random number for a message of an interface.
    pub(crate) fn chance(&mut self, iface: u32) -> u64 {
        let mac = self.links.get(&iface).map_or([0; 6], |link| link.mac);
        let now = self.now();
        self.random.draw(mac, now)
    }
}
