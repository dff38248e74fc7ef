//! A Volley with ports of DPDK, taps and memif, and capture files that DPDK's pcap driver plays and records.
#![allow(dead_code)]

#[path = "../../../memif/tests/support/testpmd.rs"]
pub mod testpmd;

use std::path::{Path, PathBuf};
use volley_dpdk::model::{DpdkInterface, VirtualDevice};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::ShowHardware;
use volley_linux::testbed::Daemon;
use volley_model::{InterfaceSpec, Request};
use volley_object::Object;

/// Enough packets for rings, vectors and the store.
const BUFFERS: usize = 16_384;

/// A daemon with the drivers that the ports are tested against; memif's default socket is `socket`.
pub fn daemon(socket: Option<&Path>) -> Daemon {
    let socket = socket.map(PathBuf::from);
    let mut memif = None;
    let daemon = Daemon::new(BUFFERS, None, |registry| {
        volley_l2::register(registry)?;
        volley_tap::register(registry)?;
        if let Some(socket) = socket {
            memif = Some(volley_memif::register(registry, socket).unwrap());
        }
        volley_dpdk::register(registry)
    });
    // Must live as long as the process, because the daemon's handlers use it.
    std::mem::forget(memif);
    daemon
}

/// The request that configures the start of DPDK.
pub fn set(eal: &volley_dpdk::model::DpdkEal) -> Request {
    Request::set(eal).unwrap()
}

/// A virtual device.
pub fn vdev(text: impl Into<String>) -> DpdkInterface {
    DpdkInterface {
        vdev: Some(VirtualDevice(text.into())),
        ..DpdkInterface::default()
    }
}

/// The request that creates an interface, which is down.
pub fn create(name: &str, spec: DpdkInterface) -> Request {
    Request::InterfaceCreate(InterfaceSpec {
        name: name.into(),
        kind: spec.instance().unwrap().named(name),
        mac: None,
        mtu: None,
    })
}

/// Like `create`, with an MTU.
pub fn create_mtu(name: &str, spec: DpdkInterface, mtu: u32) -> Request {
    Request::InterfaceCreate(InterfaceSpec {
        name: name.into(),
        kind: spec.instance().unwrap().named(name),
        mac: None,
        mtu: Some(mtu),
    })
}

pub fn up(daemon: &mut Daemon, name: &str) {
    daemon.must(Admin::request(name, AdminState::Up).unwrap());
}

/// Transmit everything that `rx` receives on `tx`.
pub fn one_way(daemon: &mut Daemon, rx: &str, tx: &str) {
    let (rx, tx) = (rx.into(), tx.into());
    let patch = volley_l2::model::L2Patch { rx, tx };
    daemon.must(Request::set(&patch).unwrap());
}

pub fn delete(daemon: &mut Daemon, name: &str) {
    daemon.must(Request::InterfaceDelete { name: name.into() });
}

/// The error of a refused request.
pub fn refused(daemon: &mut Daemon, request: Request) -> String {
    let text = request.to_string();
    match daemon.ask(request) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("`{text}` was carried out"),
    }
}

/// Output of `show hardware`.
pub fn hardware(daemon: &mut Daemon, name: &str) -> String {
    let asked = ShowHardware {
        name: Some(name.into()),
    };
    let reply = daemon.registry.owners.ask(&asked).unwrap();
    reply.hardware[0].details.join("\n")
}

/// An Ethernet frame of `len` bytes with its number; an experimental EtherType, so that no driver parses further.
pub fn frame(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; 12];
    bytes.extend([0x88, 0xb5]);
    bytes.extend((number as u32).to_be_bytes());
    let body = bytes.len()..len;
    bytes.extend(body.map(|i| (i.wrapping_mul(7) ^ number) as u8));
    bytes
}

/// Write a capture file.
pub fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for (at, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [at as u32, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    std::fs::write(path, file).unwrap();
}

/// The frames of a capture file.
pub fn read_pcap(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while rest.len() >= 16 {
        let len = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}
