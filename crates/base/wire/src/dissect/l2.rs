//! Text of the link layer.

use super::out::{Kept, Next, Out, Step};
use crate::eth::{self, EthHeader, Frame};
use crate::{EtherType, Header};

/// Addresses, tags, and the name of the payload.
pub(super) fn ethernet<'a>(out: &mut Out<'_, '_>, all: Kept<'a>) -> Step<'a> {
    match eth::frame(all.bytes) {
        Ok(frame) => known(out, all, &frame),
        Err(error) => {
            if let Ok((header, _)) = EthHeader::split(all.bytes) {
                out.layer(format_args!(
                    "{}: {} -> {}",
                    header.ether_type, header.src, header.dst
                ))?;
            }
            Err(all.stop(error))
        }
    }
}

fn known<'a>(out: &mut Out<'_, '_>, all: Kept<'a>, frame: &Frame<'a>) -> Step<'a> {
    let (src, dst) = (frame.header.src, frame.header.dst);
    if frame.ether_type.is_length() {
        out.layer(format_args!("802.3: {src} -> {dst}"))?;
    } else {
        out.layer(format_args!("{}: {src} -> {dst}", frame.ether_type))?;
    }
    tags(out, frame)?;
    if frame.ether_type.is_length() {
        out.add(format_args!(" len {}", frame.ether_type.value()))?;
        return Ok(None);
    }
    Ok(Some(Next::Type(frame.ether_type, all.after(frame.offset))))
}

fn tags(out: &mut Out<'_, '_>, frame: &Frame<'_>) -> core::fmt::Result {
    let mut kind = frame.header.ether_type;
    for (n, tag) in frame.tags.enumerate() {
        if n == 8 {
            return out.add(format_args!(
                " and {} tags more",
                frame.tags.count_left() - n
            ));
        }
        let name = if kind == EtherType::VLAN {
            "vlan"
        } else {
            "svlan"
        };
        out.add(format_args!(" {name} {}", tag.tci.id()))?;
        if tag.tci.priority() != 0 {
            out.add(format_args!(" pcp {}", tag.tci.priority()))?;
        }
        kind = tag.ether_type;
    }
    Ok(())
}
