//! `[ip4_reassembly]`, `[ip6_reassembly]`: how much of datagrams, for the router and in transit, may wait for fragments.

use crate::field::Section;
use crate::read::Plan;
use volley_model::{Family, ReassemblySettings, Request, limits};

/// `[ip4_reassembly]`
pub(crate) fn ip4(section: Section<'_>, plan: &mut Plan) {
    settings(Family::V4, section, plan);
}

/// `[ip6_reassembly]`
pub(crate) fn ip6(section: Section<'_>, plan: &mut Plan) {
    settings(Family::V6, section, plan);
}

fn settings(family: Family, section: Section<'_>, plan: &mut Plan) {
    let usual = ReassemblySettings::default();
    let number = |key, range| section.get(key).and_then(|f| f.uint32(range));
    let datagrams = number("max_reassemblies", limits::REASSEMBLIES);
    let length = number("max_reassembly_length", limits::REASSEMBLY_LENGTH);
    let buffers = number("max_buffers", limits::REASSEMBLY_BUFFERS);
    let virtual_ms = number("virtual_timeout_ms", limits::VIRTUAL_TIMEOUT_MS);
    let settings = ReassemblySettings {
        max_reassemblies: datagrams.unwrap_or(usual.max_reassemblies),
        max_reassembly_length: length.unwrap_or(usual.max_reassembly_length),
        max_buffers: buffers.unwrap_or(usual.max_buffers),
        timeout: number("timeout", limits::REASSEMBLY_TIMEOUT),
        virtual_timeout_ms: virtual_ms.unwrap_or(usual.virtual_timeout_ms),
    };
    plan.before(&section, Request::Reassembly { family, settings });
}
