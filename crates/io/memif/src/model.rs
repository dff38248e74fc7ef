//! The objects of this crate: memif interfaces, and sockets that they meet at.

use crate::show::ShowMemif;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, Query, refuse};

/// Longest filename of a socket, in bytes.
const FILENAME: usize = 107;

/// Socket that memif interfaces meet at. Socket 0, memif.sock beside the control socket, is built in.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "memif_socket", file = "[[memif_socket]]", check = MemifSocket::check)]
#[object(recreate, formerly = "memif-socket-add")]
#[object(set = "create memif socket id <id> filename <filename>")]
#[object(unset = "delete memif socket id <id>")]
#[object(example = "create memif socket id 1 filename /run/volley/memif1.sock")]
pub struct MemifSocket {
    /// Number of the socket.
    #[object(key, built_in = 0, example = "1")]
    pub id: u32,
    /// Path of the socket; @NAME for an abstract socket.
    #[object(example = "/run/volley/memif1.sock")]
    pub filename: PathBuf,
}

impl MemifSocket {
    fn check(&self) -> Result<(), FieldError> {
        match self.filename.as_os_str().as_encoded_bytes() {
            b"@" => refuse(
                "filename",
                "must be a path, or @ and a name for an abstract socket",
            ),
            name if name.len() > FILENAME => {
                let len = name.len();
                refuse(
                    "filename",
                    format!("must have {FILENAME} bytes at most, not {len}"),
                )
            }
            _ => Ok(()),
        }
    }
}

/// Which side of a connection an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema, Choice)]
#[serde(rename_all = "kebab-case")]
pub enum MemifRole {
    /// Be the side that listens at the socket (server).
    #[default]
    Master,
    /// Be the side that connects and owns the shared memory (client).
    Slave,
}

/// Longest secret, in bytes.
const SECRET: usize = 24;
/// Bytes that the rings of a connection share, less than 4 GB.
const MEMORY: u64 = 1 << 32;

/// Interface to another program by shared memory (memif): the master listens at a socket, the slave connects. The slave decides
/// queues, ring size and buffer size.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "memif", interface = "memif", file = "interface.memif", check = Memif::check)]
#[object(formerly = "memif socket_id=socket no_zero_copy=")]
#[object(
    set = "create interface memif {id <id> | socket-id <socket> | master@role=master | slave@role=slave | ring-size <ring_size> | \
           buffer-size <buffer_size> | rx-queues <rx_queues> | tx-queues <tx_queues> | secret <secret> | no-zero-copy | \
           name <name> | (mac | hw-addr) <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete interface memif <name>")]
#[object(example = "create interface memif id 0 socket-id 0 master")]
pub struct Memif {
    /// Name of the interface; without one, memif with the numbers of socket and interface.
    #[object(key, derived = Memif::usual_name, example = "memif0/0")]
    pub name: String,
    /// Number of the interface on its socket; both sides have the same.
    #[object(default = 0)]
    pub id: u32,
    /// Number of the memif socket that both sides meet at.
    #[object(default = 0, needs = "memif_socket")]
    pub socket: u32,
    /// Side of the connection.
    #[object(default = MemifRole::Master)]
    pub role: MemifRole,
    /// Text of up to 24 bytes that both sides know: a connection without it is refused.
    #[object(secret)]
    pub secret: Option<String>,
    /// Descriptors of a ring of the slave, a power of two.
    #[object(default = 1024, range = 1u32..=16_384)]
    pub ring_size: u32,
    /// Length of a packet buffer of the slave.
    #[object(default = 2048, range = 64u32..=65_535, unit = "bytes")]
    pub buffer_size: u32,
    /// Rings by which the slave receives.
    #[object(default = 1, range = 1u32..=64)]
    pub rx_queues: u32,
    /// Rings by which the slave transmits.
    #[object(default = 1, range = 1u32..=64)]
    pub tx_queues: u32,
}

impl Memif {
    fn usual_name(&self) -> String {
        format!("memif{}/{}", self.socket, self.id)
    }

    fn check(&self) -> Result<(), FieldError> {
        if !self.ring_size.is_power_of_two() {
            let why = format!("must be a power of two, 1 to 16384, not {}", self.ring_size);
            return refuse("ring_size", why);
        }
        let rings = u64::from(self.rx_queues + self.tx_queues) * u64::from(self.ring_size);
        if rings * u64::from(self.buffer_size + 128) >= MEMORY {
            let why =
                "must be less: queues x ring_size x buffer_size stay below 4 GB of shared memory";
            return refuse("buffer_size", why);
        }
        match self.secret.as_deref() {
            Some("") => refuse("secret", "must not be empty: leave it out"),
            Some(secret) if secret.len() > SECRET => refuse(
                "secret",
                format!("must have {SECRET} bytes at most, not {}", secret.len()),
            ),
            Some(secret) if secret.contains('\0') => refuse("secret", "must not have a NUL"),
            _ => Ok(()),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowMemif::query()?;
    Ok(vec![MemifSocket::class()?, Memif::class()?])
}
