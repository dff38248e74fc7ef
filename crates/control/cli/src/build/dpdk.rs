//! Ports of DPDK.

use super::args::Args;
use super::interface::stray;
use volley_model::{
    DpdkDevice, DpdkSpec, InterfaceKind, InterfaceSpec, Request, Switch, SyntaxError,
};

pub(super) fn create(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
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
