//! memif interfaces and sockets.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{InterfaceKind, InterfaceSpec, MemifRole, MemifSpec, Request, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    Ok(match id {
        Id::DeleteMemif => Request::InterfaceDelete { name: args.text()? },
        _ => create(args)?,
    })
}

fn create(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (mut name, mut mac, mut mtu) = (None, None, None);
    let mut memif = MemifSpec::default();
    for word in ["create", "interface", "memif"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "id" => memif.id = args.number32()?,
            "socket-id" => memif.socket_id = args.number32()?,
            "master" => memif.role = MemifRole::Master,
            "slave" => memif.role = MemifRole::Slave,
            "ring-size" => memif.ring_size = args.number32()?,
            "buffer-size" => memif.buffer_size = args.number32()?,
            "rx-queues" => memif.rx_queues = args.number32()?,
            "tx-queues" => memif.tx_queues = args.number32()?,
            "secret" => memif.secret = Some(args.text()?),
            "no-zero-copy" => memif.no_zero_copy = true,
            "name" => name = Some(args.text()?),
            "mac" | "hw-addr" => mac = Some(args.read()?),
            "mtu" => mtu = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::InterfaceCreate(InterfaceSpec {
        name: name.unwrap_or_else(|| memif.default_name()),
        kind: InterfaceKind::Memif(memif),
        mac,
        mtu,
    }))
}
