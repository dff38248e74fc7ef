//! The query `arping`: sends ARP requests (RFC 826) or neighbour solicitations (RFC 4861, 7.2) for an address and reports the
//! replies.
//!
//! Contract: an answer changes neighbour state only as it would without a run. The memory of a run is bounded, however many
//! hosts answer.

pub(crate) mod query;
pub(crate) mod run;

use crate::control::Control;
use crate::entry::Mac;
use crate::lane::{ControlQueues, ProbeEvent, ProbeMessage};
use crate::message::Found;
use crate::table::Key;
use query::{Arping, ArpingReply};
use run::Run;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use volley_model::{Family, ModelError};
use volley_object::Progress;

/// Most concurrent runs.
const RUNS: usize = 8;

/// The run of one client. Dropping the value ends the run.
pub struct ArpingRun {
    control: Rc<RefCell<Control>>,
    id: u16,
    interface: String,
    address: IpAddr,
    source: IpAddr,
    stopped: bool,
}

impl Drop for ArpingRun {
    fn drop(&mut self) {
        self.control.borrow_mut().end_arping(self.id);
    }
}

impl ArpingRun {
    /// Begins a run.
    pub(crate) fn begin(
        control: &Rc<RefCell<Control>>,
        query: &Arping,
    ) -> Result<ArpingRun, ModelError> {
        let (id, source) = control.borrow_mut().start_arping(query)?;
        Ok(ArpingRun {
            control: control.clone(),
            id,
            interface: query.interface.clone(),
            address: query.address,
            source,
            stopped: false,
        })
    }
}

impl volley_object::Run for ArpingRun {
    type Reply = ArpingReply;

    fn take(&mut self) -> Progress<ArpingReply> {
        let mut control = self.control.borrow_mut();
        let now = control.now();
        let mut reply = ArpingReply {
            interface: self.interface.clone(),
            address: self.address,
            source: self.source,
            sent: 0,
            received: 0,
            macs: Vec::new(),
            answers: Vec::new(),
        };
        let Some(run) = control.arpings.runs.get_mut(&self.id) else {
            let is_over = true;
            return Progress { reply, is_over };
        };
        (reply.sent, reply.received) = (run.asked, run.received);
        reply.macs = run.macs.iter().copied().map(volley_model::Mac).collect();
        reply.answers = std::mem::take(&mut run.unread);
        let is_over = self.stopped || run.is_done(now);
        Progress { reply, is_over }
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

/// The runs of all clients.
#[derive(Default)]
pub(crate) struct Arpings {
    runs: BTreeMap<u16, Run>,
    next: u16,
    /// The run and the request number, while a request is being built.
    pub(crate) asked_by: Option<(u16, u32)>,
}

impl Arpings {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run and returns its identifier.
    fn begin(&mut self, run: Run) -> u16 {
        while self.runs.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.runs.insert(id, run);
        id
    }

    /// Due requests: run, request number, interface and address.
    fn due(&mut self, now: u64) -> Vec<(u16, u32, Key)> {
        let due = self.runs.iter_mut().filter_map(|(id, run)| {
            let due = run.next(now);
            due.then_some((*id, run.asked.wrapping_sub(1), (run.iface, run.address)))
        });
        due.collect()
    }

    /// Handles the report of a worker about a sent request or an answer.
    pub(crate) fn hear(&mut self, heard: ProbeMessage) {
        match heard.event {
            ProbeEvent::Sent { id, number } => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.sent(number, heard.at);
                }
            }
            ProbeEvent::Answer { rx, addr, mac } => {
                let mine = |run: &&mut Run| (run.iface, run.address) == (rx, addr);
                for run in self.runs.values_mut().filter(mine) {
                    run.answered(mac, heard.at);
                }
            }
        }
    }
}

impl Control {
    fn start_arping(&mut self, query: &Arping) -> Result<(u16, IpAddr), ModelError> {
        if self.arpings.runs.len() >= RUNS {
            let why = format!("{RUNS} of them run already; try again when one has ended");
            return Err(ModelError::invalid("arping", why));
        }
        let (iface, source) = self.arping_source(query)?;
        let id = self.arpings.begin(Run::new(iface, query, self.now()));
        self.expect_arpings();
        self.turn_arpings(self.now());
        self.carry_out();
        Ok((id, source))
    }

    fn end_arping(&mut self, id: u16) {
        self.arpings.runs.remove(&id);
        self.expect_arpings();
    }

    /// Tells workers through a flag whether any run waits for answers.
    fn expect_arpings(&self) {
        for lane in &self.lanes {
            lane.set_probed(!self.arpings.is_empty());
        }
    }

    /// The interface of a run, and the source address of its requests.
    fn arping_source(&self, query: &Arping) -> Result<(u32, IpAddr), ModelError> {
        let iface = self.interface_index(&query.interface)?;
        let refuse = |why: String| {
            let what = format!("arping on interface {}", query.interface);
            Err(ModelError::invalid(what, why))
        };
        let Some(link) = self.links.get(&iface).filter(|link| link.up) else {
            return refuse("the interface is down: set it up by `set interface state`".to_owned());
        };
        if !self.learns(iface) {
            return refuse(
                "an interface of this kind has no link with stations that could answer".to_owned(),
            );
        }
        if link.addresses.iter().any(|a| a.addr() == query.address) {
            return refuse(format!("{} is the interface's own address", query.address));
        }
        let source = match query.address {
            IpAddr::V4(target) => link.source(target).map(IpAddr::V4),
            IpAddr::V6(target) => {
                let has = link.has(Family::V6);
                has.then(|| link.source6(target).into())
            }
        };
        match source {
            Some(source) => Ok((iface, source)),
            None => {
                let family = Family::of(query.address);
                let word = match family {
                    Family::V4 => "ip",
                    Family::V6 => "ip6",
                };
                refuse(format!(
                    "the interface has no {family} address to ask from: give it one by `set interface {word} address`"
                ))
            }
        }
    }

    /// Sends the due requests of all runs.
    pub(crate) fn turn_arpings(&mut self, now: u64) {
        for (id, number, key) in self.arpings.due(now) {
            self.arpings.asked_by = Some((id, number));
            self.ask(key, None);
            self.arpings.asked_by = None;
        }
    }
}

/// Worker: reports an answer if a run of arping waits for answers.
pub(crate) fn answer(lane: &ControlQueues, now: u64, (rx, addr): (u32, IpAddr), mac: Mac) {
    if lane.is_probed() && addr != IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        // The queue is full only under a flood of answers; the answer is lost.
        let _ = lane.probe_messages.push(ProbeMessage {
            at: now,
            event: ProbeEvent::Answer { rx, addr, mac },
        });
    }
}

/// Worker: reports the answer in a received neighbour advertisement.
pub(crate) fn answer6(lane: &ControlQueues, now: u64, (rx, found): (u32, &Found), mac: Mac) {
    if found.flags.is_some() {
        answer(lane, now, (rx, found.target.into()), mac);
    }
}
