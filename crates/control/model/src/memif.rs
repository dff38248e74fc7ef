//! memif interfaces.

use crate::error::ModelError;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use volley_object::quote;

/// Longest secret, in bytes.
const SECRET: usize = 24;
/// Most queues, each way.
const QUEUES: u32 = 64;

/// Which side of a connection an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemifRole {
    /// Listens at the socket (server).
    #[default]
    Master,
    /// Connects to it and owns the shared memory (client).
    Slave,
}

impl Display for MemifRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemifRole::Master => "master",
            MemifRole::Slave => "slave",
        })
    }
}

/// A memif interface. Queues, ring size and buffer size are the slave's to say; a master takes what its slave offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemifSpec {
    /// Its number, the same on both sides.
    pub id: u32,
    /// The socket that both sides meet at.
    pub socket_id: u32,
    /// Which side.
    pub role: MemifRole,
    /// What the slave has to know, up to 24 bytes.
    pub secret: Option<String>,
    /// Descriptors of a ring: a power of two up to 16384.
    pub ring_size: u32,
    /// Bytes of a packet buffer, 64 to 65535.
    pub buffer_size: u32,
    /// Rings to receive by.
    pub rx_queues: u32,
    /// Rings to transmit by.
    pub tx_queues: u32,
    /// Accepted, and so already: packets are copied, for buffers that a peer can write to would be at its mercy.
    pub no_zero_copy: bool,
}

impl Default for MemifSpec {
    fn default() -> Self {
        MemifSpec {
            id: 0,
            socket_id: 0,
            role: MemifRole::Master,
            secret: None,
            ring_size: 1024,
            buffer_size: 2048,
            rx_queues: 1,
            tx_queues: 1,
            no_zero_copy: false,
        }
    }
}

impl MemifSpec {
    /// Name of an interface that is given none: `memif<socket>/<id>`.
    pub fn default_name(&self) -> String {
        format!("memif{}/{}", self.socket_id, self.id)
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within("ring-size", self.ring_size, 1..=16_384)?;
        if !self.ring_size.is_power_of_two() {
            let why = "it must be a power of two, 1 to 16384";
            return Err(ModelError::invalid(
                format!("ring-size {}", self.ring_size),
                why,
            ));
        }
        within("buffer-size", self.buffer_size, 64..=65_535)?;
        within("rx-queues", self.rx_queues, 1..=QUEUES)?;
        within("tx-queues", self.tx_queues, 1..=QUEUES)?;
        let rings = u64::from(self.rx_queues + self.tx_queues) * u64::from(self.ring_size);
        if rings * u64::from(self.buffer_size + 128) >= 1 << 32 {
            let why = "queues x ring-size x buffer-size must stay below 4 GB of shared memory";
            return Err(ModelError::invalid(
                format!("memif {}", self.default_name()),
                why,
            ));
        }
        match self.secret.as_deref() {
            Some("") => Err(ModelError::invalid("secret", "it is empty: leave it out")),
            Some(secret) if secret.len() > SECRET => {
                let bytes = secret.len() as u64;
                Err(ModelError::limit(
                    "length of the secret",
                    bytes,
                    SECRET as u64,
                ))
            }
            Some(secret) if secret.contains('\0') => {
                Err(ModelError::invalid("secret", "it must not hold a NUL"))
            }
            _ => Ok(()),
        }
    }
}

impl Display for MemifSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = MemifSpec::default();
        write!(
            f,
            "id {} socket-id {} {}",
            self.id, self.socket_id, self.role
        )?;
        let numbers = [
            ("ring-size", self.ring_size, usual.ring_size),
            ("buffer-size", self.buffer_size, usual.buffer_size),
            ("rx-queues", self.rx_queues, usual.rx_queues),
            ("tx-queues", self.tx_queues, usual.tx_queues),
        ];
        for (word, value, usual) in numbers {
            if value != usual {
                write!(f, " {word} {value}")?;
            }
        }
        if let Some(secret) = &self.secret {
            write!(f, " secret {}", quote(secret))?;
        }
        if self.no_zero_copy {
            f.write_str(" no-zero-copy")?;
        }
        Ok(())
    }
}
