//! Lines of `show hardware` for a port.

use crate::model::DpdkInterface;
use crate::ring::Port;
use crate::sys::{self, Conf, Info};

/// Lines about fixed properties.
pub(crate) fn fixed(info: &Info, conf: &Conf, dpdk: &DpdkInterface, port: u16) -> Vec<String> {
    let device = match (&dpdk.dev, &dpdk.vdev) {
        (Some(pci), _) => format!("dev {pci}"),
        (None, Some(vdev)) => format!("vdev {vdev}"),
        (None, None) => String::new(),
    };
    let can = [
        (sys::CAN_CHECKSUM, "checksum"),
        (sys::CAN_TSO, "tcp segmentation"),
        (sys::CAN_SEGMENTS, "packets of several buffers out"),
        (sys::CAN_SCATTER, "and in"),
    ];
    let on = can
        .iter()
        .filter(|(bit, _)| u32::from(conf.used) & bit != 0);
    let names: Vec<&str> = on.map(|(_, name)| *name).collect();
    let names = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    vec![
        format!(
            "{}, port {port}, driver {}, {device}",
            sys::version(),
            info.driver()
        ),
        format!(
            "queues: rx {} of {} (at most {}), tx {} of {} (at most {})",
            conf.rx_queues,
            conf.rx_desc,
            info.max_rx_queues,
            conf.tx_queues,
            conf.tx_desc,
            info.max_tx_queues
        ),
        format!("the port does: {names}"),
        "mbufs are Volley's packet buffers, nothing is copied between them".to_owned(),
    ]
}

/// Lines about the present state.
pub(crate) fn now(port: &Port) -> Vec<String> {
    let mut lines = Vec::new();
    if let Ok(link) = port.raw().link() {
        let speed = match link.mbps {
            0 => "speed unknown".to_owned(),
            mbps => format!("{mbps} Mbit/s"),
        };
        let duplex = if link.is_full_duplex() {
            "full"
        } else {
            "half"
        };
        let state = if link.is_up() { "up" } else { "down" };
        lines.push(format!("link {state}, {speed}, {duplex} duplex"));
    }
    if let Ok(s) = port.raw().stats() {
        lines.push(format!(
            "port counts: rx {} packets {} bytes, missed {}, errors {}, no buffer {}; tx {} packets {} bytes, errors {}",
            s.rx_packets,
            s.rx_bytes,
            s.rx_missed,
            s.rx_errors,
            s.rx_no_buffer,
            s.tx_packets,
            s.tx_bytes,
            s.tx_errors
        ));
        for queue in 0..16 {
            let (rx, tx) = (s.queue_rx[queue], s.queue_tx[queue]);
            if rx + tx > 0 {
                lines.push(format!("port counts, queue {queue}: rx {rx}, tx {tx}"));
            }
        }
    }
    let store = port.store();
    lines.push(format!(
        "buffers with DPDK: {}, of which {} wait to be used",
        store.away(),
        store.level()
    ));
    lines
}
