//! What `show` commands report about an interface.

use super::{End, MAX_PAIRS, Port, Ports, waiting};
use crate::feature;
use crate::model::SocketRole;
use crate::show::{VhostRingRow, VhostUserReply, VhostUserRow};
use crate::wire::RingSlot;
use std::sync::atomic::Ordering::Relaxed;
use volley_iface::IfIdx;
use volley_model::ModelError;

impl Ports {
    /// The reply to `show vhost-user`.
    pub(crate) fn show(&self, name: Option<&str>) -> Result<VhostUserReply, ModelError> {
        let only = name.map(|name| self.host.index(name)).transpose()?;
        let wanted = self
            .ports
            .iter()
            .filter(|p| only.is_none_or(|i| i == p.index));
        let interfaces = wanted.map(|port| self.row(port)).collect();
        Ok(VhostUserReply { interfaces })
    }

    /// Lines for `show hardware-interfaces`.
    pub(super) fn details(&self, index: IfIdx) -> Vec<String> {
        let port = self.ports.iter().find(|p| p.index == index);
        port.map_or_else(Vec::new, |port| {
            let row = self.row(port);
            let mut lines = vec![
                format!("{} on {}: {}", row.role, row.socket, row.state),
                format!("features: {}", row.features),
            ];
            lines.extend(row.fault.map(|f| format!("last fault: {f}")));
            lines
        })
    }

    fn name(&self, port: &Port) -> String {
        self.host.interfaces.borrow().name(port.index.0)
    }

    fn row(&self, port: &Port) -> VhostUserRow {
        let kind = if port.front {
            "virtio-user"
        } else {
            "vhost-user"
        };
        let state = match &port.peer {
            Some(peer) => match peer.end.pairs() {
                0 => "connected, not ready".to_owned(),
                n => format!("connected, {n} queue pairs"),
            },
            None => waiting(&port.spec).to_owned(),
        };
        let role = match port.spec.role {
            SocketRole::Server => "server",
            SocketRole::Client => "client",
        };
        let features = port.peer.as_ref().map_or(0, |p| p.end.features());
        VhostUserRow {
            name: self.name(port),
            kind: kind.into(),
            socket: port.spec.socket.display().to_string(),
            role: role.into(),
            state,
            features: feature::names(features),
            fault: port.fault.as_ref().map(ToString::to_string),
            connections: port.connections,
            faults: port.faults,
            regions: regions(port),
            rings: rings(port),
        }
    }
}

fn regions(port: &Port) -> Vec<String> {
    let Some(End::Back(end)) = port.peer.as_ref().map(|p| &p.end) else {
        return Vec::new();
    };
    let line = |s: crate::memory::RegionSpec| {
        let (kb, guest, user) = (s.size >> 10, s.guest, s.user);
        format!(
            "{kb} KiB at guest {guest:#x}, user {user:#x}, file offset {:#x}",
            s.offset
        )
    };
    end.memory()
        .map_or_else(Vec::new, |m| m.describe().map(line).collect())
}

fn rings(port: &Port) -> Vec<VhostRingRow> {
    let row = |way: &str, queue: usize, lane: &RingSlot, size: u32| {
        lane.is_live().then(|| VhostRingRow {
            way: way.into(),
            queue: queue as u32,
            size,
            packets: lane.counts.packets.load(Relaxed),
            notifications: lane.counts.notifications_sent.load(Relaxed),
        })
    };
    let Some(end) = port.peer.as_ref().map(|p| &p.end) else {
        return Vec::new();
    };
    let size = |ring: usize| match end {
        End::Back(end) => end.ring_size(ring),
        End::Front(end) => u32::from(end.ring_size()),
    };
    let both = (0..MAX_PAIRS).flat_map(|q| {
        [
            row("rx", q, &port.wire.rx[q], size(2 * q + 1)),
            row("tx", q, &port.wire.tx[q], size(2 * q)),
        ]
    });
    both.flatten().collect()
}
