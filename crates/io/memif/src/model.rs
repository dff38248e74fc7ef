//! The object of this crate: a socket that memif interfaces meet at.

use std::path::PathBuf;
use volley_object::{Class, DefinitionError, FieldError, Object};

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
        let wrong = |why: String| {
            Err(FieldError {
                field: "filename",
                why,
            })
        };
        match self.filename.as_os_str().as_encoded_bytes() {
            b"@" => wrong("must be a path, or @ and a name for an abstract socket".to_owned()),
            name if name.len() > FILENAME => wrong(format!(
                "must have {FILENAME} bytes at most, not {}",
                name.len()
            )),
            _ => Ok(()),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![MemifSocket::class()?])
}
