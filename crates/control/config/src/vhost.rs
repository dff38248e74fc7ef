//! Keys of kinds `vhost-user` and `virtio-user`.

use crate::field::Section;
use crate::read::path;
use volley_model::{SocketRole, VhostSpec};

pub(crate) fn spec(section: &Section<'_>) -> Option<VhostSpec> {
    let default = VhostSpec::default();
    let switch = |key| section.get(key).map_or(Some(false), |f| f.boolean());
    let number = |key, usual| {
        section
            .get(key)
            .map_or(Some(usual), |f| f.uint32(1..=32_768))
    };
    let roles = [
        ("client", SocketRole::Client),
        ("server", SocketRole::Server),
    ];
    Some(VhostSpec {
        socket: section.required("socket").and_then(|f| path(&f))?,
        role: section
            .get("role")
            .map_or(Some(default.role), |f| f.one_of(&roles))?,
        gso: switch("gso")?,
        packed: switch("packed")?,
        event_idx: switch("event_idx")?,
        queues: number("queues", default.queues)?,
        ring: number("ring", default.ring)?,
    })
}
