//! vhost-user and virtio-user interfaces.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{InterfaceKind, InterfaceSpec, Request, SocketRole, SyntaxError, VhostSpec};

pub(super) fn create(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (mut name, mut mac, mut mtu) = (String::new(), None, None);
    let mut spec = VhostSpec::default();
    for word in ["create", "interface", "vhost-user", "virtio-user"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "socket" => spec.socket = args.text()?.into(),
            "server" => spec.role = SocketRole::Server,
            "gso" => spec.gso = true,
            "packed" => spec.packed = true,
            "event-idx" => spec.event_idx = true,
            "queues" => spec.queues = args.number32()?,
            "ring" => spec.ring = args.number32()?,
            "name" => name = args.text()?,
            "hwaddr" | "mac" => mac = Some(args.read()?),
            "mtu" => mtu = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    let kind = match id {
        Id::CreateVirtioUser => InterfaceKind::VirtioUser(spec),
        _ => InterfaceKind::VhostUser(spec),
    };
    Ok(Request::InterfaceCreate(InterfaceSpec {
        name,
        kind,
        mac,
        mtu,
    }))
}
