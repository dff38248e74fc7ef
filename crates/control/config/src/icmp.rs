//! `[icmp]`: what senders of dropped packets are told.

use crate::field::Section;
use crate::read::Plan;
use volley_model::{IcmpSettings, Request, Switch, limits};

/// `[icmp]`
pub(crate) fn icmp(section: Section<'_>, plan: &mut Plan) {
    let usual = IcmpSettings::default();
    let number = |key, range| section.get(key).and_then(|f| f.uint32(range));
    let errors = section.get("errors").and_then(|f| f.boolean());
    let settings = IcmpSettings {
        errors: match errors {
            Some(false) => Switch::Off,
            _ => Switch::On,
        },
        rate: number("rate", limits::ICMP_RATE).unwrap_or(usual.rate),
        burst: number("burst", limits::ICMP_BURST).unwrap_or(usual.burst),
        receiver_rate: number("receiver_rate", limits::ICMP_RATE).unwrap_or(usual.receiver_rate),
    };
    plan.before(&section, Request::Icmp(settings));
}
