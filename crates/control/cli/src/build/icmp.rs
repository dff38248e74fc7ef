//! `set ip icmp`, `set ip multipath`, and what interfaces do with IP packets.

use super::args::Args;
use super::interface::{self, stray};
use crate::grammar::Id;
use volley_model::{IcmpSettings, Multipath, Request, Switch, SyntaxError};

/// Whether a command is one of these.
pub(super) fn is_one(id: Id) -> bool {
    matches!(
        id,
        Id::SetIcmp | Id::SetMultipath | Id::SetUrpf | Id::SetIpSwitch | Id::SetUnnumbered
    )
}

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    match id {
        Id::SetIcmp => settings(args),
        Id::SetMultipath => multipath(args),
        _ => interface::ip(id, args),
    }
}

fn settings(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let mut icmp = IcmpSettings::default();
    for word in ["set", "ip", "icmp"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "errors" => {
                icmp.errors = match args.take("off") {
                    true => Switch::Off,
                    false => Switch::On,
                };
                args.take("on");
            }
            "rate" => icmp.rate = args.number32()?,
            "burst" => icmp.burst = args.number32()?,
            "receiver-rate" => icmp.receiver_rate = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Request::Icmp(icmp))
}

fn multipath(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let mut multipath = Multipath::default();
    for word in ["set", "ip", "multipath"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "resilient" => multipath.resilient = Switch::On,
            "buckets" => multipath.buckets = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Request::Multipath(multipath))
}
