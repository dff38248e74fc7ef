//! Objects of multicast: queriers of interfaces. Multicast routes are in `mroute`.

use crate::members::show::ShowGroups;
use crate::mroute::Mroute;
use crate::show::ShowMroutes;
use volley_model::Family;
use volley_object::{Class, DefinitionError, FieldError, Object, Query, refuse};

/// Querier of IGMP (RFC 3376, 8) or MLD (RFC 3810, 9): the interface asks its hosts for the groups that they listen to, and
/// forwards these groups to them.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(
    class = "group_querier",
    file = "interface.group_querier.*",
    check = GroupQuerier::check
)]
#[object(set = "set interface (igmp@family=ip4 | mld@family=ip6) <interface> on {fields}")]
#[object(unset = "set interface (igmp@family=ip4 | mld@family=ip6) <interface> off")]
#[object(example = "set interface igmp lan0 on query-interval 60")]
pub struct GroupQuerier {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP version: IGMP for IPv4, MLD for IPv6.
    #[object(key)]
    pub family: Family,
    /// Time between two general queries.
    #[object(default = 125, range = 1u32..=31_744, unit = "s")]
    pub query_interval: u32,
    /// Consecutive messages that may be lost, and one.
    #[object(default = 2, range = 1u32..=7)]
    pub robustness: u32,
    /// Time in which hosts answer a general query.
    #[object(default = 10_000, range = 100u32..=60_000, unit = "ms")]
    pub max_response: u32,
    /// Time in which hosts answer a query for one group, and between two such queries.
    #[object(default = 1000, range = 100u32..=60_000, unit = "ms")]
    pub last_member_interval: u32,
    /// Queries for a group before the group is removed; the robustness where it is not set.
    #[object(range = 1u32..=7)]
    pub last_member_count: Option<u32>,
}

impl GroupQuerier {
    fn check(&self) -> Result<(), FieldError> {
        match self.max_response < self.query_interval * 1000 {
            true => Ok(()),
            false => refuse(
                "max_response",
                format!(
                    "must be shorter than the query interval of {} s (RFC 3376, 8.3), not {} ms",
                    self.query_interval, self.max_response
                ),
            ),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowMroutes::query()?;
    ShowGroups::query()?;
    // Objects refer to the class of IP tables.
    volley_fib::IpTable::class()?;
    Ok(vec![Mroute::class()?, GroupQuerier::class()?])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn querier() -> GroupQuerier {
        GroupQuerier::defaults(["pg0".into(), "ip4".into()]).unwrap()
    }

    #[test]
    fn responses_come_before_the_next_query() {
        let wrong = GroupQuerier {
            query_interval: 10,
            ..querier()
        };
        let reported = wrong.instance().unwrap_err().to_string();
        assert!(
            reported.contains("shorter than the query interval of 10 s"),
            "{reported}"
        );
    }
}
