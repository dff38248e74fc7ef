//! Requests and queries about group membership.

use super::querier::{Group, MS, Querier};
use super::show::{GroupRow, GroupsReply, GroupsRow, ShowGroups, SourceRow};
use super::{Members, MembershipState};
use crate::model::GroupQuerier;
use std::cell::RefCell;
use std::rc::Rc;
use volley_fib::{V4, V6};
use volley_iface::{Change, Interfaces, Registry, driver};
use volley_model::{Applied, Family, ModelError, key_value};
use volley_object::Object;

/// Carries out requests about queriers.
pub(crate) struct MembersHandler {
    members: Rc<RefCell<Members>>,
    interfaces: Rc<RefCell<Interfaces>>,
}

fn left(until: u64, now: u64) -> Option<u64> {
    (until > now).then(|| (until - now) / MS)
}

fn group<F: MembershipState>((group, it): (&F::Addr, &Group<F::Addr>), now: u64) -> GroupRow {
    let sources = it.sources.iter().map(|(source, it)| SourceRow {
        source: F::ip(*source),
        expires_ms: left(it.until, now),
    });
    // MLDv1 corresponds to IGMPv2.
    let age = u8::from(F::WIDTH == 16);
    GroupRow {
        group: F::ip(*group),
        exclude: it.exclude,
        expires_ms: left(it.until, now).filter(|_| it.exclude),
        version: it.version(now) - age,
        sources: sources.collect(),
    }
}

fn row<F: MembershipState>(interface: String, it: &Querier<F::Addr>, now: u64) -> GroupsRow {
    let querier = it.querier();
    let other = querier.and_then(|(_, until)| until);
    GroupsRow {
        interface,
        settings: it.settings().instance().ok(),
        querier: querier.map(|(address, _)| F::ip(address)),
        own: querier.is_some() && other.is_none(),
        other_ms: other.map(|until| until.saturating_sub(now) / MS),
        queries: it.queries,
        reports: it.reports,
        refused: it.refused,
        groups: it.iter().map(|it| group::<F>(it, now)).collect(),
    }
}

impl MembersHandler {
    pub fn new(members: Rc<RefCell<Members>>, interfaces: Rc<RefCell<Interfaces>>) -> Self {
        let ours = members.clone();
        interfaces.borrow_mut().listen(move |change| {
            if let Change::Deleted(gone) = change {
                ours.borrow_mut().forget(gone.index.0);
            }
        });
        MembersHandler {
            members,
            interfaces,
        }
    }

    /// Registers the queriers as the owner of their class and of the query that shows groups.
    pub fn own(self, registry: &mut Registry) {
        let members = self.members.clone();
        registry.own_setting(move |index, key, now: Option<GroupQuerier>| {
            let mut members = members.borrow_mut();
            match key_value(key, 1) {
                Family::V4 => members.set::<V4>(index.0, now),
                Family::V6 => members.set::<V6>(index.0, now),
            }
            Ok(Applied::one())
        });
        registry.answer(move |query: ShowGroups| {
            let interface = query.interface.as_deref();
            match query.family {
                Family::V4 => self.show::<V4>(interface),
                Family::V6 => self.show::<V6>(interface),
            }
        });
    }

    fn index(&self, name: &str) -> Result<u32, ModelError> {
        let all = self.interfaces.borrow();
        let index = all.index(name).map(|index| index.0);
        index.map_err(|e| driver::to_model_error(&all, e))
    }

    fn show<F: MembershipState>(&self, only: Option<&str>) -> Result<GroupsReply, ModelError> {
        let only = only.map(|name| self.index(name)).transpose()?;
        let (members, all) = (self.members.borrow(), self.interfaces.borrow());
        let now = members.now();
        let shown = F::ports(&members).iter();
        let shown = shown.filter(|(iface, _)| only.is_none_or(|only| only == **iface));
        let interfaces = shown.map(|(iface, port)| row::<F>(all.name(*iface), &port.querier, now));
        let interfaces = interfaces.collect();
        Ok(GroupsReply { interfaces })
    }
}
