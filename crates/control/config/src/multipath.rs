//! `[multipath]`: how the flows of a route are shared out among its paths.

use crate::field::Section;
use crate::read::Plan;
use volley_model::{Multipath, Request, Switch, limits};

/// `[multipath]`
pub(crate) fn multipath(section: Section<'_>, plan: &mut Plan) {
    let resilient = section.get("resilient").and_then(|f| f.boolean());
    let buckets = section.get("buckets");
    let buckets = buckets.and_then(|f| f.uint32(limits::MULTIPATH_BUCKETS));
    let settings = Multipath {
        resilient: match resilient {
            Some(true) => Switch::On,
            _ => Switch::Off,
        },
        buckets: buckets.unwrap_or(Multipath::default().buckets),
    };
    plan.before(&section, Request::Multipath(settings));
}
