//! Ports of DPDK, and how it is started.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{
    DpdkDevice, DpdkEal, DpdkSpec, HugePages, InterfaceKind, InterfaceSpec, Request, Switch,
    SyntaxError,
};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    match id {
        Id::SetDpdkEal => eal(args),
        _ => create(args),
    }
}

fn create(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let (name, mut mac, mut mtu) = (args.text()?, None, None);
    let is_vdev = args.take("vdev");
    let device = match is_vdev {
        true => DpdkDevice::Vdev(args.text()?),
        false => DpdkDevice::Pci(args.text()?),
    };
    let mut spec = DpdkSpec::new(device);
    while let Some((word, column)) = args.option()? {
        match word {
            "num-rx-queues" => spec.queues = args.number32()?,
            "num-rx-desc" => spec.rx_desc = args.number32()?,
            "num-tx-desc" => spec.tx_desc = args.number32()?,
            "no-offload" => spec.offload = Switch::Off,
            "mac" => mac = Some(args.read()?),
            "mtu" => mtu = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::InterfaceCreate(InterfaceSpec {
        name,
        kind: InterfaceKind::Dpdk(spec),
        mac,
        mtu,
    }))
}

fn eal(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let mut eal = DpdkEal::default();
    for word in ["set", "dpdk", "eal"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "lcores" => eal.lcores = Some(args.text()?),
            "memory" => eal.memory = Some(args.number32()?),
            "huge-pages" => eal.huge_pages = HugePages::Yes,
            "no-huge-pages" => eal.huge_pages = HugePages::No,
            "option" => eal.options.push(args.text()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::DpdkEal(eal))
}
