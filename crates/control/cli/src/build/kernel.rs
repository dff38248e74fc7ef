//! Interfaces that stand for, or on, interfaces of the Linux kernel.

use super::args::Args;
use super::interface::stray;
use volley_model::{
    InterfaceKind, InterfaceSpec, Mac, PacketSpec, Request, Switch, SyntaxError, TapMode, TapSpec,
    TapVhost, XdpCopy, XdpMode, XdpSpec,
};

/// What every kind takes.
#[derive(Default)]
struct Common {
    name: Option<String>,
    mac: Option<Mac>,
    mtu: Option<u32>,
}

impl Common {
    /// Take an option that every kind has; false when it is another one.
    fn take(&mut self, word: &str, args: &mut Args<'_>) -> Result<bool, SyntaxError> {
        match word {
            "name" | "as" => self.name = Some(args.text()?),
            "mac" | "hw-addr" => self.mac = Some(args.read()?),
            "mtu" => self.mtu = Some(args.number32()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn create(self, name: String, kind: InterfaceKind) -> Request {
        Request::InterfaceCreate(InterfaceSpec {
            name: self.name.unwrap_or(name),
            kind,
            mac: self.mac,
            mtu: self.mtu,
        })
    }
}

pub(super) fn tap(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (mut common, mut tap, mut id) = (Common::default(), TapSpec::default(), 0);
    // The command's own words, which no value parts from its options.
    let _ = (args.take("create"), args.take("tap"));
    while let Some((word, column)) = args.option()? {
        match word {
            "id" => id = args.number32()?,
            "tun" => tap.mode = TapMode::Tun,
            "host-if-name" => tap.host = Some(args.text()?),
            "host-ns" => tap.namespace = Some(args.text()?),
            "host-mac-addr" => tap.host_mac = Some(args.read()?),
            "host-mtu-size" => tap.host_mtu = Some(args.number32()?),
            "host-ip-addr" | "host-ip4-addr" | "host-ip6-addr" => {
                tap.host_addresses.push(args.read()?);
            }
            "num-rx-queues" => tap.queues = args.number32()?,
            "no-offload" => tap.offload = Switch::Off,
            "vhost" if args.take("on") => tap.vhost = TapVhost::On,
            "vhost" if args.take("off") => tap.vhost = TapVhost::Off,
            "vhost" if args.take("auto") => tap.vhost = TapVhost::Auto,
            _ if common.take(word, args)? => {}
            _ => stray(word, column)?,
        }
    }
    let prefix = if tap.mode == TapMode::Tun {
        "tun"
    } else {
        "tap"
    };
    Ok(common.create(format!("{prefix}{id}"), InterfaceKind::Tap(tap)))
}

pub(super) fn host(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (mut common, mut host) = (Common::default(), PacketSpec::default());
    host.host = args.text()?;
    while let Some((word, column)) = args.option()? {
        match word {
            "netns" => host.namespace = Some(args.text()?),
            "num-rx-queues" => host.queues = args.number32()?,
            "ring-size" => host.ring = args.number32()?,
            "no-offload" => host.offload = Switch::Off,
            "wait" => host.wait = true,
            _ if common.take(word, args)? => {}
            _ => stray(word, column)?,
        }
    }
    let name = format!("host-{}", host.host);
    Ok(common.create(name, InterfaceKind::HostInterface(host)))
}

pub(super) fn xdp(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (mut common, mut xdp) = (Common::default(), XdpSpec::default());
    xdp.host = args.text()?;
    while let Some((word, column)) = args.option()? {
        match word {
            "netns" => xdp.namespace = Some(args.text()?),
            "num-rx-queues" => xdp.queues = Some(args.number32()?),
            "ring-size" => xdp.ring = args.number32()?,
            "native" => xdp.mode = XdpMode::Native,
            "generic" => xdp.mode = XdpMode::Generic,
            "zero-copy" => xdp.copy = XdpCopy::Zero,
            "no-zero-copy" => xdp.copy = XdpCopy::Copy,
            "wait" => xdp.wait = true,
            _ if common.take(word, args)? => {}
            _ => stray(word, column)?,
        }
    }
    let name = xdp.host.clone();
    Ok(common.create(name, InterfaceKind::AfXdp(xdp)))
}
